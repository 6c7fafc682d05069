//! Heads, branches, connections: rows N1, N3, N4, N8, N9, N21, S6 and S7.

use std::time::Duration;

use regatta_chain::follow::{
    Answer, Call, Failure, FollowConfig, NotReady, ReconnectReason, Waits,
};

use crate::rig::{Rig, config};

const SECOND: Duration = Duration::from_secs(1);

/// A live rig on a branch of so many blocks, all said.
fn on_a_branch(blocks: usize) -> (Rig, alloy_primitives::B256, Vec<alloy_primitives::B256>) {
    let (mut rig, root) = Rig::live(config(), 100);
    let branch = rig.tree.branch(root, blocks, 1);
    for hash in &branch {
        rig.header(*hash);
        rig.settle(*hash);
    }
    assert_eq!(rig.took().len(), blocks);
    (rig, root, branch)
}

#[test]
fn n1_heads_that_stop_are_seen_by_their_own_interval_while_calls_still_answer() {
    let (mut rig, root) = Rig::live(config(), 100);
    let mut tip = root;
    for _ in 0..20 {
        rig.pass(SECOND);
        tip = rig.tree.on(tip, 1);
        rig.header(tip);
        rig.settle(tip);
    }
    assert_eq!(rig.follower.head_age_limit(), 4 * SECOND);
    // Calls answer as ever; no head comes.
    let orphan = rig.tree.on(root, 1);
    let mut log = rig.tree.logs(orphan)[0].clone();
    log.block_hash = tip;
    rig.removed(log);
    assert_eq!(rig.serve(tip), Some(Call::LatestHeader));
    rig.pass(Duration::from_millis(3_999));
    assert_eq!((rig.not_ready(), rig.reconnect), (None, None));
    rig.pass(Duration::from_millis(1));
    let reason = ReconnectReason::HeadAge { limit: 4 * SECOND };
    assert_eq!(rig.reconnect.take(), Some(reason));
    assert_eq!(rig.not_ready(), Some(NotReady::GivenUp(reason)));
    // The wish is repeated until the driver does it.
    rig.pass(FollowConfig::default().first_head);
    assert_eq!(rig.reconnect, Some(reason));
}

#[test]
fn n1_a_head_that_is_sent_again_does_not_keep_the_watchdog_quiet() {
    let (mut rig, root) = Rig::live(config(), 100);
    let limit = rig.follower.head_age_limit();
    for _ in 0..limit.as_secs() {
        rig.pass(SECOND);
        rig.header(root);
    }
    assert_eq!(rig.reconnect, Some(ReconnectReason::HeadAge { limit }));
}

#[test]
fn n3_a_subscription_is_live_only_with_its_first_head_in_time() {
    let mut rig = Rig::new(config());
    let root = rig.tree.add(None, 100, 0, false);
    rig.connect();
    assert_eq!(rig.not_ready(), Some(NotReady::Subscribing));
    rig.subscribe();
    // The latest header is asked for, read and followed; it proves nothing about the subscription.
    rig.settle(root);
    assert_eq!(
        (rig.chain.as_slice(), rig.not_ready()),
        (&[root][..], Some(NotReady::AwaitingFirstHead))
    );
    assert_eq!(rig.follower.waits(), Waits::Subscription);
    let wait = config().first_head;
    rig.pass(wait);
    assert_eq!(rig.reconnect, Some(ReconnectReason::NoFirstHead(wait)));
    // One that is not even confirmed is given up too.
    rig.connect();
    rig.pass(wait);
    assert_eq!(rig.reconnect, Some(ReconnectReason::NotSubscribed(wait)));
    // With a head it is live, a head that was known too.
    rig.connect();
    rig.subscribe();
    rig.header(root);
    rig.settle(root);
    assert_eq!(rig.not_ready(), None);
}

#[test]
fn n4_blocks_of_a_gap_in_the_connection_are_filled_in_before_the_next_is_said() {
    let (mut rig, _, branch) = on_a_branch(2);
    rig.disconnect();
    assert_eq!(rig.not_ready(), Some(NotReady::Disconnected));
    let missed = rig.tree.branch(branch[1], 3, 2);
    let first = rig.tree.on(missed[2], 1);
    rig.connect();
    rig.subscribe();
    rig.header(first);
    rig.log(rig.tree.logs(first)[0].clone());
    assert_eq!(rig.took(), Vec::<String>::new());
    assert!(matches!(
        rig.not_ready(),
        Some(NotReady::Linking { number: 106, .. })
    ));
    rig.settle(first);
    assert_eq!(
        rig.took(),
        ["block 103 2", "block 104 2", "block 105 2", "block 106 1"]
    );
    assert_eq!(rig.not_ready(), None);
}

#[test]
fn n4_answers_and_confirmations_of_an_old_connection_are_not_heard() {
    let (mut rig, _, branch) = on_a_branch(1);
    let next = rig.tree.on(branch[0], 1);
    rig.header(next);
    let id = rig.call(Call::LogsByHash(next));
    rig.disconnect();
    let answer = rig.honest(Call::LogsByHash(next), next);
    rig.answer(id, answer);
    rig.follower.subscribed(1, rig.now);
    rig.follower.disconnected(1, rig.now);
    rig.drain();
    assert_eq!(rig.took(), Vec::<String>::new());
    assert_eq!(
        (
            rig.follower.counters().late_answers,
            rig.follower.counters().stale_inputs
        ),
        (1, 2)
    );
}

#[test]
fn n9_a_shorter_branch_that_the_node_calls_its_head_is_the_chain() {
    let (mut rig, root, _) = on_a_branch(3);
    let short = rig.tree.on(root, 2);
    rig.header(short);
    // What is no longer the chain is taken back at once; the new block is said when it is complete.
    assert_eq!(rig.took(), ["reverted 103", "reverted 102", "reverted 101"]);
    rig.settle(short);
    assert_eq!(rig.took(), ["block 101 2"]);
    assert_eq!(
        (rig.not_ready(), rig.follower.counters().deepest_reorg),
        (None, 3)
    );
}

#[test]
fn n21_bursts_that_share_a_timestamp_are_followed_by_parent_and_number() {
    let (mut rig, root) = Rig::live(config(), 100);
    let burst = rig.tree.branch(root, 4, 1);
    assert_eq!(
        rig.tree.header(burst[0]).timestamp,
        rig.tree.header(burst[2]).timestamp
    );
    // The newest first, all at one time.
    for hash in burst.iter().rev() {
        rig.header(*hash);
    }
    rig.settle(burst[3]);
    assert_eq!(
        rig.took(),
        ["block 101 1", "block 102 1", "block 103 1", "block 104 1"]
    );
    assert_eq!(rig.not_ready(), None);
    // Bursts do not make the watchdog nervous.
    assert!(rig.follower.head_age_limit() >= config().watchdog_floor);
}

#[test]
fn s6_a_reorganisation_without_removed_logs_is_seen_by_its_parent_hash() {
    let (mut rig, _, branch) = on_a_branch(3);
    let other = rig.tree.branch(branch[0], 3, 1);
    for hash in &other {
        rig.header(*hash);
        rig.settle(other[2]);
    }
    assert_eq!(
        rig.took(),
        [
            "reverted 103",
            "reverted 102",
            "block 102 1",
            "block 103 1",
            "block 104 1"
        ]
    );
    assert_eq!(rig.follower.counters().removed_logs, 0);
}

#[test]
fn s6_only_the_last_head_of_a_branch_is_enough() {
    let (mut rig, root, _) = on_a_branch(2);
    let other = rig.tree.branch(root, 3, 1);
    rig.header(other[2]);
    assert_eq!(
        rig.took(),
        Vec::<String>::new(),
        "nothing is taken back before the ancestor is known"
    );
    rig.settle(other[2]);
    assert_eq!(
        rig.took(),
        [
            "reverted 102",
            "reverted 101",
            "block 101 1",
            "block 102 1",
            "block 103 1"
        ]
    );
}

#[test]
fn s7_n8_removed_logs_in_any_order_undo_nothing_twice() {
    let (mut rig, root, branch) = on_a_branch(3);
    let other = rig.tree.branch(root, 4, 1);
    // Oldest first, some before and some after the headers.
    rig.removed(rig.tree.logs(branch[0])[0].clone());
    rig.removed(rig.tree.logs(branch[2])[0].clone());
    assert!(matches!(rig.not_ready(), Some(NotReady::Suspect(_))));
    assert_eq!(
        rig.took(),
        Vec::<String>::new(),
        "a hint changes nothing by itself"
    );
    rig.header(other[3]);
    rig.removed(rig.tree.logs(branch[1])[0].clone());
    rig.settle(other[3]);
    rig.removed(rig.tree.logs(branch[1])[0].clone());
    rig.removed(rig.tree.logs(branch[0])[0].clone());
    rig.settle(other[3]);
    let reverted = ["reverted 103", "reverted 102", "reverted 101"];
    let blocks = ["block 101 1", "block 102 1", "block 103 1", "block 104 1"];
    assert_eq!(rig.took(), [&reverted[..], &blocks[..]].concat());
    assert_eq!(
        (rig.follower.counters().removed_logs, rig.not_ready()),
        (5, None)
    );
}

#[test]
fn s7_removed_logs_alone_lead_to_the_node_and_its_word_holds() {
    let (mut rig, root, branch) = on_a_branch(2);
    // It says that all is as it was.
    rig.removed(rig.tree.logs(branch[1])[0].clone());
    assert_eq!(rig.serve(branch[1]), Some(Call::LatestHeader));
    assert_eq!((rig.took(), rig.not_ready()), (Vec::new(), None));
    // It says that the chain ends before the suspect block.
    rig.removed(rig.tree.logs(branch[1])[0].clone());
    assert_eq!(rig.serve(branch[0]), Some(Call::LatestHeader));
    assert_eq!(
        (rig.took(), rig.not_ready()),
        (vec!["reverted 102".to_owned()], None)
    );
    // It returns, with what is known of it.
    rig.header(branch[1]);
    assert_eq!(rig.serve(branch[1]), Some(Call::LatestHeader));
    assert_eq!(
        (rig.took(), rig.calls.len()),
        (vec!["block 102 1".to_owned()], 0)
    );
    // Without a suspect an older head is a node that is behind.
    rig.header(branch[0]);
    assert_eq!(rig.serve(root), Some(Call::LatestHeader));
    assert_eq!(
        (
            rig.took(),
            rig.not_ready(),
            rig.follower.counters().older_heads
        ),
        (Vec::new(), None, 1)
    );
}

#[test]
fn a_branch_that_returns_needs_no_call_for_its_blocks() {
    let (mut rig, root, branch) = on_a_branch(2);
    let other = rig.tree.branch(root, 1, 0);
    rig.header(other[0]);
    rig.settle(other[0]);
    let again = rig.tree.on(branch[1], 0);
    rig.took();
    rig.header(again);
    assert_eq!(
        rig.took(),
        ["reverted 101", "block 101 1", "block 102 1", "block 103 0"]
    );
}

#[test]
fn a_reorganisation_below_the_journal_takes_all_of_it_back_and_reads_anew() {
    let (mut rig, root, _) = on_a_branch(6);
    let other = rig.tree.branch(root, 7, 1);
    rig.header(other[6]);
    for _ in 0..5 {
        let _ = rig.serve(other[6]);
    }
    let reverted = [
        "reverted 106",
        "reverted 105",
        "reverted 104",
        "reverted 103",
        "reread 107 Deep",
    ];
    assert_eq!(rig.took(), reverted);
    // Nothing is said before it is read, heads pass, and a failed reading is asked for again.
    let next = rig.tree.on(other[6], 1);
    rig.header(next);
    assert!(!rig.read(false));
    assert_eq!(rig.not_ready(), Some(NotReady::RereadFailed));
    rig.settle(next);
    rig.pass(SECOND);
    assert_eq!(rig.took(), ["reread 108 Deep"]);
    let (hash, _) = rig.reread.unwrap();
    assert!(
        !rig.follower.reread_done(root, rig.now),
        "a reading of another block is not accepted"
    );
    assert_eq!(hash, next);
    assert!(rig.read(true));
    assert_eq!(rig.not_ready(), None);
}

#[test]
fn a_gap_that_is_too_long_is_read_anew_and_reverts_nothing() {
    let (mut rig, _, branch) = on_a_branch(2);
    let far = rig.tree.branch(branch[1], 9, 1);
    rig.header(far[8]);
    assert_eq!(rig.took(), ["reread 111 Gap"]);
    assert!(rig.read(true));
    let next = rig.tree.on(far[8], 1);
    rig.header(next);
    rig.settle(next);
    assert_eq!(rig.took(), ["block 112 1"]);
}

#[test]
fn a_head_below_the_journal_is_followed_only_after_it_was_answered_often() {
    let (mut rig, _, _) = on_a_branch(4);
    let fresh = rig.tree.add(None, 7, 0, false);
    rig.header(fresh);
    let mut asked = 0;
    while rig.reread.is_none() {
        if let Some((id, call)) = rig.calls.pop_front() {
            assert_eq!((call, rig.took()), (Call::LatestHeader, Vec::new()));
            asked += 1;
            let answer = rig.honest(call, fresh);
            rig.answer(id, answer);
        } else {
            assert!(matches!(
                rig.not_ready(),
                Some(NotReady::Call {
                    failure: Failure::Behind,
                    ..
                })
            ));
            rig.pass(Duration::from_millis(100));
        }
    }
    assert_eq!(asked, config().call_attempts);
    assert_eq!(rig.took().last().map(String::as_str), Some("reread 7 Deep"));
    assert!(rig.read(true));
    assert_eq!(rig.not_ready(), None);
}

#[test]
fn an_answer_about_the_latest_head_that_a_newer_header_overtook_is_asked_again() {
    let (mut rig, root, branch) = on_a_branch(2);
    let other = rig.tree.on(root, 0);
    rig.header(other);
    let id = rig.call(Call::LatestHeader);
    let newer = rig.tree.on(other, 0);
    rig.header(newer);
    rig.took();
    let answer = rig.tree.header(branch[1]);
    rig.answer(id, Answer::Header(answer));
    assert_eq!(rig.took(), Vec::<String>::new());
    assert_eq!(rig.serve(newer), Some(Call::LatestHeader));
    assert_eq!((rig.took(), rig.not_ready()), (Vec::new(), None));
}
