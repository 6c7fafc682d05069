//! The report: clean exactly if nothing is left.

use super::rig::{A, B, ERROR, Rig, at, spec};
use crate::component::{
    DrainCounts, ErrorCode, Input, Outcome, PhaseResult, Remaining, StartResult, StopReason,
};
use std::vec::Vec;

const CHAIN: [crate::component::ComponentSpec<'static>; 2] = [spec("a", &[]), spec("b", &["a"])];

fn left(threads: u32) -> Remaining {
    Remaining {
        threads,
        ..Remaining::NONE
    }
}

#[test]
fn counts_and_what_is_left_come_from_the_component_and_decide() {
    for (result, remaining, outcome) in [
        (Ok(()), Remaining::NONE, Outcome::Clean),
        (Ok(()), left(1), Outcome::Incomplete),
        (
            Ok(()),
            Remaining {
                receipts: 1,
                ..left(0)
            },
            Outcome::Incomplete,
        ),
        (
            Ok(()),
            Remaining {
                handles: 1,
                ..left(0)
            },
            Outcome::Incomplete,
        ),
        // Whoever failed to stop cannot vouch for that.
        (Err(ERROR), Remaining::NONE, Outcome::Incomplete),
    ] {
        let mut rig = Rig::up(&[spec("a", &[])]);
        rig.stop();
        rig.poll();
        rig.quiesced(A);
        let counts = DrainCounts {
            accepted_before_quiesce: 9,
            completed_during_drain: 7,
            remaining_at_deadline: 2,
            ..DrainCounts::default()
        };
        assert!(counts.balanced());
        rig.now = at(3);
        rig.ok(Input::Drained {
            id: A,
            result: Ok(()),
            counts,
        });
        assert_eq!(rig.poll(), [('P', A)]);
        rig.now = at(4);
        rig.ok(Input::Stopped {
            id: A,
            result,
            remaining,
        });
        assert_eq!(rig.supervisor.report(), None);
        rig.poll();
        let report = rig.report();
        assert_eq!(report.outcome(), outcome);
        assert_eq!(report.reason, StopReason::Signal(15));
        assert_eq!(report.started_at, at(0));
        assert_eq!(report.deadline, at(20));
        assert_eq!(report.completed_at, at(4));
        let of = report.components[0];
        assert_eq!((of.counts, of.remaining), (counts, Some(remaining)));
        let errors: Vec<_> = of.errors().collect();
        let stop = result.err().map(|code| ("stop", code));
        assert_eq!(errors, stop.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_phase_that_failed_is_in_the_report_and_holds_nobody_up() {
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    assert_eq!(rig.poll(), [('Q', B)]);
    rig.ok(Input::Quiesced {
        id: B,
        result: Err(ERROR),
    });
    assert_eq!(rig.poll(), [('D', B)]);
    rig.ok(Input::Drained {
        id: B,
        result: Err(ERROR),
        counts: DrainCounts::default(),
    });
    assert_eq!(rig.poll(), [('P', B), ('Q', A)]);
    rig.ok(Input::Stopped {
        id: B,
        result: Err(ERROR),
        remaining: left(2),
    });
    rig.quiesced(A);
    assert_eq!(rig.drained(A), [('P', A)]);
    rig.stopped(A);
    let report = rig.report();
    assert_eq!(
        (report.completed_at, report.outcome()),
        (at(0), Outcome::Incomplete)
    );
    let errors: Vec<_> = report.components[1].errors().collect();
    assert_eq!(
        errors,
        [("quiesce", ERROR), ("drain", ERROR), ("stop", ERROR)]
    );
    assert_eq!(report.components[0].errors().count(), 0);
}

#[test]
fn whoever_hangs_is_named_with_its_phase_and_what_it_still_has() {
    let mut rig = Rig::up(&CHAIN);
    rig.stop();
    rig.poll();
    rig.quiesced(B);
    assert_eq!(rig.pass(17), [('F', B), ('P', A)]);
    rig.ok(Input::Fenced {
        id: B,
        remaining: left(3),
    });
    rig.stopped(A);
    let report = rig.report();
    assert_eq!(report.outcome(), Outcome::TimedOut);
    let b = report.components[1];
    assert_eq!(
        (b.quiesce, b.drain, b.stop),
        (
            PhaseResult::Done,
            PhaseResult::TimedOut,
            PhaseResult::Fenced
        )
    );
    assert_eq!(b.remaining, Some(left(3)));
    let errors: Vec<_> = b.errors().collect();
    assert_eq!(errors, [("drain", ErrorCode("timed_out"))]);
    let a = report.components[0];
    assert_eq!(
        (a.quiesce, a.drain, a.stop),
        (
            PhaseResult::Skipped,
            PhaseResult::Skipped,
            PhaseResult::Done
        )
    );
}

#[test]
fn a_start_that_failed_is_clean_if_it_left_nothing() {
    for (remaining, outcome) in [
        (Remaining::NONE, Outcome::Clean),
        (left(1), Outcome::Incomplete),
    ] {
        let mut rig = Rig::new(&CHAIN);
        rig.ok(Input::StartAll);
        assert_eq!(rig.poll(), [('S', A)]);
        rig.ok(Input::StartFailed {
            id: A,
            error: ERROR,
            remaining,
        });
        assert_eq!(rig.poll(), []);
        let report = rig.report();
        assert_eq!(report.reason, StopReason::StartFailed("a"));
        assert_eq!(report.outcome(), outcome);
        assert_eq!(report.components[0].start, StartResult::Failed(ERROR));
        assert_eq!(report.components[1].start, StartResult::NotStarted);
    }
}
