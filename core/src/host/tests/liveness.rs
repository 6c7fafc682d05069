//! Liveness: wherever a random walk leaves the host, once the guard lets it, the deadline alone is
//! enough to bring everything to an end. No edge comes, and nothing new is enqueued.

use super::layout::DELTA;
use super::walk::{Bits, Walk, layouts, random};
use crate::guard::Guard;
use crate::host::{ClosePhase, Input};
use crate::role::{CordonClass, RoleId};

/// Opens the guard without a word, but for the cordon of a death, which never lifts.
fn open(walk: &mut Walk) {
    let dead = walk.deaths > 0 || walk.guard.posture.lane_death;
    walk.guard = Guard::open(64);
    walk.guard.posture.cordoned = dead;
    walk.guard.posture.lane_death = dead;
}

/// What a binding does after an input: grants until there are none, and starts each.
fn pump(walk: &mut Walk) {
    loop {
        let before = walk.leased.len();
        walk.grant();
        if walk.leased.len() == before {
            break;
        }
    }
    while !walk.leased.is_empty() {
        walk.start_one(&mut Bits(0));
    }
}

/// Whether a unit of `role` may wait for ever: held by the cordon of a death, and no one waits on it.
fn may_wait_for_ever(walk: &Walk, role: RoleId) -> bool {
    let spec = walk.host.table().get(role).unwrap();
    let held = spec.cordon == CordonClass::Deferrable && walk.guard.posture.lane_death;
    held && !spec.owns_receipts
}

fn waiting(walk: &Walk) -> u64 {
    let roles = walk.host.table().ids();
    let owed = roles.filter(|role| !may_wait_for_ever(walk, *role));
    owed.map(|role| walk.waiting(role)).sum()
}

fn drain(walk: &mut Walk) {
    open(walk);
    let opened = walk.now;
    // What was granted before begins or comes back; what runs ends.
    while !walk.leased.is_empty() {
        walk.start_one(&mut Bits(0));
    }
    while waiting(walk) > 0 {
        let before = waiting(walk);
        if walk.running.is_empty() {
            let due = walk.host.next_deadline(&walk.guard);
            let due = due.expect("units wait, nothing runs, and no deadline is set");
            assert!(due <= opened + DELTA || walk.now > opened);
            walk.now = walk.now.max(due);
            walk.offer(Input::BackstopTick);
            pump(walk);
            assert!(
                waiting(walk) < before,
                "a tick under an open guard moves a unit"
            );
        }
        while !walk.running.is_empty() {
            walk.finish_one(&mut Bits(0));
            pump(walk);
        }
    }
}

#[test]
fn wherever_a_walk_stops_the_deadline_alone_brings_everything_to_an_end() {
    let mut seed = 0xBAC0;
    let mut drained = 0;
    for walks in 0..1_500 {
        let mut walk = Walk::new(&layouts()[walks % 3]);
        for _ in 0..random(&mut seed) % 250 {
            walk.step(random(&mut seed));
        }
        if walk.host.closing() != Some(ClosePhase::Fence) && waiting(&walk) > 0 {
            drain(&mut walk);
            drained += 1;
        }
        walk.wind_up();
    }
    assert!(drained > 700, "{drained} walks left something to drain");
}
