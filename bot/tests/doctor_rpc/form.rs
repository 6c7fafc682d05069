//! The form of the record, and that the documentation has it.

use crate::{Doctor, has_finding, healthy, questions, start, sync};
use serde_json::Value;
use std::collections::BTreeSet;

/// Every field, where something is known. Fields are stable: programs read them.
const FIELDS: &str = "
endpoint chain.id chain.wanted chain.matches client sync.syncing sync.behind_blocks
head.number head.hash head.age_s head.headers head.interval_ms head.interval_max_s
round_trip_us.samples round_trip_us.p50 round_trip_us.p90 round_trip_us.max
logs.by_hash.says logs.by_hash.code logs.by_hash.message logs.by_hash_logs logs.largest_range_blocks
logs.largest_range_logs logs.refused_range_blocks logs.range_refusal
batch.largest batch.refused batch.refusal frame.largest_bytes frame.limit_bytes
unknown_hash.header.says unknown_hash.header.code unknown_hash.header.message
unknown_hash.logs.says unknown_hash.logs.code unknown_hash.logs.message
unknown_hash.call.says unknown_hash.call.code unknown_hash.call.message
state.latest.says state.latest.code state.latest.message state.old_blocks
state.old.says state.old.code state.old.message
watch.listened_ms watch.heads watch.heads_repeated watch.heads_missing watch.reorgs watch.malformed
watch.arrival_interval_us watch.logs watch.logs_removed watch.blocks_with_logs watch.logs_before_header
watch.logs_without_header watch.log_lag_us.samples watch.log_lag_us.p50 watch.log_lag_us.p90 watch.log_lag_us.max
watch.stall.calls watch.stall.idle_us watch.stall.loaded_us
factories findings
hints.name hints.text hints.follows_from verdicts.requirement verdicts.verdict verdicts.because
";

/// The paths of what has no fields of its own; lists are looked into, and the inside of a stall is a matter of luck.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !path.starts_with("watch.stall.") => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                fields(value, &format!("{path}{dot}{key}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                fields(item, path, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn the_fields_are_these_and_the_documentation_names_each() {
    let node = start(healthy());
    let doctor = Doctor::start(node.endpoint(), &["--json", "--heads", "1", "--for", "60"]);
    node.block_until("the subscriptions", |seen| seen.subscriptions == 3)
        .unwrap();
    node.extend(vec![sync()]);
    let record = doctor.end().record();
    let mut found = BTreeSet::new();
    fields(&record, "", &mut found);
    let wanted: BTreeSet<String> = FIELDS.split_whitespace().map(str::to_owned).collect();
    assert_eq!(found, wanted);
    let operations = include_str!("../../../docs/operations.md");
    let section = operations.split("## Measuring a node").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    for field in wanted.iter().flat_map(|path| path.split('.')) {
        assert!(
            section.contains(&format!("`{field}`")),
            "{field} is not documented"
        );
    }
    for verdict in record["verdicts"].as_array().unwrap() {
        let name = verdict["requirement"].as_str().unwrap();
        assert!(
            section.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
    }
}

#[test]
fn people_read_what_programs_read() {
    let node = start(healthy());
    let said = Doctor::start(node.endpoint(), &["--heads", "0"]).end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for part in [
        "fake-node/1 on chain 1",
        "block 200",
        "201 blocks answered with 200 logs",
        "ok         chain: chain 1",
        "limited    fresh:",
        "pass --chain-id 1",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
}

#[test]
fn what_a_node_says_reaches_no_terminal_unescaped() {
    let node = start(healthy().on("web3_clientVersion", |_| {
        regatta_fake_node::Reply::Result("\u{1b}]0;owned\u{7}".into())
    }));
    let record = questions(&node, &[]);
    assert_eq!(record["client"], "\\u{1b}]0;owned\\u{7}");
    let said = Doctor::start(node.endpoint(), &["--heads", "0"]).end();
    assert!(!said.stdout.contains('\u{1b}'), "{}", said.stdout);
    assert!(!has_finding(&record, "client", "wrong"));
}

#[test]
fn a_node_and_a_machine_are_not_diagnosed_at_once() {
    for more in [&["--quota", "2000"][..], &["--root", "/"], &["--for", "0"]] {
        let said = Doctor::start("ws://127.0.0.1:1", more).end();
        assert_eq!(said.code, Some(2), "{more:?}: {}", said.stderr);
    }
}
