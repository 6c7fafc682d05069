//! Signals, at any time.

use crate::process::{Process, TOLERANCE};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Lets time pass that is not for waiting but for being somewhere else in a run.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// At random times over a hundred runs: the exit code is one that is documented, and no line is half
/// written. A signal before the program has begun is the kernel's to answer: 143.
#[test]
fn a_run_may_be_told_to_stop_at_any_time() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        // Knuth's linear congruential generator; its high bits are random enough for this.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut early, mut with_blocks) = (0, 0);
    for round in 0..100 {
        let process = Process::start(&["--log", "info"]);
        // From before the program has begun until it is well in its blocks.
        pass(Duration::from_micros(random(120_000)));
        process.signal(if random(2) == 0 { "-TERM" } else { "-INT" });
        let ended = process.ended();
        let records = ended.records();
        match ended.code {
            // Before anything was said, or in order.
            0 if records.is_empty() => early += 1,
            0 => {
                assert_eq!(records.last().unwrap()["type"], "summary", "round {round}");
                assert!(ended.is_balanced(), "round {round}: {}", ended.err);
                with_blocks += u32::from(records.iter().any(|r| r["type"] == "block"));
            }
            130 | 143 => {
                assert!(records.is_empty(), "round {round}");
                early += 1;
            }
            code => panic!("round {round}: exit {code}: {}", ended.err),
        }
    }
    assert!(with_blocks > 10, "{with_blocks} with blocks, {early} early");
}

/// The second signal does not wait for the drain.
#[test]
fn a_second_signal_shortens_the_stop() {
    let budget = Duration::from_secs(40);
    let millis = budget.as_millis().to_string();
    let mut process = Process::start(&[
        "--stop-budget",
        &millis,
        "--inject",
        "pump=hang-drain",
        "--log",
        "info",
    ]);
    process.in_blocks();
    process.signal("-TERM");
    process.says("an injected fault begins");
    process.signal("-TERM");
    process.says("SIGTERM again");
    let ended = process.ended();
    // A fifth of the budget is the safe minimum.
    assert!(ended.after < budget / 5 + TOLERANCE, "{:?}", ended.after);
    assert_eq!(ended.code, 31, "{}", ended.err);
}

/// SIGHUP takes what may change live and refuses the rest by name; a wrong file changes nothing.
#[test]
fn a_configuration_is_read_again_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regatta.toml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("log = \"warn\"\n[plan]\nsolver_pins = 5\n[posture]\ncordon_enter_events = 3\n");
    let mut process = Process::start(&["--config", path.to_str().unwrap()]);
    process.in_blocks();
    write("log = \"info\"\n[plan]\nsolver_pins = 4\n[posture]\ncordon_enter_events = 5\n");
    process.signal("-HUP");
    process.says("plan.solver_pins was not changed");
    process.says("cordon_enter_events");
    process.says("was read again");
    write("[posture]\ncordon_enter_events = 0\n");
    process.signal("-HUP");
    process.says("nothing was changed");
    process.signal("-TERM");
    let ended = process.ended();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(ended.records()[0]["bins"], 5);
    // The level of the file was taken over: the end is told.
    assert!(ended.err.contains("clean"), "{}", ended.err);
}
