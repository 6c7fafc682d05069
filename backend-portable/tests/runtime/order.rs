//! In which order parts start and stop, what runs together, and what a second request does.

use crate::parts::{
    Do, Drain, Gate, HOUR, Hook, Journal, Part, Program, Quiesce, Start, Stop, budgets, of,
};
use regatta_core::component::{
    DrainCounts, Outcome, PhaseResult, Remaining, StartResult, StopReason,
};

#[test]
fn starts_come_one_by_one_dependencies_first_and_stops_in_reverse() {
    let journal = Journal::default();
    let parts = vec![
        Part::new("health", &[], &journal).control(),
        Part::new("top", &["middle", "base"], &journal),
        Part::new("middle", &["base"], &journal),
        Part::new("base", &[], &journal),
    ];
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    let order = ["health", "base", "middle", "top"];
    let spans = order.map(|name| journal.span(name, Start));
    assert_eq!(spans, [(0, 1), (2, 3), (4, 5), (6, 7)], "none overlap");

    program.handle.stop(StopReason::Requested);
    let (report, left) = program.end();
    assert_eq!(report.outcome(), Outcome::Clean, "{report:?}");
    assert_eq!(left, [""; 0], "every thread is joined");
    let span = |name, hook| journal.span(name, hook);
    for (before, after) in [("top", "middle"), ("middle", "base")] {
        assert!(span(before, Drain).1 < span(after, Quiesce).0);
        assert!(span(before, Stop).1 < span(after, Stop).0);
    }
    // The control plane answers until the data plane is over.
    assert!(span("base", Stop).1 < span("health", Quiesce).0);
    for name in order {
        for hook in [Start, Quiesce, Drain, Stop, Hook::Drop] {
            assert_eq!(journal.count(name, hook), 1, "{name}: {hook:?}");
        }
    }
}

#[test]
fn what_is_independent_goes_through_each_phase_together() {
    let journal = Journal::default();
    // Each waits in each phase until the other one has come there too.
    let mut parts = vec![
        Part::new("left", &[], &journal),
        Part::new("right", &[], &journal),
    ];
    for hook in [Quiesce, Drain, Stop] {
        let (left, right) = (Gate::default(), Gate::default());
        let meet = |here: Gate, there: Gate| {
            Do::run(move || {
                here.open();
                there.pass();
            })
        };
        let [one, other] = [meet(left.clone(), right.clone()), meet(right, left)];
        let (first, second) = (parts.remove(0), parts.remove(0));
        parts = vec![first.on(hook, one), second.on(hook, other)];
    }
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    program.handle.stop(StopReason::Requested);
    let (report, _) = program.end();
    assert_eq!(report.outcome(), Outcome::Clean, "{report:?}");
}

#[test]
fn a_second_request_to_stop_changes_nothing_nor_does_one_after_the_end() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let part = Part::new("only", &[], &journal).on(Drain, Do::Hang(gate.clone()));
    let program = Program::new(vec![part], budgets(HOUR, HOUR)).up();
    let handle = program.handle.clone();
    handle.stop(StopReason::Requested);
    journal.began("only", Drain);
    let deadline = handle.deadline().unwrap();
    handle.stop(StopReason::Signal(15));
    assert_eq!(handle.deadline(), Some(deadline), "there is no new one");
    gate.open();
    let (report, _) = program.end();
    assert_eq!(report.reason, StopReason::Requested);
    assert_eq!(report.deadline, report.started_at + HOUR);

    handle.stop(StopReason::Signal(15));
    assert_eq!(handle.report(), Some(report));
    for hook in [Start, Quiesce, Drain, Stop] {
        assert_eq!(journal.count("only", hook), 1);
    }
}

#[test]
fn a_stop_that_fails_or_panics_is_over_at_once_and_the_others_stop() {
    let journal = Journal::default();
    let parts = vec![
        Part::new("base", &[], &journal),
        Part::new("fails", &["base"], &journal).on(Stop, Do::Fail("broken")),
        Part::new("panics", &["base"], &journal).on(Stop, Do::Panic),
    ];
    // With an hour to stop, that this ends at all shows that nothing is waited out.
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    program.handle.stop(StopReason::Requested);
    let (report, left) = program.end();
    assert_eq!(report.outcome(), Outcome::Incomplete);
    assert_eq!(of(&report, "base").stop, PhaseResult::Done);
    let errors = |name| {
        let report = of(&report, name);
        let errors = report.errors().map(|(phase, code)| (phase, code.0));
        errors.collect::<Vec<_>>()
    };
    assert_eq!(errors("fails"), [("stop", "broken")]);
    assert_eq!(errors("panics"), [("stop", "panicked")]);
    assert_eq!(left, [""; 0]);
}

#[test]
fn any_other_hook_that_panics_has_failed_and_the_stop_goes_on() {
    let journal = Journal::default();
    let parts = vec![
        Part::new("base", &[], &journal),
        Part::new("quiesce", &["base"], &journal).on(Quiesce, Do::Panic),
        Part::new("drain", &["base"], &journal).on(Drain, Do::Panic),
        Part::new("drop", &["base"], &journal).on(Hook::Drop, Do::Panic),
        Part::new("remaining", &["base"], &journal).on(Hook::Remaining, Do::Panic),
    ];
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    program.handle.stop(StopReason::Requested);
    let (report, _) = program.end();
    assert_eq!(report.outcome(), Outcome::Incomplete);
    for (name, phase) in [("quiesce", "quiesce"), ("drain", "drain"), ("drop", "stop")] {
        let report = of(&report, name);
        let errors: Vec<_> = report.errors().map(|(at, code)| (at, code.0)).collect();
        assert_eq!(errors, [(phase, "panicked")], "{name}");
        assert_eq!(journal.count(name, Stop), 1, "{name}");
    }
    // Nobody can vouch for what cannot say what is left.
    assert!(!of(&report, "remaining").is_clean());
    assert!(of(&report, "base").is_clean());
}

#[test]
fn what_is_left_after_a_stop_is_counted_and_so_is_the_work() {
    let journal = Journal::default();
    let left = Remaining {
        receipts: 3,
        threads: 1,
        handles: 2,
    };
    let counts = DrainCounts {
        accepted_before_quiesce: 5,
        completed_during_drain: 2,
        remaining_at_deadline: 3,
        rejected_after_quiesce: 7,
        ..DrainCounts::default()
    };
    let mut leaves = Part::new("leaves", &[], &journal);
    leaves.counts = counts;
    *leaves.facts.remaining.lock().unwrap() = left;
    let parts = vec![leaves, Part::new("clean", &[], &journal)];
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    program.handle.stop(StopReason::Requested);
    let (report, _) = program.end();
    assert_eq!(report.outcome(), Outcome::Incomplete);
    let leaves = of(&report, "leaves");
    assert_eq!(
        (leaves.start, leaves.stop),
        (StartResult::Up, PhaseResult::Done)
    );
    assert_eq!((leaves.remaining, leaves.counts), (Some(left), counts));
    assert!(of(&report, "clean").is_clean());
}
