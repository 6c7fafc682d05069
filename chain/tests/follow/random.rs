//! Seeded runs against the model node.

use std::time::Duration;

use regatta_chain::follow::{FollowConfig, NotReady};

use crate::node::{Message, Node};
use crate::rig::{Rig, config};

/// What the runs met, so that none of it is missed by all of them.
#[derive(Default, Debug)]
struct Met {
    reverted: u64,
    deep: u64,
    rereads: u64,
    late_logs: u64,
    short: u64,
    believed: u64,
    reconnects: u64,
    contradictions: u64,
}

fn reconnect(rig: &mut Rig, node: &mut Node) {
    node.cut();
    if rig.connection.is_some() {
        rig.disconnect();
    }
    rig.connect();
    rig.subscribe();
}

/// One run: a bad time, and then a good one.
fn run(seed: u64, met: &mut Met) {
    let lenient = seed % 8 == 7;
    let (journal_blocks, backfill_blocks) = if lenient {
        (300, 100)
    } else {
        [(4, 5), (6, 3), (12, 30)][(seed % 3) as usize]
    };
    let mut rig = Rig::new(FollowConfig {
        journal_blocks,
        backfill_blocks,
        ..config()
    });
    rig.lenient = lenient;
    let root = rig.tree.add(None, 10, 0, false);
    let mut node = Node::new(seed, root, lenient);
    rig.connect();
    rig.subscribe();
    let window = [1, 3, 12][node.rng.below(3)];
    for _ in 0..30 + node.rng.below(120) {
        match node.rng.below(20) {
            0..=2 => node.change(&mut rig),
            3..=9 => node.deliver(&mut rig, window),
            10..=15 => node.serve(&mut rig),
            16..=18 if rig.reread.is_some() => {
                let done = node.rng.chance(70);
                rig.read(done);
            }
            16 => {
                let wait = [1, 15, 120, 6_000][node.rng.below(4)];
                rig.pass(Duration::from_millis(wait));
            }
            19 if rig.reconnect.is_some() || node.rng.chance(10) => reconnect(&mut rig, &mut node),
            _ => {}
        }
    }
    calm(&mut rig, &mut node);
    let counters = rig.follower.counters();
    met.reverted += counters.reverted;
    met.deep = met.deep.max(counters.deepest_reorg);
    met.rereads += counters.rereads;
    met.late_logs += counters.late_logs;
    met.short += counters.short_answers;
    met.believed += counters.empties_believed;
    met.reconnects += counters.reconnects;
    met.contradictions += counters.contradictions;
}

/// The node becomes honest, says one more block and is quiet: the follower gets there.
fn calm(rig: &mut Rig, node: &mut Node) {
    node.loss = 0;
    node.fails = 0;
    let last = rig.tree.on(node.head, 2);
    node.become_head(rig, last);
    if !node
        .wire
        .iter()
        .any(|message| matches!(message, Message::Header(hash) if *hash == last))
    {
        panic!("the head is announced");
    }
    for _ in 0..3_000 {
        if rig.connection.is_none() || rig.reconnect.is_some() {
            reconnect(rig, node);
            node.wire.push(Message::Header(last));
        }
        if !node.wire.is_empty() {
            node.deliver(rig, 1);
        } else if rig.reread.is_some() {
            rig.read(true);
        } else if !rig.calls.is_empty() {
            node.serve(rig);
        } else if rig.not_ready().is_some() {
            rig.pass(Duration::from_millis(20));
        } else {
            // Its chain is the node's, from what was read on; each block with all its logs.
            assert_eq!(rig.chain.last(), Some(&last), "{:?}", rig.follower);
            for two in rig.chain.windows(2) {
                assert_eq!(rig.tree.parent(two[1]), two[0]);
                assert_eq!(rig.logs[&two[1]], rig.tree.logs(two[1]));
            }
            return;
        }
    }
    panic!(
        "does not get there: {:?}\n{:#?}",
        rig.not_ready(),
        rig.follower
    );
}

#[test]
fn a_node_that_comes_to_rest_is_followed_to_its_head() {
    let mut met = Met::default();
    let only = std::env::var("REGATTA_FOLLOW_SEED")
        .ok()
        .map(|text| text.parse::<u64>().unwrap());
    for seed in only.map_or(0..20_000, |seed| seed..seed + 1) {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut met)));
        assert!(result.is_ok(), "REGATTA_FOLLOW_SEED={seed} shows it again");
    }
    if only.is_none() {
        assert!(
            met.deep >= 4 && met.reverted > 1_000 && met.rereads > 20_000,
            "{met:?}"
        );
        assert!(
            met.late_logs > 10 && met.short > 100 && met.believed > 100,
            "{met:?}"
        );
        assert!(met.reconnects > 100 && met.contradictions > 100, "{met:?}");
    }
}

#[test]
fn without_a_connection_it_says_so() {
    let rig = Rig::new(config());
    assert_eq!(rig.not_ready(), Some(NotReady::Disconnected));
}
