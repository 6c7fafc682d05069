//! Submission: many threads, full lanes, and room again.

use crate::common::{
    FAR, Jobs, Scratch, boot, busy, config, done, lane, spawn, submit, wait_asleep, yields,
};
use regatta_core::host::{EnqueueError, HostError};
use regatta_core::role::RoleId;
use regatta_core::role::WorkerRole::{self, Merge, Registrar, Resolve, SimDriver, Submitter};
use regatta_core::unit::UnitId;
use regatta_portable::{BootError, Census, Fleet, FleetConfig, Receipt, RoomError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const LANES: [WorkerRole; 4] = [Resolve, SimDriver, Registrar, Submitter];

/// Submits; where the lane is full, waits for room and tries again with the unit it got back.
fn insist(fleet: &Fleet<Jobs>, role: WorkerRole, value: u64) -> Receipt<Jobs> {
    let mut job = yields(value);
    loop {
        match fleet.submit(role, 0, job) {
            Ok(receipt) => return receipt,
            Err(refused) => {
                assert!(matches!(refused.error, EnqueueError::IntakeFull { .. }));
                job = refused.unit;
                fleet.wait_for_room(role, Some(FAR)).unwrap();
            }
        }
    }
}

#[test]
fn what_many_threads_submit_is_all_there() {
    const THREADS: u64 = 8;
    const UNITS: u64 = 5_000;
    let rows = |config: FleetConfig, role| config.lane(role, 48);
    let fleet = Arc::new(boot(LANES.into_iter().fold(config(1), rows)));
    let submitters: Vec<_> = (0..THREADS)
        .map(|thread| {
            let of_thread = Arc::clone(&fleet);
            spawn(fleet.census(), &format!("submit-{thread}"), move || {
                let mut ids = Vec::new();
                for first in (0..UNITS).step_by(4) {
                    let values = (first..first + 4).map(|unit| thread * UNITS + unit);
                    let receipts: Vec<_> = values
                        .zip(LANES)
                        .map(|(value, role)| (value, insist(&of_thread, role, value)))
                        .collect();
                    for (value, receipt) in receipts {
                        ids.push(receipt.unit());
                        assert_eq!(done(receipt), value);
                    }
                }
                ids
            })
        })
        .collect();
    let ids: Vec<UnitId> = submitters
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    let distinct: BTreeSet<UnitId> = ids.iter().copied().collect();
    assert_eq!(
        (ids.len() as u64, distinct.len()),
        (THREADS * UNITS, ids.len())
    );
    let status = fleet.status();
    assert!(status.balanced());
    for role in LANES {
        let ledger = lane(&fleet, role).ledger;
        assert_eq!(ledger.submitted, THREADS * UNITS / 4);
        assert_eq!((ledger.resolved, ledger.uncollected), (ledger.submitted, 0));
    }
    assert_eq!((status.abandoned, status.host.ticks), (0, 0));
}

#[test]
fn a_full_lane_hands_the_unit_back_and_counts_nothing() {
    let fleet = boot(config(2));
    let (gate, running) = busy(&fleet, Resolve, 1);
    let queued = submit(&fleet, Resolve, yields(2));
    let refused = fleet.submit(Resolve, 0, yields(3)).unwrap_err();
    let full = EnqueueError::IntakeFull {
        role: Resolve.into(),
        rows: 2,
    };
    assert_eq!(refused.error, full);
    let held_up = lane(&fleet, Resolve);
    assert_eq!(
        (held_up.ledger.submitted, held_up.counters.refused_full),
        (2, 1)
    );
    // Another lane has rows of its own.
    let other = submit(&fleet, Registrar, yields(4));
    let impatient = fleet.wait_for_room(Resolve, Some(Duration::from_millis(1)));
    assert_eq!(impatient, Err(RoomError::TimedOut));
    gate.open();
    // A row is taken until its receipt is collected.
    assert_eq!(done(other), 4);
    assert_eq!(done(running), 1);
    assert_eq!(fleet.wait_for_room(Resolve, None), Ok(()));
    let again = fleet.submit(Resolve, 0, refused.unit).unwrap();
    assert_eq!((done(queued), done(again)), (2, 3));
}

/// Room that appears wakes whoever waits for it, however the row came free. A lost wake shows as a
/// deadline that passes.
#[test]
fn no_wake_for_room_is_lost() {
    const THREADS: u64 = 3;
    const UNITS: u64 = 4_000;
    let fleet = Arc::new(boot(config(1)));
    let (send, receipts) = channel();
    for thread in 0..THREADS {
        let (send, of_thread) = (send.clone(), Arc::clone(&fleet));
        spawn(fleet.census(), &format!("room-{thread}"), move || {
            for unit in 0..UNITS {
                send.send(insist(&of_thread, Resolve, unit)).unwrap();
            }
        });
    }
    drop(send);
    collect_by_turns(&receipts);
    let ledger = lane(&fleet, Resolve).ledger;
    assert_eq!((ledger.submitted, ledger.uncollected), (THREADS * UNITS, 0));
    assert!(ledger.balanced());
}

fn collect_by_turns(receipts: &Receiver<Receipt<Jobs>>) {
    for (turn, receipt) in receipts.iter().enumerate() {
        match turn % 3 {
            0 => drop(receipt.wait_for(FAR).unwrap()),
            1 => drop(receipt.poll()),
            _ => drop(receipt),
        }
    }
}

#[test]
fn who_waits_for_room_in_vain_is_told() {
    let fleet = Arc::new(boot(config(1)));
    let no_rows = fleet.wait_for_room(Merge, Some(FAR));
    assert_eq!(no_rows, Err(RoomError::Closed));
    let unknown = fleet.wait_for_room(RoleId::new(99), Some(FAR));
    assert_eq!(unknown, Err(RoomError::Closed));

    // At once, though the seat is busy.
    let (gate, running) = busy(&fleet, Resolve, 1);
    let waiter = {
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "in-vain", move || {
            of_thread.wait_for_room(Resolve, None)
        })
    };
    wait_asleep("in-vain");
    let closer = {
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "closes", move || of_thread.close(FAR))
    };
    assert_eq!(waiter.join().unwrap(), Err(RoomError::Closed));
    gate.open();
    assert!(closer.join().unwrap().is_clean());
    assert_eq!(done(running), 1);
}

#[test]
fn a_unit_may_submit_units() {
    let fleet = Arc::new(boot(config(4)));
    let (give, receipts) = channel();
    let in_unit = Arc::clone(&fleet);
    let parent = submit(
        &fleet,
        Resolve,
        Box::new(move |_, _| {
            give.send(submit(&in_unit, Resolve, yields(2))).unwrap();
            drop(in_unit);
            1
        }),
    );
    assert_eq!(done(parent), 1);
    assert_eq!(done(receipts.recv_timeout(FAR).unwrap()), 2);
}

#[test]
fn each_key_has_an_arena_that_stays() {
    let fleet = boot(crate::binding::bare().keyed_lane(WorkerRole::Solver, 8, 3));
    let mut arenas = BTreeSet::new();
    for round in 1..=3 {
        for key in 0..3 {
            let report = move |arena: &mut Scratch, _: &_| {
                assert_eq!((arena.pin.key, arena.runs), (key, round));
                u64::from(arena.number)
            };
            let receipt = fleet
                .submit(WorkerRole::Solver, key, Box::new(report))
                .unwrap();
            arenas.insert(done(receipt));
        }
    }
    assert_eq!(arenas.len(), 3);
    let refused = fleet.submit(WorkerRole::Solver, 3, yields(0)).unwrap_err();
    assert!(matches!(
        refused.error,
        EnqueueError::UnknownKey {
            key: 3,
            keys: 3,
            ..
        }
    ));
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_boot() {
    let refusal = |config: FleetConfig| {
        let booted = crate::binding::boot(Jobs::<u64>::new(), config, &Census::new());
        booted.unwrap_err()
    };
    let windows = config(64)
        .window("crawl", Registrar, 32)
        .window("refresh", Registrar, 33);
    assert!(matches!(
        refusal(windows),
        BootError::Host(HostError::Windows {
            windows: 65,
            rows: 64,
            ..
        })
    ));
    let unknown = refusal(config(1).lane(RoleId::new(8), 1));
    assert!(unknown.to_string().contains('8'), "{unknown}");
    let unknown = refusal(config(1).window("nobody", RoleId::new(9), 0));
    assert!(unknown.to_string().contains('9'), "{unknown}");
    let never = refusal(config(1).backstop(Duration::ZERO, 8));
    assert!(matches!(never, BootError::Host(HostError::Backstop { .. })));
}
