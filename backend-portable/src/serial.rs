//! The serial binding: one cycle thread runs every granted unit, in the grant order.
//!
//! # Invariants
//! - The host runs under the state's lock, units run outside it.
//! - The cycle thread sleeps only when the host has nothing to grant and no input came since it
//!   looked, and no longer than the host's next deadline. With nothing held there is no deadline.
//! - Arenas are built, used and dropped on the cycle thread.

use crate::census::{Census, CensusError, ThreadSpec};
use crate::fleet::{Shared, State, UNCOLLECTED};
use crate::receipt::{Ended, Failure};
use crate::workload::{Pin, UnitContext, Workload};
use regatta_core::budget::CYCLE;
use regatta_core::host::{ClosePhase, Grant, StartError};
use regatta_core::plan::LaneBinding;
use regatta_core::port::Clock;
use regatta_core::role::RoleId;
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::time::Instant;
use regatta_core::unit::RunResult;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;

/// The serial tier's one seat.
const SEAT: SeatId = SeatId::new(0);

thread_local! {
    static ON_A_SEAT: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is a seat of some fleet. Waiting there could wait for itself.
pub(crate) fn on_a_seat() -> bool {
    ON_A_SEAT.get()
}

/// Spawns the cycle thread.
pub(crate) fn spawn<W: Workload>(
    shared: &Arc<Shared<W>>,
    name: &str,
    census: &Census,
) -> Result<JoinHandle<()>, CensusError> {
    // Several fleets of one process each have a thread with a number of its own. The kernel keeps
    // fifteen bytes of a name: the prefix and three digits.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) % 1_000;
    let projected = shared.plan.census();
    let row = projected.iter().find(|row| row.resource == CYCLE);
    let prefix = row
        .and_then(|row| row.threads.as_ref())
        .map_or("work-serial-", |prefix| prefix.as_str());
    let spec = ThreadSpec {
        kernel_name: format!("{prefix}{number}"),
        name: format!("regatta/{name}/serial/{number}"),
        owner: name.to_owned(),
        role: CYCLE.to_owned(),
        sizing: "one per fleet on the serial tier".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let of_thread = Arc::clone(shared);
    let thread = census.spawn(spec, move || {
        let shared = of_thread;
        ON_A_SEAT.set(true);
        let cycle = || Cycle::new(&shared).run();
        if caught("the cycle thread, outside a unit,", cycle).is_none() {
            shared.seat_died(SEAT);
        }
        shared.thread_ended();
    })?;
    shared.live.set_sleeper(thread.thread());
    Ok(thread)
}

struct Cycle<'a, W: Workload> {
    shared: &'a Shared<W>,
    /// One arena per role and key, indexed by both.
    arenas: Vec<Vec<W::Arena>>,
    edge: u32,
    /// Outcomes that nobody collects, on their way out.
    parting: Vec<Ended<W>>,
}

impl<'a, W: Workload> Cycle<'a, W> {
    fn new(shared: &'a Shared<W>) -> Self {
        let arenas = (0_u8..)
            .zip(&shared.keys)
            .map(|(role, keys)| {
                let pin = |key| Pin {
                    role: RoleId::new(role),
                    key,
                };
                (0..*keys)
                    .map(|key| shared.workload.arena(pin(key)))
                    .collect()
            })
            .collect();
        Self {
            shared,
            arenas,
            edge: 0,
            parting: Vec::with_capacity(UNCOLLECTED),
        }
    }

    fn run(mut self) {
        let mut state = self.shared.lock();
        loop {
            let seen = self.shared.live.inputs();
            // The clock is read once per unit; the guard, which is a few loads, for every decision.
            let mut now = self.shared.live.clock.now();
            self.take_inputs(&mut state, now);
            while let Some(grant) = self.grant(&mut state, now) {
                (state, now) = self.run_unit(state, grant);
                self.take_inputs(&mut state, now);
            }
            self.shared.settle(&mut state);
            if state.host.closing() == Some(ClosePhase::Fence) && retired(&state) {
                drop(state);
                self.arenas.into_iter().flatten().for_each(discard);
                return;
            }
            let deadline = state.host.next_deadline(&self.shared.live.guard.read(now));
            self.unlock(state);
            self.shared.live.sleep(seen, deadline);
            state = self.shared.lock();
        }
    }

    /// Lets go of the lock, and then of what nobody collects.
    fn unlock(&mut self, mut state: MutexGuard<'_, State<W>>) {
        std::mem::swap(&mut state.uncollected, &mut self.parting);
        drop(state);
        self.parting.drain(..).for_each(discard);
    }

    /// Delivers the inputs that have no message: an edge that was announced, a deadline that came.
    fn take_inputs(&mut self, state: &mut State<W>, now: Instant) {
        let guard = self.shared.live.guard.read(now);
        let edge = self.shared.live.edge();
        if edge != std::mem::replace(&mut self.edge, edge) {
            state.host.posture_edge(now, &guard);
        }
        if state
            .host
            .next_deadline(&guard)
            .is_some_and(|due| now >= due)
        {
            state.host.backstop_tick(now, &guard);
        }
    }

    /// The next unit to run, begun.
    fn grant(&self, state: &mut State<W>, now: Instant) -> Option<Grant> {
        let live = &self.shared.live;
        loop {
            let grant = state.host.poll_grant(now, &live.guard.read(now))?;
            // The guard is read again: a cordon may have set in since.
            let guard = live.guard.read(now);
            match state.host.start(grant.seat, grant.unit, now, &guard) {
                Ok(()) => return Some(grant),
                Err(StartError::HandedBack(_)) => {}
                Err(error) => tracing::error!("a granted unit did not start: {error}"),
            }
        }
    }

    /// Runs a granted unit outside the lock and reports it. Returns the time at which it ended.
    fn run_unit<'g>(
        &mut self,
        mut state: MutexGuard<'g, State<W>>,
        grant: Grant,
    ) -> (MutexGuard<'g, State<W>>, Instant)
    where
        'a: 'g,
    {
        let payload = state.slots.begin(grant.unit);
        self.unlock(state);
        let (result, ended) = match payload {
            Some(unit) => self.call(unit, grant),
            None => (RunResult::Panicked, failed("the unit had no payload")),
        };
        let mut state = self.shared.lock();
        let late = state.slots.report(grant.unit, ended);
        state.uncollected.extend(late);
        let (now, guard) = self.shared.guard();
        if let Err(error) = state
            .host
            .seat_done(grant.seat, grant.unit, result, now, &guard)
        {
            tracing::error!("the report of a seat was not taken: {error}");
        }
        self.shared.settle(&mut state);
        (state, now)
    }

    fn call(&mut self, unit: W::Unit, grant: Grant) -> (RunResult, Ended<W>) {
        let context = UnitContext::from(grant);
        let key = usize::from(grant.key);
        let arena = &mut self.arenas[grant.role.index()][key];
        let workload = &self.shared.workload;
        match catch_unwind(AssertUnwindSafe(|| workload.run(unit, arena, &context))) {
            Ok(output) => (RunResult::Done, Ended::Done(output)),
            Err(panic) => {
                // The panic may have left the arena half-changed. Building it anew may panic in turn;
                // then the seat is lost.
                let rebuilt = workload.arena(Pin {
                    role: grant.role,
                    key: grant.key,
                });
                discard(std::mem::replace(arena, rebuilt));
                let ended = failed(message(panic.as_ref()));
                discard(panic);
                (RunResult::Panicked, ended)
            }
        }
    }
}

fn retired<W: Workload>(state: &State<W>) -> bool {
    state
        .host
        .seats()
        .iter()
        .all(|seat| matches!(seat.phase(), SlotPhase::Retired | SlotPhase::Dead))
}

fn failed<W: Workload>(message: &str) -> Ended<W> {
    Ended::Failed(
        Failure::Panicked {
            message: message.into(),
        },
        None,
    )
}

/// Calls code of the user's whose panic must not spread; `None` if it panicked.
pub(crate) fn caught<T>(what: &str, call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(panic) => {
            tracing::error!("{what} panicked: {}", message(panic.as_ref()));
            // Its destructor is the user's as well, and the last that could panic here.
            std::mem::forget(panic);
            None
        }
    }
}

/// Drops a value of the user's. A destructor that panics is no reason to lose the seat.
pub(crate) fn discard<T>(value: T) {
    caught("a destructor", || drop(value));
}

/// What a panic said, if it was text.
fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text")
}
