//! The normal form: a host that was renamed behaves as it did, and what differs in name only is equal.

use super::layout::{DELTA, Layout, POOL};
use super::rig::FleetRig;
use crate::host::{Input, Reaction};
use crate::role::WorkerRole as W;
use crate::seat::SeatId;
use crate::time::{Duration, Instant};
use crate::unit::{Outcome, RunResult, UnitId};

fn pinned() -> FleetRig {
    let mut rig = FleetRig::new(&Layout::pinned());
    rig.now = Instant::ORIGIN;
    rig
}

#[test]
fn ids_go_along_and_stay_what_they_were() {
    let mut rig = pinned();
    let done = rig.enqueue(W::Resolve).unit();
    rig.pump();
    rig.finish(SeatId::new(POOL));
    rig.collect();
    let runs = rig.enqueue(W::Resolve).unit();
    rig.pump();
    let read = rig.enqueue(W::Registrar).unit();
    rig.pump();
    rig.finish(SeatId::new(POOL + 1));
    assert_eq!(rig.host.poll_resolved().unwrap().unit, read);
    rig.cordon(true);
    let waits = rig.enqueue(W::Registrar).unit();

    let mut ids = [done, runs, read, waits];
    rig.host.normalise(Duration::ZERO, &mut ids);
    rig.check();
    let [done, runs, read, waits] = ids;
    assert_eq!(done, UnitId::NONE);
    assert_eq!(
        rig.host.seats()[POOL as usize].held(),
        Some((W::Resolve.id(), runs))
    );
    assert!(rig.host.release(done).is_err() && rig.host.release(waits).is_err());
    rig.host.release(read).unwrap();
    let report = rig.report(SeatId::new(POOL), runs, RunResult::Done);
    assert_eq!(report, Ok(Reaction::Finished));
    rig.cordon(false);
    assert_eq!(rig.sleep_to_deadline().unwrap()[0].unit, waits);
    assert_eq!(rig.outcomes(), [Outcome::Done]);
}

#[test]
fn histories_that_leave_the_same_fleet_are_equal() {
    let mut fresh = pinned();
    let mut old = pinned();
    for _ in 0..3 {
        for _ in 0..2 {
            old.enqueue(W::Resolve);
        }
        old.pump();
        old.finish(SeatId::new(POOL + 1));
        old.finish(SeatId::new(POOL));
        old.collect();
    }
    old.epoch(7).unwrap();
    old.pass(DELTA);
    let since = old.now.since(Instant::ORIGIN);
    for rig in [&mut fresh, &mut old] {
        rig.cordon(true);
        rig.enqueue(W::Registrar);
        rig.enqueue(W::Resolve);
        rig.pump();
    }
    assert!(fresh.host != old.host);
    fresh.host.normalise(Duration::ZERO, &mut []);
    old.host.normalise(since, &mut []);
    assert!(fresh.host == old.host);
    let again = old.host.clone();
    old.host.normalise(Duration::ZERO, &mut []);
    assert!(again == old.host, "a normal form is its own");
}

#[test]
fn a_held_unit_that_is_gone_is_told_from_every_other() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    rig.pump();
    rig.close(crate::host::ClosePhase::Fence);
    rig.collect();
    rig.host.normalise(Duration::ZERO, &mut []);
    let seat = SeatId::new(POOL);
    let (_, held) = rig.host.seats()[POOL as usize].held().unwrap();
    let result = RunResult::Done;
    let report = |unit| Input::SeatDone { seat, unit, result };
    assert!(rig.handle(report(UnitId::NONE)).is_err());
    assert_eq!(rig.handle(report(held)), Ok(Reaction::Late));
}
