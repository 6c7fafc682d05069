//! Nodes that lie: typed, bounded, and never a panic or a chain that does not hang together.

use std::time::{Duration, Instant};

use alloy_primitives::{B256, U64};
use regatta_chain::follow::{
    Answer, Call, ChainEvent, ConfigError, Failure, FollowConfig, Follower, NotReady,
    ReconnectReason,
};
use regatta_chain::types::Header;

use crate::node::Rng;
use crate::rig::{Rig, config};
use crate::tree::Tree;

#[test]
fn a_header_whose_number_does_not_follow_its_parents_is_a_contradiction() {
    let (mut rig, root) = Rig::live(config(), 100);
    let lie = rig.tree.add(Some(root), 103, 0, false);
    rig.header(lie);
    assert_eq!(
        rig.not_ready(),
        Some(NotReady::Contradiction {
            number: 103,
            hash: lie
        })
    );
    assert_eq!(rig.took(), Vec::<String>::new());
    // The next head that is right is followed.
    let right = rig.tree.on(root, 0);
    rig.header(right);
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["block 101 0".to_owned()], None)
    );
    // One that goes on lying is given up.
    for number in 200..=204 {
        let lie = rig.tree.add(Some(right), 104 + number % 2, 0, false);
        rig.header(lie);
    }
    assert_eq!(rig.reconnect, Some(ReconnectReason::Contradictions));
}

#[test]
fn parents_that_name_each_other_end_the_walk() {
    let (mut rig, _) = Rig::live(config(), 100);
    let (one, other) = (B256::repeat_byte(1), B256::repeat_byte(2));
    for (hash, parent, number) in [
        (one, other, 104),
        (other, one, 103),
        (B256::repeat_byte(3), B256::repeat_byte(3), 102),
    ] {
        let made = rig.tree.add(Some(parent), number, 0, false);
        let mut block = rig.tree.blocks.remove(&made).unwrap();
        block.header.hash = hash;
        rig.tree.blocks.insert(hash, block);
        rig.header(hash);
    }
    for _ in 0..200 {
        if rig.serve(one).is_none() {
            rig.pass(Duration::from_millis(20));
        }
        assert!(rig.not_ready().is_some());
    }
    assert!(rig.follower.counters().contradictions > 0);
    assert_eq!(rig.took(), Vec::<String>::new());
}

#[test]
fn another_header_than_the_one_that_was_asked_for_is_refused() {
    let (mut rig, root) = Rig::live(config(), 100);
    let branch = rig.tree.branch(root, 2, 0);
    rig.header(branch[1]);
    let id = rig.call(Call::HeaderByHash(branch[0]));
    let wrong = rig.tree.header(root);
    rig.answer(id, Answer::Header(wrong));
    rig.pass(Duration::from_millis(10));
    // Another one of that height.
    let id = rig.call(Call::HeaderByHash(branch[0]));
    let sibling = rig.tree.on(root, 0);
    let sibling = rig.tree.header(sibling);
    rig.answer(id, Answer::Header(sibling));
    assert!(matches!(
        rig.not_ready(),
        Some(NotReady::Call {
            failure: Failure::Wrong,
            attempts: 2,
            ..
        })
    ));
    rig.pass(Duration::from_millis(20));
    let id = rig.call(Call::HeaderByHash(branch[0]));
    rig.answer(id, Answer::Logs(Vec::new()));
    assert_eq!(rig.follower.counters().contradictions, 3);
    rig.pass(Duration::from_millis(40));
    rig.settle(branch[1]);
    assert_eq!(rig.took().len(), 2);
}

#[test]
fn a_height_that_cannot_be_is_read_anew_at_most() {
    let (mut rig, root) = Rig::live(config(), 100);
    let absurd = rig.tree.add(Some(B256::repeat_byte(9)), u64::MAX, 0, false);
    rig.header(absurd);
    assert_eq!(rig.took(), [format!("reread {} Gap", u64::MAX)]);
    assert!(!rig.read(false));
    let next = rig.tree.on(root, 0);
    rig.header(next);
    rig.settle(next);
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["block 101 0".to_owned()], None)
    );
}

#[test]
fn logs_that_wait_for_their_header_have_bounded_room() {
    let settings = FollowConfig {
        waiting_logs: 10,
        ..config()
    };
    let (mut rig, root) = Rig::live(settings, 100);
    let head = rig.tree.on(root, 3);
    let size = |rig: &Rig| format!("{:?}", rig.follower).len();
    let mut sizes = Vec::new();
    for round in 0..3 {
        for other in 0..200 {
            let mut log = rig.tree.logs(head)[0].clone();
            log.block_hash = B256::new([u8::try_from(other % 200 + round).unwrap(); 32]);
            rig.log(log);
        }
        sizes.push(size(&rig));
    }
    assert!(sizes[2] < sizes[0] + 2_000, "{sizes:?}");
    // One block alone does not fit: what is too much is counted.
    for index in 0..20_u64 {
        let mut log = rig.tree.logs(head)[0].clone();
        log.log_index = U64::from(index);
        rig.log(log);
    }
    assert_eq!(rig.follower.counters().dropped_logs, 10);
}

#[test]
fn settings_that_would_spin_or_never_end_are_refused() {
    let now = Instant::now();
    let refused = |change: fn(&mut FollowConfig)| {
        let mut settings = FollowConfig::default();
        change(&mut settings);
        Follower::new(settings, now).err()
    };
    assert!(matches!(
        refused(|all| all.journal_blocks = 0),
        Some(ConfigError::Count {
            name: "journal_blocks",
            ..
        })
    ));
    assert!(matches!(
        refused(|all| all.backfill_blocks = 0),
        Some(ConfigError::Count {
            name: "backfill_blocks",
            ..
        })
    ));
    assert!(matches!(
        refused(|all| all.empty_asks = 8),
        Some(ConfigError::Count {
            name: "empty_asks",
            most: 7,
            ..
        })
    ));
    let zero = refused(|all| all.backoff_first = Duration::ZERO);
    assert!(matches!(
        zero,
        Some(ConfigError::Duration {
            name: "backoff_first",
            ..
        })
    ));
    assert!(refused(|all| all.watchdog_cap = Duration::MAX).is_some());
    let message = refused(|all| all.call_attempts = 0).map(|problem| problem.to_string());
    assert_eq!(
        message.as_deref(),
        Some("call_attempts is 0, it takes 1 to 1000")
    );
    assert!(refused(|_| {}).is_none());
}

/// A header of a small world, in which nothing has to fit.
fn garbage(rng: &mut Rng, tree: &Tree) -> Header {
    let mut header = tree
        .blocks
        .values()
        .nth(rng.below(tree.blocks.len()))
        .unwrap()
        .header
        .clone();
    let hash = |rng: &mut Rng| {
        *tree
            .blocks
            .keys()
            .nth(rng.below(tree.blocks.len()))
            .unwrap()
    };
    match rng.below(6) {
        0 => header.hash = hash(rng),
        1 => header.parent_hash = hash(rng),
        2 => header.number = U64::from(95 + rng.next() % 20),
        3 => header.number = U64::from([0, u64::MAX][rng.below(2)]),
        _ => {}
    }
    header
}

#[test]
fn garbage_leads_to_no_panic_no_spin_and_no_chain_that_does_not_hang_together() {
    let (mut blocks, mut reverts) = (0_u32, 0_u32);
    for seed in 0..3_000 {
        let mut rng = Rng(seed);
        let mut tree = Tree::default();
        let root = tree.add(None, 100, 1, false);
        let branch = tree.branch(root, 8, 1);
        tree.branch(branch[2], 8, 2);
        let mut now = Instant::now();
        let mut follower = Follower::new(config(), now).unwrap();
        let (mut chain, mut calls, mut reread, mut generation) =
            (Vec::<(u64, B256)>::new(), Vec::new(), None, 0_u64);
        for _ in 0..200 {
            match rng.below(12) {
                0 if rng.chance(20) || generation == 0 => {
                    generation += 1;
                    follower.connected(generation, now);
                    follower.subscribed(generation, now);
                }
                1..=4 => follower.header(garbage(&mut rng, &tree), now),
                5 => {
                    let block = tree
                        .blocks
                        .values()
                        .nth(rng.below(tree.blocks.len()))
                        .unwrap();
                    let mut log = block.logs[0].clone();
                    log.log_index = U64::from(rng.next() % 3);
                    log.removed = rng.chance(30);
                    follower.log(log, now);
                }
                6 => {
                    now += Duration::from_millis(rng.next() % 200);
                    follower.tick(now);
                }
                7 => {
                    if let Some((number, hash)) = reread.take() {
                        if rng.chance(80) {
                            if follower.reread_done(hash, now) {
                                chain = vec![(number, hash)];
                            }
                        } else {
                            follower.reread_failed(hash, now);
                        }
                    }
                }
                _ => {
                    if !calls.is_empty() {
                        let (id, call) = calls.swap_remove(rng.below(calls.len()));
                        let answer = match (call, rng.below(4)) {
                            (_, 0) => Answer::Failed(Failure::NotFound),
                            (Call::LogsByHash(hash), _) => {
                                Answer::Logs(tree.blocks[&hash].logs.clone())
                            }
                            (Call::HeaderByHash(hash), 1 | 2)
                                if tree.blocks.contains_key(&hash) =>
                            {
                                Answer::Header(tree.header(hash))
                            }
                            _ => Answer::Header(garbage(&mut rng, &tree)),
                        };
                        follower.answer(id, answer, now);
                    }
                }
            }
            while follower.poll_head().is_some() {}
            while let Some(call) = follower.poll_call() {
                calls.push(call);
            }
            let mut events = 0;
            while let Some(event) = follower.poll_event() {
                events += 1;
                match event {
                    ChainEvent::Block { header, .. } => {
                        let last = chain.last().copied();
                        assert_eq!(
                            last.map(|(number, hash)| (number + 1, hash)),
                            Some((header.number.to(), header.parent_hash))
                        );
                        chain.push((header.number.to(), header.hash));
                        blocks += 1;
                    }
                    ChainEvent::Reverted { number, hash } => {
                        assert_eq!(chain.pop(), Some((number, hash)));
                        reverts += 1;
                    }
                    ChainEvent::Reread { header, .. } => {
                        reread = Some((header.number.to(), header.hash));
                    }
                }
            }
            assert!(events <= 20, "bounded: {events}");
            follower.tick(now);
            assert!(
                follower.next_deadline().is_none_or(|next| next > now),
                "a tick does what is due"
            );
            assert!(generation == 0 || follower.next_deadline().is_some());
        }
    }
    assert!(blocks > 100 && reverts > 1_000, "{blocks} {reverts}");
}
