//! What is settled, and what becomes of it when things go wrong.

use crate::lab::{Lab, until};
use regatta_settle::ledger::{Kind, Outcome, Plan, Summary};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Whatever is in a ledger: predicted is realised, nonces have no gap and no two meanings, no pool is taken twice.
fn assert_sound(ledger: &Summary, first_nonce: u64) {
    let mut nonces = BTreeMap::new();
    for (id, flight) in ledger.state.flights() {
        if let Some(nonce) = flight.nonce {
            assert_eq!(
                nonces.insert(nonce, id),
                None,
                "nonce {nonce} has two settlements"
            );
        }
        let settles = flight.attempts.iter().filter(|a| a.kind == Kind::Settle);
        assert!(settles.count() <= 1, "{id} was signed twice");
        if let Some(Outcome::Included { realised, .. }) = &flight.outcome {
            assert_eq!(Some(*realised), flight.plan.as_ref().map(Plan::predicted));
        }
    }
    let given: Vec<u64> = nonces.into_keys().collect();
    let expected: Vec<u64> = (first_nonce..).take(given.len()).collect();
    assert_eq!(given, expected, "a nonce is missing");
    // What a reversal opened again may meet what has begun since: the chain takes one of them.
    if ledger.state.totals().reversed > 0 {
        return;
    }
    let mut pools = BTreeSet::new();
    for (_, flight) in ledger.state.open() {
        for hop in flight.plan.iter().flat_map(|plan| &plan.cycle.hops) {
            assert!(pools.insert(hop.pool), "{} is taken twice", hop.pool);
        }
    }
}

#[test]
fn what_is_settled_brings_in_what_was_predicted_and_a_reorg_takes_it_back() {
    let mut lab = Lab::new(11);
    let first = lab.nonce();
    let args = lab.live(&[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut bot = lab.run(&args);
    // What is sent may come a block later than wanted, or expire: blocks go on until enough has ended in one.
    until("three outcomes in blocks", || {
        lab.step(&bot);
        bot.ended("included").len() + bot.ended("reverted").len() >= 3
            && !bot.ended("included").is_empty()
    });
    let included = bot.ended("included");
    for record in &included {
        assert_eq!(record["predicted"], record["realised"], "{record}");
        assert_eq!(record["mode"], "live");
        let head = record["block_hash"].as_str().unwrap();
        let receipt = lab
            .node
            .rpc()
            .call("eth_getTransactionReceipt", json!([record["transaction"]]))
            .unwrap();
        assert_eq!(
            (&receipt["status"], &receipt["blockHash"]),
            (&json!("0x1"), &json!(head))
        );
    }
    for record in bot.ended("reverted") {
        assert!(!record["reason"].is_null(), "{record}");
    }
    let text = lab.text("ledger");
    assert_sound(&lab.ledger(), first);

    // The newest block with a settlement is replaced, and all above it.
    let before = bot.ended("included").len();
    until("another one", || {
        lab.step(&bot);
        bot.ended("included").len() > before
    });
    let newest = bot.ended("included");
    let newest = newest.iter().filter_map(|record| record["block"].as_u64());
    let head = lab.node.rpc().head().unwrap().number;
    let depth = head - newest.max().unwrap() + 1;
    lab.mover.reorg(&mut lab.node, depth).unwrap();
    until("the reversal", || !bot.ended("reversed").is_empty());
    let reversed = bot.ended("reversed");
    assert!(reversed[0]["block_hash"].is_string(), "{reversed:?}");
    assert!(bot.stop().success(), "{}", bot.errors());
    let summary = bot.records("summary").pop().unwrap();
    assert_eq!(summary["balanced"], true, "{summary}");
    let settling = &summary["timing"]["settlement"];
    assert!(settling["reversed"].as_u64().unwrap() >= 1, "{settling}");
    assert_sound(&lab.ledger(), first);

    // The summary reader says the same.
    let shown = std::process::Command::new(env!("CARGO_BIN_EXE_regatta"))
        .args(["settle", "ledger", &text, "--json"])
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["included"], settling["included"], "{shown}");
    assert_eq!(shown["realised"], settling["realised"], "{shown}");
    // The key is nowhere.
    let key = std::fs::read_to_string(lab.path("key")).unwrap();
    let key = key.trim().trim_start_matches("0x");
    for file in ["out", "err", "ledger"] {
        let text = std::fs::read_to_string(lab.path(file)).unwrap();
        assert!(!text.contains(key), "{file} has the key");
    }
}

#[test]
fn a_crash_with_a_transaction_out_leaves_no_gap_and_sends_nothing_twice() {
    let mut lab = Lab::new(12);
    let first = lab.nonce();
    let args = lab.live(&[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let bot = lab.run(&args);
    lab.step_until_sent(&bot);
    bot.kill();
    let open = lab.ledger().state.totals().open();
    assert!(open > 0, "nothing was open");

    // Its block comes while nobody looks.
    lab.mover.step(&mut lab.node).unwrap();
    let mut bot = lab.run(&args);
    lab.step(&bot);
    until("the open ones to be reconciled", || {
        lab.ledger().state.totals().included + lab.ledger().state.totals().reverted >= 1
    });
    lab.step_until_sent(&bot);
    lab.step(&bot);
    let ledger = lab.ledger();
    assert_sound(&ledger, first);
    assert!(bot.stop().success(), "{}", bot.errors());
    let ledger = lab.ledger();
    let sent = ledger.state.totals().sent;
    let nonce = lab.nonce() + lab.pending();
    assert_eq!(
        nonce,
        first + sent,
        "each was sent once, and each is known to the node"
    );
}

#[test]
fn a_loss_stops_settling_and_nothing_else() {
    let mut lab = Lab::new(13);
    let args = lab.live(&["--loss-limit", "1"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut bot = lab.run(&args);
    lab.step_until_sent(&bot);
    // Somebody pays more, and takes the profit away: every pool of it is given a third of its reserve.
    let ledger = lab.ledger();
    let (_, flight) = ledger.state.open().next().unwrap();
    let pools: Vec<_> = flight
        .plan
        .iter()
        .flat_map(|plan| &plan.cycle.hops)
        .collect();
    lab.front_run(&pools);
    lab.step(&bot);
    until("the revert", || !bot.ended("reverted").is_empty());
    let reverted = bot.ended("reverted");
    assert!(!reverted[0]["reason"].is_null(), "{reverted:?}");
    until("the stop", || {
        bot.errors().contains("settlements have lost")
    });
    // What was out by then is followed to its end.
    until("what was out", || {
        lab.step(&bot);
        lab.pending() == 0 && lab.ledger().state.totals().open() == 0
    });
    let nonce = lab.nonce();
    let blocks = bot.records("block").len();
    for _ in 0..3 {
        lab.step(&bot);
    }
    assert!(bot.records("block").len() > blocks, "it publishes no more");
    assert_eq!((lab.pending(), lab.nonce()), (0, nonce), "it settled on");
    assert!(bot.stop().success(), "{}", bot.errors());
}
