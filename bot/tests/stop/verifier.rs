//! The verifier of the real binary: silent on an honest source, loud on a wrong one, and no hindrance to a stop.

use crate::health::{ask, endpoint};
use crate::process::{Ended, Process, TOLERANCE};
use serde_json::Value;
use std::time::{Duration, Instant};

const FAR: Duration = Duration::from_mins(1);

const BUDGET: Duration = Duration::from_millis(1_500);

fn of_type<'r>(records: &'r [Value], kind: &str) -> Vec<&'r Value> {
    let found = records.iter().filter(|record| record["type"] == kind);
    found.collect()
}

fn verifier(records: &[Value]) -> &Value {
    &records.last().unwrap()["timing"]["verifier"]
}

/// A run that is told to stop once it is in its blocks.
fn stopped(args: &[&str]) -> Ended {
    let budget = BUDGET.as_millis().to_string();
    let all = [
        &["--verify", "--stop-budget", &budget, "--log", "info"],
        args,
    ]
    .concat();
    let process = Process::start(&all);
    process.in_blocks();
    process.signal("-TERM");
    process.ended()
}

/// Every block is verified or counted as skipped, the last one is verified, and nothing else is said.
#[test]
fn an_honest_source_is_silent_to_the_last_block() {
    let ended = stopped(&[]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.is_balanced(), "{}", ended.err);
    let records = ended.records();
    assert!(of_type(&records, "quarantine").is_empty());
    let verifier = verifier(&records);
    let count = |key: &str| verifier[key].as_u64().unwrap();
    assert_eq!(count("published"), of_type(&records, "block").len() as u64);
    assert_eq!(count("published"), count("skipped") + count("verified"));
    assert!(
        count("verified") > 0 && count("quarantined") == 0,
        "{verifier}"
    );
    // How many units there were depends on timing, and stands with what does.
    let units = &records.last().unwrap()["timing"]["ledger"];
    assert_eq!(units[0]["role"], "verifier");
    assert_eq!(units[0]["resolved"], verifier["verified"]);
}

/// The pool that the source contradicts is named, the process is not ready, no trade goes through the pool, and the run
/// goes on.
#[test]
fn a_wrong_reserve_is_told_to_everybody() {
    let mut process = Process::start(&[
        "--verify",
        "--health",
        "127.0.0.1:0",
        "--inject",
        "verifier=lie-run",
        "--top",
        "3",
    ]);
    let addr = endpoint(&mut process);
    process.says("is quarantined");
    let (status, ready) = ask(addr, "/readyz");
    assert_eq!(status, 503, "{ready}");
    let reasons = ready["reasons"].to_string();
    assert!(
        reasons.contains("verifier") && reasons.contains("pools_quarantined"),
        "{reasons}"
    );
    assert!(ready["head"]["number"].as_u64().unwrap() > 0, "{ready}");
    // So many more blocks.
    let now = process.blocks();
    process.in_block(now + 50);
    process.signal("-TERM");
    let ended = process.ended();
    assert_eq!(ended.code, 0, "{}", ended.err);
    let records = ended.records();
    let place = records
        .iter()
        .position(|r| r["type"] == "quarantine")
        .unwrap();
    let found = of_type(&records, "quarantine");
    assert_eq!(found.len(), 1, "{found:?}");
    let (expected, read) = (&found[0]["expected"], &found[0]["read"]);
    let amount =
        |reserves: &Value| -> u128 { reserves["reserve0"].as_str().unwrap().parse().unwrap() };
    assert_eq!(amount(expected) + 1, amount(read));
    assert_eq!(expected["reserve1"], read["reserve1"]);
    let pool = found[0]["pool"].as_str().unwrap();
    assert!(ended.err.contains(pool), "{}", ended.err);
    let of_block = of_type(&records, "block");
    let block = of_block
        .iter()
        .find(|block| block["hash"] == found[0]["hash"]);
    let moved = block.unwrap()["moved"].to_string();
    assert!(
        moved.contains(pool),
        "it moved in the block that it was found out at"
    );
    for record in &records[place..] {
        let winners = record["winners"].to_string();
        assert!(!winners.contains(pool), "{winners}");
    }
    assert_eq!(verifier(&records)["quarantined"], 1);
}

/// One more than may be ends the run, with a code of its own.
#[test]
fn too_many_wrong_pools_end_the_run() {
    let process = Process::start(&[
        "--verify",
        "--max-quarantined",
        "0",
        "--inject",
        "verifier=lie-run",
    ]);
    let ended = process.ended();
    assert_eq!(ended.code, 23, "{}", ended.err);
    assert!(ended.err.contains("--max-quarantined"), "{}", ended.err);
    assert!(ended.is_balanced(), "{}", ended.err);
    assert_eq!(of_type(&ended.records(), "quarantine").len(), 1);
}

#[test]
fn a_reader_that_fails_is_counted_and_quarantines_nothing() {
    let ended = stopped(&["--inject", "verifier=fail-run"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let records = ended.records();
    assert!(of_type(&records, "quarantine").is_empty());
    let verifier = verifier(&records);
    assert!(verifier["read_failed"].as_u64().unwrap() > 0, "{verifier}");
    assert_eq!(
        (&verifier["verified"], &verifier["quarantined"]),
        (&Value::from(0), &Value::from(0))
    );
}

/// Its thread is left behind and named; everything else stops in time and in order.
#[test]
fn a_reader_that_hangs_does_not_hang_the_stop() {
    let budget = BUDGET.as_millis().to_string();
    let mut process = Process::start(&[
        "--verify",
        "--stop-budget",
        &budget,
        "--inject",
        "verifier=hang-run",
    ]);
    process.says("the verifier's reader hangs");
    let now = process.blocks();
    process.in_block(now + 20);
    process.signal("-TERM");
    let ended = process.ended();
    assert!(ended.after < BUDGET + TOLERANCE, "{:?}", ended.after);
    assert_eq!(ended.code, 30, "{}", ended.err);
    assert!(ended.err.contains("component verifier: "), "{}", ended.err);
    assert_eq!(ended.records().last().unwrap()["type"], "summary");
    for other in ["pump", "fleet", "drain", "source"] {
        let named = format!("component {other}: ");
        assert!(!ended.err.contains(&named), "{}", ended.err);
    }
    assert!(ended.is_balanced(), "{}", ended.err);
}

#[test]
fn a_reader_that_panics_ends_the_run_by_name() {
    let ended = Process::start(&["--verify", "--inject", "verifier=panic-run"]).ended();
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("component verifier failed"),
        "{}",
        ended.err
    );
    assert!(ended.is_balanced(), "{}", ended.err);
}

/// As with the others: who hangs in a hook is named, and holds up nobody.
#[test]
fn its_hooks_have_the_one_deadline() {
    for (kind, code) in [("hang", 31), ("slow", 0)] {
        for hook in ["quiesce", "drain", "stop"] {
            let fault = format!("verifier={kind}-{hook}");
            let ended = stopped(&["--inject", &fault]);
            assert!(
                ended.after < BUDGET + TOLERANCE,
                "{fault}: {:?}",
                ended.after
            );
            assert_eq!(ended.code, code, "{fault}: {}", ended.err);
            let named = ended.err.contains("component verifier: ");
            assert_eq!(named, code != 0, "{fault}: {}", ended.err);
            assert!(ended.is_balanced(), "{fault}: {}", ended.err);
        }
    }
}

/// The head that `/readyz` tells goes on with the chain.
#[test]
fn the_newest_head_is_told() {
    let mut process = Process::start(&["--health", "127.0.0.1:0"]);
    let addr = endpoint(&mut process);
    let number = || ask(addr, "/readyz").1["head"]["number"].as_u64();
    let end = Instant::now() + FAR;
    let first = loop {
        if let Some(number) = number() {
            break number;
        }
        assert!(Instant::now() < end, "no head");
    };
    while number().unwrap() <= first {
        assert!(Instant::now() < end, "the head does not go on");
    }
    let (_, ready) = ask(addr, "/readyz");
    assert!(ready["head"]["age_ms"].is_u64(), "{ready}");
    // A liveness probe is about the process and not about the chain.
    assert!(ask(addr, "/livez").1.get("head").is_none());
    process.signal("-TERM");
    assert_eq!(process.ended().code, 0);
}
