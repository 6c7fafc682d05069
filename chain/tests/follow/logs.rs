//! Logs and calls by hash: rows N5, N6, N7, N8 and S5.

use std::time::Duration;

use alloy_primitives::{Address, B256, Bloom, U64};
use regatta_chain::follow::{Answer, Call, Failure, FollowConfig, NotReady, ReconnectReason};

use crate::rig::{Rig, config};

const WAIT: Duration = Duration::from_millis(200);

/// A live rig and a new head on it with so many logs.
fn with_head(logs: u64) -> (Rig, B256) {
    let (mut rig, root) = Rig::live(config(), 100);
    let head = rig.tree.on(root, logs);
    rig.header(head);
    (rig, head)
}

#[test]
fn n5_an_error_then_nothing_then_all_of_it() {
    let (mut rig, head) = with_head(2);
    let id = rig.call(Call::LogsByHash(head));
    rig.answer(id, Answer::Failed(Failure::Transport));
    rig.pass(WAIT);
    let id = rig.call(Call::LogsByHash(head));
    rig.answer(id, Answer::Logs(Vec::new()));
    assert_eq!(rig.took(), Vec::<String>::new());
    rig.pass(WAIT);
    assert_eq!(rig.serve(head), Some(Call::LogsByHash(head)));
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["block 101 2".to_owned()], None)
    );
}

#[test]
fn n5_nothing_is_final_at_once_only_where_the_bloom_excludes_the_event() {
    // The bloom has no log at all: nothing is asked.
    let (mut rig, head) = with_head(0);
    assert_eq!(
        (rig.took(), rig.calls.len()),
        (vec!["block 101 0".to_owned()], 0)
    );
    // It admits the event: asked as often as configured, then believed.
    let noisy = rig.tree.add(Some(head), 102, 0, true);
    rig.header(noisy);
    for _ in 0..config().empty_asks {
        assert_eq!(rig.took(), Vec::<String>::new());
        assert_eq!(rig.serve(noisy), Some(Call::LogsByHash(noisy)));
        rig.pass(WAIT);
    }
    assert_eq!(rig.took(), ["block 102 0"]);
    let counters = rig.follower.counters();
    assert_eq!((counters.empties, counters.empties_believed), (2, 1));
}

#[test]
fn n5_addresses_narrow_the_bloom_and_a_bloom_of_zeros_can_be_distrusted() {
    let settings = FollowConfig {
        addresses: vec![Address::repeat_byte(0x77)],
        ..config()
    };
    let (mut rig, root) = Rig::live(settings, 100);
    let mut foreign = rig.tree.on(root, 2);
    rig.tree.blocks.get_mut(&foreign).unwrap().logs.clear();
    rig.header(foreign);
    assert_eq!(
        rig.took(),
        ["block 101 0"],
        "the topic is in the bloom, the address is not"
    );
    let settings = FollowConfig {
        trust_bloom: false,
        ..config()
    };
    let (mut rig, root) = Rig::live(settings, 100);
    foreign = rig.tree.on(root, 2);
    rig.tree.blocks.get_mut(&foreign).unwrap().header.logs_bloom = Bloom::ZERO;
    rig.header(foreign);
    assert_eq!(rig.serve(foreign), Some(Call::LogsByHash(foreign)));
    assert_eq!(rig.took(), ["block 101 2"]);
}

#[test]
fn n5_an_answer_without_a_log_that_was_shown_is_never_complete() {
    let (mut rig, head) = with_head(3);
    rig.log(rig.tree.logs(head)[2].clone());
    for _ in 0..config().call_attempts {
        let id = rig.call(Call::LogsByHash(head));
        rig.answer(id, Answer::Logs(rig.tree.logs(head)[..2].to_vec()));
        assert_eq!(rig.took(), Vec::<String>::new());
        let call = Call::LogsByHash(head);
        assert!(
            matches!(rig.not_ready(), Some(NotReady::Call { call: own, failure: Failure::Short, .. }) if own == call)
        );
        if rig.calls.is_empty() {
            rig.pass(Duration::from_millis(99));
        }
    }
    // It rests, and is asked again when that is over.
    assert!(rig.calls.is_empty(), "bounded");
    rig.pass(WAIT);
    rig.settle(head);
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["block 101 3".to_owned()], None)
    );
}

#[test]
fn n5_a_log_that_is_shown_after_its_block_was_said_without_it_takes_the_block_back() {
    let (mut rig, head) = with_head(3);
    let next = rig.tree.on(head, 1);
    let all = rig.tree.logs(head);
    // The answer lacks the last one and nothing contradicts it: the model's block has two for now.
    rig.tree.blocks.get_mut(&head).unwrap().logs.truncate(2);
    rig.settle(head);
    rig.header(next);
    rig.settle(next);
    assert_eq!(rig.took(), ["block 101 2", "block 102 1"]);
    rig.tree
        .blocks
        .get_mut(&head)
        .unwrap()
        .logs
        .clone_from(&all);
    rig.log(all[2].clone());
    assert_eq!(rig.took(), ["reverted 102", "reverted 101"]);
    rig.settle(next);
    assert_eq!(rig.took(), ["block 101 3", "block 102 1"]);
    assert_eq!(rig.follower.counters().late_logs, 1);
    // Shown again it changes nothing.
    rig.log(all[2].clone());
    assert_eq!((rig.took(), rig.not_ready()), (Vec::new(), None));
}

#[test]
fn n6_an_announced_header_that_is_not_found_is_asked_again_and_then_it_is_not_ready() {
    let (mut rig, root) = Rig::live(config(), 100);
    let branch = rig.tree.branch(root, 2, 0);
    rig.header(branch[1]);
    let rests = config().rests_to_reconnect;
    let mut asked = 0;
    for _ in 0..1_000 {
        match rig.calls.pop_front() {
            Some((id, Call::HeaderByHash(hash))) => {
                assert_eq!(hash, branch[0]);
                asked += 1;
                rig.answer(id, Answer::Failed(Failure::NotFound));
                assert!(rig.not_ready().is_some());
            }
            Some((id, call)) => {
                let answer = rig.honest(call, branch[1]);
                rig.answer(id, answer);
            }
            None if rig.reconnect.is_some() => break,
            None => rig.pass(Duration::from_millis(10)),
        }
    }
    assert_eq!(asked, config().call_attempts * rests, "bounded");
    assert_eq!(rig.reconnect, Some(ReconnectReason::CallsFail));
    assert_eq!(rig.took(), Vec::<String>::new());
    // Another node knows it.
    rig.connect();
    rig.subscribe();
    rig.header(branch[1]);
    rig.settle(branch[1]);
    assert_eq!((rig.took().len(), rig.not_ready()), (2, None));
}

#[test]
fn n6_an_answer_that_never_comes_counts_as_failed_and_a_late_one_is_not_heard() {
    let (mut rig, head) = with_head(1);
    let id = rig.call(Call::LogsByHash(head));
    rig.pass(config().call_deadline);
    assert!(matches!(
        rig.not_ready(),
        Some(NotReady::Call {
            failure: Failure::TimedOut,
            attempts: 1,
            ..
        })
    ));
    let late = rig.honest(Call::LogsByHash(head), head);
    rig.answer(id, late);
    assert_eq!(
        (rig.took(), rig.follower.counters().late_answers),
        (Vec::new(), 1)
    );
    rig.pass(WAIT);
    rig.settle(head);
    assert_eq!(rig.took(), ["block 101 1"]);
}

#[test]
fn n7_a_node_that_is_behind_cannot_shorten_what_is_said() {
    let (mut rig, root) = Rig::live(config(), 100);
    let branch = rig.tree.branch(root, 3, 1);
    for hash in &branch {
        rig.header(*hash);
        rig.settle(*hash);
    }
    rig.took();
    // It answers with an old head, does not know the new block, and says the logs of another one.
    let next = rig.tree.on(branch[2], 1);
    rig.header(next);
    let id = rig.call(Call::LogsByHash(next));
    rig.answer(id, Answer::Failed(Failure::NotFound));
    rig.pass(WAIT);
    let id = rig.call(Call::LogsByHash(next));
    rig.answer(id, Answer::Logs(rig.tree.logs(branch[1])));
    assert!(matches!(
        rig.not_ready(),
        Some(NotReady::Call {
            failure: Failure::Wrong,
            ..
        })
    ));
    rig.pass(WAIT);
    rig.header(branch[2]);
    while let Some((id, call)) = rig.calls.pop_front() {
        let answer = rig.honest(call, branch[0]);
        rig.answer(id, answer);
    }
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["block 104 1".to_owned()], None)
    );
}

#[test]
fn n8_logs_are_said_in_the_order_of_their_index() {
    let (mut rig, head) = with_head(4);
    let mut logs = rig.tree.logs(head);
    logs.reverse();
    let id = rig.call(Call::LogsByHash(head));
    rig.answer(id, Answer::Logs(logs));
    // The rig compares them one by one.
    assert_eq!(rig.took(), ["block 101 4"]);
}

#[test]
fn s5_logs_before_or_after_their_header_make_no_difference_and_no_completeness() {
    for before in [true, false] {
        let (mut rig, root) = Rig::live(config(), 100);
        let head = rig.tree.on(root, 3);
        if before {
            rig.log(rig.tree.logs(head)[1].clone());
        }
        rig.header(head);
        for log in rig.tree.logs(head) {
            rig.log(log);
        }
        // All logs were shown, and nobody said that they are all.
        assert_eq!(rig.took(), Vec::<String>::new());
        rig.settle(head);
        assert_eq!(rig.took(), ["block 101 3"]);
        rig.log(rig.tree.logs(head)[0].clone());
        assert_eq!((rig.took(), rig.not_ready()), (Vec::new(), None));
    }
}

#[test]
fn an_answer_that_contradicts_itself_is_refused() {
    type Spoil = fn(&mut Vec<regatta_chain::types::Log>);
    let spoils: [Spoil; 5] = [
        |logs| logs.push(logs[0].clone()),
        |logs| logs[1].block_hash = B256::ZERO,
        |logs| logs[1].block_number = U64::from(5),
        |logs| logs[0].removed = true,
        |logs| logs[1].log_index = logs[0].log_index,
    ];
    for spoil in spoils {
        let (mut rig, head) = with_head(2);
        let mut logs = rig.tree.logs(head);
        spoil(&mut logs);
        let id = rig.call(Call::LogsByHash(head));
        rig.answer(id, Answer::Logs(logs));
        assert!(matches!(
            rig.not_ready(),
            Some(NotReady::Call {
                failure: Failure::Wrong,
                ..
            })
        ));
        assert_eq!(
            (rig.took(), rig.follower.counters().contradictions),
            (Vec::new(), 1)
        );
        rig.pass(WAIT);
        rig.settle(head);
        assert_eq!(rig.took(), ["block 101 2"]);
    }
}
