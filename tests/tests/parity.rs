//! Parity: the same seed over the same real pools gives the same corpus, byte for byte, on every binding.
//!
//! What a binding decides is when and where a unit runs; no outcome may depend on it. Only the plan's own
//! record, and what stands under `timing`, may differ.

#![cfg(test)]

use regatta_tests::harness::{ON_REAL_POOLS, regatta};

const BLOCKS: &str = "120";

/// All that a run says but for its plan and timing, and the binding that ran it.
fn corpus(args: &[&str]) -> (Vec<String>, String) {
    let fixed = ["--blocks", BLOCKS, "--seed", "11", "--top", "5"];
    let ran = regatta(
        ON_REAL_POOLS
            .into_iter()
            .chain(fixed)
            .chain(args.iter().copied()),
    )
    .unwrap();
    let plan = ran.of_type("plan").next().unwrap();
    let binding = plan["binding"].as_str().unwrap().to_owned();
    let mut lines = ran.timeless();
    lines.retain(|line| !line.starts_with(r#"{"type":"plan","#));
    // The crawl, each block, the summary.
    assert_eq!(lines.len(), BLOCKS.parse::<usize>().unwrap() + 2);
    (lines, binding)
}

/// What the serial binding says, which is the reference.
fn reference() -> Vec<String> {
    let (lines, binding) = corpus(&["--quota", "8000", "--profile", "serial"]);
    assert_eq!(binding, "serial");
    assert!(lines.iter().any(|line| line.contains("profit")));
    lines
}

/// The same, line by line: the first that differs is shown.
fn assert_same(found: &[String], reference: &[String], what: &str) {
    for (found, expected) in found.iter().zip(reference) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), reference.len(), "{what}");
}

// The portable build has one binding, and nothing to compare it with.
#[cfg(target_os = "linux")]
#[test]
fn every_binding_says_what_serial_says() {
    let reference = reference();
    let (auto, binding) = corpus(&["--quota", "8000"]);
    assert_eq!(binding, "pinned");
    assert_same(&auto, &reference, "auto");
    // Forced, on too little and on enough, whatever wakes its seats and wherever they run.
    for args in [
        ["--quota", "2000", "--wake", "futex"],
        ["--quota", "6000", "--wake", "eventfd"],
        ["--quota", "12000", "--wake", "io_uring"],
        ["--quota", "8000", "--affinity", "one-cpu-each"],
    ] {
        let (lines, binding) = corpus(&[args.as_slice(), &["--profile", "pinned"]].concat());
        assert_eq!(binding, "pinned");
        assert_same(&lines, &reference, &format!("{args:?}"));
    }
}
