//! Epoch boundaries and resizes: where pins and keys move, and when they do not.

use super::layout::{Layout, PINS, POOL};
use super::rig::FleetRig;
use crate::host::{EpochError, Input, InputError, ResizeError};
use crate::role::WorkerRole as W;
use crate::seat::{SeatId, SlotState};

fn pinned() -> FleetRig {
    let mut rig = FleetRig::new(&Layout::pinned());
    for key in 0..PINS {
        rig.enqueue_key(W::Solver, key);
    }
    rig.run_dry();
    rig.collect();
    rig
}

fn resize(rig: &mut FleetRig, pins: u8) {
    rig.handle(Input::Resize { pins }).unwrap();
}

/// The seat on which each key runs now.
fn homes(rig: &mut FleetRig) -> Vec<usize> {
    (0..PINS)
        .map(|key| {
            rig.enqueue_key(W::Solver, key);
            let grant = rig.pump()[0];
            assert_eq!(grant.key, key);
            rig.finish(grant.seat);
            rig.collect();
            grant.seat.index()
        })
        .collect()
}

#[test]
fn an_epoch_does_not_end_while_a_keyed_unit_is_with_a_seat() {
    for layout in [Layout::pinned(), Layout::serial()] {
        let mut rig = FleetRig::new(&layout);
        rig.enqueue(W::Solver);
        let lease = rig.grant().unwrap();
        let early = Err(EpochError::KeyedInFlight { units: 1 });
        assert_eq!(rig.epoch(1), early, "leased");
        rig.start(lease).unwrap();
        assert_eq!(rig.epoch(1), early, "running");
        rig.finish(lease.seat);
        assert_eq!(rig.epoch(1), Ok(()));
    }
}

#[test]
fn units_of_other_roles_and_waiting_ones_do_not_keep_an_epoch_open() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.enqueue(W::SimDriver);
    rig.pump();
    rig.enqueue(W::Solver);
    assert_eq!(rig.epoch(1), Ok(()));
    assert_eq!(rig.pump().len(), 1);
}

#[test]
fn epochs_only_go_forward() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.epoch(5).unwrap();
    for seq in [0, 4, 5] {
        assert_eq!(
            rig.epoch(seq),
            Err(EpochError::NotNewer { seq, current: 5 })
        );
    }
    rig.epoch(u64::MAX).unwrap();
    assert_eq!(rig.host.epoch(), u64::MAX);
}

#[test]
fn a_boundary_without_a_reason_moves_no_key() {
    let mut rig = pinned();
    let before = homes(&mut rig);
    for seq in 1..20 {
        rig.epoch(seq).unwrap();
    }
    assert_eq!(homes(&mut rig), before);
    assert_eq!(before, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn fewer_pins_take_effect_at_the_boundary_and_no_sooner() {
    let mut rig = pinned();
    resize(&mut rig, 2);
    assert_eq!(homes(&mut rig), [0, 1, 2, 3, 4, 5]);
    assert_eq!(rig.host.pins().count(), 6);
    rig.epoch(1).unwrap();
    assert_eq!(
        rig.host.pins().count(),
        2,
        "released before any key is served elsewhere"
    );
    for seat in 2..PINS {
        assert_eq!(rig.state(seat), SlotState::Idle);
    }
    assert_eq!(homes(&mut rig), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn more_pins_bring_each_key_home() {
    let mut rig = pinned();
    resize(&mut rig, 1);
    rig.epoch(1).unwrap();
    assert_eq!(homes(&mut rig), [0; 6]);
    resize(&mut rig, 4);
    rig.epoch(2).unwrap();
    assert_eq!(homes(&mut rig), [0, 1, 2, 3, 0, 1]);
    resize(&mut rig, 255);
    rig.epoch(3).unwrap();
    assert_eq!(homes(&mut rig), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn waiting_units_follow_their_key_and_keep_their_order() {
    let mut rig = pinned();
    rig.guard.permits.keyed = 0;
    let mut came = Vec::new();
    for key in [5, 0, 5, 3, 0, 5] {
        came.push((key, rig.enqueue_key(W::Solver, key).unit()));
    }
    resize(&mut rig, 1);
    rig.epoch(1).unwrap();
    resize(&mut rig, 6);
    rig.epoch(2).unwrap();
    resize(&mut rig, 1);
    rig.epoch(3).unwrap();
    rig.guard.permits.keyed = 1;
    let mut ran = Vec::new();
    while let [grant] = rig.pump()[..] {
        assert_eq!((grant.seat, grant.pin), (SeatId::new(0), Some(0)));
        ran.push((grant.key, grant.unit));
        rig.finish(grant.seat);
    }
    came.sort_by_key(|unit| unit.0);
    ran.sort_by_key(|unit| unit.0);
    assert_eq!(ran, came, "a stable sort by key keeps each key's order");
}

#[test]
fn a_boundary_that_moves_no_key_touches_no_waiting_unit() {
    let mut rig = pinned();
    rig.guard.permits.keyed = 0;
    for key in [0, 1, 1, 4] {
        rig.enqueue_key(W::Solver, key);
    }
    let queues: Vec<_> = rig.host.seats().iter().map(|seat| seat.queue).collect();
    rig.epoch(1).unwrap();
    assert!(rig.host.seats().iter().map(|seat| seat.queue).eq(queues));
}

#[test]
fn units_beyond_the_permits_drain_and_pinned_walks_do_not() {
    let mut rig = pinned();
    rig.enqueue_key(W::Solver, 0);
    for _ in 0..4 {
        rig.enqueue(W::SimDriver);
    }
    assert_eq!(rig.pump().len(), 5);
    let draining = |rig: &FleetRig| {
        (0..12)
            .filter(|s| matches!(rig.state(*s), SlotState::Draining { .. }))
            .collect::<Vec<u8>>()
    };
    rig.guard.permits.total = 3;
    resize(&mut rig, 6);
    assert_eq!(draining(&rig), [POOL + 2, POOL + 3]);
    resize(&mut rig, 6);
    assert_eq!(
        draining(&rig),
        [POOL + 2, POOL + 3],
        "what drains already is on its way"
    );
    rig.guard.permits.total = 0;
    resize(&mut rig, 6);
    assert_eq!(draining(&rig), [POOL, POOL + 1, POOL + 2, POOL + 3]);
    assert!(matches!(rig.state(0), SlotState::Running { .. }));
    for seat in [0, POOL, POOL + 1, POOL + 2, POOL + 3] {
        rig.finish(SeatId::new(seat));
    }
    assert_eq!(rig.outcomes().len(), 5);
}

#[test]
fn a_role_keeps_at_least_one_pin() {
    let mut rig = pinned();
    let refused = rig.handle(Input::Resize { pins: 0 });
    assert_eq!(refused, Err(InputError::Resize(ResizeError::NoPins)));
}

#[test]
fn pins_shrink_around_the_dead() {
    let mut rig = pinned();
    rig.kill(0);
    rig.kill(4);
    resize(&mut rig, 2);
    rig.epoch(1).unwrap();
    // The two lowest living seats stay.
    assert_eq!(homes(&mut rig), [1, 1, 2, 2, 1, 2]);
}
