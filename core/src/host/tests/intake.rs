//! What is accepted and what is handed back.

use super::layout::{Layout, PINS};
use super::rig::FleetRig;
use crate::host::{Accepted, EnqueueError};
use crate::lane::HoldReason;
use crate::role::{RoleId, WorkerRole as W};

#[test]
fn a_full_lane_hands_the_unit_back_and_counts_it() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.cordon(true);
    for _ in 0..8 {
        rig.enqueue(W::Registrar);
    }
    let role = W::Registrar.id();
    let full = EnqueueError::IntakeFull { role, rows: 8 };
    assert_eq!(rig.submit(role, 0), Err(full));
    let counters = rig.host.lane_counters(role).unwrap();
    assert_eq!((counters.submitted, counters.refused_full), (8, 1));
}

#[test]
fn a_held_lane_cannot_refuse_another() {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.cordon(true);
    while rig.submit(W::Registrar, 0).is_ok() {}
    for role in rig.host.table().ids().filter(|r| *r != W::Registrar.id()) {
        for _ in 0..8 {
            assert!(rig.submit(role, 0).is_ok(), "{role:?}");
        }
    }
}

#[test]
fn a_row_stays_taken_until_its_receipt_is_collected_and_its_release_says_that_there_is_room() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for _ in 0..8 {
        rig.enqueue(W::Submitter);
    }
    rig.run_dry();
    assert!(rig.submit(W::Submitter, 0).is_err(), "ended, and not read");
    let units = [
        rig.host.poll_resolved().unwrap(),
        rig.host.poll_resolved().unwrap(),
    ];
    assert!(
        rig.submit(W::Submitter, 0).is_err(),
        "read, and not released"
    );
    assert!(rig.host.release(units[0].unit).unwrap().was_full);
    assert!(!rig.host.release(units[1].unit).unwrap().was_full);
    assert_eq!(rig.host.room(W::Submitter.id()), 2);
    assert!(rig.submit(W::Submitter, 0).is_ok());
}

#[test]
fn a_released_id_is_dead_and_its_row_lives_on_under_another() {
    let mut rig = FleetRig::new(&Layout::pinned());
    let old = rig.enqueue(W::Submitter).unit();
    assert!(rig.host.release(old).is_err(), "it waits");
    rig.run_dry();
    assert!(rig.host.release(old).is_err(), "its outcome was not read");
    rig.collect();
    assert!(rig.host.release(old).is_err());
    let new = rig.enqueue(W::Submitter).unit();
    assert_eq!(new.index(), old.index());
    assert_ne!(new, old);
}

#[test]
fn a_backlog_keeps_the_order_in_which_its_units_came() {
    let mut rig = FleetRig::new(&Layout::serial());
    rig.cordon(true);
    let mut came = vec![rig.enqueue(W::Registrar).unit()];
    rig.cordon(false);
    // The cordon is gone, and a newcomer still goes behind what it held.
    let behind = rig.enqueue(W::Registrar);
    assert!(matches!(behind, Accepted::Held(_, HoldReason::Behind)));
    came.push(behind.unit());
    let lease = rig.grant().unwrap();
    for _ in 0..3 {
        came.push(rig.enqueue(W::Registrar).unit());
    }
    let full = rig.enqueue(W::Registrar);
    assert!(matches!(full, Accepted::Held(_, HoldReason::QueueFull)));
    came.push(full.unit());
    rig.start(lease).unwrap();
    rig.finish(lease.seat);
    rig.run_dry();
    let ran: Vec<_> = rig.collect().iter().map(|r| r.unit).collect();
    assert_eq!(ran, came);
}

#[test]
fn a_host_is_idle_once_nothing_waits_runs_or_is_unread() {
    let mut rig = FleetRig::new(&Layout::pinned());
    assert!(rig.host.is_idle());
    rig.enqueue(W::Submitter);
    assert!(!rig.host.is_idle(), "waiting");
    let lease = rig.grant().unwrap();
    assert!(!rig.host.is_idle(), "leased");
    rig.start(lease).unwrap();
    assert!(!rig.host.is_idle(), "running");
    rig.finish(lease.seat);
    assert!(!rig.host.is_idle(), "unread");
    rig.host.poll_resolved().unwrap();
    assert!(rig.host.is_idle());
}

#[test]
fn an_unknown_role_or_key_is_refused_by_name() {
    let mut rig = FleetRig::new(&Layout::pinned());
    for row in [8, 16, 255] {
        let role = RoleId::new(row);
        let unknown = EnqueueError::UnknownRole { role, roles: 8 };
        assert_eq!(rig.submit(role, 0), Err(unknown));
        assert_eq!(rig.host.hold(role, &rig.guard), None);
        assert_eq!((rig.host.room(role), rig.host.ledger(role)), (0, None));
    }
    let role = W::Solver.id();
    for key in [PINS, 255] {
        let unknown = EnqueueError::UnknownKey {
            role,
            key,
            keys: PINS,
        };
        assert_eq!(rig.submit(role, key), Err(unknown));
    }
}
