//! Closing: what still runs, what does not, and that nothing is left.

use crate::common::{
    FAR, Gate, Job, Throttle, boot, busy, config, done, failed, lane, spawn, submit, yields,
};
use regatta_core::host::EnqueueError;
use regatta_core::role::WorkerRole::{Registrar, Resolve};
use regatta_portable::{CloseReport, Failure};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

#[test]
fn closing_gives_held_units_back_and_runs_queued_ones() {
    let fleet = Arc::new(boot(config(4)));
    Throttle::new().cordon(fleet.posture());
    let (gate, running) = busy(&fleet, Resolve, 1);
    let queued = submit(&fleet, Resolve, yields(2));
    let held = submit(&fleet, Registrar, yields(3));
    let closer = {
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "closer", move || of_thread.close(FAR))
    };
    // At once, while the seat is busy.
    assert_eq!(failed(held), (Failure::NotRun, true));
    let refused = fleet.submit(Resolve, 0, yields(4)).unwrap_err();
    let role = Resolve.into();
    assert_eq!(refused.error, EnqueueError::Closed { role });
    gate.open();
    assert_eq!((done(running), done(queued)), (1, 2));
    let report = closer.join().unwrap();
    let clean = CloseReport {
        not_run: 1,
        closed: 0,
        threads_ended: true,
    };
    assert_eq!(report, clean);
    assert!(report.is_clean() && fleet.status().balanced());
    // Again, and by dropping: nothing more happens.
    assert_eq!(fleet.close(FAR), clean);
}

#[test]
fn a_unit_that_outlasts_the_deadline_is_closed_and_reports_in_vain() {
    let fleet = boot(config(4));
    let (gate, running) = busy(&fleet, Resolve, 1);
    let queued = submit(&fleet, Resolve, yields(2));
    let report = fleet.close(Duration::from_millis(1));
    let overrun = CloseReport {
        not_run: 0,
        closed: 2,
        threads_ended: false,
    };
    assert_eq!(report, overrun);
    assert!(!report.is_clean());
    assert_eq!(failed(running), (Failure::Closed, false));
    assert_eq!(failed(queued), (Failure::Closed, true));
    assert!(fleet.census().rows().iter().any(|row| row.running));
    gate.open();
    let report = fleet.close(FAR);
    assert!(report.threads_ended);
    assert_eq!(report.closed, 2);
    // The thread is gone when closing says so.
    assert!(fleet.census().rows().iter().all(|row| !row.running));
    let status = fleet.status();
    assert_eq!(status.host.late, 1);
    assert!(status.balanced());
    assert_eq!(lane(&fleet, Resolve).ledger.uncollected, 0);
}

/// A drain that takes all of its time leaves some for the thread to end in.
#[test]
fn the_thread_of_a_slow_drain_ends_within_the_deadline() {
    let fleet = Arc::new(boot(config(4)));
    let (tell, told) = channel::<()>();
    let until_told: Job = Box::new(move |_, _| {
        told.recv_timeout(FAR).unwrap();
        // Nobody sends again: this is the little that a unit takes to end.
        let _ = told.recv_timeout(Duration::from_millis(100));
        1
    });
    let running = submit(&fleet, Resolve, until_told);
    let queued = submit(&fleet, Resolve, yields(2));
    let fenced = spawn(fleet.census(), "fenced", move || {
        let ended = failed(queued);
        tell.send(()).unwrap();
        (ended, tell)
    });
    let report = fleet.close(Duration::from_secs(4));
    let (ended, _tell) = fenced.join().unwrap();
    assert_eq!(ended, (Failure::Closed, true));
    assert_eq!((report.closed, report.threads_ended), (2, true));
    drop(running);
}

#[test]
fn any_number_of_threads_may_close() {
    let fleet = Arc::new(boot(config(4)));
    let receipt = submit(&fleet, Resolve, yields(1));
    let closers: Vec<_> = (0..4)
        .map(|n| {
            let of_thread = Arc::clone(&fleet);
            spawn(fleet.census(), &format!("closer-{n}"), move || {
                of_thread.close(FAR)
            })
        })
        .collect();
    for closer in closers {
        assert!(closer.join().unwrap().is_clean());
    }
    assert_eq!(done(receipt), 1);
}

/// A unit cannot wait for itself to end: the drain is over at once.
#[test]
fn a_unit_that_closes_its_fleet_does_not_wait_for_itself() {
    let fleet = Arc::new(boot(config(4)));
    let in_unit = Arc::clone(&fleet);
    let (tell, told) = channel();
    let closes = submit(
        &fleet,
        Resolve,
        Box::new(move |_, _| {
            tell.send(in_unit.close(Duration::MAX)).unwrap();
            1
        }),
    );
    let report = told.recv_timeout(FAR).unwrap();
    assert_eq!((report.closed, report.threads_ended), (1, false));
    assert_eq!(failed(closes), (Failure::Closed, false));
    assert!(fleet.close(FAR).threads_ended);
}

/// The last handle may be dropped on the seat.
#[test]
fn a_fleet_dropped_by_its_own_unit_ends() {
    let fleet = Arc::new(boot(config(4)));
    let (census, seats) = (fleet.census().clone(), fleet.plan().seats.len());
    let (give, given) = channel();
    let (tell, told) = channel();
    let drops = submit(
        &fleet,
        Resolve,
        Box::new(move |_, _| {
            drop(given.recv_timeout(FAR).unwrap());
            tell.send(()).unwrap();
            1
        }),
    );
    give.send(fleet).unwrap();
    told.recv_timeout(FAR).unwrap();
    assert_eq!(failed(drops), (Failure::Closed, false));
    assert_eq!(census.rows().len(), seats);
}

/// Closing returns when the thread is gone, also if an earlier closing gave up on it: what is local to
/// the thread has been dropped.
#[test]
fn no_thread_of_a_closed_fleet_is_left() {
    for gives_up in [false, true] {
        let fleet = boot(config(4));
        let (lingering, left) = channel();
        let (gate, job) = Gate::before(lingers(lingering));
        let running = submit(&fleet, Resolve, job);
        gate.entered();
        let rows = fleet.census().rows();
        assert!(rows.iter().all(|row| row.running));
        assert_eq!(rows.len(), fleet.plan().seats.len());
        let names = || rows.iter().map(|row| row.spec.kernel_name.as_str());
        #[cfg(target_os = "linux")]
        assert!(names().all(kernel_knows));
        if gives_up {
            assert!(!fleet.close(Duration::ZERO).threads_ended);
        }
        gate.open();
        assert!(fleet.close(FAR).threads_ended);
        assert!(fleet.census().rows().iter().all(|row| !row.running));
        left.try_recv().unwrap();
        // A thread that has been joined may be listed for a moment.
        #[cfg(target_os = "linux")]
        while names().any(kernel_knows) {
            std::thread::yield_now();
        }
        drop(running);
    }
}

/// A unit that leaves something in its thread which takes its time to go.
fn lingers(left: Sender<()>) -> Job {
    struct Lingers(Sender<()>);
    impl Drop for Lingers {
        fn drop(&mut self) {
            let (_never, nothing) = channel::<()>();
            let _ = nothing.recv_timeout(Duration::from_millis(100));
            self.0.send(()).unwrap();
        }
    }
    thread_local! {
        static LINGERS: RefCell<Option<Lingers>> = const { RefCell::new(None) };
    }
    Box::new(move |_, _| {
        LINGERS.set(Some(Lingers(left)));
        0
    })
}

/// Whether the kernel lists a thread of this name in this process.
#[cfg(target_os = "linux")]
fn kernel_knows(name: &str) -> bool {
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.any(|task| {
        let comm = std::fs::read_to_string(task.unwrap().path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    })
}
