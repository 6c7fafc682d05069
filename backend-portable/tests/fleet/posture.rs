//! Posture: what a cordon holds, and that a lifted one lets go.

use crate::common::{FAR, Jobs, Throttle, boot, busy, config, done, lane, submit, yields};
use regatta_core::lane::{HoldReason, Progress};
use regatta_core::posture::{Posture, PosturePolicyPatch};
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_portable::{EdgeDelivery, Fleet};
use std::time::Duration;

#[test]
fn a_cordon_holds_what_can_wait_and_says_why() {
    // No backstop tick comes in this test: the edge alone must do.
    let fleet = boot(config(4).backstop(Duration::from_hours(1), 8));
    let mut throttle = Throttle::new();
    throttle.cordon(fleet.posture());
    let held = submit(&fleet, Registrar, yields(1));
    let critical = submit(&fleet, Resolve, yields(2));
    assert_eq!(done(critical), 2);
    let registrar = lane(&fleet, Registrar);
    assert_eq!(registrar.hold, Some(HoldReason::Cordoned));
    assert_eq!(registrar.progress, Progress::Backed);
    assert_eq!(
        (registrar.ledger.backlog, registrar.counters.suppressed),
        (1, 1)
    );
    let status = fleet.status();
    assert_eq!(status.posture, Posture::Cordoned);
    let text = status.to_string();
    assert!(text.contains("posture cordoned"), "{text}");
    assert!(
        text.contains("1 held + 0 resolved; held: cordoned"),
        "{text}"
    );

    throttle.lift(fleet.posture());
    assert_eq!(done(held), 1);
    let registrar = lane(&fleet, Registrar);
    assert_eq!((registrar.hold, registrar.progress), (None, Progress::Idle));
    assert_eq!(fleet.status().host.ticks, 0);
}

/// A unit that was queued when nothing held it is held all the same by a cordon that sets in before
/// it starts.
#[test]
fn a_cordon_reaches_what_was_queued_before_it() {
    let mut throttle = Throttle::new();
    let fleet = boot(config(4));
    let (gate, running) = busy(&fleet, Registrar, 1);
    let queued = submit(&fleet, Registrar, yields(2));
    assert_eq!(lane(&fleet, Registrar).ledger.queued, 1);
    throttle.cordon(fleet.posture());
    gate.open();
    assert_eq!(done(running), 1);
    assert_eq!(done(submit(&fleet, Resolve, yields(3))), 3);
    assert_eq!(lane(&fleet, Registrar).hold, Some(HoldReason::Cordoned));
    let queued = queued.poll().unwrap_err();
    throttle.lift(fleet.posture());
    assert_eq!(done(queued), 2);
}

/// With every edge lost the backstop finds out: the tick in progress may miss the change, the next
/// one cannot.
#[test]
fn a_lifted_cordon_is_found_within_two_ticks_though_no_edge_arrives() {
    let config = config(64)
        .edges(EdgeDelivery::Suppress)
        .backstop(Duration::from_millis(2), 8);
    let fleet = boot(config);
    let mut throttle = Throttle::new();
    for round in 1..=20 {
        throttle.cordon(fleet.posture());
        let held: Vec<_> = (0..32)
            .map(|value| submit(&fleet, Registrar, yields(value)))
            .collect();
        let before = fleet.status().host.ticks;
        lift_later(&fleet, &mut throttle, before + 2);
        let lifted = fleet.status().host.ticks;
        for (value, receipt) in (0..).zip(held) {
            assert_eq!(done(receipt), value);
        }
        // Nothing is held any more, so no further tick comes.
        let host = fleet.status().host;
        assert!(host.ticks - lifted <= 2, "{} ticks", host.ticks - lifted);
        assert_eq!(host.edges, 0);
        assert_eq!(lane(&fleet, Registrar).ledger.resolved, round * 32);
    }
}

/// Lifts the cordon once the host has ticked so often.
fn lift_later(fleet: &Fleet<Jobs>, throttle: &mut Throttle, ticks: u64) {
    while fleet.status().host.ticks < ticks {
        std::thread::yield_now();
    }
    throttle.lift(fleet.posture());
}

/// Ticks that find the guard closed are no strikes: however long a cordon lasts, it is no alarm. The
/// default action would abort.
#[test]
fn a_long_cordon_is_no_alarm() {
    let mut throttle = Throttle::new();
    let fleet = boot(config(2).backstop(Duration::from_millis(1), 2));
    throttle.cordon(fleet.posture());
    let held = submit(&fleet, Registrar, yields(1));
    lift_later(&fleet, &mut throttle, 50);
    assert_eq!(done(held), 1);
}

#[test]
fn a_policy_is_changed_whole_and_said() {
    let fleet = boot::<u64>(config(2));
    let patch = |text: &str| {
        let mut patch = PosturePolicyPatch::default();
        for pair in text.split(' ') {
            let (key, value) = pair.split_once('=').unwrap();
            patch.set(key, value).unwrap();
        }
        patch
    };
    let refused = patch("cordon_enter_events=3 cordon_exit_clean_ms=0");
    assert!(fleet.posture().retune(&refused).is_err());
    assert_eq!(fleet.posture().policy().enter_events(), 2);
    let changes = fleet.posture().retune(&patch("cordon_enter_events=6"));
    assert_eq!(changes.unwrap().len(), 1);
    // Five throttled periods, which `cordon` shows, no longer cordon.
    assert_eq!(fleet.posture().policy().enter_events(), 6);
    assert_eq!(fleet.close(FAR).closed, 0);
}
