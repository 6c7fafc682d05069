//! Each component in turn hangs, is slow, fails or panics, in each of its hooks.

use crate::process::{Ended, Process, TOLERANCE};
use std::time::Duration;

const COMPONENTS: [&str; 6] = ["signals", "health", "drain", "fleet", "source", "pump"];

/// How long these runs may take to stop.
const BUDGET: Duration = Duration::from_millis(1_500);

/// A run under load with these faults that is told to stop.
fn stopped(faults: &[&str]) -> Ended {
    let budget = BUDGET.as_millis().to_string();
    let mut args = vec![
        "--stop-budget",
        &budget,
        "--health",
        "127.0.0.1:0",
        "--log",
        "info",
    ];
    for fault in faults {
        args.extend(["--inject", fault]);
    }
    let process = Process::start(&args);
    process.in_blocks();
    process.signal("-TERM");
    process.ended()
}

/// It is gone by the deadline, its records are whole, and every unit is accounted for.
fn in_order(ended: &Ended, what: &str) {
    assert!(
        ended.after < BUDGET + TOLERANCE,
        "{what}: {:?} after the signal",
        ended.after
    );
    assert!(ended.is_balanced(), "{what}: {}", ended.err);
}

#[test]
fn without_a_fault_the_stop_is_clean() {
    let ended = stopped(&[]);
    in_order(&ended, "none");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("clean"), "{}", ended.err);
    assert_eq!(ended.records().last().unwrap()["type"], "summary");
}

#[test]
fn who_hangs_is_named_and_holds_up_nobody() {
    for component in COMPONENTS {
        for hook in ["quiesce", "drain", "stop"] {
            let fault = format!("{component}=hang-{hook}");
            let ended = stopped(&[&fault]);
            in_order(&ended, &fault);
            assert_eq!(ended.code, 31, "{fault}: {}", ended.err);
            let named = format!("component {component}: ");
            assert!(ended.err.contains(&named), "{fault}: {}", ended.err);
            // It still has the thread that hangs, and the others have stopped.
            for other in COMPONENTS.iter().filter(|other| **other != component) {
                let named = format!("component {other}: ");
                assert!(!ended.err.contains(&named), "{fault}: {}", ended.err);
            }
        }
    }
}

#[test]
fn who_is_slow_is_waited_for() {
    for component in COMPONENTS {
        for hook in ["quiesce", "drain", "stop"] {
            let fault = format!("{component}=slow-{hook}");
            let ended = stopped(&[&fault]);
            in_order(&ended, &fault);
            assert_eq!(ended.code, 0, "{fault}: {}", ended.err);
        }
    }
}

#[test]
fn who_fails_to_stop_is_named_at_once() {
    for component in COMPONENTS {
        for kind in ["fail", "panic"] {
            let fault = format!("{component}={kind}-stop");
            let ended = stopped(&[&fault]);
            in_order(&ended, &fault);
            assert_eq!(ended.code, 30, "{fault}: {}", ended.err);
            let named = format!("component {component}: stop");
            assert!(ended.err.contains(&named), "{fault}: {}", ended.err);
        }
    }
}

/// Each would eat the whole budget; together they have one.
#[test]
fn three_that_hang_share_one_deadline() {
    let faults = ["pump=hang-stop", "fleet=hang-stop", "drain=hang-stop"];
    let ended = stopped(&faults);
    in_order(&ended, "three");
    assert_eq!(ended.code, 31, "{}", ended.err);
    for component in ["pump", "fleet", "drain"] {
        let named = format!("component {component}: stop timed_out");
        assert!(ended.err.contains(&named), "{}", ended.err);
    }
}

/// What does not start rolls back what has, and says which it was.
#[test]
fn who_does_not_start_is_named_and_the_rest_rolled_back() {
    for component in COMPONENTS {
        for kind in ["fail", "panic"] {
            let fault = format!("{component}={kind}-start");
            let process = Process::start(&["--health", "127.0.0.1:0", "--inject", &fault]);
            let ended = process.ended();
            assert_eq!(ended.code, 15, "{fault}: {}", ended.err);
            let named = format!("component {component} did not start");
            assert!(ended.err.contains(&named), "{fault}: {}", ended.err);
            ended.records();
        }
    }
}

/// A signal is heard while a component starts, for as long as that takes.
#[test]
fn a_start_that_hangs_is_stopped_by_a_signal() {
    let budget = BUDGET.as_millis().to_string();
    // The first would be before anybody listens.
    for component in ["drain", "fleet", "source", "pump"] {
        let fault = format!("{component}=hang-start");
        let mut process = Process::start(&[
            "--stop-budget",
            &budget,
            "--inject",
            &fault,
            "--log",
            "info",
        ]);
        process.says("an injected fault begins");
        process.signal("-TERM");
        let ended = process.ended();
        assert!(
            ended.after < BUDGET + TOLERANCE,
            "{fault}: {:?}",
            ended.after
        );
        assert_eq!(ended.code, 31, "{fault}: {}", ended.err);
        let named = format!("component {component}: start timed_out");
        assert!(ended.err.contains(&named), "{fault}: {}", ended.err);
    }
}

/// A thread that ends at work ends the run, which says whose it was; all that was owed is accounted for.
#[test]
fn whose_thread_is_lost_is_named_and_the_rest_stops() {
    for (component, says) in [
        ("pump", "component pump failed"),
        ("source", "the thread of the block source panicked"),
    ] {
        let fault = format!("{component}=panic-run");
        let process = Process::start(&["--inject", &fault, "--log", "info"]);
        let ended = process.ended();
        assert_eq!(ended.code, 1, "{fault}: {}", ended.err);
        assert!(ended.err.contains(says), "{fault}: {}", ended.err);
        assert!(ended.err.contains(": clean"), "{fault}: {}", ended.err);
        assert!(ended.is_balanced(), "{fault}: {}", ended.err);
    }
}

/// Without the drainer nothing leaves the process any more: it says so with a dump, and aborts at once.
#[test]
fn a_lost_drainer_is_an_abort() {
    let process = Process::start(&["--inject", "drain=panic-run"]);
    let ended = process.ended();
    assert_eq!(ended.code, 128 + 6, "{}", ended.err);
    assert!(ended.err.contains("consumer is gone"), "{}", ended.err);
    ended.records();
}
