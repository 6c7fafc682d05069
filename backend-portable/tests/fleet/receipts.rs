//! Receipts: each way to wait, and not to.

use crate::common::{FAR, Gate, Throttle, boot, busy, config, done, failed, lane, submit, yields};
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_portable::{Failure, Receipt, RoomError, WaitError, WouldDeadlock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_receipt_whose_deadline_came_first_yields_later() {
    let fleet = boot(config(4));
    let (gate, receipt) = busy(&fleet, Resolve, 7);
    let receipt = match receipt.wait_for(Duration::from_millis(1)) {
        Err(WaitError::TimedOut(receipt)) => receipt,
        other => panic!("{other:?} of a unit that runs"),
    };
    let receipt = receipt.poll().unwrap_err();
    let unit = receipt.unit();
    gate.open();
    assert_eq!(done(receipt), 7);
    // The row is free again: its next unit has the same index and another generation.
    let next = submit(&fleet, Resolve, yields(8));
    assert_eq!(next.unit().index(), unit.index());
    assert_ne!(next.unit(), unit);
    assert_eq!(done(next), 8);
}

#[test]
fn an_outcome_that_is_there_beats_a_deadline_that_has_passed() {
    let fleet = boot(config(4));
    let first = submit(&fleet, Resolve, yields(1));
    let second = submit(&fleet, Resolve, yields(2));
    // Units of a lane run in order: once the second has ended, so has the first.
    assert_eq!(done(second), 2);
    assert_eq!(first.wait_for(Duration::ZERO).unwrap().done(), Some(1));
    let polled = submit(&fleet, Resolve, yields(3));
    assert_eq!(done(submit(&fleet, Resolve, yields(4))), 4);
    assert_eq!(polled.poll().unwrap().done(), Some(3));
}

/// Many waits that time out around the moment at which the unit ends: none loses the outcome and
/// none is woken for another's.
#[test]
fn a_wait_that_times_out_as_the_unit_ends_loses_nothing() {
    let fleet = boot(config(4));
    for round in 0..2_000_u64 {
        let mut receipt = submit(&fleet, Resolve, yields(round));
        let yielded = loop {
            match receipt.wait_for(Duration::from_micros(round % 20)) {
                Ok(ended) => break ended.done(),
                Err(error) => receipt = error.into_receipt(),
            }
        };
        assert_eq!(yielded, Some(round));
    }
    assert!(fleet.status().balanced());
}

/// A dropped receipt abandons the output: the unit runs, is counted, and gives its row back,
/// whether it waited, ran, or had ended.
#[test]
fn a_unit_whose_receipt_was_dropped_runs_all_the_same() {
    let fleet = boot(config(4));
    let ran = Arc::new(AtomicU32::new(0));
    let counts = || {
        let ran = Arc::clone(&ran);
        Box::new(move |_: &mut _, _: &_| u64::from(ran.fetch_add(1, Ordering::Relaxed)))
    };
    let ended = submit(&fleet, Resolve, counts());
    let (gate, job) = Gate::before(counts());
    let running = submit(&fleet, Resolve, job);
    gate.entered();
    let waiting = submit(&fleet, Resolve, counts());
    drop((ended, running, waiting));
    let status = fleet.status();
    assert_eq!(status.abandoned, 3);
    assert_eq!(lane(&fleet, Resolve).ledger.uncollected, 0);
    gate.open();
    assert_eq!(done(submit(&fleet, Resolve, yields(9))), 9);
    assert_eq!(ran.load(Ordering::Relaxed), 3);
    let ledger = lane(&fleet, Resolve).ledger;
    assert_eq!(
        (ledger.submitted, ledger.resolved, ledger.uncollected),
        (4, 4, 0)
    );
    assert!(ledger.balanced());
}

#[test]
fn a_unit_that_would_wait_for_its_fleet_is_told_so() {
    let fleet = Arc::new(boot(config(1)));
    let (give, given) = channel::<Receipt<_>>();
    let (asked, answers) = channel();
    let (enter, entered) = channel();
    let in_unit = Arc::clone(&fleet);
    let asks = submit(
        &fleet,
        Registrar,
        Box::new(move |_, _| {
            enter.send(()).unwrap();
            let receipt = given.recv().unwrap();
            let waited = receipt.wait().unwrap_err();
            let first = matches!(waited, WaitError::WouldDeadlock(_));
            let waited = waited.into_receipt().wait_for(FAR).unwrap_err();
            let second = matches!(waited, WaitError::WouldDeadlock(_));
            let room = in_unit.wait_for_room(Resolve, None).unwrap_err();
            drop(in_unit);
            asked.send((first, second, room)).unwrap();
            // To look is no wait.
            u64::from(waited.into_receipt().poll().is_err())
        }),
    );
    entered.recv_timeout(FAR).unwrap();
    // The only row of the lane: the unit waits for a unit that cannot run, and for room there.
    give.send(submit(&fleet, Resolve, yields(1))).unwrap();
    assert_eq!(done(asks), 1);
    let (first, second, room) = answers.recv_timeout(FAR).unwrap();
    assert!(first && second);
    assert_eq!(room, RoomError::WouldDeadlock(WouldDeadlock));
    // The unit asked about was abandoned on the seat; it runs, and its row becomes free.
    fleet.wait_for_room(Resolve, Some(FAR)).unwrap();
    assert_eq!(done(submit(&fleet, Resolve, yields(2))), 2);
}

#[test]
fn a_unit_may_collect_what_has_ended() {
    let fleet = boot(config(2));
    let first = submit(&fleet, Resolve, yields(5));
    let second = submit(
        &fleet,
        Resolve,
        Box::new(move |_, _| first.wait().unwrap().done().unwrap() + 1),
    );
    assert_eq!(done(second), 6);
}

#[test]
fn receipts_outlive_the_fleet() {
    let fleet = boot(config(4));
    Throttle::new().cordon(fleet.posture());
    let held = submit(&fleet, Registrar, yields(1));
    let queued = submit(&fleet, Resolve, yields(2));
    let dropped = submit(&fleet, Resolve, yields(3));
    drop(fleet);
    assert_eq!(done(queued), 2);
    assert_eq!(failed(held), (Failure::NotRun, true));
    drop(dropped);
}

/// The receipt is a value: it can be waited for by another thread, also by one that another thread
/// gave up on.
#[test]
fn a_receipt_can_change_hands() {
    let fleet = boot(config(2));
    let (gate, receipt) = busy(&fleet, Resolve, 11);
    let timed_out = receipt.wait_for(Duration::from_micros(1)).unwrap_err();
    let receipt = timed_out.into_receipt();
    let (about_to_wait, waiting) = channel();
    let waiter = crate::common::spawn(fleet.census(), "hands", move || {
        about_to_wait.send(()).unwrap();
        done(receipt)
    });
    waiting.recv_timeout(FAR).unwrap();
    gate.open();
    assert_eq!(waiter.join().unwrap(), 11);
}
