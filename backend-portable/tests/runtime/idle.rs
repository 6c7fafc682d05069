//! A runtime that has nothing to do makes no wakeup. The kernel's counters are Linux's; on other platforms
//! there is nothing to ask.
#![cfg(target_os = "linux")]

use crate::parts::{HOUR, Journal, Part, budgets, eventually, runtime};
use regatta_core::component::{Outcome, RuntimeState, StopReason};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The thread's directory in the kernel's list.
fn task(name: &str) -> PathBuf {
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let path = tasks.find_map(|task| {
        let path = task.unwrap().path();
        let comm = read_to_string(path.join("comm")).unwrap_or_default();
        (comm.trim_end() == name).then_some(path)
    });
    path.unwrap()
}

/// How often the thread gave up a CPU, or lost one: as often as it came to run.
fn switches(task: &Path) -> u64 {
    let status = read_to_string(task.join("status")).unwrap();
    let counts = status
        .lines()
        .filter_map(|line| line.split_once("ctxt_switches:"));
    counts
        .map(|(_, count)| count.trim().parse::<u64>().unwrap())
        .sum()
}

/// Lets time pass: for what is to be seen is that nothing happens in it.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

#[test]
fn an_idle_runtime_makes_no_wakeup_and_has_no_thread_but_its_driver() {
    let journal = Journal::default();
    let parts = vec![
        Part::new("base", &[], &journal),
        Part::new("top", &["base"], &journal),
    ];
    let census = Census::new();
    let runtime = runtime(parts, budgets(HOUR, HOUR), &census);
    let handle = runtime.handle();
    let spec = ThreadSpec::one("test", "idle-driver");
    let run = census.spawn(spec, move || runtime.run(|_| ())).unwrap();
    eventually("up", || handle.state() == RuntimeState::Running);
    let driver = task("idle-driver");
    // It goes to sleep when the threads of the starts have told it that they end, which nothing announces.
    let mut before = u64::MAX;
    while switches(&driver) != std::mem::replace(&mut before, switches(&driver)) {
        pass(Duration::from_millis(100));
    }
    pass(Duration::from_secs(1));
    assert_eq!(switches(&driver), before);
    let running = census.rows().into_iter().filter(|row| row.running);
    let names: Vec<_> = running.map(|row| row.spec.kernel_name).collect();
    assert_eq!(names, ["idle-driver"]);
    handle.stop(StopReason::Requested);
    assert_eq!(run.join().unwrap().outcome(), Outcome::Clean);
}
