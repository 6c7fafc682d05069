//! What a run says follows from its arguments, apart from what stands under `timing`.

#![cfg(test)]

use regatta_tests::checker::check::Asked;
use regatta_tests::checker::record::blocks;
use regatta_tests::checker::{Checker, Found};
use regatta_tests::harness::{ON_REAL_POOLS, Ran, real_market, regatta};
use serde_json::Value;
use std::collections::BTreeMap;

const MADE_UP: [&str; 0] = [];

/// The blocks of a run, byte for byte but for timing.
fn blocks_of(ran: &Ran) -> Vec<String> {
    let lines = ran.timeless();
    let is_block = |line: &String| line.starts_with(r#"{"type":"block","#);
    lines.into_iter().filter(is_block).collect()
}

#[test]
fn a_seed_gives_the_same_bytes_every_time() {
    for market in [MADE_UP.as_slice(), ON_REAL_POOLS.as_slice()] {
        let run = || {
            let args = ["--blocks", "70", "--seed", "3", "--top", "3"];
            regatta(market.iter().copied().chain(args)).unwrap()
        };
        let (first, second) = (run(), run());
        assert_ne!(first.lines, second.lines, "nothing was measured");
        assert_eq!(first.timeless(), second.timeless());
        assert_eq!(blocks_of(&first).len(), 70);
    }
}

#[test]
fn the_number_of_bins_changes_no_result() {
    // More blocks than lie between two looks at where groups should be.
    let run = |bins: usize| {
        let setting = format!("solver_pins={bins}");
        let args = ["--blocks", "70", "--top", "3", "--set", &setting];
        let ran = regatta(ON_REAL_POOLS.into_iter().chain(args)).unwrap();
        let plan = ran.of_type("plan").next().unwrap();
        assert_eq!(plan["bins"], bins);
        for block in ran.of_type("block") {
            assert_eq!(block["timing"]["walk_us"].as_array().unwrap().len(), bins);
        }
        blocks_of(&ran)
    };
    let one = run(1);
    assert_eq!(one.len(), 70);
    for bins in [3, 6] {
        assert_eq!(run(bins), one, "{bins} bins");
    }
}

/// The seed is in every hash too, so it is the moves that are compared.
#[test]
fn another_seed_gives_other_moves() {
    for market in [MADE_UP.as_slice(), ON_REAL_POOLS.as_slice()] {
        let run = |seed| {
            let args = ["--blocks", "3", "--seed", seed];
            let ran = regatta(market.iter().copied().chain(args)).unwrap();
            ran.of_type("block").map(moved).collect::<Vec<_>>()
        };
        let (one, other) = (run("1"), run("2"));
        assert_eq!((one.len(), other.len()), (3, 3));
        assert!(one.iter().zip(&other).all(|(one, other)| one != other));
    }
}

/// Pools with both reserves, as a record has them.
type Reserves = BTreeMap<String, (String, String)>;

fn moved(block: &Value) -> Reserves {
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let pools = block["moved"].as_array().into_iter().flatten();
    pools
        .map(|moved| {
            (
                text(&moved["pool"]),
                (text(&moved["reserve0"]), text(&moved["reserve1"])),
            )
        })
        .collect()
}

/// A live run at this pace accounts for every block, and says of them what a replay says; the number of
/// blocks that were missed.
fn live_run_agrees_with_replay(block_time: &str, blocks: u64) -> usize {
    let count = blocks.to_string();
    let args = ON_REAL_POOLS.into_iter().chain(["--blocks", &count]);
    let replay = regatta(args.clone()).unwrap();
    let replayed: Vec<&Value> = replay.of_type("block").collect();
    assert_eq!(replayed.len() as u64, blocks);
    let live = regatta(args.chain(["--block-time", block_time])).unwrap();

    let (mut next, mut ran, mut missed) = (0, 0, 0);
    // What the blocks moved that no cycle has covered yet, and which block they say will.
    let (mut pending, mut covered_by) = (Reserves::new(), Vec::new());
    for record in &live.records {
        let kind = record["type"].as_str().unwrap();
        if !["block", "missed"].contains(&kind) {
            continue;
        }
        let same: &Value = replayed[next];
        next += 1;
        for key in ["chain", "number", "hash"] {
            assert_eq!(record[key], same[key], "{key} of block {next}");
        }
        assert_eq!(record["number"], next);
        pending.extend(moved(same));
        if kind == "missed" {
            missed += 1;
            covered_by.push(record["covered_by"].clone());
            continue;
        }
        ran += 1;
        assert_eq!(record["parent"], same["parent"]);
        assert!(covered_by.iter().all(|number| *number == record["number"]));
        assert_eq!(moved(record), pending, "block {next} and what it covers");
        // Nothing of the last block was left out, so without missed ones all is as in the replay.
        if covered_by.is_empty() {
            assert_eq!(record["winners"], same["winners"]);
        }
        pending.clear();
        covered_by.clear();
    }
    assert_eq!(next as u64, blocks);
    assert!(pending.is_empty(), "the last block of all has no cycle");
    let summary = live.summary();
    assert_eq!(
        (&summary["blocks"], &summary["timing"]["missed"]),
        (&ran.into(), &missed.into())
    );
    assert_eq!(summary["balanced"], true);

    let market = real_market().unwrap();
    let mut checker = Checker::new(&market.files, &market.base, Asked::default()).unwrap();
    let mut found = Found::default();
    for block in self::blocks(&live.lines).unwrap() {
        if let Err(objection) = checker.check(&block, &mut found) {
            panic!("block {}: {objection}", block.number);
        }
    }
    missed
}

#[test]
fn a_live_run_accounts_for_every_block() {
    live_run_agrees_with_replay("5", 40);
}

/// A cycle over the real pools takes longer than this pace allows for.
#[test]
fn a_block_that_covers_missed_ones_is_right() {
    let missed = live_run_agrees_with_replay("1", 80);
    assert!(missed > 0, "no cycle took longer than a millisecond");
}
