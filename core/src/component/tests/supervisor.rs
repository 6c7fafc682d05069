//! Start, rollback and stop as stories.

use super::rig::{A, B, C, ERROR, Rig, at, control, spec, stopped};
use crate::component::{
    Action, ComponentId, ComponentState, Input, InputError, Outcome, Reaction, Remaining,
    RuntimeState, StartResult, StopReason,
};
use crate::time::Duration;

const CHAIN: [crate::component::ComponentSpec<'static>; 3] =
    [spec("a", &[]), spec("b", &["a"]), spec("c", &["b"])];

#[test]
fn one_after_the_other_and_only_once() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    for id in [A, B, C] {
        assert_eq!(rig.poll(), [('S', id)]);
        assert_eq!(rig.supervisor.runtime(), RuntimeState::Starting);
        rig.started(id);
    }
    assert_eq!(rig.supervisor.runtime(), RuntimeState::Running);
    for _ in 0..2 {
        let state = rig.supervisor.runtime();
        assert_eq!(
            rig.input(Input::StartAll),
            Err(InputError::AlreadyStarted { state })
        );
        rig.stop_all();
    }
}

impl Rig {
    /// Everything answers at once, if there is anything to stop.
    fn stop_all(&mut self) {
        let _ = self.input(Input::Stop(StopReason::Requested)).unwrap();
        let mut todo = self.poll();
        while let Some((what, id)) = todo.pop() {
            todo.extend(match what {
                'Q' => self.quiesced(id),
                'D' => self.drained(id),
                _ => self.stopped(id),
            });
        }
        assert_eq!(self.supervisor.runtime(), RuntimeState::Stopped);
    }
}

#[test]
fn a_stop_of_what_does_not_run_does_nothing() {
    let mut rig = Rig::new(&CHAIN);
    let stop = Input::Stop(StopReason::Requested);
    let before = rig.supervisor.clone();
    assert_eq!(rig.input(stop), Ok(Reaction::Already));
    assert_eq!(rig.input(Input::SecondSignal), Ok(Reaction::Already));
    assert_eq!(rig.supervisor, before);
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    assert_eq!(rig.input(stop), Ok(Reaction::Already));
    rig.stop_all();
    let report = rig.report();
    assert_eq!(rig.input(stop), Ok(Reaction::Already));
    assert_eq!(rig.report(), report);
    assert_eq!(report.reason, StopReason::Signal(15));
    assert_eq!(report.outcome(), Outcome::Clean);
}

#[test]
fn nothing_to_start_is_running_and_nothing_to_stop_is_over() {
    let mut rig = Rig::up(&[]);
    rig.stop();
    assert_eq!(rig.poll(), []);
    assert_eq!(rig.report().outcome(), Outcome::Clean);
}

#[test]
fn a_start_that_fails_takes_back_what_had_started() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    for id in [A, B] {
        rig.poll();
        rig.started(id);
    }
    rig.poll();
    rig.ok(Input::StartFailed {
        id: C,
        error: ERROR,
        remaining: Remaining::NONE,
    });
    assert_eq!(rig.poll(), [('Q', B)]);
    rig.quiesced(B);
    assert_eq!(rig.drained(B), [('P', B), ('Q', A)]);
    rig.stop_rest(&[B]);
    let report = rig.report();
    assert_eq!(report.reason, StopReason::StartFailed("c"));
    assert_eq!(report.outcome(), Outcome::Clean);
}

impl Rig {
    fn stop_rest(&mut self, stopping: &[ComponentId]) {
        for id in stopping {
            self.ok(stopped(*id));
        }
        self.quiesced(A);
        self.drained(A);
        self.stopped(A);
    }
}

#[test]
fn a_start_that_times_out_rolls_back_like_one_that_fails() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    rig.poll();
    rig.started(A);
    assert_eq!(rig.poll(), [('S', B)]);
    assert_eq!(rig.supervisor.next_deadline(), Some(at(20)));
    assert_eq!(rig.pass(20), [('F', B), ('Q', A)]);
    assert_eq!(rig.supervisor.deadline().unwrap().at(), at(40));
    rig.quiesced(A);
    rig.drained(A);
    rig.stopped(A);
    let report = rig.report();
    assert_eq!(report.reason, StopReason::StartTimedOut("b"));
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert_eq!(report.components[1].start, StartResult::TimedOut);
    // Its thread is still there, and comes back.
    let late = rig.input(Input::Started {
        id: B,
        degraded: false,
    });
    assert_eq!(late, Ok(Reaction::CloseIt));
    assert_eq!(rig.report(), report);
}

#[test]
fn whatever_comes_up_after_its_time_is_stopped() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    rig.poll();
    rig.started(A);
    rig.poll();
    assert_eq!(rig.pass(20), [('F', B), ('Q', A)]);
    rig.started(B);
    assert_eq!(rig.poll(), [('P', B)]);
    rig.quiesced(A);
    assert_eq!(rig.drained(A), []);
    assert_eq!(rig.stopped(B), [('P', A)]);
    rig.stopped(A);
    assert_eq!(rig.report().outcome(), Outcome::Clean);
    assert_eq!(rig.report().components[1].start, StartResult::TimedOut);
}

#[test]
fn a_signal_during_start_begins_the_stop_and_waits_for_whoever_is_starting() {
    let mut rig = Rig::new(&[spec("a", &[]), spec("other", &[]), spec("c", &["a"])]);
    rig.ok(Input::StartAll);
    for id in [A, B] {
        rig.poll();
        rig.started(id);
    }
    assert_eq!(rig.poll(), [('S', C)]);
    rig.stop();
    // What the starting one does not need closes at once.
    assert_eq!(rig.poll(), [('Q', B)]);
    rig.started(C);
    assert_eq!(rig.poll(), [('Q', C)]);
    rig.quiesced(C);
    assert_eq!(rig.drained(C), [('P', C), ('Q', A)]);
}

#[test]
fn a_start_that_hangs_after_a_signal_is_fenced_when_the_drain_ends() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    rig.poll();
    rig.started(A);
    rig.poll();
    rig.now = at(1);
    rig.stop();
    assert_eq!(rig.poll(), []);
    assert_eq!(rig.supervisor.next_deadline(), Some(at(18)));
    assert_eq!(rig.pass(17), [('F', B), ('P', A)]);
    rig.stopped(A);
    assert_eq!(rig.report().reason, StopReason::Signal(15));
}

#[test]
fn one_that_hangs_is_fenced_and_what_it_needs_still_stops() {
    let mut rig = Rig::up(&[
        spec("fleet", &[]),
        spec("http", &["fleet"]),
        spec("feed", &["fleet"]),
        control("health", &[]),
    ]);
    let health = ComponentId::new(3);
    rig.stop();
    assert_eq!(rig.poll(), [('Q', C), ('Q', B)]);
    rig.quiesced(B);
    rig.quiesced(C);
    assert_eq!(rig.drained(C), [('P', C)]);
    rig.stopped(C);
    assert_eq!(rig.pass(16), []);
    assert_eq!(rig.pass(1), [('F', B), ('P', A)]);
    // Three seconds are left, for two one after the other.
    assert_eq!(
        rig.supervisor.limit(A),
        Some(at(17) + Duration::from_millis(1_500))
    );
    rig.now = at(17) + Duration::from_millis(1_500);
    assert_eq!(rig.poll(), [('F', A), ('P', health)]);
    assert_eq!(rig.supervisor.limit(health), Some(at(20)));
    assert_eq!(rig.state(A), ComponentState::TimedOut);
    assert_eq!(rig.input(stopped(A)), Ok(Reaction::Late));
    rig.stopped(health);
    let report = rig.report();
    assert_eq!(report.outcome(), Outcome::TimedOut);
    // What the late answer said counts.
    assert_eq!(report.components[0].remaining, Some(Remaining::NONE));
}

#[test]
fn whoever_is_told_until_when_has_a_grace_to_say_so() {
    let mut rig = Rig::up(&[spec("a", &[])]);
    rig.stop();
    let untils = |rig: &mut Rig| match rig.supervisor.poll_action(rig.now) {
        Some(
            Action::Quiesce { until, .. }
            | Action::Drain { until, .. }
            | Action::Stop { until, .. },
        ) => until,
        other => panic!("{other:?}"),
    };
    assert_eq!(untils(&mut rig), at(16));
    rig.ok(Input::Quiesced {
        id: A,
        result: Ok(()),
    });
    assert_eq!(untils(&mut rig), at(16));
    rig.now = at(16);
    rig.ok(Input::Drained {
        id: A,
        result: Ok(()),
        counts: crate::component::DrainCounts::default(),
    });
    assert_eq!(untils(&mut rig), at(19));
    rig.now = at(19);
    rig.ok(stopped(A));
}

#[test]
fn a_second_signal_ends_the_drain_and_leaves_the_reserve() {
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    rig.poll();
    rig.quiesced(C);
    rig.now = at(2);
    rig.ok(Input::SecondSignal);
    let deadline = rig.supervisor.deadline().unwrap();
    assert_eq!((deadline.drain_end(), deadline.at()), (at(2), at(6)));
    assert_eq!(rig.poll(), []);
    // The drain that looks at the deadline answers within the grace.
    assert_eq!(rig.drained(C), [('P', C)]);
    assert_eq!(rig.stopped(C), [('P', B)]);
    assert_eq!(rig.supervisor.limit(B), Some(at(4)));
    // A stop that is under way gets less, too.
    rig.now = at(3);
    rig.ok(Input::SecondSignal);
    assert_eq!(rig.supervisor.limit(B), Some(at(4)));
    assert_eq!(rig.pass(1), [('F', B), ('P', A)]);
    rig.stopped(A);
    assert_eq!(rig.report().deadline, at(6));
}

#[test]
fn a_second_signal_shortens_a_stop_under_way() {
    let mut rig = Rig::up(&[spec("a", &[]), spec("b", &["a"])]);
    rig.stop();
    rig.poll();
    rig.quiesced(B);
    rig.drained(B);
    assert_eq!(rig.supervisor.limit(B), Some(at(10)));
    rig.ok(Input::SecondSignal);
    assert_eq!(rig.supervisor.limit(B), Some(at(2)));
}

#[test]
fn a_driver_that_comes_back_too_late_fences_everybody_at_once() {
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    assert_eq!(rig.pass(21), [('F', C), ('F', B), ('F', A)]);
    assert_eq!(rig.report().outcome(), Outcome::TimedOut);
    assert_eq!(rig.report().completed_at, at(21));
}

#[test]
fn answers_that_nobody_waits_for_are_refused_and_change_nothing() {
    let mut rig = Rig::up(&CHAIN);
    let before = rig.supervisor.clone();
    let unknown = ComponentId::new(3);
    for input in [
        stopped(A),
        Input::Quiesced {
            id: A,
            result: Ok(()),
        },
        Input::Started {
            id: A,
            degraded: false,
        },
        Input::Fenced {
            id: A,
            remaining: Remaining::NONE,
        },
        Input::Recovered { id: A },
        stopped(unknown),
        Input::Lost { id: unknown },
    ] {
        assert!(rig.input(input).is_err(), "{input:?}");
        assert_eq!(rig.supervisor, before, "{input:?}");
    }
}

#[test]
fn an_answer_that_comes_with_its_limit_is_late_whoever_was_to_poll() {
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    assert_eq!(rig.poll(), [('Q', C)]);
    rig.now = at(17);
    let late = Input::Quiesced {
        id: C,
        result: Ok(()),
    };
    assert_eq!(rig.input(late), Ok(Reaction::Late));
    assert_eq!(rig.poll(), [('F', C), ('P', B)]);
}

#[test]
fn a_component_that_comes_up_with_its_limit_is_stopped() {
    let mut rig = Rig::new(&CHAIN);
    rig.ok(Input::StartAll);
    assert_eq!(rig.poll(), [('S', A)]);
    rig.now = at(20);
    rig.started(A);
    assert_eq!(rig.poll(), [('F', A), ('P', A)]);
    assert_eq!(rig.stopped(A), []);
    assert_eq!(rig.report().reason, StopReason::StartTimedOut("a"));
}
