//! What a node announces.

use crate::{Doctor, has_finding, healthy, start, sync, verdict};
use regatta_fake_node::{FakeNode, Removed, Reply};
use serde_json::{Value, json};

/// Measures while `act` moves the chain: three subscriptions are there when it begins.
#[track_caller]
fn listened(node: &FakeNode, heads: &str, act: impl FnOnce()) -> Value {
    let more = ["--json", "--for", "60", "--heads", heads];
    let doctor = Doctor::start(node.endpoint(), &more);
    node.block_until("the subscriptions", |seen| seen.subscriptions == 3)
        .unwrap();
    act();
    doctor.end().record()
}

#[test]
fn logs_that_come_before_their_header_are_counted() {
    let node = start(healthy());
    let record = listened(&node, "4", || {
        node.extend(vec![sync(), sync()]);
        node.faults(|faults| faults.logs_first = true);
        node.extend(vec![sync()]);
        node.extend(vec![sync()]);
        node.extend(vec![]);
    });
    let watch = &record["watch"];
    assert_eq!((&watch["heads"], &watch["logs"]), (&json!(4), &json!(4)));
    assert_eq!(watch["blocks_with_logs"], 3);
    assert_eq!(watch["logs_before_header"], 2);
    assert_eq!(watch["logs_without_header"], 0);
    assert_eq!(watch["log_lag_us"]["samples"], 3);
    assert_eq!(watch["arrival_interval_us"]["samples"], 3);
    assert_eq!(verdict(&record, "header_announcements"), "ok", "{record}");
    assert_eq!(verdict(&record, "log_announcements"), "ok");
}

#[test]
fn reorganisations_removed_logs_and_lost_headers_are_seen() {
    let node = start(healthy());
    node.faults(|faults| faults.removed = Removed::LastFirst);
    let record = listened(&node, "4", || {
        node.extend(vec![sync()]);
        node.faults(|faults| faults.heads_stopped = true);
        node.extend(vec![sync()]);
        node.faults(|faults| faults.heads_stopped = false);
        node.extend(vec![sync()]);
        node.reorg(1, vec![vec![], vec![]]);
    });
    let watch = &record["watch"];
    assert_eq!(watch["heads"], 4, "{record}");
    assert_eq!(watch["heads_missing"], 1);
    assert_eq!(watch["reorgs"], 1);
    assert_eq!(watch["logs_removed"], 1);
    assert_eq!(watch["logs_without_header"], 1);
    assert_eq!(verdict(&record, "header_announcements"), "limited");
    assert_eq!(verdict(&record, "log_announcements"), "limited");
}

#[test]
fn a_header_that_comes_beside_open_calls_is_told_apart() {
    let node = start(healthy());
    // Blocks of one second have no interval that is waited for before calls are made.
    let chain = regatta_fake_node::FakeChain::default().every(0);
    node.chain(|present| *present = chain);
    for _ in 0..20 {
        node.chain(|chain| chain.extend(vec![]));
    }
    let record = listened(&node, "2", || {
        node.on("eth_getLogs", |_| Reply::Hold(json!([])));
        node.extend(vec![]);
        node.block_until("a hundred calls", |seen| seen.held >= 100)
            .unwrap();
        node.extend(vec![]);
    });
    let stall = &record["watch"]["stall"];
    assert_eq!(stall["calls"], 100, "{record}");
    assert!(
        stall["loaded_us"]["samples"].as_u64().unwrap() >= 1,
        "{record}"
    );
}

#[test]
fn a_node_that_refuses_subscriptions_is_unfit() {
    let refuses =
        |_: &regatta_fake_node::Call| Reply::error(-32_601, "notifications not supported");
    let node = start(healthy().on("eth_subscribe", refuses));
    let record = Doctor::start(node.endpoint(), &["--json"]).end().record();
    assert!(
        has_finding(&record, "subscribe_heads", "refused"),
        "{record}"
    );
    assert!(has_finding(&record, "subscribe_logs", "refused"));
    assert_eq!(record["watch"], Value::Null);
    assert_eq!(verdict(&record, "header_announcements"), "unfit");
    assert_eq!(verdict(&record, "log_announcements"), "unfit");
}

#[test]
fn headers_that_are_due_and_do_not_come_are_unfit() {
    let node = start(healthy());
    let mut chain = regatta_fake_node::FakeChain::default().every(1);
    for _ in 0..20 {
        chain.extend(vec![]);
    }
    node.chain(|present| *present = chain);
    node.faults(|faults| faults.dead_subscriptions = true);
    let record = Doctor::start(node.endpoint(), &["--json", "--for", "7"])
        .end()
        .record();
    assert_eq!(record["watch"]["heads"], 0);
    assert_eq!(
        verdict(&record, "header_announcements"),
        "unfit",
        "{record}"
    );
}

#[test]
fn a_socket_that_ends_under_the_announcements_is_a_finding() {
    let node = start(healthy());
    let record = listened(&node, "5", || {
        node.extend(vec![sync()]);
        node.say("not json");
    });
    assert!(has_finding(&record, "watch", "garbage"), "{record}");
    assert_eq!(verdict(&record, "header_announcements"), "limited");
}
