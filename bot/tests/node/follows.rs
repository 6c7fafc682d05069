//! What a healthy connection brings.

use crate::made_up::{pool, step};
use crate::rig::{FAR, Rig, bot, hash};
use regatta_bot::source::Event;
use regatta_chain::rpc::Request;
use regatta_fake_node::contracts::sync;
use regatta_fake_node::{Faults, Glitch, Removed, Reply};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use serde_json::json;

/// The market is read at the first head; then each block comes once, complete, and each header at once.
#[test]
fn blocks_come_in_order_with_what_they_moved() {
    let mut rig = Rig::start();
    for number in 0..10 {
        rig.step(number);
    }
    let canonical = rig.node.chain(|chain| chain.canonical().to_vec());
    let said: Vec<_> = rig.model.blocks.iter().map(|(hash, _)| *hash).collect();
    // The market is read at the block that is the latest when the subscriptions are there, or at the first head.
    let from = canonical
        .iter()
        .position(|at| Some(&hash(*at)) == said.first());
    assert!(from.is_some_and(|from| from <= 1));
    let expected: Vec<_> = canonical
        .iter()
        .skip(from.unwrap())
        .map(|at| hash(*at))
        .collect();
    assert_eq!(said, expected);
    assert_eq!(rig.model.rereads, 1);
    for at in canonical.iter().skip(1).map(|at| hash(*at)) {
        assert_eq!(rig.heads.recv_timeout(FAR).unwrap().hash, at);
    }
    let status = rig.status();
    assert_eq!(status.not_ready, None);
    assert_eq!(status.connections, 1);
    assert_eq!(status.head.unwrap().0.number, 10);
}

/// Row S8: calls and announcements have a socket each, so a call that is not answered delays no header.
#[test]
fn a_call_that_hangs_holds_up_no_header() {
    let mut rig = Rig::start();
    rig.step(0);
    assert_eq!(rig.node.seen().open, 2, "one for calls, one that listens");
    rig.node.on("eth_gasPrice", |_| Reply::Silence);
    let asker = rig.thread.asker().clone();
    let asks = move || {
        let request = Request::new("eth_gasPrice", json!([]));
        asker.ask(vec![request], 1, FAR).map(drop)
    };
    let hangs = Census::new()
        .spawn(ThreadSpec::one("test", "asks"), asks)
        .unwrap();
    rig.node
        .block_until("the question", |seen| seen.calls("eth_gasPrice") > 0)
        .unwrap();
    for number in 1..4 {
        rig.step(number);
    }
    let heads: Vec<_> = (0..4)
        .map(|_| rig.heads.recv_timeout(FAR).unwrap().number)
        .collect();
    assert_eq!(heads, [1, 2, 3, 4]);
    rig.node.drop_connections();
    rig.is_lost();
    assert!(hangs.join().unwrap().is_err());
}

/// Several moves of one pool in a block stay in their order, foreign and malformed logs change nothing and are counted.
#[test]
fn the_logs_of_a_block_are_read_exactly() {
    let mut rig = Rig::start();
    rig.step(0);
    let foreign = alloy_primitives::Address::repeat_byte(0x33);
    let mut malformed = sync(pool(1), 1, 1);
    malformed.data = vec![1; 40].into();
    rig.node.extend(vec![
        sync(pool(0), 1, 2),
        sync(foreign, 3, 4),
        malformed,
        sync(pool(0), 5, 6),
    ]);
    let head = rig.node.chain(|chain| chain.head_hash());
    while rig.model.tip() != Some(hash(head)) {
        rig.batch().unwrap();
    }
    let Some(Event::Block(block)) = rig.events.last() else {
        panic!("{:?}", rig.events);
    };
    let id = rig.model.market.pool_by_address(bot(pool(0))).unwrap();
    let moves: Vec<_> = block
        .updates
        .iter()
        .map(|update| (update.pool, update.reserve0, update.reserve1))
        .collect();
    assert_eq!(moves, [(id, 1, 2), (id, 5, 6)]);
    rig.until("the counts", |status| {
        status.passed.foreign_logs == 1 && status.passed.malformed_logs == 1
    });
}

/// A pool whose reserves went to zero is followed on, and has again what it says later (row N13).
#[test]
fn a_pool_that_is_emptied_is_followed_on() {
    let mut rig = Rig::start();
    rig.step(0);
    let id = rig.model.market.pool_by_address(bot(pool(1))).unwrap();
    rig.node.extend(vec![sync(pool(1), 0, 7)]);
    rig.catch_up();
    assert!(!rig.model.market.pool(id).is_usable());
    rig.node.extend(vec![sync(pool(1), 8, 7)]);
    rig.catch_up();
    assert!(rig.model.market.pool(id).is_usable());
}

/// Reorganisations of every kind of node: without a word of the old logs, or with them taken back in any order; and
/// a branch that is shorter than the one it replaces (row N9).
#[test]
fn a_reorganisation_takes_back_what_was_said() {
    for removed in [
        Removed::Never,
        Removed::LastFirst,
        Removed::FirstFirst,
        Removed::AfterTheNew,
    ] {
        let mut rig = Rig::start();
        rig.node.faults(|faults| faults.removed = removed);
        for number in 0..8 {
            rig.step(number);
        }
        rig.node.reorg(3, (20..24).map(step).collect());
        rig.catch_up();
        assert_eq!(rig.model.reverts, 3, "{removed:?}");
        rig.node.reorg(4, (30..32).map(step).collect());
        rig.catch_up();
        rig.step(40);
        assert_eq!(rig.model.reverts, 7, "{removed:?}");
        assert_eq!(rig.model.rereads, 1);
        assert_eq!(rig.status().counters.reverted, 7);
    }
}

/// Logs that are answered late, wrongly empty, or that come before the header, change nothing (rows N5, N6).
#[test]
fn answers_that_come_late_are_waited_for() {
    let mut rig = Rig::start();
    rig.step(0);
    for faults in [
        Faults {
            log_glitches: vec![Glitch::Error, Glitch::Empty],
            ..Faults::default()
        },
        Faults {
            unknown_for: 2,
            ..Faults::default()
        },
        Faults {
            logs_stopped: true,
            ..Faults::default()
        },
        Faults {
            logs_first: true,
            logs_reversed: true,
            ..Faults::default()
        },
    ] {
        rig.node.faults(|present| *present = faults);
        for number in 1..4 {
            rig.step(number);
        }
    }
    assert_eq!(rig.model.rereads, 1);
    assert_eq!(rig.status().connections, 1);
}

/// A node that refuses to give a block's logs for all contracts is asked for those of the pools (row N10), and gives them.
#[test]
fn a_block_with_too_many_logs_is_narrowed_to_the_pools() {
    let mut rig = Rig::start();
    rig.step(0);
    rig.node.faults(|faults| {
        faults.block_limit = Some(2);
        faults.logs_stopped = true;
    });
    let foreign = alloy_primitives::Address::repeat_byte(0x33);
    let mut logs: Vec<_> = (0..20).map(|n| sync(foreign, n, n)).collect();
    logs.extend((0..3).map(|n| sync(pool(n), 5, 6)));
    rig.node.extend(logs);
    rig.catch_up();
    assert_eq!(rig.status().connections, 1);
}
