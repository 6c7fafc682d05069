//! Connections that end, in every way that a node knows.

use crate::made_up::{node, step};
use crate::rig::{Rig, hash};
use regatta_fake_node::{Door, Reply};
use serde_json::json;
use std::time::Duration;

/// A moment: for deadlines that a test is to reach.
const SOON: Duration = Duration::from_millis(150);

/// Follows again after a loss: what came meanwhile is filled in, nothing is read anew, and it is ready.
fn goes_on(rig: &mut Rig) {
    rig.node.extend(step(50));
    rig.lose();
    rig.step(51);
    rig.step(52);
    assert_eq!(rig.model.rereads, 1, "{:?}", rig.status());
    rig.until("to be ready", |status| status.not_ready.is_none());
}

/// Row N4: blocks that come while nobody is connected are filled in before the next one is said.
#[test]
fn blocks_that_came_meanwhile_are_filled_in() {
    let mut rig = Rig::start();
    rig.step(0);
    let before = rig.model.blocks.len();
    rig.node.drop_connections();
    rig.is_lost();
    for number in 1..20 {
        rig.node.extend(step(number));
    }
    rig.node.reorg(4, (30..36).map(step).collect());
    let disconnected = Some("not connected".to_owned());
    rig.until("to be not ready", |status| {
        status.not_ready.map(|why| why.to_string()) == disconnected
    });
    rig.connect();
    rig.step(40);
    assert_eq!(rig.model.rereads, 1);
    assert_eq!(rig.model.blocks.len(), before + 15 + 6 + 1);
}

/// More blocks than are filled in one by one: everything is read anew, once.
#[test]
fn a_gap_that_is_too_long_is_read_anew() {
    let mut rig = Rig::with(node(), |config| config.follow.backfill_blocks = 5);
    rig.step(0);
    rig.node.drop_connections();
    rig.is_lost();
    for number in 1..10 {
        rig.node.extend(step(number));
    }
    rig.connect();
    rig.step(20);
    assert_eq!(rig.model.rereads, 2);
    // It is read at the latest block, before or after the last one.
    assert!(rig.model.blocks.len() <= 2);
}

/// Row N3: a subscription with a name and without a head is given up.
#[test]
fn a_subscription_that_brings_nothing_is_given_up() {
    let mut rig = Rig::with(node(), |config| config.follow.first_head = SOON * 4);
    rig.step(0);
    rig.node.faults(|faults| faults.dead_subscriptions = true);
    rig.node.drop_connections();
    rig.lose();
    // Nothing is said on the new one, whatever the chain does.
    rig.node.extend(step(1));
    rig.is_lost();
    rig.until("to be not ready", |status| status.not_ready.is_some());
    rig.node.faults(|faults| faults.dead_subscriptions = false);
    rig.connect();
    rig.node.extend(step(2));
    rig.catch_up();
}

/// Row N1: heads stop while calls are answered; the watchdog ends the connection.
#[test]
fn heads_that_stop_end_the_connection() {
    let mut rig = Rig::with(node(), |config| {
        config.follow.watchdog_floor = SOON;
        config.follow.watchdog_cap = SOON * 4;
    });
    rig.step(0);
    rig.node.faults(|faults| faults.heads_stopped = true);
    rig.is_lost();
    rig.until("to be not ready", |status| status.not_ready.is_some());
    rig.node.faults(|faults| faults.heads_stopped = false);
    rig.connect();
    rig.node.extend(step(1));
    rig.catch_up();
}

/// Row N2: a socket on which nothing comes, not even a pong, is no connection.
#[test]
fn a_silent_node_is_lost() {
    let mut rig = Rig::with(node(), |config| {
        config.limits.transport.ping_after = SOON;
        config.limits.transport.ping_deadline = SOON * 4;
    });
    rig.step(0);
    rig.node.go_silent();
    goes_on(&mut rig);
}

/// Garbage, closes, half a frame, a frame of 50 MB: each ends the connection and nothing else.
#[test]
fn whatever_is_said_ends_no_more_than_the_connection() {
    let mut rig = Rig::start();
    rig.step(0);
    for text in [
        "garbage".to_owned(),
        "[1, 2]".to_owned(),
        "\u{0}".to_owned(),
        "x".repeat(50_000_000),
    ] {
        rig.node.say(&text);
        rig.lose();
    }
    // What is answered in place of a block's logs, once.
    for reply in [
        Reply::MidFrame(json!([])),
        Reply::Close(1011, "internal error".to_owned()),
        Reply::Drop,
        Reply::Bytes(vec![0xff; 100]),
        Reply::HugeInFragments(50_000_000),
        Reply::Raw("{".to_owned()),
    ] {
        rig.node.on("eth_getLogs", move |_| reply.clone());
        rig.node.extend(step(1));
        rig.is_lost();
        rig.node.off("eth_getLogs");
        rig.connect();
        rig.step(2);
    }
    assert_eq!(rig.model.rereads, 1);
}

/// A notification that is none of a header's or a log's form cannot be followed: what it would have said is asked for.
#[test]
fn malformed_notifications_end_the_connection() {
    let mut rig = Rig::start();
    rig.step(0);
    // Whatever has no subscription of ours is nothing.
    rig.node.notify("0xdead", &json!({"number": "0x1"}));
    rig.step(1);
    assert_eq!(rig.status().connections, 1);
    for value in [json!(null), json!({}), json!({"number": 7}), json!("x")] {
        // The names are given one after the other: two to a connection.
        for name in 1..200 {
            rig.node.notify(&format!("{name:#x}"), &value);
        }
        goes_on(&mut rig);
    }
}

/// Row N22: an answer that is more than a message may have ends the connection each time; so it is asked for in parts.
#[test]
fn logs_that_are_too_large_for_a_message_are_asked_for_in_parts() {
    let mut rig = Rig::with(node(), |config| {
        config.limits.transport.message_bytes = 64 << 10;
    });
    rig.step(0);
    rig.node.on("eth_getLogs", |call| {
        // Of all contracts, or of more than two of them.
        let few = |asked: &Vec<_>| asked.len() <= 2;
        if call.params[0]["address"].as_array().is_some_and(few) {
            Reply::Result(json!([]))
        } else {
            Reply::Huge(100_000)
        }
    });
    rig.node.faults(|faults| faults.logs_stopped = true);
    let foreign = alloy_primitives::Address::repeat_byte(0x33);
    let logs = vec![regatta_fake_node::contracts::sync(foreign, 1, 1)];
    let block = rig.node.extend(logs);
    // All at once, in one part, in two: the third connection holds.
    for _ in 0..2 {
        rig.lose();
        rig.node.extend(Vec::new());
    }
    rig.catch_up();
    assert!(rig.model.blocks.iter().any(|(at, _)| *at == hash(block)));
    assert_eq!(rig.model.rereads, 1);
}

/// A node that does not come back: not connected, alive, and asked to stop it stops.
#[test]
fn a_node_that_is_gone_for_good_leaves_a_thread_that_stops() {
    let mut rig = Rig::start();
    rig.step(0);
    rig.node.door(Door::Shut);
    let shut = |seen: &regatta_fake_node::Seen| !seen.listening;
    rig.node.block_until("it to shut", shut).unwrap();
    rig.node.drop_connections();
    rig.is_lost();
    for generation in 10..13 {
        let error = rig.thread.asker().connect(generation, crate::rig::FAR);
        assert!(error.is_err());
    }
    rig.until("to be not ready", |status| status.not_ready.is_some());
    assert!(rig.thread.stop(std::time::Instant::now() + crate::rig::FAR));
}
