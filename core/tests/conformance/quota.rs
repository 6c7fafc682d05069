//! The budget over a script of quotas, each byte a quota in quarters of a core.

use crate::fleet::{Fleet, plan, quota};
use proptest::prelude::*;
use regatta_core::guard::Permits;
use regatta_core::host::Input;
use regatta_core::plan::{Binding, FleetPlan, HOST_FLOOR, Profile};
use regatta_core::role::WorkerRole;
use regatta_core::seat::SeatId;

/// The shares of the pinned tier on so many whole cores, by hand: reserve, ambient, solver, resolve, merge.
fn shares(cores: u16) -> [u16; 5] {
    let ambient = (cores / 4).max(1);
    let solver = cores.saturating_sub(1 + ambient + 1 + 1).max(2);
    [1, ambient, solver, 1, 1]
}

const NAMES: [&str; 5] = ["reserve", "ambient_io", "solver", "resolve", "merge"];

/// Everything that a resize must leave true of the plan.
fn check_pinned(plan: &FleetPlan, booted: &FleetPlan, milli: u32) {
    let cores = u16::try_from(milli / 1000).unwrap();
    let expected = shares(cores);
    let got = NAMES.map(|name| plan.budget.named(name).unwrap().peak_cores);
    assert_eq!(got, expected, "{milli}");
    let sum: u16 = expected.iter().sum();
    assert_eq!(
        plan.budget.sum(),
        u32::from(sum),
        "no other row has a share"
    );
    assert_eq!(plan.budget.check(cores).is_ok(), sum <= cores);
    assert_eq!(plan.oversubscribed, sum > cores);
    if cores >= 6 {
        assert_eq!(sum, cores, "above the floor nothing is left over");
    }
    let below_floor = cores < HOST_FLOOR;
    let permits = if below_floor {
        (1, 1)
    } else {
        (expected[2] + expected[3] + expected[4], expected[2])
    };
    let Permits { total, keyed, .. } = plan.permits;
    assert_eq!((total, keyed), permits, "{milli}");
    assert_eq!(plan.permits.below_floor, below_floor);
    assert_eq!((plan.binding, &plan.seats), (booted.binding, &booted.seats));
}

#[test]
fn every_quota_byte_gives_the_shares_by_hand() {
    let booted = plan(8000, Profile::Auto);
    for byte in 0..=u8::MAX {
        let milli = u32::from(byte) * 250;
        check_pinned(&booted.resized(quota(milli)), &booted, milli);
    }
}

proptest! {
    /// The sum is checked again at every step, and no step remembers the one before.
    #[test]
    fn the_sum_holds_across_a_scripted_resize(script in proptest::collection::vec(any::<u8>(), 1..40)) {
        let booted = plan(8000, Profile::Auto);
        let mut now = booted.clone();
        for byte in script {
            let milli = u32::from(byte) * 250;
            now = now.resized(quota(milli));
            check_pinned(&now, &booted, milli);
        }
        prop_assert_eq!(now.resized(quota(8000)), booted);
    }

    #[test]
    fn a_serial_fleet_keeps_its_sum_too(script in proptest::collection::vec(any::<u8>(), 1..40)) {
        let mut now = plan(4000, Profile::Serial);
        for byte in script {
            let milli = u32::from(byte) * 250;
            let cores = milli / 1000;
            now = now.resized(quota(milli));
            prop_assert_eq!(now.binding, Binding::Serial);
            // The cycle's core, and at least one for what stands beside it.
            prop_assert_eq!(now.budget.sum(), cores.max(2));
            prop_assert_eq!(now.oversubscribed, cores < 2);
            prop_assert_eq!((now.permits.total, now.permits.keyed), (1, 1));
        }
    }
}

/// A smaller quota takes permits at once and a pin at the boundary only: the key moves when its seat has
/// released it, and not before.
#[test]
fn a_resize_rekeys_nothing_before_the_boundary() {
    let booted = plan(8000, Profile::Auto);
    for pins in 1..=6_u8 {
        let mut fleet = Fleet::new(&booted);
        fleet.guard.permits.total = 64;
        fleet.guard.permits.keyed = 64;
        let serve = |fleet: &mut Fleet| -> Vec<(u8, SeatId)> {
            for key in 0..6 {
                fleet.enqueue(WorkerRole::Solver, key);
            }
            let mut served = Vec::new();
            loop {
                let started = fleet.pump();
                if started.is_empty() {
                    break;
                }
                for grant in started {
                    served.push((grant.key, grant.seat));
                    fleet.finish(grant);
                }
            }
            fleet.collect();
            served.sort_unstable();
            served
        };
        let home: Vec<(u8, SeatId)> = (0..6).map(|key| (key, SeatId::new(key))).collect();
        assert_eq!(serve(&mut fleet), home);
        let before = fleet.pins();
        fleet.handle(Input::Resize { pins }).unwrap();
        assert_eq!(fleet.pins(), before);
        assert_eq!(serve(&mut fleet), home, "{pins} pins before the boundary");
        fleet.handle(Input::EpochBoundary { seq: 1 }).unwrap();
        let kept: Vec<(SeatId, u8)> = (0..pins).map(|key| (SeatId::new(key), key)).collect();
        assert_eq!(fleet.pins(), kept, "the others have released theirs");
        let moved = serve(&mut fleet);
        assert!(
            moved
                .iter()
                .all(|(_, seat)| seat.index() < usize::from(pins))
        );
        assert_eq!(moved[..usize::from(pins)], home[..usize::from(pins)]);
    }
}
