//! Panics in units, and the death of the seat.

use crate::common::{
    FAR, Gate, Job, Jobs, OnArena, Throttle, boot, busy, config, done, failed, lane, spawn, submit,
    wait_asleep, yields,
};
use regatta_core::host::{Alarm, EnqueueError};
use regatta_core::lane::Progress;
use regatta_core::posture::Posture;
use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve};
use regatta_core::seat::SlotState;
use regatta_portable::{AlarmAction, AlarmReport, Census, Failure, Fleet, FleetConfig, RoomError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

fn panics<T: std::any::Any + Send>(value: T) -> Job {
    Box::new(|_, _| std::panic::panic_any(value))
}

fn arena_number() -> Job {
    Box::new(|arena, _| u64::from(arena.number) << 32 | arena.runs)
}

#[test]
fn a_panic_ends_its_unit_and_nothing_else() {
    let fleet = boot(config(8));
    let first = done(submit(&fleet, Resolve, arena_number()));
    let other = done(submit(&fleet, Registrar, arena_number()));
    for (job, says) in [
        (panics("plain text"), "plain text"),
        (panics("made text".to_owned()), "made text"),
        (panics(5_u8), "a panic without text"),
    ] {
        let message = says.into();
        let ended = failed(submit(&fleet, Resolve, job));
        assert_eq!(ended, (Failure::Panicked { message }, false));
    }
    // Three panics, three new arenas; the one of the other role stayed.
    let rebuilt = done(submit(&fleet, Resolve, arena_number()));
    assert_eq!((first, rebuilt), (1, 4 << 32 | 1));
    let kept = done(submit(&fleet, Registrar, arena_number()));
    assert_eq!(kept, other + 1);
    assert_eq!(fleet.posture().posture(), Posture::Nominal);
    assert!(fleet.close(FAR).is_clean());
}

/// A fleet whose arenas from number `from` on cannot be built, and what it alarms about.
fn fragile(from: u32, config: FleetConfig) -> (Fleet<Jobs>, Receiver<AlarmReport>) {
    let (raise, raised) = channel();
    let alarm = AlarmAction::Call(Box::new(move |report| raise.send(report.clone()).unwrap()));
    let on_arena: OnArena = Box::new(move |number| assert!(number < from, "no arena"));
    let workload = Jobs::with_arenas(on_arena);
    let fleet = Fleet::boot(workload, config.on_alarm(alarm), &Census::new()).unwrap();
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
    let fleet = Fleet::boot(
        workload,
        config(2).lane(Merge, 1).on_alarm(alarm),
        &Census::new(),
    )
    .unwrap();
    let last = submit(&fleet, Resolve, panics("the last"));
    assert_eq!(failed(last), (Failure::LaneDeath, false));
    assert!(fleet.close(FAR).threads_ended);
}

/// A lane that faults tells whoever waits for room there, also while another unit runs on.
#[test]
fn a_latched_lane_death_reaches_held_units_and_waiters() {
    let fleet = Arc::new(boot(config(2)));
    Throttle::new().cordon(fleet.posture());
    let held = submit(&fleet, Registrar, yields(1));
    let uncollected = submit(&fleet, Registrar, yields(2));
    let waiter = {
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "waits-for-room", move || {
            of_thread.wait_for_room(Registrar, None)
        })
    };
    wait_asleep("waits-for-room");
    fleet.posture().lane_death();
    assert_eq!(waiter.join().unwrap(), Err(RoomError::Closed));
    assert_eq!(failed(held), (Failure::LaneDeath, true));
    // The seat itself lives.
    assert_eq!(done(submit(&fleet, Resolve, yields(3))), 3);
    drop(uncollected);
    assert!(fleet.status().balanced());
}

/// The same where the waiter came while a long unit ran: the fault is seen when that unit ends, and
/// other work that goes on is no reason to keep the waiter in the dark.
#[test]
fn a_waiter_learns_of_a_fault_though_the_fleet_is_never_idle() {
    let fleet = Arc::new(boot(config(2)));
    Throttle::new().cordon(fleet.posture());
    let held = submit(&fleet, Registrar, yields(1));
    let uncollected = submit(&fleet, Registrar, yields(2));
    let (first, running) = busy(&fleet, Resolve, 3);
    let (second, job) = Gate::before(yields(4));
    let queued = submit(&fleet, Resolve, job);
    let waiter = {
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "never-idle", move || {
            of_thread.wait_for_room(Registrar, None)
        })
    };
    wait_asleep("never-idle");
    fleet.posture().lane_death();
    first.open();
    second.entered();
    // Collecting the held unit first would free a row, and wake the waiter by that.
    assert_eq!(waiter.join().unwrap(), Err(RoomError::Closed));
    assert_eq!(failed(held), (Failure::LaneDeath, true));
    second.open();
    assert_eq!((done(running), done(queued)), (3, 4));
    drop(uncollected);
}
