//! The threads of the seats: each runs what is granted to its seat, and sleeps.
//!
//! The serial binding is a fleet with one seat that serves every role; the pinned binding has a thread
//! for each of its seats. The loop is the same.
//!
//! # Invariants
//! - A seat sleeps only when its mailbox is empty and its bell silent. It blocks with a deadline only if it
//!   keeps the fleet's time.
//! - Before a seat that kept the time runs a unit, another one has been called to keep it.
//! - Nothing but the fence, or its own death, ends a seat's thread.

use crate::arenas::Arenas;
use crate::census::{Census, CensusError, ThreadSpec};
use crate::platform::{Enter, PlatformError};
use crate::receipt::{Ended, Failure};
use crate::shared::{Shared, Turn, UNCOLLECTED};
use crate::workload::{Pin, UnitContext, Workload};
use regatta_core::host::{ClosePhase, Grant, StartError};
use regatta_core::plan::LaneBinding;
use regatta_core::port::Park;
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::unit::RunResult;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

thread_local! {
    static ON_A_SEAT: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is a seat of some fleet. Waiting there could wait for itself.
pub(crate) fn on_a_seat() -> bool {
    ON_A_SEAT.get()
}

/// Tells who boots the fleet that a seat is ready, or why it never will be. A seat that dies on the way
/// tells nothing.
pub(crate) type Ready = Sender<(SeatId, PlatformError)>;

/// Spawns the thread of a seat, which counts as living from here on.
pub(crate) fn spawn<W: Workload>(
    shared: &Arc<Shared<W>>,
    seat: SeatId,
    fleet: &str,
    census: &Census,
    (enter, ready): (Enter, Ready),
) -> Result<JoinHandle<()>, CensusError> {
    let row = shared.plan.seat_row(seat);
    let prefix = row
        .as_ref()
        .and_then(|row| row.threads.as_ref())
        .map_or("work-seat-", |prefix| prefix.as_str());
    let (resource, sizing) = row.as_ref().map_or_else(
        || ("seat", "one per seat".to_owned()),
        |row| (row.resource, row.sizing.to_string()),
    );
    let spec = |kernel_name: String, number: u32| ThreadSpec {
        kernel_name,
        name: format!("regatta/{fleet}/{resource}/{number}"),
        owner: fleet.to_owned(),
        role: resource.to_owned(),
        sizing,
        binding: LaneBinding::Pinned,
    };
    shared.turn().living |= seat.bit();
    let of_thread = Arc::clone(shared);
    let spawned = census.spawn_numbered(prefix, spec, move || {
        let shared = of_thread;
        ON_A_SEAT.set(true);
        match enter() {
            Ok(park) => {
                let run = || Seat::new(&shared, seat, park, ready).run();
                if caught("a seat's thread, outside a unit,", run).is_none() {
                    shared.seat_died(seat);
                }
            }
            // Nobody listens if the boot was given up already.
            Err(error) => drop(ready.send((seat, error))),
        }
        shared.thread_ended(seat);
    });
    if spawned.is_err() {
        shared.turn().living &= !seat.bit();
    }
    spawned
}

struct Seat<'a, W: Workload> {
    shared: &'a Shared<W>,
    id: SeatId,
    park: Box<dyn Park>,
    arenas: Arenas<W::Arena>,
    /// Outcomes that nobody collects, on their way out.
    parting: Vec<Ended<W>>,
}

impl<'a, W: Workload> Seat<'a, W> {
    /// A seat with its arenas. `ready` is dropped when they are built.
    fn new(shared: &'a Shared<W>, id: SeatId, park: Box<dyn Park>, ready: Ready) -> Self {
        let spec = shared.plan.seats[id.index()];
        let arenas = Arenas::build(&shared.workload, spec, &shared.keys);
        drop(ready);
        Self {
            shared,
            id,
            park,
            arenas,
            parting: Vec::with_capacity(UNCOLLECTED),
        }
    }

    fn run(mut self) {
        let bell = &self.shared.bells[self.id.index()];
        loop {
            let mut turn = self.shared.turn();
            bell.silence();
            turn.wakes(self.id);
            Self::tick(&mut turn);
            turn.advance(Some(self.id));
            while let Some((grant, claims)) = self.take(&mut turn) {
                turn = self.run_unit(turn, grant, claims);
            }
            if turn.host.closing() == Some(ClosePhase::Fence)
                && matches!(turn.phase(self.id), SlotPhase::Retired | SlotPhase::Dead)
            {
                self.end(turn);
                self.arenas.discard();
                return;
            }
            let deadline = turn.hold_time(self.id);
            let released = self.arenas.used() && turn.phase(self.id) == SlotPhase::Idle;
            if released {
                turn.warm &= !self.id.bit();
            }
            self.end(turn);
            if released {
                self.arenas.release();
            }
            bell.sleep(&*self.park, deadline);
        }
    }

    /// The backstop's tick, if it is due.
    fn tick(turn: &mut Turn<'_, W>) {
        let (host, now, guard) = turn.host();
        if host.next_deadline(&guard).is_some_and(|due| now >= due) {
            host.backstop_tick(now, &guard);
        }
    }

    /// The unit in the mailbox, begun; and whether it begins a pin.
    fn take(&self, turn: &mut Turn<'_, W>) -> Option<(Grant, bool)> {
        loop {
            let grant = turn.take_mail(self.id)?;
            let claims = turn.phase(self.id) == SlotPhase::Leased;
            // The guard is read again: a cordon may have set in since.
            let (host, now, guard) = turn.host();
            match host.start(grant.seat, grant.unit, now, &guard) {
                Ok(()) => {
                    if self.arenas.is_pinned() {
                        turn.warm |= self.id.bit();
                    }
                    turn.keep_time();
                    return Some((grant, claims));
                }
                Err(StartError::HandedBack(_)) => turn.advance(Some(self.id)),
                // The fence took the unit back.
                Err(_) if turn.host.closing() == Some(ClosePhase::Fence) => {}
                Err(error) => tracing::error!("a granted unit did not start: {error}"),
            }
        }
    }

    /// Runs a unit outside the lock and reports it.
    fn run_unit(&mut self, mut turn: Turn<'a, W>, grant: Grant, claims: bool) -> Turn<'a, W> {
        let payload = turn.slots.begin(grant.unit);
        self.end(turn);
        let (result, ended) = match payload {
            Some(unit) => self.call(unit, grant, claims),
            // A fence ended it before it began.
            None => (RunResult::Panicked, failed("the unit had no payload")),
        };
        let mut turn = self.shared.turn();
        let late = turn.slots.report(grant.unit, ended);
        turn.uncollected.extend(late);
        let (host, now, guard) = turn.host();
        if let Err(error) = host.seat_done(grant.seat, grant.unit, result, now, &guard) {
            tracing::error!("the report of a seat was not taken: {error}");
        }
        turn.advance(Some(self.id));
        turn
    }

    fn call(&mut self, unit: W::Unit, grant: Grant, claims: bool) -> (RunResult, Ended<W>) {
        let context = UnitContext::from(grant);
        let workload = &self.shared.workload;
        let Some(arena) = self.arenas.get(workload, grant, claims) else {
            return (RunResult::Panicked, failed("the seat has no arena for it"));
        };
        match catch_unwind(AssertUnwindSafe(|| workload.run(unit, arena, &context))) {
            Ok(output) => (RunResult::Done, Ended::Done(output)),
            Err(panic) => {
                // The panic may have left the arena half-changed. Building it anew may panic in turn;
                // then the seat is lost.
                let rebuilt = workload.arena(Pin {
                    role: grant.role,
                    key: grant.pin.unwrap_or(grant.key),
                });
                discard(std::mem::replace(arena, rebuilt));
                let ended = failed(message(panic.as_ref()));
                discard(panic);
                (RunResult::Panicked, ended)
            }
        }
    }

    /// Ends a turn, and then drops what nobody collects.
    fn end(&mut self, mut turn: Turn<'_, W>) {
        std::mem::swap(&mut turn.uncollected, &mut self.parting);
        drop(turn);
        self.parting.drain(..).for_each(discard);
    }
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
