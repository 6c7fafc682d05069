//! A crawl with a bounded window, a cordon in the middle of it, and not one message about either end.

use super::layout::{DEFERRABLE, DELTA, K, Layout, R0, lane};
use super::rig::Rig;
use crate::host::{Accepted, Grant};
use crate::lane::{HoldReason, Progress};
use crate::unit::Outcome;

/// Receipts that the crawl keeps outstanding at most.
const WINDOW: usize = 32;
/// Paths to register, and how many were when the cordon set in.
const PATHS: usize = 10_600;
const AT_CORDON: usize = 9_955;

/// The crawl: submits while its window has room, and does nothing else of its own accord.
struct Crawl {
    rig: Rig<WINDOW>,
    outstanding: usize,
    submitted: usize,
    registered: usize,
}

impl Crawl {
    fn new() -> Self {
        let rows = u32::try_from(WINDOW).unwrap();
        Self {
            rig: Rig::new(&Layout::one(&DEFERRABLE, lane(rows, 8, 1, None), 1)),
            outstanding: 0,
            submitted: 0,
            registered: 0,
        }
    }

    fn fill_window(&mut self) -> Vec<Accepted> {
        let room = (WINDOW - self.outstanding).min(PATHS - self.submitted);
        self.submitted += room;
        self.outstanding += room;
        (0..room).map(|_| self.rig.enqueue(R0)).collect()
    }

    /// The binding runs what was granted and grants again, until nothing more is; the crawl reads its
    /// receipts and stops for good at `until`.
    fn run(&mut self, mut granted: Vec<Grant>, until: usize) {
        while self.registered < until && !granted.is_empty() {
            for grant in granted {
                self.rig.finish(grant.seat);
            }
            for ended in self.rig.collect() {
                assert_eq!(ended.outcome, Outcome::Done);
                self.registered += 1;
                self.outstanding -= 1;
            }
            if self.registered < until {
                self.fill_window();
            }
            granted = self.rig.pump();
        }
    }

    /// To the moment at which the crawl stood still: the cordon sets in, what runs finishes, and the
    /// window fills with units that are held.
    fn run_into_the_cordon(&mut self) {
        self.fill_window();
        let granted = self.rig.pump();
        self.run(granted, AT_CORDON - 1);
        let last: Vec<Grant> = self.running();
        self.rig.cordon(true);
        self.run(last, PATHS);
        assert_eq!((self.registered, self.outstanding), (AT_CORDON, WINDOW));
        assert_eq!(self.rig.waiting(R0), WINDOW as u64);
        assert_eq!(
            self.rig.host.hold(R0, &self.rig.guard),
            Some(HoldReason::Cordoned)
        );
    }

    fn running(&mut self) -> Vec<Grant> {
        let mut running = self.rig.pump();
        for (index, seat) in (0..).zip(self.rig.host.seats()) {
            let at = crate::seat::SeatId::new(index);
            if let Some((role, unit)) = seat.held()
                && running.iter().all(|grant| grant.seat != at)
            {
                running.push(Grant {
                    unit,
                    seat: at,
                    role,
                    key: 0,
                    pin: None,
                });
            }
        }
        running
    }
}

#[test]
fn with_the_backstop_the_crawl_completes_although_no_edge_ever_comes() {
    let mut crawl = Crawl::new();
    crawl.run_into_the_cordon();
    for _ in 0..5 * K {
        assert_eq!(
            crawl.rig.sleep_to_deadline(),
            Some(Vec::new()),
            "held, and ticking"
        );
    }
    crawl.rig.cordon(false);
    let lifted = crawl.rig.now;
    let granted = crawl.rig.sleep_to_deadline().unwrap();
    assert!(crawl.rig.now.since(lifted) <= DELTA);
    assert_eq!(granted.len(), 1, "as many as there are seats");
    crawl.run(granted, PATHS);
    assert_eq!((crawl.registered, crawl.outstanding), (PATHS, 0));
    assert!(crawl.rig.host.is_idle());
    assert_eq!(crawl.rig.host.progress(R0), Some(Progress::Idle));
    assert_eq!(crawl.rig.host.next_deadline(&crawl.rig.guard), None);
    assert_eq!(crawl.rig.host.counters().edges, 0);
    assert_eq!(crawl.rig.alarms(), []);
}

/// The alphabet of enqueues and reports alone: the state after the cordon lifts is one that no input
/// leaves.
#[test]
fn without_the_backstop_the_same_crawl_is_dead() {
    let mut crawl = Crawl::new();
    crawl.run_into_the_cordon();
    crawl.rig.cordon(false);
    // The submitter's window is full, so it enqueues nothing.
    assert_eq!(crawl.fill_window(), []);
    // No unit is with a seat, so no seat reports; the host is run by messages only, and none comes.
    let ledger = crawl.rig.host.ledger(R0).unwrap();
    assert_eq!((ledger.in_flight, ledger.waiting()), (0, WINDOW as u64));
    assert!(
        crawl
            .rig
            .host
            .seats()
            .iter()
            .all(|seat| seat.held().is_none())
    );
    assert_eq!(crawl.rig.host.poll_resolved(), None);
    // The guard would admit every one of them. All that is left to end this is the deadline.
    assert_eq!(crawl.rig.host.hold(R0, &crawl.rig.guard), None);
    assert!(crawl.rig.host.next_deadline(&crawl.rig.guard).is_some());
    assert!(crawl.registered < PATHS);
}
