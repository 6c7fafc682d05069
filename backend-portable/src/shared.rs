//! What the handle, the receipts and the seats of a fleet share, and the one way to use it.
//!
//! There is no thread that owns the host: whoever brings an input takes the lock, gives the input to the
//! host and carries out what follows from it. What is left for a seat lies in its mailbox, and its bell
//! is rung after the lock is free again.
//!
//! # Invariants
//! - The host runs under the state's lock. Units, destructors of units and outputs, and system calls that
//!   wake a thread, run outside it.
//! - Each use of the host ends with [`Shared::advance`]: what can be granted is granted, what has ended has
//!   reached its receipt, and alarms are raised.
//! - A mailbox holds at most one grant, of the unit that the host says the seat holds.
//! - While the host has a deadline, one seat's thread blocks with it, or is on its way there: the keeper.
//!   The host has a deadline only while a seat with nothing to do could take what is held, so there is a
//!   thread to ask.

use crate::bell::Bell;
use crate::config::{AlarmAction, AlarmReport};
use crate::live::{Live, Nudge, PostureControl};
use crate::receipt::Ended;
use crate::seats;
use crate::slots::{Slots, Then};
use crate::workload::Workload;
use regatta_core::guard::Guard;
use regatta_core::host::{Alarm, ClosePhase, Grant, Host};
use regatta_core::lane::Progress;
use regatta_core::plan::FleetPlan;
use regatta_core::port::Clock;
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::time::Instant;
use regatta_core::unit::{Outcome, UnitId, UnitRow};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// Room for outcomes that nobody will collect, before the list has to grow. A unit that ends adds one
/// and its seat empties the list before the next; only closing and death add many at once.
pub(crate) const UNCOLLECTED: usize = 16;

/// What the lock guards: the host and what belongs to its rows and seats.
pub(crate) struct State<W: Workload> {
    pub(crate) host: Host<Box<[UnitRow]>>,
    pub(crate) slots: Slots<W>,
    /// Outcomes that nobody will collect. Their destructors are the user's code, so a seat drops them
    /// after it has let go of the lock.
    pub(crate) uncollected: Vec<Ended<W>>,
    mailboxes: Box<[Option<Grant>]>,
    /// The seat that blocks with the host's deadline, and until when.
    keeper: Option<(SeatId, Instant)>,
    /// Seats whose thread lives.
    pub(crate) living: u64,
    /// Pins whose arena has been used under the present pin.
    pub(crate) warm: u64,
    /// Threads that wait on `changed`.
    watchers: u32,
    pub(crate) not_run: u64,
    pub(crate) closed: u64,
}

impl<W: Workload> State<W> {
    pub(crate) fn new(host: Host<Box<[UnitRow]>>, rows: usize) -> Self {
        let seats = host.seats().len();
        Self {
            host,
            slots: Slots::new(rows),
            uncollected: Vec::with_capacity(UNCOLLECTED),
            mailboxes: vec![None; seats].into_boxed_slice(),
            keeper: None,
            living: 0,
            warm: 0,
            watchers: 0,
            not_run: 0,
            closed: 0,
        }
    }

    /// The phase of a seat.
    pub(crate) fn phase(&self, seat: SeatId) -> SlotPhase {
        self.host.seats()[seat.index()].phase()
    }

    /// Takes the grant that was left for a seat.
    pub(crate) fn take_mail(&mut self, seat: SeatId) -> Option<Grant> {
        self.mailboxes[seat.index()].take()
    }

    /// Whether no seat has a thread any more.
    pub(crate) const fn threads_ended(&self) -> bool {
        self.living == 0
    }
}

/// What the handle, the receipts and the seats share.
pub(crate) struct Shared<W: Workload> {
    pub(crate) workload: W,
    pub(crate) live: Arc<Live>,
    pub(crate) posture: PostureControl,
    /// The plan the fleet was booted by.
    pub(crate) plan: FleetPlan,
    pub(crate) keys: Box<[u8]>,
    pub(crate) bells: Box<[Bell]>,
    alarm: AlarmAction,
    state: Mutex<State<W>>,
    /// A lane got room or takes no more units, the host became idle, or a thread ended.
    changed: Condvar,
}

/// The use of the state by one thread. When it is dropped the lock is free first, and then whoever is to
/// be woken is.
pub(crate) struct Turn<'a, W: Workload> {
    // Before `after`: fields are dropped in this order.
    state: MutexGuard<'a, State<W>>,
    after: After<'a, W>,
    /// When the turn began.
    pub(crate) now: Instant,
}

/// Whom to wake once the lock is free.
struct After<'a, W: Workload> {
    shared: &'a Shared<W>,
    /// Seats whose bell is to be rung.
    ring: u64,
    /// A thread whose unit has ended.
    collector: Option<Thread>,
}

impl<W: Workload> Shared<W> {
    pub(crate) fn new(
        workload: W,
        plan: FleetPlan,
        (live, posture): (Arc<Live>, PostureControl),
        bells: Box<[Bell]>,
        keys: Box<[u8]>,
        alarm: AlarmAction,
        state: State<W>,
    ) -> Self {
        Self {
            workload,
            live,
            posture,
            plan,
            keys,
            bells,
            alarm,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Takes the lock.
    pub(crate) fn turn(&self) -> Turn<'_, W> {
        // The host changes its state whole or not at all, and units run outside the lock; a panic
        // while it was held (an alarm's action) leaves the tables as whole as before.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Turn {
            state,
            after: After {
                shared: self,
                ring: 0,
                collector: None,
            },
            now: self.live.clock.now(),
        }
    }

    /// The live guard.
    pub(crate) fn guard(&self, now: Instant) -> Guard {
        self.live.guard.read(now)
    }

    fn release(&self, state: &mut State<W>, unit: UnitId) {
        match state.host.release(unit) {
            Ok(released) => {
                if released.was_full && state.watchers > 0 {
                    self.changed.notify_all();
                }
            }
            Err(error) => tracing::error!("a row was released twice: {error}"),
        }
    }

    fn raise(&self, state: &State<W>, alarm: Alarm) {
        let (Alarm::Stuck { role, .. } | Alarm::StrandedPipe { role }) = alarm;
        let report = AlarmReport {
            alarm,
            role: state
                .host
                .table()
                .get(role)
                .map_or("unknown", |spec| spec.name),
            dump: self.status_of(state).to_string(),
        };
        tracing::error!("{report}");
        match &self.alarm {
            AlarmAction::Abort => std::process::abort(),
            AlarmAction::Call(action) => {
                seats::caught("the alarm action", || action(&report));
            }
        }
    }

    pub(crate) fn take_ended(&self, unit: UnitId) -> Option<Ended<W>> {
        let mut turn = self.turn();
        let ended = turn.slots.take_ended(unit)?;
        self.release(&mut turn, unit);
        Some(ended)
    }

    /// Blocks until `unit` has ended or the deadline has come.
    pub(crate) fn wait_ended(
        &self,
        unit: UnitId,
        deadline: Option<std::time::Instant>,
    ) -> Option<Ended<W>> {
        loop {
            let mut turn = self.turn();
            if let Some(ended) = turn.slots.take_ended(unit) {
                self.release(&mut turn, unit);
                return Some(ended);
            }
            let left = deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                turn.slots.set_waiter(unit, None);
                return None;
            }
            turn.slots.set_waiter(unit, Some(std::thread::current()));
            drop(turn);
            // The token of `park` closes the gap between the unlock and the block.
            match left {
                None => std::thread::park(),
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }

    pub(crate) fn abandon(&self, unit: UnitId) {
        let mut turn = self.turn();
        let ended = turn.slots.abandon(unit);
        if ended.is_some() {
            self.release(&mut turn, unit);
        }
        drop(turn);
        // The output's destructor is the user's code: not under the lock.
        drop(ended);
    }

    /// The thread of `seat` is gone without having been told to.
    pub(crate) fn seat_died(&self, seat: SeatId) {
        // The posture's owner is locked before the state, as everywhere.
        self.posture.lane_death();
        let mut turn = self.turn();
        // What lay in its mailbox is what it held, and ends with it.
        turn.take_mail(seat);
        turn.wakes(seat);
        let (host, now, guard) = turn.host();
        if let Err(error) = host.seat_died(seat, now, &guard) {
            tracing::error!("the death of a seat was not taken: {error}");
        }
        turn.advance(None);
    }

    /// The last step of a seat's thread. What nobody collects is gone by the time the last is announced.
    pub(crate) fn thread_ended(&self, seat: SeatId) {
        let parting = std::mem::take(&mut self.turn().uncollected);
        parting.into_iter().for_each(seats::discard);
        let mut turn = self.turn();
        turn.living &= !seat.bit();
        turn.wakes(seat);
        turn.keep_time();
        self.changed.notify_all();
    }

    /// Takes a step of closing, if it was not taken before.
    pub(crate) fn step_close(&self, phase: ClosePhase) {
        let mut turn = self.turn();
        let (host, now, guard) = turn.host();
        // Refused where the step was taken before: closing again is no fault.
        let taken = host.close(phase, now, &guard).is_ok();
        turn.advance(None);
        if taken {
            SeatId::members(turn.living).for_each(|seat| turn.call(seat));
        }
        // Whoever waits for room waits in vain from here on.
        self.changed.notify_all();
    }

    /// Waits on `changed` until `done` or the deadline; returns the state and whether it is done.
    pub(crate) fn watch(
        &self,
        deadline: Option<std::time::Instant>,
        mut done: impl FnMut(&State<W>) -> bool,
    ) -> (Turn<'_, W>, bool) {
        let mut turn = self.turn();
        loop {
            if done(&turn) {
                return (turn, true);
            }
            let left = deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (turn, false);
            }
            turn.watchers += 1;
            turn = turn.wait(left);
            turn.watchers -= 1;
        }
    }
}

impl<W: Workload> Turn<'_, W> {
    /// The live guard, and the host.
    pub(crate) fn host(&mut self) -> (&mut Host<Box<[UnitRow]>>, Instant, Guard) {
        let guard = self.after.shared.guard(self.now);
        (&mut self.state.host, self.now, guard)
    }

    /// Carries out what the host has decided. The last step of every use of the host; `me` is the seat
    /// that does it, if it is one.
    pub(crate) fn advance(&mut self, me: Option<SeatId>) {
        // The guard is a few loads, and is read anew for every decision.
        loop {
            let (host, now, guard) = self.host();
            let Some(grant) = host.poll_grant(now, &guard) else {
                break;
            };
            self.state.mailboxes[grant.seat.index()] = Some(grant);
            if Some(grant.seat) != me {
                self.call(grant.seat);
            }
        }
        self.settle();
        if me.is_none() {
            self.keep_time();
            // Their destructors are for a seat to run.
            if !self.uncollected.is_empty()
                && let Some(seat) = SeatId::members(self.living).next()
            {
                self.call(seat);
            }
        }
    }

    /// Has the bell of a seat rung once the lock is free.
    pub(crate) fn call(&mut self, seat: SeatId) {
        self.after.shared.bells[seat.index()].mark();
        self.after.ring |= seat.bit();
    }

    /// Sees to it that a thread blocks with the host's deadline, if it has one.
    pub(crate) fn keep_time(&mut self) {
        let (host, _, guard) = self.host();
        let Some(due) = host.next_deadline(&guard) else {
            // A keeper that has nothing to keep wakes once and goes back to sleep.
            return;
        };
        let seat = match self.keeper {
            // It may wake early, and looks again.
            Some((_, until)) if until <= due => return,
            Some((keeper, _)) => Some(keeper),
            None => SeatId::members(self.living)
                .find(|seat| matches!(self.phase(*seat), SlotPhase::Idle | SlotPhase::Pinned)),
        };
        if let Some(seat) = seat {
            self.call(seat);
        }
    }

    /// The deadline with which `me` is to block, having nothing to run: the host's, unless another
    /// thread blocks with it.
    pub(crate) fn hold_time(&mut self, me: SeatId) -> Option<Instant> {
        let (host, _, guard) = self.host();
        let due = host.next_deadline(&guard)?;
        if self.keeper.is_some_and(|(_, until)| until <= due) {
            return None;
        }
        // A keeper with a later deadline keeps nothing from here on.
        self.keeper = Some((me, due));
        Some(due)
    }

    /// `me` is awake, and keeps no time.
    pub(crate) fn wakes(&mut self, me: SeatId) {
        if self.keeper.is_some_and(|(keeper, _)| keeper == me) {
            self.keeper = None;
        }
    }

    /// Outcomes reach their receipts, and alarms are raised.
    fn settle(&mut self) {
        let shared = self.after.shared;
        let state = &mut *self.state;
        while let Some(resolved) = state.host.poll_resolved() {
            match resolved.outcome {
                Outcome::NotRun => state.not_run += 1,
                Outcome::Closed => state.closed += 1,
                Outcome::Done | Outcome::Panicked | Outcome::LaneDeath => {}
            }
            match state.slots.end(resolved.unit, resolved.outcome) {
                Then::Keep => {}
                Then::Wake(thread) => {
                    // One ends at a time but for closing and death; those can afford a wake under the
                    // lock.
                    if let Some(earlier) = self.after.collector.replace(thread) {
                        earlier.unpark();
                    }
                }
                Then::Release(ended) => {
                    state.uncollected.push(ended);
                    shared.release(state, resolved.unit);
                }
            }
        }
        if state.watchers > 0 && (state.host.is_idle() || faulted(&state.host)) {
            shared.changed.notify_all();
        }
        while let Some(alarm) = state.host.poll_alarm() {
            shared.raise(state, alarm);
        }
    }

    /// Waits on `changed` with the lock released; returns with the lock.
    fn wait(self, left: Option<std::time::Duration>) -> Self {
        let Self { state, after, .. } = self;
        let shared = after.shared;
        let state = match left {
            None => shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(left) => {
                let waited = shared.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        Self {
            state,
            after,
            now: shared.live.clock.now(),
        }
    }
}

impl<W: Workload> Deref for Turn<'_, W> {
    type Target = State<W>;

    fn deref(&self) -> &State<W> {
        &self.state
    }
}

impl<W: Workload> DerefMut for Turn<'_, W> {
    fn deref_mut(&mut self) -> &mut State<W> {
        &mut self.state
    }
}

impl<W: Workload> Drop for After<'_, W> {
    fn drop(&mut self) {
        for seat in SeatId::members(self.ring) {
            self.shared.bells[seat.index()].ring();
        }
        if let Some(thread) = self.collector.take() {
            thread.unpark();
        }
    }
}

impl<W: Workload> Nudge for Shared<W> {
    fn posture_edge(&self) {
        let mut turn = self.turn();
        let (host, now, guard) = turn.host();
        host.posture_edge(now, &guard);
        turn.advance(None);
    }
}

/// Whether some lane is dead, so that whoever waits for room there waits in vain.
fn faulted(host: &Host<Box<[UnitRow]>>) -> bool {
    let mut roles = host.table().ids();
    roles.any(|role| host.progress(role) == Some(Progress::Faulted))
}
