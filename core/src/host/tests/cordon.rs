//! What a cordon, permits and the ledger hold, and what they never do.

use super::layout::{DELTA, Layout, POOL, R0, R1, R2};
use super::rig::{FleetRig, Rig};
use crate::host::{Accepted, StartError};
use crate::lane::{HoldReason, Progress};
use crate::role::{RoleMask, WorkerRole as W};
use crate::seat::{SeatId, SlotPhase, SlotState};
use crate::time::Duration;

const DEFERRABLE: [W; 3] = [W::PoolStateUpdater, W::Registrar, W::Verifier];

fn pinned() -> FleetRig {
    FleetRig::new(&Layout::pinned())
}

fn cordoned_sims(slots: u16, floor: Option<u16>) -> usize {
    let mut layout = Layout::pinned();
    layout.lanes[W::SimDriver.id().index()].slots = Some(slots);
    let mut rig = FleetRig::new(&layout);
    rig.cordon(true);
    rig.guard.posture.sim_floor = floor;
    for _ in 0..8 {
        rig.enqueue(W::SimDriver);
    }
    rig.pump().len()
}

#[test]
fn a_cordon_holds_new_units_of_the_deferrable_roles_with_a_reason() {
    let mut rig = pinned();
    rig.cordon(true);
    for role in DEFERRABLE {
        assert!(matches!(
            rig.enqueue(role),
            Accepted::Held(_, HoldReason::Cordoned)
        ));
        assert_eq!(
            rig.host.hold(role.id(), &rig.guard),
            Some(HoldReason::Cordoned)
        );
        assert_eq!(rig.host.progress(role.id()), Some(Progress::Backed));
        assert_eq!(rig.host.lane_counters(role.id()).unwrap().suppressed, 1);
    }
    assert_eq!(rig.pump(), []);
    rig.cordon(false);
    rig.edge();
    assert_eq!(rig.pump().len(), 3);
}

#[test]
fn a_unit_that_was_queued_under_nominal_and_is_held_at_grant_arms_the_backstop_too() {
    let mut rig = pinned();
    assert!(matches!(rig.enqueue(W::Registrar), Accepted::Queued(_)));
    rig.cordon(true);
    assert_eq!(rig.grant(), None);
    assert_eq!(rig.host.ledger(W::Registrar.id()).unwrap().backlog, 0);
    assert_eq!(rig.host.next_deadline(&rig.guard), Some(rig.now + DELTA));
}

#[test]
fn sims_go_on_at_half_their_slots_rounded_up_and_at_least_one() {
    assert_eq!(cordoned_sims(4, None), 2);
    assert_eq!(cordoned_sims(3, None), 2);
    assert_eq!(cordoned_sims(2, None), 1);
    assert_eq!(cordoned_sims(1, None), 1);
}

#[test]
fn the_floor_of_the_policy_replaces_half_the_slots() {
    assert_eq!(cordoned_sims(4, Some(1)), 1);
    assert_eq!(cordoned_sims(4, Some(3)), 3);
    assert_eq!(cordoned_sims(4, Some(9)), 4, "and never exceeds the slots");
}

#[test]
fn sims_in_flight_are_not_cut_down_to_the_floor() {
    let mut rig = pinned();
    for _ in 0..5 {
        rig.enqueue(W::SimDriver);
    }
    let running = rig.pump();
    assert_eq!(running.len(), 4);
    rig.cordon(true);
    rig.edge();
    for (left, grant) in running.into_iter().enumerate() {
        assert_eq!(
            rig.host.seats()[grant.seat.index()].phase(),
            SlotPhase::Running
        );
        rig.finish(grant.seat);
        // The fifth starts once fewer than two are left.
        assert_eq!(rig.pump().len(), usize::from(left == 2));
    }
}

#[test]
fn nothing_of_the_posture_holds_submitter_solver_resolve_or_merge() {
    let mut rig = pinned();
    rig.cordon(true);
    rig.guard.permits.below_floor = true;
    for role in [W::Submitter, W::Solver, W::Resolve, W::Merge] {
        assert!(matches!(rig.enqueue(role), Accepted::Queued(_)));
        assert_eq!(rig.pumped_roles(), [role.id()]);
    }
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
}

#[test]
fn solver_grants_are_the_same_under_either_posture() {
    let run = |cordoned| {
        let mut rig = pinned();
        rig.cordon(cordoned);
        let mut grants = Vec::new();
        for key in [0, 4, 0, 2, 4, 4] {
            rig.enqueue_key(W::Solver, key);
            grants.extend(rig.pump());
        }
        while let Some(walk) = grants
            .iter()
            .find(|g| {
                rig.host.seats()[g.seat.index()]
                    .held()
                    .is_some_and(|h| h.1 == g.unit)
            })
            .copied()
        {
            rig.finish(walk.seat);
            grants.extend(rig.pump());
        }
        grants
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(true).len(), 6);
}

#[test]
fn a_lease_that_the_guard_takes_back_leaves_the_seat_idle_and_the_unit_first_in_line() {
    let mut rig = pinned();
    let first = rig.enqueue(W::Registrar).unit();
    rig.enqueue(W::Registrar);
    let lease = rig.grant().unwrap();
    assert_eq!((lease.unit, lease.seat), (first, SeatId::new(POOL)));
    rig.cordon(true);
    assert_eq!(
        rig.start(lease),
        Err(StartError::HandedBack(HoldReason::Cordoned))
    );
    assert_eq!(rig.state(POOL), SlotState::Idle);
    let ledger = rig.host.ledger(W::Registrar.id()).unwrap();
    assert_eq!((ledger.queued, ledger.in_flight), (2, 0));
    assert_eq!(
        rig.host
            .lane_counters(W::Registrar.id())
            .unwrap()
            .handed_back,
        1
    );
    assert!(rig.host.next_deadline(&rig.guard).is_some());
    rig.cordon(false);
    rig.edge();
    assert_eq!(rig.grant().unwrap().unit, first);
}

#[test]
fn a_hand_back_of_a_keyed_claim_restores_the_head_of_its_key() {
    let mut rig = Rig::<15>::new(&Layout::odd());
    let first = rig.enqueue_key(R0, 1).unit();
    rig.enqueue_key(R0, 1);
    let lease = rig.grant().unwrap();
    rig.cordon(true);
    assert!(rig.start(lease).is_err());
    rig.cordon(false);
    let again = rig.grant().unwrap();
    assert_eq!((again.unit, again.seat), (first, lease.seat));
}

#[test]
fn a_start_at_the_last_permit_is_not_refused_for_its_own_permit() {
    let mut rig = pinned();
    rig.guard.permits.total = 1;
    rig.guard.permits.keyed = 1;
    rig.enqueue(W::Solver);
    assert_eq!(rig.pump().len(), 1);
}

#[test]
fn a_permit_withdrawn_between_grant_and_start_hands_the_unit_back() {
    let mut rig = pinned();
    rig.enqueue(W::Solver);
    rig.enqueue(W::SimDriver);
    let leases = [rig.grant().unwrap(), rig.grant().unwrap()];
    rig.guard.permits.total = 1;
    assert_eq!(
        rig.start(leases[0]),
        Err(StartError::HandedBack(HoldReason::Permits))
    );
    assert_eq!(rig.start(leases[1]), Ok(()));
}

#[test]
fn a_deferrable_unit_under_way_drains_and_its_seat_takes_new_work_after() {
    let mut rig = pinned();
    rig.enqueue(W::Registrar);
    rig.enqueue(W::Submitter);
    let started = rig.pump();
    let (submit, crawl) = (started[0], started[1]);
    rig.cordon(true);
    rig.edge();
    let phase = |rig: &FleetRig, seat: SeatId| rig.host.seats()[seat.index()].phase();
    assert_eq!(phase(&rig, crawl.seat), SlotPhase::Draining);
    assert_eq!(phase(&rig, submit.seat), SlotPhase::Running);
    rig.cordon(false);
    rig.edge();
    assert_eq!(
        phase(&rig, crawl.seat),
        SlotPhase::Draining,
        "it finishes as it began"
    );
    rig.finish(crawl.seat);
    assert_eq!(phase(&rig, crawl.seat), SlotPhase::Idle);
    rig.finish(submit.seat);
    assert_eq!(rig.outcomes(), [crate::unit::Outcome::Done; 2]);
}

#[test]
fn a_deferrable_walk_on_a_pin_is_not_shed() {
    let mut rig = Rig::<15>::new(&Layout::odd());
    rig.enqueue_key(R0, 0);
    rig.enqueue(R1);
    let started = rig.pump();
    rig.cordon(true);
    rig.edge();
    let phases = started
        .iter()
        .map(|g| rig.host.seats()[g.seat.index()].phase());
    assert!(phases.eq([SlotPhase::Running, SlotPhase::Draining]));
}

#[test]
fn below_the_floor_the_deferrables_wait_and_sims_go_on() {
    let mut rig = pinned();
    rig.guard.permits.below_floor = true;
    rig.guard.permits.total = 1;
    for role in DEFERRABLE {
        assert!(matches!(
            rig.enqueue(role),
            Accepted::Held(_, HoldReason::BelowFloor)
        ));
    }
    rig.enqueue(W::SimDriver);
    assert_eq!(rig.pumped_roles(), [W::SimDriver.id()]);
}

#[test]
fn the_next_deadline_is_the_earlier_of_backstop_and_refill() {
    let mut rig = pinned();
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
    rig.guard.ledger.holds = RoleMask::EMPTY.with(W::Registrar.id());
    rig.enqueue(W::Registrar);
    let at = rig.now;
    let backstop = Some(at + DELTA);
    assert_eq!(rig.host.next_deadline(&rig.guard), backstop);
    for (refill, want) in [
        (10, Some(at + Duration::from_millis(10))),
        (10_000, backstop),
    ] {
        rig.guard.ledger.refill_at = Some(at + Duration::from_millis(refill));
        assert_eq!(rig.host.next_deadline(&rig.guard), want);
    }
    rig.guard.ledger.holds = RoleMask::EMPTY;
    rig.pass(Duration::from_millis(10));
    rig.edge();
    assert_eq!(rig.pump().len(), 1);
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
}

#[test]
fn a_refill_of_a_lane_that_holds_nothing_wakes_nobody() {
    let mut rig = pinned();
    rig.guard.ledger.holds = RoleMask::EMPTY.with(W::Registrar.id());
    rig.guard.ledger.refill_at = Some(rig.now + Duration::from_millis(1));
    rig.edge();
    assert_eq!(rig.host.next_deadline(&rig.guard), None);
    rig.cordon(true);
    rig.enqueue(W::Verifier);
    assert_eq!(rig.host.next_deadline(&rig.guard), Some(rig.now + DELTA));
}

#[test]
fn idle_and_nominal_has_no_deadline_even_with_every_seat_busy() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    rig.pump();
    for _ in 0..8 {
        rig.enqueue(W::Submitter);
    }
    assert_eq!(rig.pump().len(), 4);
    assert_eq!(
        rig.host.hold(W::Submitter.id(), &rig.guard),
        Some(HoldReason::NoSeat)
    );
    assert_eq!(
        rig.host.next_deadline(&rig.guard),
        None,
        "a seat's end is an input"
    );
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    assert_eq!(
        rig.host.next_deadline(&rig.guard),
        None,
        "no seat that it could use is idle"
    );
}

#[test]
fn edges_change_nothing_but_latency_whatever_their_order() {
    let run = |edges: &[u32]| {
        let mut rig = Rig::<15>::new(&Layout::odd());
        rig.enqueue(R1);
        rig.enqueue(R2);
        rig.cordon(true);
        for seq in edges {
            rig.handle(crate::host::Input::PostureEdge { seq: *seq })
                .unwrap();
        }
        let granted = rig.pump();
        (granted, rig.host)
    };
    let (granted, host) = run(&[]);
    for edges in [&[1][..], &[2, 1], &[1, 1, 1], &[u32::MAX, 0, 7]] {
        assert!(run(edges) == (granted.clone(), host.clone()));
    }
}

#[test]
fn hosts_that_hold_nothing_are_equal_whenever_they_last_did() {
    let run = |ms| {
        let mut rig = pinned();
        rig.pass(Duration::from_millis(ms));
        rig.enqueue(W::Resolve);
        rig.run_dry();
        rig.collect();
        rig.host
    };
    assert!(run(0) == run(7));
}
