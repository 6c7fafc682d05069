//! Lost threads: what they owed ends typed, and what can never run again says so.

use super::layout::{Layout, MERGE_SEAT, PINS, POOL, R0, R1, R2};
use super::rig::{FleetRig, Rig};
use crate::host::{Accepted, Alarm, ClosePhase, EnqueueError, SeatDiedError, StartError};
use crate::lane::Progress;
use crate::role::{RoleId, WorkerRole as W};
use crate::seat::{SeatId, SlotState};
use crate::unit::{Outcome, RunResult};

fn pinned() -> FleetRig {
    FleetRig::new(&Layout::pinned())
}

fn faulted<const N: usize>(rig: &Rig<N>) -> Vec<RoleId> {
    let ids = rig.host.table().ids();
    ids.filter(|role| rig.host.progress(*role) == Some(Progress::Faulted))
        .collect()
}

const DEFERRABLE: [W; 3] = [W::PoolStateUpdater, W::Registrar, W::Verifier];

#[test]
fn the_latch_faults_the_receipt_owning_deferrables_and_nothing_else() {
    let mut rig = pinned();
    rig.guard.posture.lane_death = true;
    rig.guard.posture.cordoned = true;
    rig.edge();
    assert_eq!(faulted(&rig), DEFERRABLE.map(W::id));
    // A lane that no one waits on is held for ever and does not fault.
    let mut odd = Rig::<15>::new(&Layout::odd());
    odd.guard = rig.guard;
    odd.edge();
    assert_eq!(faulted(&odd), [R0]);
    assert!(matches!(odd.enqueue(R1), Accepted::Held(..)));
    assert!(matches!(odd.enqueue(R2), Accepted::Queued(_)));
}

#[test]
fn a_death_with_a_unit_also_faults_the_lane_of_that_unit_if_someone_waits_on_it() {
    for (role, faults) in [
        (W::Solver, false),
        (W::Resolve, false),
        (W::Merge, false),
        (W::SimDriver, true),
        (W::Submitter, true),
    ] {
        let mut rig = pinned();
        rig.enqueue(role);
        let grant = rig.pump()[0];
        rig.kill(u8::try_from(grant.seat.index()).unwrap());
        let mut want = DEFERRABLE.map(W::id).to_vec();
        if faults {
            want.push(role.id());
            want.sort_unstable();
        }
        assert_eq!(faulted(&rig), want, "{role:?}");
        assert_eq!(rig.outcomes(), [Outcome::LaneDeath]);
    }
}

#[test]
fn what_a_faulted_lane_held_ends_typed_what_runs_finishes_and_intake_is_refused() {
    let mut rig = pinned();
    for _ in 0..8 {
        rig.enqueue(W::Registrar);
    }
    let running = rig.pump();
    assert_eq!(running.len(), 5);
    rig.guard.posture.lane_death = true;
    rig.guard.posture.cordoned = true;
    rig.edge();
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath; 3]);
    for grant in running {
        rig.finish(grant.seat);
    }
    assert_eq!(rig.outcomes(), [Outcome::Done; 5]);
    let role = W::Registrar.id();
    assert_eq!(rig.submit(role, 0), Err(EnqueueError::Faulted { role }));
    assert_eq!(rig.host.lane_counters(role).unwrap().refused_closed, 1);
    // Sticky: the cause may go from the guard, the fault stays.
    rig.guard = crate::guard::Guard::open(64);
    rig.edge();
    assert_eq!(rig.submit(role, 0), Err(EnqueueError::Faulted { role }));
}

#[test]
fn a_unit_leased_when_its_lane_faults_does_not_go_back_to_wait_for_ever() {
    let mut rig = pinned();
    let unit = rig.enqueue(W::Registrar).unit();
    let lease = rig.grant().unwrap();
    rig.kill(0);
    assert!(matches!(rig.start(lease), Err(StartError::HandedBack(_))));
    let ended = rig.collect();
    assert_eq!(
        (ended[0].unit, ended[0].outcome),
        (unit, Outcome::LaneDeath)
    );
    assert_eq!(rig.state(POOL), SlotState::Idle);
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
}

#[test]
fn a_unit_leased_when_its_lane_faults_still_runs_if_the_guard_lets_it() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    let lease = rig.grant().unwrap();
    // The host knows of the death before the posture owner does.
    let seat = SeatId::new(0);
    rig.handle(crate::host::Input::SeatDied { seat }).unwrap();
    assert_eq!(faulted(&rig), DEFERRABLE.map(W::id));
    rig.start(lease).unwrap();
    rig.finish(lease.seat);
    assert_eq!(rig.outcomes(), [Outcome::Done]);
}

#[test]
fn a_keyed_lane_with_receipts_dies_whole_with_the_seat_that_ran_it() {
    let mut rig = Rig::<15>::new(&Layout::odd());
    for key in [0, 0, 0, 1, 2] {
        rig.enqueue_key(R0, key);
    }
    let running = rig.pump();
    assert_eq!(running.len(), 3);
    let seat = SeatId::new(0);
    rig.handle(crate::host::Input::SeatDied { seat }).unwrap();
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath; 3]);
    assert_eq!(faulted(&rig), [R0]);
    rig.finish(SeatId::new(1));
    rig.finish(SeatId::new(2));
    assert_eq!(rig.outcomes(), [Outcome::Done; 2]);
}

#[test]
fn a_key_without_a_seat_fails_typed_until_the_boundary_and_is_served_elsewhere_after() {
    let mut rig = pinned();
    for key in 0..PINS {
        rig.enqueue_key(W::Solver, key);
    }
    rig.run_dry();
    rig.collect();
    rig.enqueue_key(W::Solver, 2);
    rig.pump();
    rig.enqueue_key(W::Solver, 2);
    rig.kill(2);
    assert_eq!(
        rig.outcomes(),
        [Outcome::LaneDeath; 2],
        "the running and the waiting unit"
    );
    assert!(matches!(rig.enqueue_key(W::Solver, 2), Accepted::Dead(_)));
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath]);
    rig.epoch(1).unwrap();
    assert!(matches!(rig.enqueue_key(W::Solver, 2), Accepted::Queued(_)));
    let grant = rig.pump()[0];
    assert_eq!(
        (grant.seat, grant.key, grant.pin),
        (SeatId::new(0), 2, Some(0))
    );
    rig.finish(grant.seat);
    assert_eq!(rig.outcomes(), [Outcome::Done]);
}

#[test]
fn keys_of_dead_seats_are_spread_over_the_living() {
    let mut rig = pinned();
    for seat in [1, 3, 5] {
        rig.kill(seat);
    }
    rig.epoch(1).unwrap();
    for key in 0..PINS {
        rig.enqueue_key(W::Solver, key);
    }
    let mut served = [0; 6];
    loop {
        let started = rig.pump();
        if started.is_empty() {
            break;
        }
        for grant in started {
            served[grant.seat.index()] += 1;
            rig.finish(grant.seat);
        }
    }
    assert_eq!(served, [2, 0, 2, 0, 2, 0]);
}

#[test]
fn with_every_keyed_seat_dead_each_unit_fails_typed_at_once_and_for_good() {
    let mut rig = pinned();
    for key in 0..PINS {
        rig.enqueue_key(W::Solver, key);
    }
    for seat in 0..PINS {
        rig.kill(seat);
    }
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath; 6]);
    rig.epoch(1).unwrap();
    for key in 0..PINS {
        assert!(matches!(rig.enqueue_key(W::Solver, key), Accepted::Dead(_)));
    }
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath; 6]);
    assert_eq!(rig.alarms(), [], "the process lives");
    assert_ne!(rig.host.progress(W::Solver.id()), Some(Progress::Faulted));
}

#[test]
fn a_dead_merge_seat_is_a_stranded_pipe_and_said_once() {
    let role = W::Merge.id();
    for queued in [false, true] {
        let mut rig = pinned();
        if queued {
            rig.enqueue(W::Merge);
            rig.pump();
            rig.enqueue(W::Merge);
        }
        rig.kill(MERGE_SEAT);
        assert_eq!(rig.alarms(), [Alarm::StrandedPipe { role }]);
        let owed = if queued { 2 } else { 0 };
        assert_eq!(rig.outcomes(), [Outcome::LaneDeath; 2][..owed]);
        rig.enqueue(W::Merge);
        assert_eq!(
            rig.outcomes(),
            [Outcome::LaneDeath],
            "no send is without an outcome"
        );
        assert_eq!(rig.alarms(), []);
    }
}

#[test]
fn the_only_seat_of_the_serial_tier_takes_every_lane_with_it() {
    let mut rig = FleetRig::new(&Layout::serial());
    let roles: Vec<RoleId> = rig.host.table().ids().collect();
    for role in &roles {
        rig.enqueue(*role);
    }
    rig.pump();
    rig.kill(0);
    let ended = rig.collect();
    assert_eq!(ended.len(), roles.len());
    assert!(ended.iter().all(|r| r.outcome == Outcome::LaneDeath));
    for role in roles {
        let owns = rig.host.table().get(role).unwrap().owns_receipts;
        match rig.submit(role, 0) {
            Err(EnqueueError::Faulted { .. }) => assert!(owns),
            Ok(Accepted::Dead(_)) => assert!(!owns),
            other => panic!("{role:?}: {other:?}"),
        }
    }
    assert!(rig.alarms().contains(&Alarm::StrandedPipe {
        role: W::Merge.id()
    }));
}

#[test]
fn a_pooled_role_lives_until_its_last_seat_does() {
    let mut rig = pinned();
    for seat in POOL..POOL + 4 {
        rig.kill(seat);
        rig.enqueue(W::Resolve);
        assert_eq!(rig.run_dry(), 1);
    }
    rig.enqueue(W::Resolve);
    rig.collect();
    rig.kill(POOL + 4);
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath]);
    assert!(matches!(rig.enqueue(W::Resolve), Accepted::Dead(_)));
}

#[test]
fn a_seat_dies_once_and_a_report_from_the_grave_is_refused() {
    let mut rig = pinned();
    rig.enqueue(W::Submitter);
    let grant = rig.pump()[0];
    rig.kill(POOL);
    let again = rig.host.seat_died(grant.seat, rig.now, &rig.guard);
    assert!(matches!(again, Err(SeatDiedError::Seat { .. })));
    assert!(rig.report(grant.seat, grant.unit, RunResult::Done).is_err());
    let nobody = SeatId::new(12);
    let unknown = SeatDiedError::UnknownSeat {
        seat: nobody,
        seats: 12,
    };
    assert_eq!(
        rig.host.seat_died(nobody, rig.now, &rig.guard),
        Err(unknown)
    );
    assert!(
        rig.host
            .seat_died(SeatId::new(255), rig.now, &rig.guard)
            .is_err()
    );
    assert_eq!(rig.outcomes(), [Outcome::LaneDeath]);
}

#[test]
fn a_panic_ends_the_unit_and_neither_the_seat_nor_the_lane() {
    let mut rig = pinned();
    rig.enqueue(W::Submitter);
    rig.enqueue_key(W::Solver, 1);
    for grant in rig.pump() {
        rig.report(grant.seat, grant.unit, RunResult::Panicked)
            .unwrap();
    }
    assert_eq!(rig.outcomes(), [Outcome::Panicked; 2]);
    assert_eq!(faulted(&rig), []);
    rig.enqueue(W::Submitter);
    rig.enqueue_key(W::Solver, 1);
    assert_eq!(rig.run_dry(), 2);
}

#[test]
fn a_death_after_the_fence_faults_nobody_twice() {
    let mut rig = pinned();
    rig.enqueue(W::Submitter);
    rig.pump();
    rig.close(ClosePhase::Fence);
    assert_eq!(rig.outcomes(), [Outcome::Closed]);
    rig.kill(POOL);
    rig.kill(POOL + 1);
    assert_eq!(rig.outcomes(), []);
}

#[test]
fn a_pipe_without_rows_or_behind_the_fence_is_not_stranded() {
    let mut layout = Layout::pinned();
    layout.lanes[W::Merge.id().index()].rows = 0;
    let mut without = FleetRig::new(&layout);
    without.kill(MERGE_SEAT);
    assert_eq!(without.alarms(), []);

    let mut closed = pinned();
    closed.close(ClosePhase::Fence);
    closed.kill(MERGE_SEAT);
    assert_eq!(closed.alarms(), []);
}
