//! Destructors of units and outputs are the user's code: they may use the fleet, and panic.

use crate::common::{FAR, Gate, Jobs, Throttle, boot, busy, config, done, submit, yields};
use regatta_core::role::RoleId;
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_portable::{Census, Fleet, Pin, Receipt, UnitContext, Workload};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Does something when it is dropped.
struct OnDrop(Option<Box<dyn FnOnce() + Send>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

type Outputs = Jobs<OnDrop>;

/// Whose destructor uses every lock there is, and a receiver that hears of its end.
fn uses(fleet: &Arc<Fleet<Outputs>>) -> (OnDrop, Receiver<()>) {
    let (dropped, hears) = channel();
    let fleet: Weak<_> = Arc::downgrade(fleet);
    let act = move || {
        let fleet = fleet.upgrade().unwrap();
        let _ = fleet.status();
        // The receipt, or the refused unit, is dropped here in turn.
        drop(fleet.submit(Resolve, 0, yields(OnDrop(None))));
        let _ = fleet.epoch_boundary(0);
        drop(fleet);
        dropped.send(()).unwrap();
    };
    (OnDrop(Some(Box::new(act))), hears)
}

fn fleet() -> Arc<Fleet<Outputs>> {
    Arc::new(boot(config(8)))
}

fn submits(fleet: &Fleet<Outputs>, role: impl Into<RoleId>, output: OnDrop) -> Receipt<Outputs> {
    submit(fleet, role, yields(output))
}

#[test]
fn an_output_that_nobody_collects_may_use_the_fleet() {
    let fleet = fleet();
    let (gate, running) = busy(&fleet, Resolve, OnDrop(None));
    let (output, hears) = uses(&fleet);
    drop(submits(&fleet, Resolve, output));
    gate.open();
    hears.recv_timeout(FAR).unwrap();
    drop(done(running));
    // One that had ended by the time its receipt was dropped.
    let (output, hears) = uses(&fleet);
    let ended = submits(&fleet, Resolve, output);
    drop(done(submits(&fleet, Resolve, OnDrop(None))));
    drop(ended);
    hears.recv_timeout(FAR).unwrap();
}

#[test]
fn a_unit_that_never_runs_may_use_the_fleet() {
    let fleet = fleet();
    Throttle::new().cordon(fleet.posture());
    let (unit, hears) = uses(&fleet);
    drop(submits(&fleet, Registrar, unit));
    assert_eq!(fleet.close(FAR).not_run, 1);
    hears.recv_timeout(FAR).unwrap();
}

#[test]
fn an_output_that_comes_after_the_fence_may_use_the_fleet() {
    let fleet = fleet();
    let (output, hears) = uses(&fleet);
    let (gate, running) = busy(&fleet, Resolve, output);
    assert_eq!(fleet.close(Duration::ZERO).closed, 1);
    gate.open();
    hears.recv_timeout(FAR).unwrap();
    drop(running);
    assert!(fleet.close(FAR).threads_ended);
}

/// What a closed fleet never ran is gone when its thread is, receipts or not.
#[test]
fn a_closed_fleet_keeps_nothing_that_nobody_collects() {
    let fleet = fleet();
    let (dropped, hears) = channel();
    let output = OnDrop(Some(Box::new(move || dropped.send(()).unwrap())));
    let (gate, job) = Gate::before(yields(OnDrop(None)));
    let running = submit(&fleet, Resolve, job);
    gate.entered();
    drop(submits(&fleet, Resolve, output));
    assert_eq!(fleet.close(Duration::ZERO).closed, 2);
    gate.open();
    assert!(fleet.close(FAR).threads_ended);
    hears.try_recv().unwrap();
    drop(running);
}

#[test]
fn a_destructor_that_panics_costs_the_seat_nothing() {
    let fleet = fleet();
    let (gate, running) = busy(&fleet, Resolve, OnDrop(None));
    let panics = || OnDrop(Some(Box::new(|| panic!("a destructor"))));
    drop(submits(&fleet, Resolve, panics()));
    drop(submits(&fleet, Resolve, panics()));
    gate.open();
    drop(done(running));
    drop(done(submits(&fleet, Resolve, OnDrop(None))));
    assert!(fleet.close(FAR).is_clean());
}

/// The panic value of a unit is the user's as well.
#[test]
fn a_panic_whose_value_panics_when_dropped_costs_the_seat_nothing() {
    let fleet = fleet();
    let panics: crate::common::Job<OnDrop> = Box::new(|_, _| {
        let value = OnDrop(Some(Box::new(|| panic!("the value of a panic"))));
        std::panic::panic_any(value)
    });
    let receipt = submit(&fleet, Resolve, panics);
    let (failure, _) = crate::common::failed(receipt);
    assert_eq!(
        failure.to_string(),
        "the unit panicked: a panic without text"
    );
    drop(done(submits(&fleet, Resolve, OnDrop(None))));
}

/// Arenas are the user's as well: one that is replaced after a panic, and all of them at the end.
#[test]
fn an_arena_that_panics_when_dropped_costs_the_seat_nothing() {
    struct Sore;
    impl Drop for Sore {
        fn drop(&mut self) {
            panic!("an arena");
        }
    }
    struct Arenas;
    impl Workload for Arenas {
        type Unit = bool;
        type Output = ();
        type Arena = Sore;
        fn arena(&self, _: Pin) -> Sore {
            Sore
        }
        fn run(&self, panics: bool, _: &mut Sore, _: &UnitContext) {
            assert!(!panics, "a unit");
        }
    }
    let fleet = crate::binding::boot(Arenas, config(2), &Census::new()).unwrap();
    for panics in [true, false] {
        let ended = fleet.submit(Resolve, 0, panics).unwrap().wait_for(FAR);
        assert_eq!(ended.unwrap().done().is_none(), panics);
    }
    // The default alarm action would abort.
    assert!(fleet.close(FAR).is_clean());
}
