//! Everything at once: many submitters, cordons, quotas and epochs that come and go, a close in between.
//!
//! A wake that is lost shows as a deadline that passes; a unit that is lost or doubled, in the sums.

use crate::binding::{cores, wake};
use crate::common::{FAR, spawn};
use crate::seats::config;
use regatta_core::posture::ThrottleSample;
use regatta_core::role::WorkerRole::{self, Merge, Registrar, Resolve, SimDriver, Solver};
use regatta_core::time::Duration as Span;
use regatta_linux::LinuxSeats;
use regatta_linux::wake::WakeKind;
use regatta_portable::{Census, Fleet, Pin, UnitContext, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Counts what it runs, and panics where a unit says so.
#[derive(Default)]
struct Counts {
    ran: AtomicU64,
}

impl Workload for Counts {
    type Unit = u64;
    type Output = u64;
    type Arena = u64;
    fn arena(&self, _: Pin) -> u64 {
        0
    }
    fn run(&self, unit: u64, runs: &mut u64, _: &UnitContext) -> u64 {
        *runs += 1;
        self.ran.fetch_add(1, Ordering::Relaxed);
        assert!(unit % 97 != 13, "a unit");
        unit * 3
    }
}

/// What a submitter saw of its units.
#[derive(Default)]
struct Seen {
    done: u64,
    failed: u64,
    dropped: u64,
}

fn submit(fleet: &Fleet<Counts>, first: u64, units: u64) -> Seen {
    const LANES: [(WorkerRole, u8); 5] = [
        (Solver, 3),
        (Merge, 1),
        (Resolve, 1),
        (SimDriver, 1),
        (Registrar, 1),
    ];
    let mut seen = Seen::default();
    for unit in first..first + units {
        let (role, keys) = LANES[usize::try_from(unit).unwrap() % LANES.len()];
        let key = u8::try_from(unit % u64::from(keys)).unwrap();
        let receipt = loop {
            match fleet.submit(role, key, unit) {
                Ok(receipt) => break receipt,
                Err(_) => fleet.wait_for_room(role, Some(FAR)).unwrap(),
            }
        };
        if unit % 11 == 0 {
            seen.dropped += 1;
            continue;
        }
        if let Some(output) = receipt.wait_for(FAR).unwrap().done() {
            assert_eq!(output, unit * 3);
            seen.done += 1;
        } else {
            assert_eq!(unit % 97, 13);
            seen.failed += 1;
        }
    }
    seen
}

fn storm(kind: WakeKind) {
    const THREADS: u64 = 4;
    const UNITS: u64 = 3_000;
    let config = config().backstop(Duration::from_millis(3), 1_000);
    let platform = LinuxSeats::new(kind);
    let fleet = Fleet::boot_on(&platform, Counts::default(), config, &Census::new()).unwrap();
    let fleet = Arc::new(fleet);
    let over = Arc::new(AtomicBool::new(false));
    let weather = {
        let (fleet, over) = (Arc::clone(&fleet), Arc::clone(&over));
        let of_thread = Arc::clone(&fleet);
        spawn(fleet.census(), "weather", move || {
            weather(&of_thread, &over);
        })
    };
    let submitters: Vec<_> = (0..THREADS)
        .map(|thread| {
            let of_thread = Arc::clone(&fleet);
            spawn(fleet.census(), &format!("submit-{thread}"), move || {
                submit(&of_thread, thread * UNITS, UNITS)
            })
        })
        .collect();
    let mut sum = Seen::default();
    for submitter in submitters {
        let seen = submitter.join().unwrap();
        sum.done += seen.done;
        sum.failed += seen.failed;
        sum.dropped += seen.dropped;
    }
    over.store(true, Ordering::Relaxed);
    weather.join().unwrap();
    assert_eq!(sum.done + sum.failed + sum.dropped, THREADS * UNITS);
    let report = fleet.close(FAR);
    assert!(report.threads_ended);
    let status = fleet.status();
    assert!(status.balanced());
    let (mut submitted, mut resolved) = (0, 0);
    for lane in &status.lanes {
        submitted += lane.ledger.submitted;
        resolved += lane.ledger.resolved;
        assert_eq!(lane.ledger.uncollected, 0);
    }
    assert_eq!((submitted, resolved), (THREADS * UNITS, THREADS * UNITS));
    let ran = fleet.workload().ran.load(Ordering::Relaxed);
    assert_eq!(ran + report.not_run + report.closed, THREADS * UNITS);
}

/// Cordons, quotas and epochs until told that it is over; all is well at the end.
fn weather(fleet: &Fleet<Counts>, over: &AtomicBool) {
    let posture = fleet.posture();
    let (mut at, mut periods, mut epoch) = (posture.now(), 0, 0);
    let mut sample = |after: u64, throttled: u64| {
        at = at + Span::from_millis(after);
        periods += throttled;
        posture.sample(ThrottleSample {
            at,
            nr_throttled: Some(periods),
            throttled: None,
        });
    };
    let mut turn = 0_u16;
    while !over.load(Ordering::Relaxed) {
        sample(100, 5);
        sample(100, 5);
        fleet.requota(cores(1 + turn % 12), None);
        epoch += u64::from(fleet.epoch_boundary(epoch + 1).is_ok());
        std::thread::yield_now();
        sample(1_800_000, 0);
        sample(1_800_000, 0);
        fleet.requota(cores(6), None);
        turn += 1;
    }
    sample(1_800_000, 0);
    sample(1_800_000, 0);
}

#[test]
fn nothing_is_lost_in_a_storm() {
    storm(wake());
}
