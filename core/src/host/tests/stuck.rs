//! The self-check: it fires for a driver that does not grant, and for no other.

use super::layout::{DELTA, K, Layout, POOL, R0, R1, R2, RANKED, lane, seat};
use super::rig::{FleetRig, Rig};
use crate::guard::Guard;
use crate::host::{Alarm, Host, HostConfig, Input};
use crate::role::{SeatKind, WorkerRole as W};
use crate::seat::SeatId;
use crate::time::{Duration, Instant};
use crate::unit::UnitRow;

fn pinned() -> FleetRig {
    FleetRig::new(&Layout::pinned())
}

/// A tick by a driver that forgets to poll grants.
fn tick_only(rig: &mut FleetRig) {
    rig.handle(Input::BackstopTick).unwrap();
}

#[test]
fn a_driver_that_never_polls_grants_is_found_after_k_ticks() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    for tick in 1..=K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        tick_only(&mut rig);
        let alarms = rig.alarms();
        if tick < K {
            assert_eq!(alarms, [], "tick {tick}");
        } else {
            let stuck = Alarm::Stuck {
                role: W::Resolve.id(),
                ticks: K,
                credited: DELTA.times(K.into()),
            };
            assert_eq!(alarms, [stuck]);
        }
    }
}

#[test]
fn ticks_that_come_early_count_for_nothing() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    for _ in 0..10 * K {
        rig.pass(Duration::from_millis(3));
        let due = rig.host.next_deadline(&rig.guard).unwrap() <= rig.now;
        assert!(!due);
        tick_only(&mut rig);
    }
    assert_eq!(rig.alarms(), []);
}

#[test]
fn a_stopped_process_is_not_a_stuck_lane() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    for tick in 1..=K {
        rig.pass(Duration::from_secs(3600));
        tick_only(&mut rig);
        // An hour counts as two intervals; the ticks are what is short.
        assert_eq!(rig.alarms().is_empty(), tick < K);
    }
    let credited = rig.host.lanes[W::Resolve.id().index()].strikes.credited;
    assert_eq!(credited, DELTA.times(2 * u64::from(K)));
}

#[test]
fn a_grant_in_between_starts_the_count_anew() {
    let mut rig = pinned();
    for _ in 0..6 {
        rig.enqueue(W::Resolve);
    }
    for tick in 1..4 * K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        tick_only(&mut rig);
        if tick % (K - 1) == 0 {
            let grant = rig.grant().unwrap();
            rig.start(grant).unwrap();
        }
        assert_eq!(rig.alarms(), [], "tick {tick}");
    }
}

#[test]
fn a_completion_in_between_starts_the_count_anew() {
    let mut rig = pinned();
    for _ in 0..3 {
        rig.enqueue(W::Resolve);
    }
    rig.pump();
    rig.enqueue(W::Resolve);
    for tick in 1..3 * K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        tick_only(&mut rig);
        if tick % (K - 1) == 0 {
            rig.finish(SeatId::new(
                POOL + u8::try_from(tick / (K - 1)).unwrap() - 1,
            ));
        }
        assert_eq!(rig.alarms(), [], "tick {tick}");
    }
}

#[test]
fn a_lane_that_the_guard_holds_is_not_stuck_however_long() {
    let mut rig = pinned();
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    for _ in 0..10 * K {
        assert_eq!(rig.sleep_to_deadline().unwrap(), []);
    }
    assert_eq!(rig.alarms(), []);
    assert_eq!(rig.host.counters().ticks, 10 * u64::from(K));
}

#[test]
fn even_a_limit_of_one_tick_spares_what_the_guard_holds() {
    let layout = Layout::pinned();
    let config = HostConfig {
        stuck_ticks: 1,
        ..layout.config()
    };
    for (cordoned, alarms) in [(true, 0), (false, 1)] {
        let mut host = Host::new(&config, [UnitRow::FREE; 64]).unwrap();
        let mut guard = Guard::open(1);
        guard.posture.cordoned = cordoned;
        let start = Instant::ORIGIN;
        host.enqueue(W::Registrar.id(), 0, start, &guard).unwrap();
        host.backstop_tick(start + DELTA, &guard);
        let told = std::iter::from_fn(|| host.poll_alarm()).count();
        assert_eq!(told, alarms, "cordoned: {cordoned}");
    }
}

#[test]
fn a_lane_that_waits_for_a_busy_seat_is_not_stuck_while_others_tick() {
    let mut rig = FleetRig::new(&Layout::serial());
    rig.enqueue(W::Merge);
    rig.pump();
    rig.enqueue(W::Submitter);
    for _ in 0..10 * K {
        rig.pass(DELTA);
        tick_only(&mut rig);
    }
    assert_eq!(rig.alarms(), []);
}

#[test]
fn a_guard_that_says_yes_at_each_tick_and_no_at_each_grant_is_not_a_stuck_lane() {
    let mut rig = pinned();
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    for _ in 0..10 * K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        rig.cordon(false);
        tick_only(&mut rig);
        rig.cordon(true);
        assert_eq!(rig.pump(), []);
    }
    assert_eq!(rig.alarms(), []);
}

#[test]
fn a_lane_that_others_outrun_at_each_tick_is_not_stuck() {
    let mut rig = FleetRig::new(&Layout::serial());
    rig.cordon(true);
    rig.enqueue(W::Registrar);
    for _ in 0..10 * K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        rig.enqueue(W::Submitter);
        rig.cordon(false);
        tick_only(&mut rig);
        assert_eq!(rig.pumped_roles(), [W::Submitter.id()]);
        rig.cordon(true);
        rig.finish(SeatId::new(0));
        assert_eq!(rig.pump(), []);
        rig.collect();
    }
    assert_eq!(rig.alarms(), []);
}

/// A binding may hand in several inputs before it polls grants: at each tick the seat has just become
/// idle and the next unit of the first role is there already.
#[test]
fn a_lane_whose_seat_is_taken_after_each_tick_is_not_stuck() {
    let layout = Layout {
        table: &RANKED,
        lanes: vec![lane(4, 4, 1, None); 3],
        seats: vec![
            seat(SeatKind::Pooled, 0, &[R0, R1]),
            seat(SeatKind::Pooled, 0, &[R2]),
        ],
    };
    let mut rig = Rig::<12>::new(&layout);
    rig.cordon(true);
    rig.enqueue(R2);
    rig.enqueue(R0);
    rig.pump();
    rig.enqueue(R1);
    for _ in 0..3 * K {
        rig.enqueue(R0);
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        rig.finish(SeatId::new(0));
        rig.handle(Input::BackstopTick).unwrap();
        assert_eq!(rig.pumped_roles(), [R0]);
        assert_eq!(rig.alarms(), []);
        rig.collect();
    }
}

#[test]
fn a_seat_that_is_stuck_in_its_unit_is_seen_and_not_aborted() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    rig.pass(DELTA);
    rig.pump();
    rig.pass(Duration::from_secs(60));
    let role = W::Resolve.id();
    assert_eq!(
        rig.host.oldest_running(role, rig.now),
        Some(Duration::from_secs(60))
    );
    rig.enqueue(W::Resolve);
    rig.pump();
    rig.pass(Duration::from_secs(1));
    assert_eq!(
        rig.host.oldest_running(role, rig.now),
        Some(Duration::from_secs(61))
    );
    assert_eq!(rig.alarms(), []);
    rig.finish(SeatId::new(POOL));
    assert_eq!(
        rig.host.oldest_running(role, rig.now),
        Some(Duration::from_secs(1))
    );
    rig.finish(SeatId::new(POOL + 1));
    assert_eq!(rig.host.oldest_running(role, rig.now), None);
}

#[test]
fn what_moved_before_the_backstop_was_armed_is_no_movement_since() {
    let mut rig = pinned();
    rig.enqueue(W::Resolve);
    rig.pump();
    rig.finish(SeatId::new(POOL));
    rig.pump();
    rig.enqueue(W::Resolve);
    for tick in 1..=K {
        rig.now = rig.host.next_deadline(&rig.guard).unwrap();
        tick_only(&mut rig);
        assert_eq!(rig.alarms().is_empty(), tick < K, "tick {tick}");
    }
}
