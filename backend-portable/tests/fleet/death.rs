//! The death of the only seat.

use crate::common::{FAR, Gate, Jobs, OnArena, config, failed, lane, submit, yields};
use crate::failure::panics;
use regatta_core::host::{Alarm, EnqueueError};
use regatta_core::lane::Progress;
use regatta_core::posture::Posture;
use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve};
use regatta_core::seat::SlotState;
use regatta_portable::{AlarmAction, AlarmReport, Census, Failure, Fleet, FleetConfig, RoomError};
use std::sync::mpsc::{Receiver, channel};

/// A fleet whose arenas from number `from` on cannot be built, and what it alarms about.
fn fragile(from: u32, config: FleetConfig) -> (Fleet<Jobs>, Receiver<AlarmReport>) {
    let (raise, raised) = channel();
    let alarm = AlarmAction::Call(Box::new(move |report| raise.send(report.clone()).unwrap()));
    let on_arena: OnArena = Box::new(move |number| assert!(number < from, "no arena"));
    let workload = Jobs::with_arenas(on_arena);
    let fleet = crate::binding::boot(workload, config.on_alarm(alarm), &Census::new()).unwrap();
    (fleet, raised)
}

#[test]
fn an_arena_that_cannot_be_rebuilt_is_the_death_of_the_seat() {
    let (fleet, raised) = fragile(3, config(8).lane(Merge, 1));
    let (gate, job) = Gate::before(panics("the last"));
    let last = submit(&fleet, Resolve, job);
    gate.entered();
    let awaited = submit(&fleet, Registrar, yields(1));
    let queued = submit(&fleet, Resolve, yields(2));
    drop(submit(&fleet, Resolve, yields(3)));
    gate.open();

    // What the seat owed, what waited, and what comes later: typed, and given back if it never began.
    assert_eq!(failed(last), (Failure::LaneDeath, false));
    assert_eq!(failed(awaited), (Failure::LaneDeath, true));
    assert_eq!(failed(queued), (Failure::LaneDeath, true));
    let late = submit(&fleet, Resolve, yields(4));
    assert_eq!(failed(late), (Failure::LaneDeath, true));
    let refused = fleet.submit(Registrar, 0, yields(5)).unwrap_err();
    let role = Registrar.into();
    assert_eq!(refused.error, EnqueueError::Faulted { role });
    let no_room = fleet.wait_for_room(Registrar, Some(FAR));
    assert_eq!(no_room, Err(RoomError::Closed));

    let report = raised.recv_timeout(FAR).unwrap();
    let role = Merge.into();
    assert_eq!(report.alarm, Alarm::StrandedPipe { role });
    assert_eq!(report.role, "merge");
    assert!(report.dump.contains("Dead"), "{report}");

    let status = fleet.status();
    assert!(status.balanced());
    assert_eq!(status.posture, Posture::Cordoned);
    assert_eq!(status.seats, [SlotState::Dead]);
    assert_eq!(lane(&fleet, Registrar).progress, Progress::Faulted);
    assert_eq!(lane(&fleet, Resolve).ledger.uncollected, 0);

    let report = fleet.close(FAR);
    assert_eq!((report.not_run, report.closed), (0, 0));
    assert!(report.threads_ended);
    assert!(fleet.census().rows().iter().all(|row| !row.running));
}

#[test]
fn a_first_arena_that_cannot_be_built_is_the_death_of_the_seat() {
    let (fleet, raised) = fragile(1, config(8).lane(Merge, 1));
    raised.recv_timeout(FAR).unwrap();
    let role = Registrar.into();
    let refused = fleet.submit(Registrar, 0, yields(1)).unwrap_err();
    assert_eq!(refused.error, EnqueueError::Faulted { role });
    assert!(fleet.close(FAR).threads_ended);
}

/// An action that panics is no reason for closing to wait for a thread that has ended.
#[test]
fn a_fleet_whose_alarm_panics_can_be_closed() {
    let alarm = AlarmAction::Call(Box::new(|report| panic!("{report}")));
    let workload = Jobs::with_arenas(Box::new(|number| assert!(number < 3)));
    let fleet = crate::binding::boot(
        workload,
        config(2).lane(Merge, 1).on_alarm(alarm),
        &Census::new(),
    )
    .unwrap();
    let last = submit(&fleet, Resolve, panics("the last"));
    assert_eq!(failed(last), (Failure::LaneDeath, false));
    assert!(fleet.close(FAR).threads_ended);
}
