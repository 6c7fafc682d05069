//! Closing: intake ends, queued work runs, then everything owed ends typed.

use super::layout::{Layout, MERGE_SEAT, POOL};
use super::rig::FleetRig;
use crate::component::DrainCounts;
use crate::host::{CloseError, ClosePhase, EnqueueError, InputError, Reaction};
use crate::lane::Progress;
use crate::role::WorkerRole as W;
use crate::seat::{SeatId, SlotState};
use crate::unit::{Outcome, RunResult};

fn pinned() -> FleetRig {
    FleetRig::new(&Layout::pinned())
}

#[test]
fn quiesce_ends_the_backlog_unrun_and_lets_the_queue_run() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    rig.enqueue(W::Verifier);
    rig.cordon(false);
    rig.close(ClosePhase::Quiesce);
    assert_eq!(rig.outcomes(), [Outcome::NotRun; 2]);
    let role = W::Submitter.id();
    assert_eq!(rig.submit(role, 0), Err(EnqueueError::Closed { role }));
    assert_eq!(rig.host.progress(role), Some(Progress::Closed));
    assert_eq!(rig.run_dry(), 1);
    assert_eq!(rig.outcomes(), [Outcome::Done]);
    assert!(rig.host.is_idle());
}

#[test]
fn a_queued_unit_that_a_cordon_holds_after_quiesce_runs_when_it_lifts() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    rig.cordon(true);
    rig.close(ClosePhase::Quiesce);
    assert_eq!(rig.pump(), []);
    rig.cordon(false);
    assert_eq!(rig.sleep_to_deadline().unwrap().len(), 1);
}

#[test]
fn the_fence_ends_what_waits_and_what_runs_and_late_reports_are_late() {
    let mut rig = pinned();
    for role in [W::Registrar, W::Solver, W::Merge] {
        rig.enqueue(role);
    }
    let running = rig.pump();
    rig.enqueue_key(W::Solver, 0);
    rig.enqueue_key(W::Solver, 3);
    rig.close(ClosePhase::Quiesce);
    rig.close(ClosePhase::Fence);
    assert_eq!(rig.outcomes(), [Outcome::Closed; 5]);
    for grant in running {
        let late = rig.report(grant.seat, grant.unit, RunResult::Done);
        assert_eq!(late, Ok(Reaction::Late));
        assert_eq!(
            rig.state(u8::try_from(grant.seat.index()).unwrap()),
            SlotState::Retired
        );
        assert!(rig.report(grant.seat, grant.unit, RunResult::Done).is_err());
    }
    assert_eq!(rig.outcomes(), []);
    assert_eq!(rig.host.counters().late, 3);
    assert!((0..12).all(|seat| rig.state(seat) == SlotState::Retired));
}

#[test]
fn a_late_report_does_not_touch_the_next_life_of_the_row() {
    let mut rig = pinned();
    rig.enqueue(W::Submitter);
    let grant = rig.pump()[0];
    rig.close(ClosePhase::Fence);
    let old = rig.collect()[0].unit;
    let (ledger, room) = (
        rig.host.ledger(W::Submitter.id()),
        rig.host.room(W::Submitter.id()),
    );
    let now = rig.host.units.id(u32::try_from(old.index()).unwrap());
    assert_ne!(now, old);
    assert_eq!(rig.finish(grant.seat), Reaction::Late);
    assert_eq!(rig.host.ledger(W::Submitter.id()), ledger);
    assert_eq!(rig.host.room(W::Submitter.id()), room);
    assert_eq!(rig.host.units.id(u32::try_from(old.index()).unwrap()), now);
}

#[test]
fn a_lease_that_the_fence_overtakes_is_not_begun() {
    // Whatever the guard says: a unit whose receipt reads Closed must not run after, and the row is
    // someone else's to use.
    for cordoned in [false, true] {
        let mut rig = pinned();
        rig.enqueue(W::Registrar);
        let lease = rig.grant().unwrap();
        rig.close(ClosePhase::Fence);
        assert_eq!(rig.outcomes(), [Outcome::Closed]);
        rig.cordon(cordoned);
        assert!(rig.start(lease).is_err());
        assert_eq!(rig.state(POOL), SlotState::Retired);
        assert_eq!(rig.outcomes(), []);
    }
}

#[test]
fn a_fence_alone_does_both_steps() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    rig.close(ClosePhase::Fence);
    assert_eq!(rig.outcomes(), [Outcome::NotRun, Outcome::Closed]);
    assert_eq!(rig.host.closing(), Some(ClosePhase::Fence));
}

#[test]
fn closing_goes_forward_only() {
    let mut rig = pinned();
    let steps = [ClosePhase::Quiesce, ClosePhase::Fence];
    for (current, asked) in [(0, 0), (1, 0), (1, 1)].map(|(c, a)| (steps[c], steps[a])) {
        if rig.host.closing() < Some(current) {
            rig.close(current);
        }
        let refused = CloseError::NotForward { asked, current };
        let got = rig.handle(crate::host::Input::Close(asked));
        assert_eq!(got, Err(InputError::Close(refused)));
    }
}

#[test]
fn pins_retire_with_the_idle_and_a_closed_fleet_sleeps() {
    let mut rig = pinned();
    rig.enqueue(W::Merge);
    rig.enqueue_key(W::Solver, 1);
    rig.run_dry();
    assert_eq!(rig.host.pins().count(), 2);
    rig.collect();
    rig.cordon(true);
    rig.close(ClosePhase::Quiesce);
    rig.close(ClosePhase::Fence);
    assert_eq!(rig.state(MERGE_SEAT), SlotState::Retired);
    assert_eq!(rig.host.pins().count(), 0);
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
    assert!(rig.host.is_idle());
}

#[test]
fn a_lane_that_died_before_the_close_says_that_it_died() {
    let mut rig = pinned();
    rig.kill(0);
    rig.close(ClosePhase::Quiesce);
    let role = W::Registrar.id();
    assert_eq!(rig.submit(role, 0), Err(EnqueueError::Faulted { role }));
}

#[test]
fn a_draining_seat_finishes_over_a_quiesce() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    rig.pump();
    rig.cordon(true);
    rig.edge();
    rig.close(ClosePhase::Quiesce);
    assert!(matches!(rig.state(POOL), SlotState::Draining { .. }));
    rig.finish(SeatId::new(POOL));
    assert_eq!(rig.outcomes(), [Outcome::Done]);
}

#[test]
fn the_drain_is_counted_from_quiesce_to_fence() {
    let mut rig = pinned();
    assert_eq!(rig.host.drain_counts(), None);
    for role in [W::Submitter, W::Submitter, W::Registrar, W::Merge] {
        rig.enqueue(role);
    }
    rig.run_dry();
    rig.collect();
    // Three with a seat, two queued for a pin that is taken, one held.
    for role in [W::Submitter, W::Submitter, W::Solver] {
        rig.enqueue(role);
    }
    let running = rig.pump();
    rig.enqueue_key(W::Solver, 0);
    rig.enqueue_key(W::Solver, 0);
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    rig.close(ClosePhase::Quiesce);
    let begun = DrainCounts {
        accepted_before_quiesce: 6,
        not_run: 1,
        remaining_at_deadline: 5,
        ..DrainCounts::default()
    };
    assert_eq!(rig.host.drain_counts(), Some(begun));
    rig.finish(running[0].seat);
    assert!(rig.submit(W::Merge.id(), 0).is_err());
    rig.close(ClosePhase::Fence);
    // What comes after the fence is late, and what was refused is counted to the end.
    rig.finish(running[1].seat);
    assert!(rig.submit(W::Submitter.id(), 0).is_err());
    let ended = DrainCounts {
        completed_during_drain: 1,
        remaining_at_deadline: 4,
        rejected_after_quiesce: 2,
        ..begun
    };
    assert_eq!(rig.host.drain_counts(), Some(ended));
}
