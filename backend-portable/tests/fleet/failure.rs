//! Panics in units, and a death that is latched.

use crate::common::{
    FAR, Gate, Job, Throttle, boot, busy, config, done, failed, spawn, submit, wait_asleep, yields,
};
use regatta_core::posture::Posture;
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_portable::{Failure, RoomError};
use std::sync::Arc;

pub(crate) fn panics<T: std::any::Any + Send>(value: T) -> Job {
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
