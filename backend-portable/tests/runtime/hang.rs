//! Parts that hang: they are fenced, the others stop, and the one deadline holds.

use crate::parts::{
    Do, Drain, Gate, HOUR, Hook, Journal, Part, Program, Quiesce, Start, Stop, budgets, of,
};
use regatta_core::component::{
    ComponentReport, Outcome, PhaseResult, Remaining, Report, StartResult, StopReason,
};
use regatta_core::time::Duration as Span;
use regatta_portable::runtime::{FENCE_GRACE, MOST};
use std::time::{Duration, Instant};

/// How long a stop may take here.
const BUDGET: Span = Span::from_secs(2);

/// What may be added to the deadline: the fences that end after it, and that the threads of a loaded machine
/// wait for a CPU. The bounds below are several of these away from what they would be without the property.
const TOLERANCE: Duration = FENCE_GRACE.saturating_add(Duration::from_millis(400));

/// A part that hangs in `hook`, one that it depends on, one that depends on it, one beside, and the control
/// plane.
fn around(journal: &Journal, hook: Hook, gate: &Gate) -> Vec<Part> {
    vec![
        Part::new("health", &[], journal).control(),
        Part::new("base", &[], journal),
        Part::new("beside", &[], journal),
        Part::new("hangs", &["base"], journal).on(hook, Do::Hang(gate.clone())),
        Part::new("top", &["hangs"], journal),
    ]
}

/// Stops a program whose part hangs in `hook`, and checks what is true whichever it is.
fn one_hangs(hook: Hook) -> (Journal, Report<MOST>) {
    let (journal, gate) = (Journal::default(), Gate::default());
    let mut program = Program::new(around(&journal, hook, &gate), budgets(HOUR, BUDGET));
    if hook == Start {
        journal.began("hangs", Start);
    } else {
        program = program.up();
    }
    let began = Instant::now();
    program.handle.signal(15);
    let (report, left) = program.end();
    let took = began.elapsed();
    assert!(took <= Duration::from(BUDGET) + TOLERANCE, "{took:?}");
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert_eq!(report.deadline, report.started_at + BUDGET);

    let hangs = of(&report, "hangs");
    assert!(hangs.timed_out());
    let errors: Vec<_> = hangs.errors().map(|(_, code)| code.0).collect();
    assert_eq!(errors, ["timed_out"]);
    let one = Remaining {
        threads: 1,
        ..Remaining::NONE
    };
    assert_eq!(hangs.remaining, Some(one), "the thread of its hook");
    assert_eq!(left, ["hangs"], "every other thread is joined");
    assert_eq!(journal.count("hangs", Hook::Fence), 1);
    for name in ["health", "base", "beside"] {
        let report = of(&report, name);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.stop, PhaseResult::Done);
        assert_eq!(journal.count(name, Hook::Fence), 0);
    }
    assert!(of(&report, "top").is_clean());
    gate.open();
    (journal, report)
}

const fn phases(report: &ComponentReport) -> [PhaseResult; 3] {
    [report.quiesce, report.drain, report.stop]
}

#[test]
fn one_that_hangs_in_its_start_is_fenced_and_its_dependency_stops() {
    let (journal, report) = one_hangs(Start);
    assert_eq!(of(&report, "hangs").start, StartResult::TimedOut);
    assert_eq!(journal.count("top", Start), 0);
}

#[test]
fn one_that_hangs_in_its_quiesce_is_fenced_and_its_dependency_stops() {
    let (_, report) = one_hangs(Quiesce);
    let expected = [
        PhaseResult::TimedOut,
        PhaseResult::NotRun,
        PhaseResult::Fenced,
    ];
    assert_eq!(phases(&of(&report, "hangs")), expected);
}

#[test]
fn one_that_hangs_in_its_drain_is_fenced_and_its_dependency_stops() {
    let (_, report) = one_hangs(Drain);
    let expected = [
        PhaseResult::Done,
        PhaseResult::TimedOut,
        PhaseResult::Fenced,
    ];
    assert_eq!(phases(&of(&report, "hangs")), expected);
}

#[test]
fn one_that_hangs_in_its_stop_is_fenced_and_its_dependency_stops() {
    let (_, report) = one_hangs(Stop);
    let expected = [PhaseResult::Done, PhaseResult::Done, PhaseResult::TimedOut];
    assert_eq!(phases(&of(&report, "hangs")), expected);
}

/// A chain of three that each do the same in each hook of a stop.
fn all_do(task: impl Fn() -> Do, hooks: &[Hook]) -> (Journal, Report<MOST>, Duration) {
    let journal = Journal::default();
    let part = |name, depends| {
        let part = Part::new(name, depends, &journal);
        hooks.iter().fold(part, |part, hook| part.on(*hook, task()))
    };
    let parts = vec![
        part("base", &[]),
        part("middle", &["base"]),
        part("top", &["middle"]),
    ];
    let program = Program::new(parts, budgets(HOUR, BUDGET)).up();
    let began = Instant::now();
    program.handle.stop(StopReason::Requested);
    let (report, _) = program.end();
    (journal, report, began.elapsed())
}

#[test]
fn three_that_would_each_take_all_of_the_time_stop_in_one_deadline() {
    let (journal, report, took) = all_do(|| Do::UseUp, &[Quiesce, Drain, Stop]);
    assert!(took <= Duration::from(BUDGET) + TOLERANCE, "{took:?}");
    assert_eq!(report.deadline, report.started_at + BUDGET);
    for name in ["base", "middle", "top"] {
        assert_eq!(journal.count(name, Stop), 1, "{name} is told to stop");
    }
}

#[test]
fn three_that_hang_in_their_stops_are_fenced_in_one_deadline() {
    let gate = Gate::default();
    let (journal, report, took) = all_do(|| Do::Hang(gate.clone()), &[Stop]);
    assert!(took <= Duration::from(BUDGET) + TOLERANCE, "{took:?}");
    for name in ["base", "middle", "top"] {
        assert_eq!(journal.count(name, Stop), 1, "{name} is told to stop");
        assert_eq!(journal.count(name, Hook::Fence), 1, "{name} is fenced");
        // Also of the last one, whose fence comes when the deadline has passed.
        let threads = of(&report, name)
            .remaining
            .map(|remaining| remaining.threads);
        assert_eq!(threads, Some(1), "{name}");
    }
    gate.open();
}

#[test]
fn a_fence_that_panics_does_not_keep_the_stop_from_its_end() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let part = Part::new("hangs", &[], &journal)
        .on(Stop, Do::Hang(gate.clone()))
        .on(Hook::Fence, Do::Panic);
    let program = Program::new(vec![part], budgets(HOUR, Span::from_millis(200))).up();
    program.handle.stop(StopReason::Requested);
    let (report, left) = program.end();
    let threads = of(&report, "hangs")
        .remaining
        .map(|remaining| remaining.threads);
    assert_eq!((threads, left.len()), (Some(1), 1));
    gate.open();
}
