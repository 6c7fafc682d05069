//! Every unit, every receipt and every touched cycle of a long run is accounted for.

use regatta_bot::exit::Exit;
use regatta_tests::harness::{ON_REAL_POOLS, regatta};
use serde_json::Value;

/// Cycles of up to four hops from WETH over the real pools.
const CYCLES: u64 = 305_804;

#[test]
fn two_hundred_blocks_of_real_pools_leave_nothing_owed() {
    let count = |record: &Value, key: &str| {
        record[key]
            .as_u64()
            .unwrap_or_else(|| panic!("no count {key} in {record}"))
    };
    let ran = regatta(ON_REAL_POOLS.into_iter().chain(["--blocks", "200"])).unwrap();
    assert_eq!((ran.exit, ran.error.as_deref()), (Exit::Ok, None));

    let crawl = ran.of_type("crawl").next().unwrap();
    assert_eq!(count(crawl, "registered"), CYCLES);
    let by_hops: Vec<u64> = crawl["cycles"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(by_hops.iter().sum::<u64>(), CYCLES);

    let summary = ran.summary();
    let blocks: Vec<&Value> = ran.of_type("block").collect();
    assert_eq!((blocks.len(), count(summary, "blocks")), (200, 200));
    for block in &blocks {
        let outcomes = ["solved", "suppressed", "failed"].map(|kind| count(block, kind));
        assert_eq!(
            count(block, "touched"),
            outcomes.iter().sum::<u64>(),
            "{block}"
        );
        assert_eq!(
            count(block, "failed") + count(block, "sim_failed"),
            0,
            "{block}"
        );
        assert!(count(block, "touched") > 0, "{block}");
        assert!(!block["winners"].as_array().unwrap().is_empty(), "{block}");
    }
    for total in ["touched", "solved", "suppressed", "failed", "unproved"] {
        let sum: u64 = blocks.iter().map(|block| count(block, total)).sum();
        assert_eq!(count(summary, total), sum, "{total}");
    }

    assert_eq!(summary["balanced"], true);
    assert_eq!(count(summary, "abandoned"), 0);
    let lanes = summary["ledger"].as_array().unwrap();
    let submitted = |role: &str| {
        let lane = lanes.iter().find(|lane| lane["role"] == role).unwrap();
        count(lane, "submitted")
    };
    for lane in lanes {
        assert_eq!(count(lane, "submitted"), count(lane, "resolved"), "{lane}");
        for left in ["in_flight", "waiting", "uncollected"] {
            assert_eq!(count(lane, left), 0, "{lane}");
        }
    }
    assert_eq!(submitted("registrar"), CYCLES);
    assert_eq!((submitted("resolve"), submitted("merge")), (200, 200));
    // A winner is simulated once more, for its input.
    let simulated: u64 = blocks.iter().map(|block| count(block, "simulated")).sum();
    assert_eq!(
        submitted("sim_driver"),
        simulated + count(summary, "published")
    );
}
