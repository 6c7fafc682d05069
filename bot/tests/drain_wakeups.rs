//! A drain that has nothing to do makes no wakeup.
//!
//! One test in a binary of its own, so that nothing else in the process touches the drain. The kernel's
//! counters are Linux's; on other platforms there is nothing to ask.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use regatta_bot::drain::{Drain, DrainConfig, Item, Lines};
use regatta_bot::report::{Format, MissedRecord, Record};
use regatta_bot::source::BlockHash;
use regatta_portable::Census;
use std::fs::{read_dir, read_to_string};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How often the threads of the drain gave up a CPU, or lost one: as often as they came to run.
fn switches() -> Vec<(String, u64)> {
    let tasks = read_dir("/proc/self/task").unwrap();
    let of_task = tasks.filter_map(|task| {
        let path = task.unwrap().path();
        let comm = read_to_string(path.join("comm")).unwrap_or_default();
        let name = comm.trim_end().to_owned();
        if !name.starts_with("rg-") {
            return None;
        }
        let status = read_to_string(path.join("status")).unwrap();
        let counts = status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .map(|(_, count)| count.trim().parse::<u64>().unwrap());
        Some((name, counts.sum()))
    });
    let mut all: Vec<_> = of_task.collect();
    all.sort();
    all
}

/// Lets time pass: for what is to be seen is that nothing happens in it.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

#[test]
fn an_idle_drain_sleeps() {
    let sinks = ["a", "b"].map(|name| {
        let lines = Lines::new(Box::new(std::io::sink()), Format::Json);
        (name.to_owned(), Box::new(lines) as _)
    });
    let config = DrainConfig::default();
    // Afterwards the timekeeper may wake once, for a backlog that has gone.
    let interval = Duration::from(config.rule.interval);
    let drain = Drain::start(sinks.into(), config, &Census::new()).unwrap();
    for number in 0..1000 {
        let record = Record::Missed(MissedRecord {
            chain: regatta_bot::market::UntrustedText::new("test"),
            number,
            hash: BlockHash::new([7; 32]),
            covered_by: Some(number),
            orphaned: false,
        });
        drain.send(Item::publish(record)).unwrap();
    }
    let mut before = Vec::new();
    while before != switches() {
        before = switches();
        pass(interval + Duration::from_millis(200));
    }
    let names: Vec<_> = before.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        ["rg-drain", "rg-drain-watch", "rg-sink-0", "rg-sink-1"]
    );
    pass(Duration::from_secs(2));
    assert_eq!(switches(), before);
    assert_eq!(drain.lag(), 0);
}
