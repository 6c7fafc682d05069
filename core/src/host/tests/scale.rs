//! The same code from sixteen rows to a million, and no step that looks at more than a few of them.

use super::layout::{DEFERRABLE, Layout, PLAIN, R0, lane};
use crate::guard::Guard;
use crate::host::{ClosePhase, Host, HostError};
use crate::role::WorkerRole as W;
use crate::time::Instant;
use crate::unit::{Outcome, RunResult, UnitRow};
use std::cell::Cell;
use std::rc::Rc;

const MILLION: u32 = 1_000_000;
const NOW: Instant = Instant::ORIGIN;

/// Rows that count how often they are lent. Each lending is for one row or one link.
struct Counted {
    rows: Box<[UnitRow]>,
    lent: Rc<Cell<u64>>,
}

impl Counted {
    fn lend(&self) {
        self.lent.set(self.lent.get() + 1);
    }
}

impl AsRef<[UnitRow]> for Counted {
    fn as_ref(&self) -> &[UnitRow] {
        self.lend();
        &self.rows
    }
}

impl AsMut<[UnitRow]> for Counted {
    fn as_mut(&mut self) -> &mut [UnitRow] {
        self.lend();
        &mut self.rows
    }
}

/// A host and the meter on its rows.
struct Metered {
    host: Host<Counted>,
    lent: Rc<Cell<u64>>,
}

impl Metered {
    fn new(layout: &Layout) -> Self {
        let rows: u32 = layout.lanes.iter().map(|lane| lane.rows).sum();
        let lent = Rc::new(Cell::new(0));
        let rows = Counted {
            rows: vec![UnitRow::FREE; rows as usize].into_boxed_slice(),
            lent: Rc::clone(&lent),
        };
        let host = Host::new(&layout.config(), rows).unwrap();
        Self { host, lent }
    }

    /// What `call` returns, and how many rows it was lent.
    fn touches<T>(&mut self, call: impl FnOnce(&mut Host<Counted>) -> T) -> (T, u64) {
        let before = self.lent.get();
        let value = call(&mut self.host);
        (value, self.lent.get() - before)
    }
}

/// Every unit of a full table through its whole life; the most rows that any one call touched.
fn life_of_all(rows: u32, layout: &Layout, keys: u8) -> u64 {
    let guard = Guard::open(8);
    let mut meter = Metered::new(layout);
    let mut most = 0;
    let role = R0;
    for unit in 0..rows {
        let key = u8::try_from(unit % u32::from(keys)).unwrap();
        let (accepted, n) = meter.touches(|h| h.enqueue(role, key, NOW, &guard));
        accepted.unwrap();
        most = most.max(n);
    }
    let mut ended = 0;
    while ended < rows {
        let before = ended;
        while let (Some(grant), n) = meter.touches(|h| h.poll_grant(NOW, &guard)) {
            most = most.max(n);
            let (started, n) = meter.touches(|h| h.start(grant.seat, grant.unit, NOW, &guard));
            started.unwrap();
            most = most.max(n);
        }
        let held: Vec<_> = (0..)
            .map(crate::seat::SeatId::new)
            .zip(meter.host.seats())
            .collect();
        let held: Vec<_> = held
            .iter()
            .filter_map(|(id, s)| Some((*id, s.held()?.1)))
            .collect();
        for (seat, unit) in held {
            let done = RunResult::Done;
            let (report, n) = meter.touches(|h| h.seat_done(seat, unit, done, NOW, &guard));
            report.unwrap();
            most = most.max(n);
        }
        while let (Some(resolved), n) = meter.touches(Host::poll_resolved) {
            let (released, m) = meter.touches(|h| h.release(resolved.unit));
            released.unwrap();
            most = most.max(n).max(m);
            ended += 1;
        }
        assert!(
            ended > before,
            "{ended} of {rows} units ended, and nothing moves"
        );
    }
    assert!(meter.host.is_idle());
    assert_eq!(meter.host.audit(), Ok(()));
    most
}

fn plain(rows: u32) -> Layout {
    Layout::one(&PLAIN, lane(rows, rows, 1, None), 4)
}

#[test]
fn no_call_touches_more_rows_of_a_million_than_of_sixteen() {
    let few = life_of_all(16, &plain(16), 1);
    assert_eq!(life_of_all(MILLION, &plain(MILLION), 1), few);
    assert!(few <= 8, "{few} rows in one call");
}

#[test]
fn keys_cost_no_more() {
    let layout = |rows| {
        let mut layout = Layout::pinned();
        layout.lanes.iter_mut().for_each(|lane| lane.rows = 0);
        layout.lanes[W::Solver.id().index()] = lane(rows, 1, 6, None);
        layout
    };
    let few = life_of_all(16, &layout(16), 6);
    assert_eq!(life_of_all(100_000, &layout(100_000), 6), few);
}

#[test]
fn a_million_held_units_move_to_the_queue_and_run_in_linear_work() {
    for rows in [16, 1_000, MILLION] {
        let layout = Layout::one(&DEFERRABLE, lane(rows, 64.min(rows), 1, None), 4);
        let mut guard = Guard::open(8);
        guard.posture.cordoned = true;
        let mut meter = Metered::new(&layout);
        let ((), work) = meter.touches(|host| {
            for _ in 0..rows {
                host.enqueue(R0, 0, NOW, &guard).unwrap();
            }
            guard.posture.cordoned = false;
            let mut ran = 0;
            while let Some(grant) = host.poll_grant(NOW, &guard) {
                host.start(grant.seat, grant.unit, NOW, &guard).unwrap();
                let (done, seat) = (RunResult::Done, grant.seat);
                host.seat_done(seat, grant.unit, done, NOW, &guard).unwrap();
                ran += 1;
            }
            assert_eq!(ran, rows);
        });
        assert!(work <= 32 * u64::from(rows), "{work} for {rows} units");
    }
}

#[test]
fn an_end_of_everything_is_linear_and_idle_calls_touch_nothing() {
    let layout = plain(MILLION);
    let guard = Guard::open(8);
    let mut meter = Metered::new(&layout);
    for _ in 0..MILLION {
        meter.host.enqueue(R0, 0, NOW, &guard).unwrap();
    }
    let mut held = guard;
    held.permits.total = 0;
    let ((), idle) = meter.touches(|host| {
        host.backstop_tick(NOW, &held);
        host.posture_edge(NOW, &held);
        assert_eq!(host.poll_grant(NOW, &held), None);
        host.epoch_boundary(1, NOW, &held).unwrap();
        host.resize(3, NOW, &held).unwrap();
    });
    assert_eq!(idle, 0, "a call that moves nothing touches no row");
    let (closed, work) = meter.touches(|h| h.close(ClosePhase::Fence, NOW, &guard));
    closed.unwrap();
    assert!(work <= 8 * u64::from(MILLION));
    let outcomes = std::iter::from_fn(|| meter.host.poll_resolved());
    let ended = outcomes
        .inspect(|r| assert_eq!(r.outcome, Outcome::Closed))
        .count();
    assert_eq!(ended, MILLION as usize);
}

#[test]
fn an_epoch_over_a_loaded_keyed_lane_touches_no_row_unless_a_key_moves() {
    let mut layout = Layout::pinned();
    layout.lanes[W::Solver.id().index()].rows = 10_000;
    let mut meter = Metered::new(&layout);
    let guard = Guard::open(8);
    for unit in 0..10_000_u32 {
        let key = u8::try_from(unit % 6).unwrap();
        meter
            .host
            .enqueue(W::Solver.id(), key, NOW, &guard)
            .unwrap();
    }
    let ((), steady) = meter.touches(|h| h.epoch_boundary(1, NOW, &guard).unwrap());
    assert_eq!(steady, 0);
    meter.host.resize(2, NOW, &guard).unwrap();
    let ((), moving) = meter.touches(|h| h.epoch_boundary(2, NOW, &guard).unwrap());
    assert!((6_000..60_000).contains(&moving), "{moving}");
}

#[test]
fn storage_may_be_an_array_a_box_or_a_borrowed_slice() {
    let layout = plain(16);
    let config = layout.config();
    let mut slice = vec![UnitRow::FREE; 16];
    assert!(Host::new(&config, [UnitRow::FREE; 16]).is_ok());
    assert!(Host::new(&config, vec![UnitRow::FREE; 16].into_boxed_slice()).is_ok());
    let mut host = Host::new(&config, slice.as_mut_slice()).unwrap();
    host.enqueue(R0, 0, NOW, &Guard::open(1)).unwrap();
    assert!(host.poll_grant(NOW, &Guard::open(1)).is_some());
}

/// The same code with room for two seats and one role.
#[test]
fn a_small_host_is_the_same_host() {
    let layout = Layout::one(&PLAIN, lane(2, 2, 1, None), 2);
    let small = Host::<[UnitRow; 2], 2, 1>::sized(&layout.config(), [UnitRow::FREE; 2]);
    let mut small = small.unwrap();
    assert!(size_of_val(&small) * 8 < size_of::<Host<[UnitRow; 2]>>());
    let guard = Guard::open(2);
    let unit = small.enqueue(R0, 0, NOW, &guard).unwrap().unit();
    let grant = small.poll_grant(NOW, &guard).unwrap();
    assert_eq!(grant.unit, unit);
    let three = Layout::one(&PLAIN, lane(2, 2, 1, None), 3);
    assert_eq!(
        Host::<[UnitRow; 2], 2, 1>::sized(&three.config(), [UnitRow::FREE; 2]).err(),
        Some(HostError::Seats { seats: 3, most: 2 })
    );
}
