//! Which unit comes first.

use super::layout::{Layout, MERGE_SEAT, PINS, POOL};
use super::rig::FleetRig;
use crate::role::{RoleId, WorkerRole as W};
use crate::seat::{SeatId, SlotPhase, SlotState};

fn ids(roles: &[W]) -> Vec<RoleId> {
    roles.iter().map(|role| role.id()).collect()
}

/// One waiting unit of every role, the last in the order enqueued first.
fn enqueue_all(rig: &mut FleetRig) {
    for role in [
        W::Verifier,
        W::Registrar,
        W::PoolStateUpdater,
        W::Merge,
        W::Solver,
        W::Resolve,
        W::SimDriver,
        W::Submitter,
    ] {
        rig.enqueue(role);
    }
}

#[test]
fn the_pinned_tier_grants_submit_pins_sim_resolve_claims_and_then_the_deferrables() {
    let mut rig = FleetRig::new(&Layout::pinned());
    // One solver key and the merge seat are pinned already; the other key has yet to be claimed.
    rig.enqueue_key(W::Solver, 0);
    rig.enqueue(W::Merge);
    rig.run_dry();
    enqueue_all(&mut rig);
    rig.enqueue_key(W::Solver, 1);
    let order = [
        W::Submitter,
        W::Solver,
        W::Merge,
        W::SimDriver,
        W::Resolve,
        W::Solver,
        W::PoolStateUpdater,
        W::Registrar,
    ];
    assert_eq!(
        rig.pumped_roles(),
        ids(&order),
        "and the five pooled seats are out"
    );
    assert_eq!(rig.waiting(W::Verifier), 1);
}

#[test]
fn the_serial_tier_grants_resolve_solve_merge_in_that_order() {
    let mut rig = FleetRig::new(&Layout::serial());
    enqueue_all(&mut rig);
    let mut order = Vec::new();
    loop {
        let started = rig.pump();
        assert!(started.len() <= 1, "there is one seat");
        let Some(grant) = started.first() else { break };
        assert_eq!(grant.pin, None);
        order.push(grant.role);
        rig.finish(grant.seat);
    }
    let want = [
        W::Submitter,
        W::SimDriver,
        W::Resolve,
        W::Solver,
        W::Merge,
        W::PoolStateUpdater,
        W::Registrar,
        W::Verifier,
    ];
    assert_eq!(order, ids(&want));
}

#[test]
fn a_queued_sim_beats_a_new_solver_claim_for_the_last_permit() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.guard.permits.total = 1;
    rig.enqueue(W::Solver);
    rig.enqueue(W::SimDriver);
    assert_eq!(rig.pumped_roles(), ids(&[W::SimDriver]));
}

#[test]
fn a_pinned_solver_beats_a_queued_sim_for_the_last_permit() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.enqueue(W::Solver);
    rig.run_dry();
    rig.guard.permits.total = 1;
    rig.enqueue(W::SimDriver);
    rig.enqueue(W::Solver);
    assert_eq!(rig.pumped_roles(), ids(&[W::Solver]));
}

#[test]
fn a_running_walk_keeps_its_seat_whatever_comes() {
    for layout in [Layout::pinned(), Layout::serial()] {
        let mut rig = FleetRig::new(&layout);
        rig.enqueue(W::Solver);
        let walk = rig.pump()[0];
        rig.guard.permits.total = 1;
        rig.guard.permits.below_floor = true;
        rig.cordon(true);
        for role in [W::Submitter, W::SimDriver, W::Resolve, W::Registrar] {
            rig.enqueue(role);
        }
        assert_eq!(rig.pump(), []);
        assert_eq!(
            rig.host.seats()[walk.seat.index()].phase(),
            SlotPhase::Running
        );
        rig.finish(walk.seat);
        assert_eq!(rig.pumped_roles()[0], W::Submitter.id());
    }
}

#[test]
fn a_unit_runs_on_the_pin_of_its_key_and_the_pin_outlives_it() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for round in 0..50 {
        for key in [5, 0, 3] {
            rig.enqueue_key(W::Solver, key);
        }
        let started = rig.pump();
        assert_eq!(started.len(), 3);
        for grant in started {
            assert_eq!(grant.seat, SeatId::new(grant.key), "round {round}");
            assert_eq!(grant.pin, Some(grant.key));
            rig.finish(grant.seat);
        }
        let solver = W::Solver.id();
        let pins: Vec<_> = rig.host.pins().collect();
        assert_eq!(pins, [0, 3, 5].map(|key| (SeatId::new(key), solver, key)));
        rig.collect();
    }
}

#[test]
fn the_units_of_a_key_run_one_at_a_time_in_the_order_they_came() {
    let mut rig = FleetRig::new(&Layout::pinned());
    let came: Vec<_> = (0..4)
        .map(|_| rig.enqueue_key(W::Solver, 2).unit())
        .collect();
    let mut ran = Vec::new();
    while let [grant] = rig.pump()[..] {
        ran.push(grant.unit);
        rig.finish(grant.seat);
    }
    assert_eq!(ran, came);
}

#[test]
fn no_pin_is_always_last_when_permits_are_short() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for key in 0..PINS {
        rig.enqueue_key(W::Solver, key);
    }
    rig.run_dry();
    rig.collect();
    rig.guard.permits.keyed = 1;
    let mut turns = [0; PINS as usize];
    for _ in 0..2 * PINS {
        for key in 0..PINS {
            if rig.host.seats()[usize::from(key)].queue.is_empty() {
                rig.enqueue_key(W::Solver, key);
            }
        }
        let started = rig.pump();
        assert_eq!(started.len(), 1);
        turns[usize::from(started[0].key)] += 1;
        rig.finish(started[0].seat);
        rig.collect();
    }
    assert_eq!(turns, [2; PINS as usize]);
}

#[test]
fn a_pooled_seat_switches_roles_between_units() {
    let mut rig = FleetRig::new(&Layout::serial());
    for role in [W::Resolve, W::Registrar, W::Submitter] {
        rig.enqueue(role);
        let grant = rig.pump()[0];
        let (role, unit) = (role.id(), grant.unit);
        assert_eq!(rig.state(0), SlotState::Running { role, unit });
        rig.finish(grant.seat);
        assert_eq!(rig.state(0), SlotState::Idle);
    }
}

#[test]
fn merge_has_one_seat_and_holds_it_across_cycles() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for _ in 0..3 {
        rig.enqueue(W::Merge);
        let grant = rig.pump()[0];
        assert_eq!((grant.seat, grant.pin), (SeatId::new(MERGE_SEAT), None));
        rig.finish(grant.seat);
        let role = W::Merge.id();
        assert_eq!(rig.state(MERGE_SEAT), SlotState::Pinned { role, key: 0 });
    }
}

#[test]
fn slots_bound_a_role_below_its_seats() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for _ in 0..8 {
        rig.enqueue(W::SimDriver);
    }
    assert_eq!(rig.pump().len(), 4);
    assert_eq!(
        rig.state(POOL + 4),
        SlotState::Idle,
        "the fifth seat is left for others"
    );
    assert_eq!(
        rig.host.next_deadline(&rig.guard),
        None,
        "its own end is what it waits for"
    );
}
