//! Who keeps the time while something is held.

use crate::binding::boot;
use crate::common::{FAR, Gate, Jobs, Throttle, done, lane, submit, yields};
use crate::seats::config;
use regatta_core::role::WorkerRole::{Registrar, Resolve, Solver};
use regatta_portable::{Census, EdgeDelivery};
use std::time::Duration;

/// With every edge lost only the backstop finds out that a cordon has lifted. Whichever seat keeps the
/// time is given a unit that blocks, again and again: another one must keep it then.
#[test]
fn the_time_is_kept_though_its_keeper_is_given_work() {
    let config = config()
        .edges(EdgeDelivery::Suppress)
        .backstop(Duration::from_millis(2), 8);
    let fleet = boot(Jobs::new(), config, &Census::new()).unwrap();
    let pooled = fleet.plan().seats.len() - 4;
    let mut throttle = Throttle::new();
    for round in 0..20 {
        throttle.cordon(fleet.posture());
        let held = submit(&fleet, Registrar, yields(round));
        // All pooled seats but one, so that one could still take what is held.
        let (mut gates, mut running) = (Vec::new(), Vec::new());
        for _ in 1..pooled {
            let (gate, job) = Gate::before(yields(0));
            let receipt = submit(&fleet, Resolve, job);
            if lane(&fleet, Resolve).ledger.queued > 0 {
                // The permits are used up; the unit waits for one.
                drop(gate);
                running.push(receipt);
                break;
            }
            gate.entered();
            gates.push(gate);
            running.push(receipt);
        }
        for key in 0..3 {
            drop(fleet.submit(Solver, key, yields(0)).unwrap());
        }
        let before = fleet.status().host.ticks;
        throttle.lift(fleet.posture());
        if gates.len() + 1 < usize::from(fleet.plan().permits.total) {
            assert_eq!(done(held), round);
            gates.into_iter().for_each(Gate::open);
        } else {
            gates.into_iter().for_each(Gate::open);
            assert_eq!(done(held), round);
        }
        for receipt in running {
            receipt.wait_for(FAR).unwrap();
        }
        assert!(fleet.status().host.ticks >= before);
    }
    assert_eq!(fleet.status().host.edges, 0);
    assert!(fleet.close(FAR).is_clean());
}
