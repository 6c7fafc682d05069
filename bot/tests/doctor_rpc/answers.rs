//! What a node says to questions.

use crate::{Doctor, has_finding, healthy, hints, questions, start, topic, verdict};
use regatta_fake_node::{Batches, Call, Door, Faults, RangeLimit, Reply, Script};
use serde_json::{Value, json};

const FACTORY: &str = "0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f";

#[test]
fn a_healthy_node_is_fit_and_its_numbers_are_its_own() {
    let node = start(healthy());
    let record = questions(&node, &["--chain-id", "1"]);
    let hash = node.chain(|chain| chain.head_hash()).to_string();
    assert_eq!(
        record["chain"],
        json!({"id": 1, "wanted": 1, "matches": true})
    );
    assert_eq!(record["client"], "fake-node/1");
    assert_eq!(record["head"]["number"], 200);
    assert_eq!(record["head"]["hash"], hash);
    assert_eq!(record["head"]["interval_ms"], 12_000);
    assert_eq!(record["head"]["headers"], 16);
    assert_eq!(record["logs"]["by_hash_logs"], 1);
    assert_eq!(record["logs"]["largest_range_blocks"], 201);
    assert_eq!(record["logs"]["largest_range_logs"], 200);
    assert_eq!(record["batch"]["largest"], 1000);
    assert_eq!(record["round_trip_us"]["samples"], 10);
    assert_eq!(record["state"]["old"]["says"], "data");
    assert_eq!(record["findings"], json!([]));
    for ok in [
        "chain",
        "synced",
        "unknown_hash",
        "logs_by_hash",
        "state_by_hash",
        "batches",
        "frames",
    ] {
        assert_eq!(verdict(&record, ok), "ok", "{record}");
    }
    // The scripted chain is of 2023.
    assert_eq!(verdict(&record, "fresh"), "limited");
    assert!(record["head"]["age_s"].as_i64().unwrap() > 60);
}

#[test]
fn another_chain_is_unfit_and_the_chain_is_hinted_where_none_was_given() {
    let node = start(healthy());
    let other = questions(&node, &["--chain-id", "5"]);
    assert_eq!(other["chain"]["matches"], false);
    assert_eq!(verdict(&other, "chain"), "unfit");
    let open = questions(&node, &[]);
    assert_eq!(open["chain"]["matches"], Value::Null);
    assert!(hints(&open).contains(&"chain_id"), "{open}");
    let more = ["--heads", "0", "--chain-id", "5", "--strict", "--json"];
    let strict = Doctor::start(node.endpoint(), &more).end();
    assert_eq!(strict.code, Some(7), "{}", strict.stderr);
    assert!(
        strict.stderr.contains("unfit for: chain"),
        "{}",
        strict.stderr
    );
    let record: Value = serde_json::from_str(&strict.stdout).unwrap();
    assert_eq!(verdict(&record, "chain"), "unfit");
}

#[test]
fn a_syncing_node_is_unfit_by_as_many_blocks_as_it_says() {
    let node = start(healthy());
    node.faults(|faults| faults.syncing = true);
    let record = questions(&node, &[]);
    assert_eq!(
        record["sync"],
        json!({"syncing": true, "behind_blocks": 1000})
    );
    assert_eq!(verdict(&record, "synced"), "unfit");
}

#[test]
fn a_limit_of_ranges_is_found_with_its_code_and_its_words_escaped() {
    let faults = Faults {
        range_limit: Some(RangeLimit {
            logs: 10_000,
            blocks: 50,
            code: -32_602,
            message: "try\u{1b}[2J [0x0, 0x1]".to_owned(),
        }),
        ..Faults::default()
    };
    let record = questions(&start(healthy().faults(faults)), &[]);
    assert_eq!(record["logs"]["largest_range_blocks"], 32);
    assert_eq!(record["logs"]["refused_range_blocks"], 64);
    let refusal =
        json!({"says": "refused", "code": -32_602, "message": "try\\u{1b}[2J [0x0, 0x1]"});
    assert_eq!(record["logs"]["range_refusal"], refusal);
    assert!(has_finding(&record, "log_range", "refused"));
    assert_eq!(verdict(&record, "logs_by_hash"), "ok");
}

#[test]
fn an_empty_answer_for_a_block_that_there_is_not_is_a_danger() {
    let node = start(healthy().on("eth_getLogs", |_| Reply::Result(json!([]))));
    let record = questions(&node, &[]);
    assert_eq!(record["unknown_hash"]["logs"]["says"], "empty");
    assert_eq!(record["unknown_hash"]["header"]["says"], "not_found");
    assert_eq!(record["unknown_hash"]["call"]["says"], "refused");
    assert!(has_finding(&record, "unknown_logs", "wrong"), "{record}");
    assert_eq!(verdict(&record, "unknown_hash"), "unfit");
}

#[test]
fn logs_of_another_block_are_unfit() {
    let node = start(healthy());
    let other = node.chain(|chain| chain.at(3).unwrap().log(0, false));
    node.on("eth_getLogs", move |_| Reply::Result(json!([other])));
    let record = questions(&node, &[]);
    assert!(has_finding(&record, "logs_by_hash", "wrong"), "{record}");
    assert_eq!(verdict(&record, "logs_by_hash"), "unfit");
}

#[test]
fn a_node_without_state_by_hash_is_unfit_and_one_without_old_state_is_not() {
    let no_hash =
        |_: &Call| Reply::error(-32_602, "invalid argument 1: json: cannot unmarshal object");
    let record = questions(&start(healthy().on("eth_call", no_hash)), &[]);
    assert_eq!(record["state"]["latest"]["code"], -32_602);
    assert_eq!(verdict(&record, "state_by_hash"), "unfit");

    let node = start(healthy());
    let latest = json!(node.chain(|chain| chain.head_hash()));
    node.on("eth_call", move |call| {
        if call.params[1]["blockHash"] == latest {
            Reply::Result(json!("0x"))
        } else {
            Reply::error(-32_000, "missing trie node")
        }
    });
    let record = questions(&node, &[]);
    assert_eq!(record["state"]["old_blocks"], 100);
    assert_eq!(record["state"]["old"]["says"], "refused");
    assert_eq!(verdict(&record, "state_by_hash"), "ok");
}

#[test]
fn a_batch_without_an_answer_is_refused_and_the_limit_is_hinted() {
    let node = start(healthy().batches(Batches::Without(50)));
    let record = questions(&node, &[]);
    assert_eq!(
        (&record["batch"]["largest"], &record["batch"]["refused"]),
        (&json!(10), &json!(100))
    );
    assert_eq!(record["batch"]["refusal"]["says"], "malformed");
    assert_eq!(verdict(&record, "batches"), "limited");
    assert!(hints(&record).contains(&"batch"));
}

#[test]
fn garbage_ends_a_connection_and_not_the_measurement() {
    let node = start(healthy().on("eth_getLogs", |_| Reply::Raw("<html>".to_owned())));
    let record = questions(&node, &[]);
    for step in ["unknown_logs", "logs_by_hash", "log_range"] {
        assert!(has_finding(&record, step, "garbage"), "{step}: {record}");
    }
    assert_eq!(verdict(&record, "logs_by_hash"), "unfit");
    assert_eq!(verdict(&record, "unknown_hash"), "unmeasured");
    assert_eq!(record["state"]["latest"]["says"], "data");
    assert_eq!(record["batch"]["largest"], 1000);
}

#[test]
fn an_answer_of_fifty_megabytes_is_not_taken_and_its_size_is_told() {
    let node = start(healthy());
    node.on("eth_getLogs", |call| {
        if call.params[0].get("fromBlock").is_some() {
            Reply::Huge(50 << 20)
        } else {
            Reply::error(-32_000, "unknown block")
        }
    });
    let record = questions(&node, &[]);
    assert_eq!(record["logs"]["range_refusal"]["says"], "too_large");
    assert_eq!(record["frame"]["limit_bytes"], 16 << 20);
    assert!(
        record["frame"]["largest_bytes"].as_u64().unwrap() > 16 << 20,
        "{record}"
    );
    assert_eq!(verdict(&record, "frames"), "limited");
    assert!(hints(&record).contains(&"frame"));
    assert_eq!(verdict(&record, "logs_by_hash"), "limited");
}

#[test]
fn a_factory_is_looked_at_for_code_and_for_what_fits() {
    let answers = |call: &Call| {
        let asked = call.params[0]["to"] == FACTORY;
        Reply::Result(json!(if asked {
            format!("0x{:064x}", 500)
        } else {
            "0x".to_owned()
        }))
    };
    let script = || healthy().on("eth_call", answers);
    let with_code = start(script().on("eth_getCode", |_| Reply::Result(json!("0x6001"))));
    let fits = questions(&with_code, &["--factory", FACTORY, "--most-pools", "500"]);
    let factory = json!({"address": FACTORY, "code_bytes": 2, "pools": "500", "most_pools": 500, "fits": true});
    assert_eq!(fits["factories"], json!([factory]));
    assert_eq!(verdict(&fits, "factories"), "ok");
    let over = questions(&with_code, &["--factory", FACTORY, "--most-pools", "499"]);
    assert_eq!(over["factories"][0]["fits"], false);
    assert_eq!(verdict(&over, "factories"), "unfit");
    assert!(hints(&over).contains(&"most_pools"));
    let without = start(healthy().on("eth_getCode", |_| Reply::Result(json!("0x"))));
    let none = questions(&without, &["--factory", FACTORY]);
    assert_eq!(none["factories"][0]["code_bytes"], 0);
    assert_eq!(verdict(&none, "factories"), "unfit");
}

#[test]
fn a_silent_node_is_a_row_of_findings() {
    let node = start(Script::new().silent_after(0));
    let record = Doctor::start(node.endpoint(), &["--json", "--for", "2"])
        .end()
        .record();
    assert!(has_finding(&record, "chain_id", "timed_out"), "{record}");
    assert!(
        has_finding(&record, "subscribe_heads", "no_time"),
        "{record}"
    );
    assert_eq!(verdict(&record, "chain"), "unfit");
    assert_eq!(verdict(&record, "header_announcements"), "unmeasured");
}

#[test]
fn no_node_is_an_error_of_its_own() {
    for (door, says) in [
        (Door::Shut, "cannot connect"),
        (Door::Status(403), "status 403"),
        (Door::Mute, "not connected within"),
        (Door::Garbage, "handshake failed"),
    ] {
        let node = start(Script::new().door(door));
        let said = Doctor::start(node.endpoint(), &["--for", "2"]).end();
        assert_eq!(said.code, Some(7), "{door:?}: {}", said.stderr);
        assert_eq!(said.stdout, "");
        assert!(said.stderr.contains(says), "{door:?}: {}", said.stderr);
    }
}

/// The topic that is asked for everywhere is the one that pools emit.
#[test]
fn logs_are_asked_for_by_the_topic_of_pools() {
    let node = start(healthy());
    node.on("eth_getLogs", |call| {
        let right = call.params[0]["topics"] == json!([[topic()]]);
        Reply::error(if right { 1 } else { 2 }, "")
    });
    let record = questions(&node, &[]);
    for answer in [
        &record["logs"]["by_hash"],
        &record["logs"]["range_refusal"],
        &record["unknown_hash"]["logs"],
    ] {
        assert_eq!(answer["code"], 1, "{record}");
    }
}
