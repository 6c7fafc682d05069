//! The quota changes while the fleet runs.

use crate::binding::cores;
use crate::common::{FAR, Gate, Jobs, busy, done, failed, lane, submit, yields};
use crate::seats::fleet;
use regatta_core::budget::{BoundedBy, MilliCpu, Quota, Reason};
use regatta_core::lane::HoldReason;
use regatta_core::plan::Binding;
use regatta_core::role::WorkerRole::{Registrar, Resolve, SimDriver, Solver};
use regatta_portable::{Failure, Fleet};

/// Walks on each of the three keys, those that have begun, and all receipts.
fn walks(fleet: &Fleet<Jobs>) -> (Vec<Gate>, Vec<regatta_portable::Receipt<Jobs>>) {
    let pairs = (0..3).map(|key| {
        let (gate, job) = Gate::before(yields(u64::from(key)));
        (gate, fleet.submit(Solver, key, job).unwrap())
    });
    pairs.unzip()
}

#[test]
fn a_larger_quota_lets_more_walk_at_once() {
    let fleet = fleet();
    let (gates, receipts) = walks(&fleet);
    assert_eq!(lane(&fleet, Solver).ledger.in_flight, 2);
    let change = fleet.requota(cores(12), Some(12));
    assert!(change.now.permits.keyed > change.before.permits.keyed);
    // Without any other input.
    gates.iter().for_each(Gate::entered);
    assert_eq!(fleet.current_plan().permits, change.now.permits);
    assert_eq!(fleet.current_plan().binding, Binding::Pinned);
    gates.into_iter().for_each(Gate::open);
    for (value, receipt) in (0..).zip(receipts) {
        assert_eq!(done(receipt), value);
    }
}

/// Units beyond the permits run to their end; the next ones wait for permits that come back.
#[test]
fn a_smaller_quota_shrinks_as_permits_come_back() {
    let fleet = fleet();
    fleet.requota(cores(12), None);
    let (gates, receipts) = walks(&fleet);
    gates.iter().for_each(Gate::entered);
    let change = fleet.requota(cores(3), None);
    assert_eq!(change.now.permits.keyed, 2);
    assert!(change.now.oversubscribed);
    let next = fleet.submit(Solver, 0, yields(9)).unwrap();
    let mut gates = gates.into_iter();
    gates.next().unwrap().open();
    let mut receipts = receipts.into_iter();
    assert_eq!(done(receipts.next().unwrap()), 0);
    // Two still walk, and no more may.
    assert_eq!(lane(&fleet, Solver).hold, Some(HoldReason::KeyedPermits));
    gates.for_each(Gate::open);
    for (value, receipt) in (1..).zip(receipts) {
        assert_eq!(done(receipt), value);
    }
    assert_eq!(done(next), 9);
}

/// Below the floor critical work goes on one at a time, the rest is held with a reason, and enough quota
/// undoes it.
#[test]
fn a_fleet_below_its_floor_goes_on_and_recovers_by_itself() {
    let fleet = fleet();
    let half = Quota::exact(MilliCpu::new(500), BoundedBy::Cgroup2, Reason::LimitRead);
    assert_eq!(fleet.status().not_ready, None);
    let change = fleet.requota(half, None);
    assert!(change.to_string().contains("not ready"), "{change}");
    let status = fleet.status();
    assert!(status.not_ready.is_some());
    assert!(status.to_string().contains("not ready"), "{status}");
    let held = submit(&fleet, Registrar, yields(1));
    assert_eq!(lane(&fleet, Registrar).hold, Some(HoldReason::BelowFloor));
    let (gate, running) = busy(&fleet, Resolve, 2);
    let waits = submit(&fleet, SimDriver, yields(3));
    assert_eq!(lane(&fleet, SimDriver).ledger.in_flight, 0);
    gate.open();
    assert_eq!(done(running), 2);
    for key in 0..3 {
        assert_eq!(done(fleet.submit(Solver, key, yields(4)).unwrap()), 4);
    }
    let held = held.poll().unwrap_err();
    fleet.requota(cores(6), None);
    assert_eq!((done(held), done(waits)), (1, 3));
    assert_eq!(fleet.status().not_ready, None);
}

#[test]
fn a_closing_fleet_may_be_resized() {
    let fleet = fleet();
    let (gate, running) = busy(&fleet, Resolve, 1);
    assert_eq!(fleet.close(std::time::Duration::ZERO).closed, 1);
    fleet.requota(cores(2), Some(1));
    assert_eq!(failed(running), (Failure::Closed, false));
    gate.open();
    assert!(fleet.close(FAR).threads_ended);
}
