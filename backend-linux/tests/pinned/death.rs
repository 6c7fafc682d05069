//! The loss of one seat among several: the process lives, and each unit ends typed.

use crate::binding::boot;
use crate::common::{FAR, Gate, Jobs, OnArena, busy, done, failed, lane, submit, yields};
use crate::seats::config;
use regatta_core::host::{Alarm, EpochError};
use regatta_core::lane::Progress;
use regatta_core::posture::Posture;
use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve, SimDriver, Solver};
use regatta_core::seat::SlotState;
use regatta_portable::{AlarmAction, AlarmReport, Census, Failure, Fleet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// A fleet that builds arenas until it is told not to, and what it alarms about.
fn fragile() -> (Fleet<Jobs>, Arc<AtomicBool>, Receiver<AlarmReport>) {
    let (raise, raised) = channel();
    let broken = Arc::new(AtomicBool::new(false));
    let of_arena = Arc::clone(&broken);
    let alarm = AlarmAction::Call(Box::new(move |report| raise.send(report.clone()).unwrap()));
    let build: OnArena = Box::new(move |_| assert!(!of_arena.load(Ordering::Relaxed), "no arena"));
    let workload = Jobs::with_arenas(build);
    let fleet = boot(workload, config().on_alarm(alarm), &Census::new()).unwrap();
    (fleet, broken, raised)
}

/// A unit after whose panic the seat's arena cannot be rebuilt.
fn last(broken: &Arc<AtomicBool>) -> crate::common::Job {
    let broken = Arc::clone(broken);
    Box::new(move |_, _| {
        broken.store(true, Ordering::Relaxed);
        panic!("the last")
    })
}

#[test]
fn a_lost_pin_ends_what_it_owed_and_its_key_moves_at_the_next_boundary() {
    let (fleet, broken, raised) = fragile();
    let (gate, job) = Gate::before(last(&broken));
    let walking = fleet.submit(Solver, 1, job).unwrap();
    gate.entered();
    let behind = fleet.submit(Solver, 1, yields(2)).unwrap();
    gate.open();
    assert_eq!(failed(walking), (Failure::LaneDeath, false));
    assert_eq!(failed(behind), (Failure::LaneDeath, true));
    broken.store(false, Ordering::Relaxed);
    // Until the boundary the key is dead and the others live.
    let late = fleet.submit(Solver, 1, yields(3)).unwrap();
    assert_eq!(failed(late), (Failure::LaneDeath, true));
    for key in [0, 2] {
        assert_eq!(done(fleet.submit(Solver, key, yields(4)).unwrap()), 4);
    }
    let status = fleet.status();
    assert_eq!(status.seats[1], SlotState::Dead);
    assert!(status.balanced());
    // What it cordons by is for good: what could wait for ever is refused, typed.
    assert_eq!(status.posture, Posture::Cordoned);
    assert_eq!(lane(&fleet, Registrar).progress, Progress::Faulted);
    assert!(fleet.submit(Registrar, 0, yields(5)).is_err());
    assert_eq!(done(submit(&fleet, Resolve, yields(6))), 6);
    assert_eq!(done(submit(&fleet, Merge, yields(7))), 7);
    assert_eq!(done(submit(&fleet, SimDriver, yields(8))), 8);

    fleet.epoch_boundary(1).unwrap();
    let (tell, told) = channel();
    let moved = fleet.submit(
        Solver,
        1,
        Box::new(move |arena, context| {
            tell.send((context.key, context.seat.index(), arena.pin.key))
                .unwrap();
            9
        }),
    );
    assert_eq!(done(moved.unwrap()), 9);
    let (key, seat, arena) = told.recv().unwrap();
    // It walks on another pin, and uses the arena of that pin.
    assert_eq!((key, usize::from(arena)), (1, seat));
    assert_ne!(seat, 1);
    assert!(raised.try_recv().is_err(), "a lost pin strands no pipe");
    let report = fleet.close(FAR);
    assert!(report.threads_ended);
    assert!(fleet.census().rows().iter().all(|row| !row.running));
}

/// The unit that a seat was given and had not begun ends with the seat.
#[test]
fn the_boundary_waits_for_walks() {
    let (fleet, _, _raised) = fragile();
    let (gate, job) = Gate::before(yields(1));
    let walking = fleet.submit(Solver, 0, job).unwrap();
    gate.entered();
    assert_eq!(
        fleet.epoch_boundary(1),
        Err(EpochError::KeyedInFlight { units: 1 })
    );
    gate.open();
    assert_eq!(done(walking), 1);
    fleet.epoch_boundary(1).unwrap();
}

#[test]
fn a_lost_merge_strands_its_pipe_which_is_an_alarm() {
    let (fleet, broken, raised) = fragile();
    let merging = submit(&fleet, Merge, last(&broken));
    assert_eq!(failed(merging), (Failure::LaneDeath, false));
    let report = raised.recv_timeout(FAR).unwrap();
    let role = Merge.into();
    assert_eq!(report.alarm, Alarm::StrandedPipe { role });
    assert!(report.dump.contains("Dead"), "{report}");
    assert!(fleet.close(FAR).threads_ended);
}

/// A pooled seat that is lost takes with it the receipts of a lane that it ran for; another seat goes
/// on with the lanes that nobody waits for.
#[test]
fn a_lost_pooled_seat_leaves_its_work_to_the_others() {
    let (fleet, broken, raised) = fragile();
    let (gate, running) = busy(&fleet, Resolve, 1);
    let (other, job) = Gate::before(last(&broken));
    let dying = submit(&fleet, SimDriver, job);
    other.entered();
    other.open();
    assert_eq!(failed(dying), (Failure::LaneDeath, false));
    gate.open();
    assert_eq!(done(running), 1);
    broken.store(false, Ordering::Relaxed);
    for value in 0..20 {
        assert_eq!(done(submit(&fleet, Resolve, yields(value))), value);
    }
    let dead = fleet
        .status()
        .seats
        .iter()
        .filter(|s| **s == SlotState::Dead)
        .count();
    assert_eq!(dead, 1);
    assert!(raised.try_recv().is_err());
    assert!(fleet.close(FAR).threads_ended);
}

/// Every seat in turn, until none is left: nothing hangs, and closing ends.
#[test]
fn the_last_seat_may_be_lost_too() {
    let (fleet, broken, _raised) = fragile();
    broken.store(true, Ordering::Relaxed);
    for key in 0..3 {
        let receipt = fleet.submit(Solver, key, last(&broken)).unwrap();
        assert_eq!(failed(receipt), (Failure::LaneDeath, false));
    }
    assert_eq!(
        failed(submit(&fleet, Merge, last(&broken))).0,
        Failure::LaneDeath
    );
    let pooled = fleet.plan().seats.len() - 4;
    for _ in 0..pooled {
        assert_eq!(
            failed(submit(&fleet, Resolve, last(&broken))).0,
            Failure::LaneDeath
        );
    }
    let status = fleet.status();
    assert!(status.seats.iter().all(|seat| *seat == SlotState::Dead));
    assert!(status.balanced());
    // There is nobody left to run it.
    assert_eq!(
        failed(submit(&fleet, Resolve, yields(1))),
        (Failure::LaneDeath, true)
    );
    assert!(fleet.close(FAR).threads_ended);
}
