//! The tripwire: a fleet that loses the seat which drains the results says so, and one that loses any other
//! does not.

use crate::fleet::{Fleet, plan};
use regatta_core::host::{Alarm, ClosePhase, Input};
use regatta_core::plan::{FleetPlan, Profile};
use regatta_core::role::{ALL_ROLES, RoleId, SeatKind, WorkerRole};
use regatta_core::seat::SeatId;

/// When the seat dies: with nothing in the pipe, with a unit in hand, in the middle of a drain, after
/// the fence.
const MOMENTS: u8 = 4;

/// A fleet in which the seat of the first byte dies at the moment of the second, and its alarms.
fn alarms(plan: &FleetPlan, seat: u8, moment: u8) -> Vec<Alarm> {
    let mut fleet = Fleet::new(plan);
    // Every seat is free to take a unit.
    fleet.guard.permits.total = 64;
    fleet.guard.permits.keyed = 64;
    if moment > 0 {
        for _ in 0..2 {
            for role in ALL_ROLES {
                fleet.enqueue(role, 0);
            }
        }
        fleet.pump();
    }
    let close = |fleet: &mut Fleet, phase| fleet.handle(Input::Close(phase)).map(drop).unwrap();
    if moment > 1 {
        close(&mut fleet, ClosePhase::Quiesce);
    }
    if moment > 2 {
        close(&mut fleet, ClosePhase::Fence);
    }
    let seat = SeatId::new(seat);
    fleet.handle(Input::SeatDied { seat }).unwrap();
    // Whatever died, nothing is owed in the end.
    if moment < 3 {
        close(&mut fleet, ClosePhase::Fence);
    }
    let owed = if moment == 0 { 0 } else { 2 * ALL_ROLES.len() };
    assert_eq!(fleet.collect(), owed);
    assert!(fleet.host.is_idle());
    std::iter::from_fn(|| fleet.host.poll_alarm()).collect()
}

#[test]
fn the_death_of_the_merge_seat_is_an_alarm_until_the_fence_and_no_other_death_is() {
    let merge: RoleId = WorkerRole::Merge.into();
    let stranded = [Alarm::StrandedPipe { role: merge }];
    for profile in [Profile::Auto, Profile::Serial] {
        let plan = plan(8000, profile);
        for (seat, spec) in (0_u8..).zip(&plan.seats) {
            for moment in 0..MOMENTS {
                let got = alarms(&plan, seat, moment);
                // Behind the fence everything has ended, typed: there is nothing left to strand.
                if spec.roles.contains(merge) && moment < 3 {
                    assert_eq!(got, stranded, "seat {seat} at {moment}");
                } else {
                    assert_eq!(got, [], "seat {seat} at {moment}");
                    assert!(moment == 3 || spec.kind != SeatKind::FixedPin);
                }
            }
        }
    }
}
