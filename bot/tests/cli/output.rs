//! What a run says when all goes well.

use super::*;
use std::collections::BTreeSet;

/// The keys of each type of record; a dot stands before those of an object inside.
const KEYS: [(&str, &str); 5] = [
    (
        "plan",
        "binding bins bounded_by budget budget.cores budget.name budget.origin budget.rule budget.threads \
         budget.within census census.binding census.count census.owner census.resource census.sizing \
         census.threads confidence detected_milli idle_overrides limiting_file limiting_level \
         oversubscribed permits profile \
         quota_milli quota_origin reason seats seats.affinity seats.because seats.count seats.wake \
         seats.wake_because tier_refused tier_refused_because type",
    ),
    (
        "crawl",
        "base base_symbol cycles groups market max_hops pools registered skipped_pool_is_token \
         skipped_zero_reserve timing timing.elapsed_ms tokens type window",
    ),
    (
        "block",
        "chain failed hash moved moved.pool moved.reserve0 moved.reserve1 number parent profitable \
         reread sim_failed simulated solved suppressed timing timing.cycle_us timing.held timing.posture \
         timing.walk_us touched type unproved winners winners.cycle winners.hops winners.hops.amount_in \
         winners.hops.amount_out winners.hops.pool winners.hops.token_in winners.hops.token_out \
         winners.input winners.kind winners.least_input winners.output winners.path winners.profit",
    ),
    ("missed", "chain covered_by hash number orphaned type"),
    (
        "summary",
        "abandoned balanced best_block best_profit blocks failed ledger ledger.in_flight ledger.resolved \
         ledger.role ledger.submitted ledger.uncollected ledger.waiting published retracted solved suppressed timing \
         timing.bins timing.bins.bin timing.bins.walk_us timing.bins.walk_us.count \
         timing.bins.walk_us.max timing.bins.walk_us.p50 timing.bins.walk_us.p90 \
         timing.bins.walk_us.p99 timing.cycle_us timing.cycle_us.count timing.cycle_us.max \
         timing.cycle_us.p50 timing.cycle_us.p90 timing.cycle_us.p99 timing.elapsed_ms \
         timing.handed_back timing.ledger timing.missed timing.suppressed_intake timing.ticks \
         timing.settlement timing.verifier touched type unproved",
    ),
];

fn keys(value: &Value, above: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{above}{key}");
                keys(value, &format!("{path}."), into);
                into.insert(path);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, above, into)),
        _ => {}
    }
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// An amount: a decimal string.
fn amount(value: &Value) -> u128 {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{value} is no amount"))
}

#[test]
fn each_type_of_record_has_its_keys() {
    // At a block a millisecond some are missed, most likely; then they have these keys.
    let live = run(&[
        "--json",
        "--blocks",
        "40",
        "--block-time",
        "1",
        "--top",
        "2",
    ])
    .exits(0);
    let replay = run(&["--json", "--blocks", "4", "--top", "2"]).exits(0);
    for (kind, expected) in KEYS {
        let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
        let records = [live.records(), replay.records()].concat();
        for record in records.iter().filter(|record| record["type"] == kind) {
            let mut found = BTreeSet::new();
            keys(record, "", &mut found);
            // A block without a trade has no keys of trades.
            let some = |key: &&String| {
                kind == "block" && (key.starts_with("winners.") || key.starts_with("moved."))
            };
            let missing: Vec<_> = expected
                .difference(&found)
                .filter(|key| !some(key))
                .collect();
            let extra: Vec<_> = found.difference(&expected).collect();
            assert!(
                missing.is_empty() && extra.is_empty(),
                "{kind}: missing {missing:?}, extra {extra:?}"
            );
        }
        let mut all = BTreeSet::new();
        replay
            .records()
            .iter()
            .filter(|record| record["type"] == kind)
            .for_each(|record| keys(record, "", &mut all));
        assert!(
            kind == "missed" || all == expected,
            "{kind}: no record has {:?}",
            expected.difference(&all)
        );
    }
    let kinds: BTreeSet<_> = live
        .records()
        .iter()
        .map(|record| record["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        kinds
            .iter()
            .all(|kind| KEYS.iter().any(|(known, _)| known == kind)),
        "{kinds:?}"
    );
}

fn replay() -> Vec<Value> {
    run(&["--json", "--blocks", "30", "--top", "3"])
        .exits(0)
        .records()
}

#[test]
fn every_block_of_a_replay_has_its_record_in_order() {
    let records = replay();
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    let mut expected = vec!["plan", "crawl"];
    expected.extend(["block"; 30]);
    expected.push("summary");
    assert_eq!(kinds, expected);
    let blocks = &records[2..32];
    assert!(
        blocks
            .iter()
            .map(|block| number(&block["number"]))
            .eq(1..=30)
    );
    for pair in blocks.windows(2) {
        assert_eq!(pair[0]["hash"], pair[1]["parent"]);
    }
}

#[test]
fn the_summary_is_the_sum_of_the_blocks() {
    let records = replay();
    let (plan, crawl, summary) = (&records[0], &records[1], record(&records, "summary"));
    let blocks = &records[2..32];
    let total = |key: &str| blocks.iter().map(|block| number(&block[key])).sum::<u64>();
    for key in ["touched", "solved", "suppressed", "failed", "unproved"] {
        assert_eq!(total(key), number(&summary[key]), "{key}");
    }
    let mut best: Option<(u128, u64)> = None;
    let mut published = 0;
    for block in blocks {
        let outcomes = ["solved", "suppressed", "failed"].map(|key| number(&block[key]));
        assert_eq!(number(&block["touched"]), outcomes.iter().sum::<u64>());
        assert!(number(&block["profitable"]) <= number(&block["solved"]));
        assert!(number(&block["simulated"]) <= number(&block["profitable"]));
        let winners = block["winners"].as_array().unwrap();
        published += winners.len() as u64;
        let first = winners.first().map(|winner| amount(&winner["profit"]));
        if let Some(profit) = first.filter(|p| best.is_none_or(|(best, _)| *p > best)) {
            best = Some((profit, number(&block["number"])));
        }
    }
    assert_eq!(published, number(&summary["published"]));
    let (profit, height) = best.unwrap();
    assert_eq!(
        (
            amount(&summary["best_profit"]),
            number(&summary["best_block"])
        ),
        (profit, height)
    );

    let cycles: u64 = crawl["cycles"].as_array().unwrap().iter().map(number).sum();
    assert_eq!(cycles, number(&crawl["registered"]));
    let ledger = summary["ledger"].as_array().unwrap();
    for (role, units) in [
        ("registrar", cycles),
        ("resolve", 30),
        ("merge", 30),
        ("solver", 30 * number(&plan["bins"])),
    ] {
        let lane = ledger.iter().find(|lane| lane["role"] == role).unwrap();
        let counts = ["submitted", "resolved"].map(|key| number(&lane[key]));
        assert_eq!(counts, [units; 2], "{role}");
    }
    assert_eq!(
        (&summary["balanced"], &summary["abandoned"]),
        (&true.into(), &0.into())
    );
}

#[test]
fn a_published_trade_is_a_chain_of_swaps_from_the_base_to_the_base() {
    let records = replay();
    let base = &record(&records, "crawl")["base"];
    let mut trades = 0;
    for block in &records[2..32] {
        let winners = block["winners"].as_array().unwrap();
        let profits: Vec<_> = winners
            .iter()
            .map(|winner| amount(&winner["profit"]))
            .collect();
        assert!(
            profits.len() <= 3 && profits.is_sorted_by(|a, b| a >= b),
            "{profits:?}"
        );
        for winner in winners {
            trades += 1;
            assert_eq!(
                amount(&winner["output"]) - amount(&winner["input"]),
                amount(&winner["profit"])
            );
            let hops = winner["hops"].as_array().unwrap();
            let path: Vec<_> = hops
                .iter()
                .map(|hop| hop["pool"].as_str().unwrap())
                .collect();
            assert_eq!(winner["path"], path.join("-"));
            let (first, last) = (&hops[0], hops.last().unwrap());
            assert_eq!(
                (&first["token_in"], &first["amount_in"]),
                (base, &winner["input"])
            );
            assert_eq!(
                (&last["token_out"], &last["amount_out"]),
                (base, &winner["output"])
            );
            for pair in hops.windows(2) {
                assert_eq!(
                    (&pair[0]["token_out"], &pair[0]["amount_out"]),
                    (&pair[1]["token_in"], &pair[1]["amount_in"])
                );
            }
        }
    }
    assert!(trades > 30, "only {trades} trades to look at");
}

/// Every block of a live run either ran or was missed, and then is covered by the next that ran.
#[test]
fn a_live_run_accounts_for_every_block() {
    let records = run(&["--json", "--blocks", "60", "--block-time", "1"])
        .exits(0)
        .records();
    let (mut waiting, mut heights, mut ran) = (Vec::new(), Vec::new(), 0);
    for record in &records {
        match record["type"].as_str().unwrap() {
            "missed" => {
                heights.push(number(&record["number"]));
                waiting.push(number(&record["covered_by"]));
            }
            "block" => {
                ran += 1;
                let height = number(&record["number"]);
                heights.push(height);
                assert!(waiting.drain(..).all(|covered_by| covered_by == height));
            }
            _ => {}
        }
    }
    assert!(waiting.is_empty());
    assert!(heights.into_iter().eq(1..=60));
    let summary = record(&records, "summary");
    assert_eq!(number(&summary["blocks"]), ran);
    assert_eq!(number(&summary["timing"]["missed"]), 60 - ran);
    assert_eq!(summary["balanced"], true);
}

#[test]
fn a_threshold_that_nothing_reaches_publishes_nothing_and_is_no_failure() {
    let most = u128::MAX.to_string();
    let ran = run(&["--json", "--blocks", "5", "--min-profit", &most]).exits(0);
    let records = ran.records();
    for block in records.iter().filter(|record| record["type"] == "block") {
        assert_eq!(
            (&block["winners"], &block["simulated"], &block["profitable"]),
            (&Value::Array(Vec::new()), &0.into(), &0.into())
        );
        assert!(number(&block["solved"]) > 0);
    }
    let summary = record(&records, "summary");
    assert_eq!(
        (
            &summary["published"],
            &summary["best_profit"],
            &summary["best_block"]
        ),
        (&0.into(), &Value::Null, &Value::Null)
    );
    // Zero asks for no less than one unit does.
    let without_timing = |args: &[&str]| {
        let mut records = run(args).exits(0).records();
        for record in &mut records {
            record.as_object_mut().unwrap().remove("timing");
        }
        records
    };
    assert_eq!(
        without_timing(&["--json", "--min-profit", "0"]),
        without_timing(&["--json", "--min-profit", "1"])
    );
}

#[test]
fn no_blocks_are_a_run_too() {
    let records = run(&["--json", "--blocks", "0"]).exits(0).records();
    let summary = record(&records, "summary");
    assert_eq!(
        (
            &summary["blocks"],
            &summary["touched"],
            &summary["balanced"]
        ),
        (&0.into(), &0.into(), &true.into())
    );
    assert_eq!(records.len(), 3);
}

#[test]
fn text_has_a_line_per_block_and_ends_with_the_ledger() {
    let text = run(&["--blocks", "7"]).exits(0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("plan   2.000 cores (command line)"),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("block "))
            .count(),
        7
    );
    for line in lines.iter().filter(|line| line.starts_with("block ")) {
        for part in [
            "touched",
            "solved",
            "profitable",
            "best",
            "BASE",
            "cycle",
            " ms",
            "nominal",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("done   7 blocks (0 missed)")),
        "{text}"
    );
    assert_eq!(lines.last(), Some(&"ledger balanced, 0 receipts abandoned"));
}

/// What the verifier does shows in the plan and in the summary's timing, and in no other record.
#[test]
fn verifying_an_honest_source_changes_no_block() {
    let line = ["--json", "--blocks", "30", "--top", "2"];
    let timeless = |more: &[&str]| {
        let mut records = run(&[&line, more].concat()).exits(0).records();
        for record in &mut records {
            record.as_object_mut().unwrap().remove("timing");
        }
        // The plan has the verifier's thread.
        records.split_off(1)
    };
    let plain = timeless(&[]);
    assert_eq!(plain.len(), 32);
    assert_eq!(plain, timeless(&["--verify"]));
}
