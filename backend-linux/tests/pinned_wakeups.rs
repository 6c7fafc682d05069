//! A pinned fleet that has nothing to do makes no wakeup, and one that holds a unit wakes one thread a tick.
//!
//! One test in a binary of its own, so that nothing else in the process touches the fleets.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "the helpers of a test fail as the test does; what is left out is said"
)]

#[path = "pinned_fleet/binding.rs"]
#[allow(dead_code, reason = "the list of tests that it is for uses all of it")]
mod binding;
#[path = "../../backend-portable/tests/fleet/common.rs"]
#[allow(dead_code, reason = "the list of tests that it is for uses all of it")]
mod common;

use common::{Jobs, Throttle, done, submit, yields};
use regatta_core::role::FLEET_ROLES;
use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve, SimDriver, Solver};
use regatta_linux::LinuxSeats;
use regatta_linux::wake::offered;
use regatta_portable::{Census, EdgeDelivery, Fleet, FleetConfig};
use std::fs::read_to_string;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How often each thread of the census came to run: as often as it gave up a CPU, or lost one.
fn switches(census: &Census) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        let comm = read_to_string(path.join("comm")).unwrap_or_default();
        let status = read_to_string(path.join("status")).unwrap_or_default();
        let sum = status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .map(|(_, count)| count.trim().parse::<u64>().unwrap())
            .sum();
        counts.push((comm.trim_end().to_owned(), sum));
    }
    let rows = census.rows();
    let ours = |name: &str| rows.iter().any(|row| row.spec.kernel_name == name);
    counts.retain(|(name, _)| ours(name));
    counts.sort();
    assert_eq!(
        counts.len(),
        rows.len(),
        "a thread of the census is missing"
    );
    counts
}

/// Lets time pass: for what is to be seen is that nothing happens in it.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// Returns once all threads have gone to sleep, which nothing announces.
fn settle(census: &Census) {
    let mut before = Vec::new();
    loop {
        let now = switches(census);
        if now == std::mem::replace(&mut before, now.clone()) {
            return;
        }
        pass(Duration::from_millis(100));
    }
}

fn config() -> FleetConfig {
    FleetConfig::new(&FLEET_ROLES, binding::plan())
        .keyed_lane(Solver, 16, 3)
        .lane(Merge, 8)
        .lane(Resolve, 16)
        .lane(SimDriver, 16)
        .lane(Registrar, 16)
        .edges(EdgeDelivery::Suppress)
        .backstop(Duration::from_millis(20), 8)
}

/// A fleet for each wake that this kernel has.
fn fleets(census: &Census) -> Vec<Fleet<Jobs>> {
    let mut fleets = Vec::new();
    for offer in offered() {
        if let Some(refusal) = offer.refusal {
            eprintln!("left out: {} is {refusal}", offer.kind);
            continue;
        }
        let platform = LinuxSeats::new(offer.kind);
        fleets.push(Fleet::boot_on(&platform, Jobs::new(), config(), census).unwrap());
    }
    fleets
}

#[test]
fn idle_fleets_sleep_and_held_ones_tick_on_one_thread() {
    let census = Census::new();
    let fleets = fleets(&census);
    let ticks = || -> Vec<u64> { fleets.iter().map(|f| f.status().host.ticks).collect() };
    // Every seat has worked, and some have kept the time.
    let mut throttles: Vec<_> = fleets.iter().map(|_| Throttle::new()).collect();
    for (fleet, throttle) in fleets.iter().zip(&mut throttles) {
        throttle.cordon(fleet.posture());
        let held = submit(fleet, Registrar, yields(1));
        throttle.lift(fleet.posture());
        for key in 0..3 {
            done(fleet.submit(Solver, key, yields(2)).unwrap());
        }
        done(submit(fleet, Merge, yields(3)));
        done(held);
    }
    settle(&census);
    let before = (switches(&census), ticks());
    pass(Duration::from_secs(10));
    assert_eq!((switches(&census), ticks()), before);

    // Held: of all seats of a fleet one wakes, once a tick.
    let mut held = Vec::new();
    for (fleet, throttle) in fleets.iter().zip(&mut throttles) {
        throttle.cordon(fleet.posture());
        held.push(submit(fleet, Registrar, yields(4)));
    }
    pass(Duration::from_millis(100));
    let (switched, ticked) = (switches(&census), ticks());
    pass(Duration::from_secs(1));
    let after = switches(&census);
    let woke = after
        .iter()
        .zip(&switched)
        .filter(|(now, then)| now.1 > then.1);
    let woke: Vec<_> = woke.map(|(now, then)| (&now.0, now.1 - then.1)).collect();
    assert_eq!(woke.len(), fleets.len(), "{woke:?}");
    for (now, then) in ticks().iter().zip(&ticked) {
        assert!((10..=51).contains(&(now - then)), "{} ticks", now - then);
    }
    for (fleet, throttle) in fleets.iter().zip(&mut throttles) {
        throttle.lift(fleet.posture());
        assert_eq!(done(held.remove(0)), 4);
    }
    settle(&census);
    let before = switches(&census);
    pass(Duration::from_secs(1));
    assert_eq!(switches(&census), before);
}
