//! Which thread runs what, and how many at once.

use crate::binding::{boot, plan};
use crate::common::{FAR, Gate, Jobs, busy, done, lane, submit, yields};
use regatta_core::lane::HoldReason;
use regatta_core::role::WorkerRole::{Merge, Registrar, Resolve, SimDriver, Solver};
use regatta_core::role::{FLEET_ROLES, SeatKind};
use regatta_core::seat::SlotState;
use regatta_linux::{LinuxSeats, affinity};
use regatta_portable::{Census, Fleet, FleetConfig};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;

pub(crate) fn config() -> FleetConfig {
    FleetConfig::new(&FLEET_ROLES, plan())
        .keyed_lane(Solver, 16, 3)
        .lane(Merge, 8)
        .lane(Resolve, 16)
        .lane(SimDriver, 16)
        .lane(Registrar, 16)
}

pub(crate) fn fleet() -> Fleet<Jobs> {
    boot(Jobs::new(), config(), &Census::new()).unwrap()
}

fn thread_name() -> String {
    std::thread::current().name().unwrap().to_owned()
}

/// Where a unit ran: the name of the thread and the seat.
fn place(fleet: &Fleet<Jobs>, role: regatta_core::role::WorkerRole, key: u8) -> (String, usize) {
    let (tell, told) = channel();
    let receipt = fleet.submit(
        role,
        key,
        Box::new(move |_, context| {
            tell.send((thread_name(), context.seat.index())).unwrap();
            0
        }),
    );
    done(receipt.unwrap());
    told.recv().unwrap()
}

#[test]
fn each_key_and_the_merge_have_a_thread_of_their_own_that_stays() {
    let fleet = fleet();
    for _ in 0..3 {
        for key in 0..3 {
            let name = format!("work-solve-{key}");
            assert_eq!(place(&fleet, Solver, key), (name, usize::from(key)));
        }
        assert_eq!(place(&fleet, Merge, 0), ("work-merge-0".to_owned(), 3));
        for role in [Resolve, SimDriver, Registrar] {
            let (name, seat) = place(&fleet, role, 0);
            assert!(name.starts_with("work-pool-") && seat > 3, "{name} {seat}");
        }
    }
    // The pins stay with their seats.
    let status = fleet.status();
    for (key, seat) in (0..3).zip(&status.seats) {
        let role = Solver.id();
        assert_eq!(*seat, SlotState::Pinned { role, key });
    }
    // The census has a row for each, named as the kernel does.
    let rows = fleet.census().rows();
    assert_eq!(rows.len(), fleet.plan().seats.len());
    let names: BTreeSet<_> = rows.iter().map(|row| &row.spec.kernel_name).collect();
    assert_eq!(names.len(), rows.len());
    for row in &rows {
        assert!(kernel_names().contains(&row.spec.kernel_name), "{row:?}");
    }
}

fn kernel_names() -> BTreeSet<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let comm =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    comm.map(|name| name.trim_end().to_owned()).collect()
}

/// Pins walk at once up to their permits; the others wait, and do not spin.
#[test]
fn permits_bound_how_many_walk_at_once() {
    let fleet = fleet();
    let permits = usize::from(fleet.plan().permits.keyed);
    assert_eq!(permits, 2);
    let (mut gates, mut receipts) = (Vec::new(), Vec::new());
    for key in 0..3 {
        let (gate, job) = Gate::before(yields(u64::from(key)));
        receipts.push(fleet.submit(Solver, key, job).unwrap());
        gates.push(gate);
    }
    gates[0].entered();
    gates[1].entered();
    let solver = lane(&fleet, Solver);
    assert_eq!((solver.ledger.in_flight, solver.ledger.queued), (2, 1));
    assert_eq!(solver.hold, Some(HoldReason::KeyedPermits));
    // One ends, and the third walks.
    let third = gates.pop().unwrap();
    gates.pop().unwrap().open();
    third.entered();
    third.open();
    gates.pop().unwrap().open();
    for (value, receipt) in (0..).zip(receipts) {
        assert_eq!(done(receipt), value);
    }
}

/// A unit that runs long holds up no other seat.
#[test]
fn a_busy_seat_holds_up_its_own_key_and_nothing_else() {
    let fleet = fleet();
    let (gate, walking) = {
        let (gate, job) = Gate::before(yields(1));
        let receipt = fleet.submit(Solver, 0, job).unwrap();
        gate.entered();
        (gate, receipt)
    };
    let behind = fleet.submit(Solver, 0, yields(2)).unwrap();
    let beside = fleet.submit(Solver, 1, yields(3)).unwrap();
    assert_eq!(done(beside), 3);
    assert_eq!(done(submit(&fleet, Merge, yields(4))), 4);
    assert_eq!(done(submit(&fleet, Resolve, yields(5))), 5);
    let (sim, simulating) = busy(&fleet, SimDriver, 6);
    let (other, also) = busy(&fleet, SimDriver, 7);
    let behind = behind.poll().unwrap_err();
    gate.open();
    assert_eq!((done(walking), done(behind)), (1, 2));
    sim.open();
    other.open();
    assert_eq!((done(simulating), done(also)), (6, 7));
    assert!(fleet.close(FAR).is_clean());
}

/// Every seat may run on every CPU of the process, or on one each, as told.
#[test]
fn seats_run_where_they_are_bound() {
    let allowed = affinity::mask().unwrap();
    for one_each in [false, true] {
        let how = if one_each {
            regatta_core::affinity::SeatAffinity::OneCpuEach
        } else {
            regatta_core::affinity::SeatAffinity::AllowedSet
        };
        let platform = LinuxSeats::new(crate::binding::wake()).bind(how, allowed.clone());
        let fleet = Fleet::boot_on(&platform, Jobs::new(), config(), &Census::new()).unwrap();
        let (tell, told) = channel();
        for key in 0..3 {
            let tell = tell.clone();
            let receipt = fleet.submit(
                Solver,
                key,
                Box::new(move |_, _| {
                    tell.send(affinity::mask().unwrap()).unwrap();
                    0
                }),
            );
            done(receipt.unwrap());
            let mask = told.recv().unwrap();
            if one_each {
                let cpus: Vec<usize> = allowed.iter().collect();
                let cpu = cpus[usize::from(key) % cpus.len()];
                assert_eq!(mask.iter().collect::<Vec<_>>(), [cpu]);
            } else {
                assert_eq!(mask, allowed);
            }
        }
    }
    // Who boots a fleet is not bound by it.
    assert_eq!(affinity::mask().unwrap(), allowed);
}

#[test]
fn the_plan_has_a_seat_of_each_kind() {
    let kinds: Vec<_> = plan().seats.iter().map(|seat| seat.kind).collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    assert_eq!(
        kinds[..4],
        [
            SeatKind::KeyedPin,
            SeatKind::KeyedPin,
            SeatKind::KeyedPin,
            SeatKind::FixedPin
        ]
    );
}
