//! A fleet that has nothing to do makes no wakeup, and one that holds a unit makes one a tick.
//!
//! One test in a binary of its own, so that nothing else in the process touches the fleet. The kernel's
//! counters are Linux's; on other platforms there is nothing to ask.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use regatta_core::posture::ThrottleSample;
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_core::time::Duration as Span;
use regatta_portable::{Census, Fleet, FleetConfig, Pin, UnitContext, Workload};
use std::fs::read_to_string;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

struct Nothing;

impl Workload for Nothing {
    type Unit = ();
    type Output = ();
    type Arena = ();
    fn arena(&self, _: Pin) {}
    fn run(&self, (): (), (): &mut (), _: &UnitContext) {}
}

/// What the kernel counts of a thread.
struct Task(PathBuf);

impl Task {
    fn named(name: &str) -> Self {
        let mut tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let path = tasks.find_map(|task| {
            let path = task.unwrap().path();
            let comm = read_to_string(path.join("comm")).unwrap_or_default();
            (comm.trim_end() == name).then_some(path)
        });
        Self(path.unwrap())
    }

    /// How often it gave up a CPU, or lost one: as often as it came to run.
    fn switches(&self) -> u64 {
        let status = read_to_string(self.0.join("status")).unwrap();
        let counts = status
            .lines()
            .filter_map(|line| line.split_once("ctxt_switches:"))
            .map(|(_, count)| count.trim().parse::<u64>().unwrap());
        counts.sum()
    }

    /// The CPU time it used.
    fn used(&self) -> Duration {
        let stat = read_to_string(self.0.join("schedstat")).unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    }
}

/// Lets time pass: for what is to be seen is that nothing happens in it.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// Returns once the thread has gone to sleep, which nothing announces.
fn settle(task: &Task) {
    let mut before = u64::MAX;
    while task.switches() != std::mem::replace(&mut before, task.switches()) {
        pass(Duration::from_millis(100));
    }
}

#[test]
fn an_idle_fleet_sleeps_and_a_held_one_ticks() {
    const TICK: Duration = Duration::from_millis(20);
    let config = FleetConfig::serial(2)
        .unwrap()
        .lane(Resolve, 8)
        .lane(Registrar, 8)
        .backstop(TICK, 8);
    let fleet = Fleet::boot(Nothing, config, &Census::new()).unwrap();
    for _ in 0..100 {
        fleet.submit(Registrar, 0, ()).unwrap().wait().unwrap();
    }
    let task = Task::named(&fleet.census().rows()[0].spec.kernel_name);
    settle(&task);
    let before = (task.switches(), fleet.status().host.ticks);
    pass(Duration::from_secs(10));
    assert_eq!((task.switches(), fleet.status().host.ticks), before);

    // Held: a wakeup for each tick, and between two ticks the thread sleeps.
    let start = fleet.posture().now();
    for nr_throttled in [0, 5] {
        fleet.posture().sample(ThrottleSample {
            at: start + Span::from_millis(20 * nr_throttled),
            nr_throttled: Some(nr_throttled),
            throttled: None,
        });
    }
    let held = fleet.submit(Registrar, 0, ()).unwrap();
    let ticks = || fleet.status().host.ticks;
    let (from, switches, used) = (ticks(), task.switches(), task.used());
    pass(TICK * 50);
    let (ticks, switches, used) = (
        u32::try_from(ticks() - from).unwrap(),
        task.switches() - switches,
        task.used().saturating_sub(used),
    );
    assert!((10..=51).contains(&ticks), "{ticks} ticks in 50 intervals");
    assert!(switches <= 2 * u64::from(ticks) + 5, "{switches} switches");
    assert!(used < TICK * ticks / 2, "{used:?} for {ticks} ticks");

    // Nothing is held any more: it sleeps again.
    assert_eq!(fleet.close(Duration::from_mins(1)).not_run, 1);
    assert!(held.wait().unwrap().failure().is_some());
}
