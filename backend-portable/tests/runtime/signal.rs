//! The second signal, and what readiness and liveness say while everything stops.

use crate::parts::{
    Do, Drain, Gate, HOUR, Hook, Journal, Part, Program, Quiesce, Stop, budgets, of,
};
use regatta_core::component::{
    Liveness, Outcome, PhaseResult, Probe, Readiness, RuntimeState, StopReason,
};
use regatta_core::time::Duration as Span;
use regatta_portable::Census;
use regatta_portable::runtime::{Handle, MOST, Registered, Runtime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[test]
fn a_second_signal_leaves_the_safe_minimum() {
    /// Of these, a fifth is the safe minimum.
    const BUDGET: Span = Span::from_secs(20);
    const MINIMUM: Duration = Duration::from_secs(4);
    /// For the threads of a loaded machine to wait for a CPU. Without the second signal it would take four
    /// times as long as all of it.
    const TOLERANCE: Duration = Duration::from_millis(500);

    let (journal, gate) = (Journal::default(), Gate::default());
    let parts = vec![
        Part::new("base", &[], &journal),
        Part::new("drains", &["base"], &journal).on(Drain, Do::Hang(gate.clone())),
    ];
    let program = Program::new(parts, budgets(HOUR, BUDGET)).up();
    let handle = program.handle.clone();
    assert!(!handle.signal(15));
    journal.began("drains", Drain);
    let first = handle.deadline().unwrap();
    let second = Instant::now();
    assert!(handle.signal(15), "another one");
    let shortened = handle.deadline().unwrap();
    assert!(shortened < first && shortened >= second + MINIMUM);
    let (report, _) = program.end();
    let took = second.elapsed();
    assert!(took <= MINIMUM + TOLERANCE, "{took:?}");
    assert_eq!(of(&report, "drains").drain, PhaseResult::TimedOut);
    assert!(
        of(&report, "base").is_clean(),
        "it stopped within what was left"
    );
    gate.open();
}

#[test]
fn the_first_signal_does_not_shorten_a_stop_that_was_requested() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let part = Part::new("drains", &[], &journal).on(Drain, Do::Hang(gate.clone()));
    let program = Program::new(vec![part], budgets(HOUR, HOUR)).up();
    let handle = program.handle.clone();
    handle.stop(StopReason::Requested);
    journal.began("drains", Drain);
    let deadline = handle.deadline().unwrap();
    assert!(!handle.signal(15));
    assert_eq!(handle.deadline(), Some(deadline));
    assert!(handle.signal(15));
    assert!(handle.deadline().unwrap() < deadline);
    gate.open();
    let (report, _) = program.end();
    assert_eq!(report.reason, StopReason::Requested);
}

#[test]
fn nothing_is_ready_from_quiesce_on_and_all_is_alive_until_the_end() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let handle = Arc::new(Mutex::new(None::<Handle>));
    let (send, seen) = channel();
    let asks = Arc::clone(&handle);
    let parts = vec![
        Part::new("health", &[], &journal).control(),
        Part::new("drains", &[], &journal)
            .on(
                Quiesce,
                Do::run(move || {
                    let handle = asks.lock().unwrap().clone().unwrap();
                    let answers = (handle.readiness().is_ready(), handle.liveness(false));
                    send.send(answers).unwrap();
                }),
            )
            .on(Drain, Do::Hang(gate.clone())),
    ];
    let program = Program::new(parts, budgets(HOUR, HOUR)).up();
    *handle.lock().unwrap() = Some(program.handle.clone());
    assert!(program.handle.readiness().is_ready());
    assert_eq!(program.handle.liveness(true), Liveness::Stalled);
    assert!(!program.handle.liveness(true).is_alive());

    program.handle.signal(15);
    // As the intake closes it is to be seen already.
    assert_eq!(seen.recv().unwrap(), (false, Liveness::Alive));
    journal.began("drains", Drain);
    // A drain looks like a stall, and ending the process from outside would not help.
    assert_eq!(program.handle.liveness(true), Liveness::Alive);
    assert!(!program.handle.readiness().is_ready());
    assert_eq!(journal.count("health", Quiesce), 0, "who answers goes on");
    gate.open();
    let after = program.handle.clone();
    assert_eq!(program.end().0.outcome(), Outcome::Clean);
    assert_eq!(after.state(), RuntimeState::Stopped);
    assert!(!after.readiness().is_ready());
}

#[test]
fn ready_is_what_the_required_ones_say_and_that_the_threads_are_known() {
    let journal = Journal::default();
    let (main, extra) = (
        Part::new("main", &[], &journal),
        Part::new("extra", &[], &journal).optional(),
    );
    let (facts, of_extra) = (Arc::clone(&main.facts), Arc::clone(&extra.facts));
    let reconciled = Arc::new(AtomicBool::new(false));
    let audit = Arc::clone(&reconciled);
    let census = Census::new();
    let registered = [main, extra].map(|part| Registered {
        spec: part.spec(&[]),
        component: Box::new(part),
    });
    let runtime = Runtime::new(
        registered.into(),
        &[],
        budgets(HOUR, HOUR),
        &census,
        Box::new(move |_| audit.load(Ordering::Relaxed)),
    );
    let runtime = runtime.unwrap();
    let program = Program::of(runtime, census).up();
    let handle = program.handle.clone();

    let says = |readiness: &Readiness<MOST>| readiness.to_string();
    let answer = handle.readiness();
    assert_eq!(says(&answer), "not ready\nthreads: not_reconciled");
    reconciled.store(true, Ordering::Relaxed);
    assert!(handle.readiness().is_ready());
    *of_extra.probe.lock().unwrap() = Probe::NotReady("warming_up");
    let answer = handle.readiness();
    assert!(answer.is_ready());
    assert_eq!(says(&answer), "ready\nextra: warming_up (optional)");
    *facts.probe.lock().unwrap() = Probe::NotReady("no_peer");
    let answer = handle.readiness();
    assert!(!answer.is_ready());
    let expected = "not ready\nmain: no_peer\nextra: warming_up (optional)";
    assert_eq!(says(&answer), expected);
    handle.stop(StopReason::Requested);
    assert_eq!(program.end().0.outcome(), Outcome::Clean);
}

#[test]
fn a_component_that_says_that_it_failed_stops_the_program() {
    let journal = Journal::default();
    let part = |name| Part::new(name, &[], &journal);
    let parts = vec![
        part("steady"),
        part("fails").told(|context| context.runtime.failed(context.id)),
    ];
    let (report, _) = Program::new(parts, budgets(HOUR, HOUR)).end();
    assert_eq!(report.reason, StopReason::ComponentFailed("fails"));
    assert_eq!(report.outcome(), Outcome::Clean);
    assert_eq!(journal.count("steady", Stop), 1);
    assert_eq!(journal.count("steady", Hook::Fence), 0);
}
