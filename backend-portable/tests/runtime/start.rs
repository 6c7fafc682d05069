//! Starts that fail, that take too long, and that a stop overtakes.

use crate::parts::{
    Do, Drain, Gate, HOUR, Hook, Journal, Part, Program, Quiesce, Start, Stop, budgets, eventually,
    of, runtime,
};
use regatta_core::component::{
    Outcome, PhaseResult, Remaining, RuntimeState, StartResult, StopReason,
};
use regatta_core::time::Duration as Span;
use regatta_portable::Census;
use std::sync::{Arc, Mutex};

/// How long a start may take here. Those that are to succeed take a thousandth of it.
const START: Span = Span::from_secs(1);

const ONE_THREAD: Remaining = Remaining {
    threads: 1,
    ..Remaining::NONE
};

/// A chain of three, the middle one of which does `task` in its start.
fn chain(journal: &Journal, task: Do) -> Vec<Part> {
    vec![
        Part::new("base", &[], journal),
        Part::new("middle", &["base"], journal).on(Start, task),
        Part::new("top", &["middle"], journal),
    ]
}

#[test]
fn a_start_that_fails_or_panics_rolls_back_what_had_started_once() {
    for (task, code) in [(Do::Fail("no_route"), "no_route"), (Do::Panic, "panicked")] {
        let journal = Journal::default();
        let (report, left) = Program::new(chain(&journal, task), budgets(HOUR, HOUR)).end();
        assert_eq!(report.reason, StopReason::StartFailed("middle"));
        let middle = of(&report, "middle");
        assert!(matches!(middle.start, StartResult::Failed(error) if error.0 == code));
        assert_eq!(middle.stop, PhaseResult::NotRun);
        assert_eq!(of(&report, "base").stop, PhaseResult::Done);
        assert_eq!(of(&report, "top").start, StartResult::NotStarted);
        assert_eq!(journal.count("base", Stop), 1);
        assert_eq!(
            journal.count("middle", Stop) + journal.count("top", Start),
            0
        );
        assert_eq!(journal.count("middle", Hook::Drop), 1, "with what it began");
        // It took back what it had begun, so nothing is left.
        assert_eq!(report.outcome(), Outcome::Clean);
        assert_eq!(left, [""; 0]);
    }
}

#[test]
fn a_start_that_times_out_rolls_back_and_is_closed_when_it_comes_up_after_the_end() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let parts = chain(&journal, Do::Hang(gate.clone()));
    let program = Program::new(parts, budgets(START, HOUR));
    let census = program.census.clone();
    let (report, left) = program.end();
    assert_eq!(report.reason, StopReason::StartTimedOut("middle"));
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert_eq!(of(&report, "middle").start, StartResult::TimedOut);
    assert_eq!(of(&report, "middle").remaining, Some(ONE_THREAD));
    assert_eq!(left, ["middle"], "the thread of its start");
    assert_eq!(journal.count("middle", Hook::Fence), 1);
    assert_eq!(
        (journal.count("base", Stop), journal.count("top", Start)),
        (1, 0)
    );
    assert!(of(&report, "base").is_clean());
    assert_eq!(journal.count("middle", Stop), 0, "it has not come up");

    gate.open();
    journal.ended("middle", Stop);
    journal.ended("middle", Hook::Drop);
    eventually("its thread ends", || {
        census.rows().iter().all(|row| !row.running)
    });
    assert_eq!(journal.count("middle", Stop), 1);
}

#[test]
fn a_start_that_comes_up_during_its_rollback_is_stopped_and_reported() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let mut parts = chain(&journal, Do::Hang(gate.clone()));
    let seen = journal.clone();
    parts[0] = Part::new("base", &[], &journal).on(
        Stop,
        Do::run(move || {
            gate.open();
            seen.ended("middle", Stop);
        }),
    );
    // Its fence takes longer than its stop, which is no reason to count the thread of the fence as left.
    let fenced = Gate::default();
    *parts[1].facts.fence_passes.lock().unwrap() = Some(fenced.clone());
    let program = Program::new(parts, budgets(START, HOUR));
    journal.ended("middle", Hook::Drop);
    fenced.open();
    let (report, left) = program.end();
    assert_eq!(report.reason, StopReason::StartTimedOut("middle"));
    let middle = of(&report, "middle");
    assert_eq!(middle.start, StartResult::TimedOut);
    assert_eq!(
        (middle.stop, middle.remaining),
        (PhaseResult::Done, Some(Remaining::NONE))
    );
    let counts = [Quiesce, Drain, Stop].map(|hook| journal.count("middle", hook));
    assert_eq!(counts, [0, 0, 1]);
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_signal_during_a_start_begins_the_stop_at_once() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let parts = vec![
        Part::new("up", &[], &journal),
        Part::new("starting", &[], &journal).on(Start, Do::Hang(gate.clone())),
        Part::new("never", &["starting"], &journal),
    ];
    let program = Program::new(parts, budgets(HOUR, HOUR));
    journal.began("starting", Start);
    assert!(!program.handle.signal(15), "the first one");
    assert_eq!(program.handle.state(), RuntimeState::Stopping);
    // The start hangs on, and what is up stops meanwhile.
    journal.ended("up", Stop);
    gate.open();
    let (report, left) = program.end();
    assert_eq!(report.reason, StopReason::Signal(15));
    assert_eq!(report.outcome(), Outcome::Clean, "{report:?}");
    assert_eq!(journal.count("starting", Stop), 1, "it came up after all");
    assert_eq!(journal.count("never", Start), 0);
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_signal_before_the_start_is_not_forgotten() {
    let journal = Journal::default();
    let parts = vec![Part::new("never", &[], &journal)];
    let runtime = runtime(parts, budgets(HOUR, HOUR), &Census::new());
    assert!(!runtime.handle().signal(15));
    let report = runtime.run(|_| ());
    assert_eq!(report.reason, StopReason::Signal(15));
    assert_eq!(report.outcome(), Outcome::Clean);
    assert_eq!(journal.count("never", Start), 0);
}

#[test]
fn a_loss_before_the_start_has_answered_is_not_forgotten() {
    let journal = Journal::default();
    let part = |name| Part::new(name, &[], &journal);
    let parts = vec![
        part("steady"),
        part("loses").told(|context| context.runtime.lost(context.id)),
        part("heals").told(|context| {
            context.runtime.lost(context.id);
            context.runtime.recovered(context.id);
        }),
    ];
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    let readiness = program.handle.readiness();
    let missing = readiness.missing.iter().map(ToString::to_string);
    assert_eq!(missing.collect::<Vec<_>>(), ["loses: degraded"]);
    program.handle.stop(StopReason::Requested);
    assert_eq!(program.end().0.outcome(), Outcome::Clean);
}

#[test]
fn what_a_part_owns_is_dropped_when_it_has_stopped_though_it_holds_the_runtime() {
    let journal = Journal::default();
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let part = Part::new("keeps", &[], &journal).told(move |context| {
        *keeps.lock().unwrap() = Some(context.runtime);
    });
    let program = Program::new(vec![part], budgets(HOUR, HOUR)).up();
    program.handle.stop(StopReason::Requested);
    let (report, _) = program.end();
    assert_eq!(report.outcome(), Outcome::Clean);
    let (stop, drop) = (
        journal.span("keeps", Stop),
        journal.span("keeps", Hook::Drop),
    );
    assert!(stop.1 < drop.0);
}
