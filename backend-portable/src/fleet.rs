//! The fleet: boot, submission, closing.

use crate::census::Census;
use crate::config::{AlarmAction, AlarmReport, BootError, FleetConfig};
use crate::live::{Live, PostureControl};
use crate::receipt::{Ended, Receipt, RoomError, WouldDeadlock};
use crate::serial;
use crate::slots::{Slots, Then};
use crate::workload::Workload;
use regatta_core::guard::Guard;
use regatta_core::host::{Alarm, ClosePhase, EnqueueError, Host, HostConfig};
use regatta_core::lane::Progress;
use regatta_core::plan::{Binding, FleetPlan};
use regatta_core::port::Clock;
use regatta_core::role::{RoleId, RoleTable};
use regatta_core::seat::SeatId;
use regatta_core::time::Instant;
use regatta_core::unit::{Outcome, UnitId, UnitRow};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use thiserror::Error;

/// Room for outcomes that nobody will collect, before the list has to grow. A unit that ends adds one
/// and the thread empties the list before the next; only closing and death add many at once.
pub(crate) const UNCOLLECTED: usize = 16;

/// The most that closing keeps of its time for the thread to end in, after the drain.
const RESERVE: std::time::Duration = std::time::Duration::from_secs(1);

/// How long [`Drop`] lets a fleet drain.
const DROP_DRAIN: std::time::Duration = std::time::Duration::from_secs(10);

/// A unit that was not accepted, and why. Nothing was counted and the unit comes back.
#[derive(Error)]
#[error("{error}")]
pub struct SubmitError<U> {
    /// The unit.
    pub unit: U,
    /// Why.
    pub error: EnqueueError,
}

impl<U> fmt::Debug for SubmitError<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

/// What closing left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CloseReport {
    /// Units that ended as [`Failure::NotRun`](crate::Failure::NotRun).
    pub not_run: u64,
    /// Units that ended as [`Failure::Closed`](crate::Failure::Closed).
    pub closed: u64,
    /// Whether the cycle thread has ended. It has not if a unit runs on past the deadline.
    pub thread_ended: bool,
}

impl CloseReport {
    /// Whether every unit ended by itself and every thread is gone.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.closed == 0 && self.thread_ended
    }
}

/// What the lock guards: the host and what belongs to its rows.
pub(crate) struct State<W: Workload> {
    pub(crate) host: Host<Box<[UnitRow]>>,
    pub(crate) slots: Slots<W>,
    /// Outcomes that nobody will collect. Their destructors are the user's code, so the cycle thread
    /// drops them after it has let go of the lock.
    pub(crate) uncollected: Vec<Ended<W>>,
    /// Threads that wait on `changed`.
    watchers: u32,
    not_run: u64,
    closed: u64,
    thread_ended: bool,
}

/// What the handle, the receipts and the cycle thread share.
pub(crate) struct Shared<W: Workload> {
    pub(crate) workload: W,
    pub(crate) live: Arc<Live>,
    pub(crate) posture: PostureControl,
    pub(crate) plan: FleetPlan,
    pub(crate) keys: Box<[u8]>,
    alarm: AlarmAction,
    state: Mutex<State<W>>,
    /// A lane got room or takes no more units, the host became idle, or the thread ended.
    changed: Condvar,
}

impl<W: Workload> Shared<W> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<W>> {
        // The host changes its state whole or not at all, and units run outside the lock; a panic
        // while it was held (a payload's destructor) leaves the tables as whole as before.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn guard(&self) -> (Instant, Guard) {
        let now = self.live.clock.now();
        (now, self.live.guard.read(now))
    }

    /// Carries out what the host has decided since the last call: outcomes reach their receipts, and
    /// alarms are raised. The last step of every use of the host.
    pub(crate) fn settle(&self, state: &mut State<W>) {
        while let Some(resolved) = state.host.poll_resolved() {
            match resolved.outcome {
                Outcome::NotRun => state.not_run += 1,
                Outcome::Closed => state.closed += 1,
                Outcome::Done | Outcome::Panicked | Outcome::LaneDeath => {}
            }
            match state.slots.end(resolved.unit, resolved.outcome) {
                Then::Keep => {}
                Then::Wake(thread) => thread.unpark(),
                Then::Release(ended) => {
                    state.uncollected.push(ended);
                    self.release(state, resolved.unit);
                }
            }
        }
        if state.watchers > 0 && (state.host.is_idle() || faulted(&state.host)) {
            self.changed.notify_all();
        }
        while let Some(alarm) = state.host.poll_alarm() {
            self.raise(state, alarm);
        }
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
                serial::caught("the alarm action", || action(&report));
            }
        }
    }

    pub(crate) fn take_ended(&self, unit: UnitId) -> Option<Ended<W>> {
        let mut state = self.lock();
        let ended = state.slots.take_ended(unit)?;
        self.release(&mut state, unit);
        Some(ended)
    }

    /// Blocks until `unit` has ended or the deadline has come.
    pub(crate) fn wait_ended(
        &self,
        unit: UnitId,
        deadline: Option<std::time::Instant>,
    ) -> Option<Ended<W>> {
        loop {
            let mut state = self.lock();
            if let Some(ended) = state.slots.take_ended(unit) {
                self.release(&mut state, unit);
                return Some(ended);
            }
            let left = deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                state.slots.set_waiter(unit, None);
                return None;
            }
            state.slots.set_waiter(unit, Some(std::thread::current()));
            drop(state);
            // The token of `park` closes the gap between the unlock and the block.
            match left {
                None => std::thread::park(),
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }

    pub(crate) fn abandon(&self, unit: UnitId) {
        let mut state = self.lock();
        let ended = state.slots.abandon(unit);
        if ended.is_some() {
            self.release(&mut state, unit);
        }
        drop(state);
        // The output's destructor is the user's code: not under the lock.
        drop(ended);
    }

    /// The cycle thread is gone without having been told to.
    pub(crate) fn seat_died(&self, seat: SeatId) {
        self.posture.lane_death();
        let mut state = self.lock();
        let (now, guard) = self.guard();
        if let Err(error) = state.host.seat_died(seat, now, &guard) {
            tracing::error!("the death of a seat was not taken: {error}");
        }
        self.settle(&mut state);
    }

    /// The last step of the cycle thread. What nobody collects is gone by the time it is announced.
    pub(crate) fn thread_ended(&self) {
        let parting = std::mem::take(&mut self.lock().uncollected);
        parting.into_iter().for_each(serial::discard);
        self.lock().thread_ended = true;
        self.changed.notify_all();
    }

    /// Waits on `changed` until `done` or the deadline; returns the state and whether it is done.
    fn watch<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<W>>,
        deadline: Option<std::time::Instant>,
        mut done: impl FnMut(&State<W>) -> bool,
    ) -> (MutexGuard<'a, State<W>>, bool) {
        loop {
            if done(&state) {
                return (state, true);
            }
            let left = deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (state, false);
            }
            state.watchers += 1;
            state = match left {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.watchers -= 1;
        }
    }
}

/// Whether some lane is dead, so that whoever waits for room there waits in vain.
fn faulted(host: &Host<Box<[UnitRow]>>) -> bool {
    let mut roles = host.table().ids();
    roles.any(|role| host.progress(role) == Some(Progress::Faulted))
}

/// A running fleet on the serial binding.
///
/// Any number of threads may submit. Dropping the fleet closes it; receipts outlive it and are all
/// resolved by then.
pub struct Fleet<W: Workload> {
    shared: Arc<Shared<W>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    census: Census,
}

impl<W: Workload> fmt::Debug for Fleet<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").finish_non_exhaustive()
    }
}

impl<W: Workload> Fleet<W> {
    /// Boots a fleet. Everything that units will need is allocated here.
    pub fn boot(workload: W, config: FleetConfig, census: &Census) -> Result<Self, BootError> {
        if config.plan.binding != Binding::Serial {
            return Err(BootError::Binding(config.plan.binding));
        }
        if let Some(role) = config.unknown {
            let roles = config.table.roles.len();
            return Err(BootError::Role { role, roles });
        }
        let rows = config.lanes.iter().map(|lane| lane.rows as usize).sum();
        let host = Host::new(
            &HostConfig {
                table: config.table,
                lanes: &config.lanes,
                seats: &config.plan.seats,
                windows: &config.windows,
                backstop: config.backstop,
                stuck_ticks: config.stuck_ticks,
            },
            vec![UnitRow::FREE; rows].into_boxed_slice(),
        )?;
        let live = Arc::new(Live::new(config.plan.permits, config.edges));
        // One thread is all that can be throttled at once.
        let posture = PostureControl::new(&live, config.policy, 1);
        let keys = config
            .lanes
            .iter()
            .map(|lane| if lane.rows > 0 { lane.keys } else { 0 })
            .collect();
        let shared = Arc::new(Shared {
            workload,
            live,
            posture,
            plan: config.plan,
            keys,
            alarm: config.alarm,
            state: Mutex::new(State {
                host,
                slots: Slots::new(rows),
                uncollected: Vec::with_capacity(UNCOLLECTED),
                watchers: 0,
                not_run: 0,
                closed: 0,
                thread_ended: false,
            }),
            changed: Condvar::new(),
        });
        let thread = serial::spawn(&shared, &config.name, census)?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            census: census.clone(),
        })
    }

    /// Submits a unit. `key` is zero for a role without keys.
    pub fn submit(
        &self,
        role: impl Into<RoleId>,
        key: u8,
        unit: W::Unit,
    ) -> Result<Receipt<W>, SubmitError<W::Unit>> {
        let mut state = self.shared.lock();
        let (now, guard) = self.shared.guard();
        let accepted = match state.host.enqueue(role.into(), key, now, &guard) {
            Ok(accepted) => accepted.unit(),
            Err(error) => return Err(SubmitError { unit, error }),
        };
        state.slots.put(accepted, unit);
        self.shared.settle(&mut state);
        drop(state);
        self.shared.live.announce();
        Ok(Receipt::new(Arc::clone(&self.shared), accepted))
    }

    /// Blocks until the lane of `role` has room for a unit, or until `timeout` has passed. Another
    /// submitter may take the room first. A lane without rows never has room and counts as closed.
    pub fn wait_for_room(
        &self,
        role: impl Into<RoleId>,
        timeout: Option<std::time::Duration>,
    ) -> Result<(), RoomError> {
        if serial::on_a_seat() {
            return Err(WouldDeadlock.into());
        }
        let role = role.into();
        let deadline = timeout.and_then(|t| std::time::Instant::now().checked_add(t));
        let rows = self.shared.keys.get(role.index()).is_some_and(|n| *n > 0);
        let open = |state: &State<W>| {
            let progress = state.host.progress(role);
            rows && matches!(progress, Some(Progress::Idle | Progress::Backed))
        };
        let (state, done) = self.shared.watch(self.shared.lock(), deadline, |s| {
            s.host.room(role) > 0 || !open(s)
        });
        match (open(&state), done) {
            (false, _) => Err(RoomError::Closed),
            (true, true) => Ok(()),
            (true, false) => Err(RoomError::TimedOut),
        }
    }

    /// Tells the host that the work of an epoch is over and the next one begins.
    pub fn epoch_boundary(&self, seq: u64) -> Result<(), regatta_core::host::EpochError> {
        let mut state = self.shared.lock();
        let (now, guard) = self.shared.guard();
        let result = state.host.epoch_boundary(seq, now, &guard);
        self.shared.settle(&mut state);
        result
    }

    /// The owner of the posture.
    #[must_use]
    pub fn posture(&self) -> &PostureControl {
        &self.shared.posture
    }

    /// The plan the fleet was booted by.
    #[must_use]
    pub fn plan(&self) -> &FleetPlan {
        &self.shared.plan
    }

    /// The workload.
    #[must_use]
    pub fn workload(&self) -> &W {
        &self.shared.workload
    }

    /// The census that the fleet's thread is in.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// The role table.
    #[must_use]
    pub fn table(&self) -> &'static RoleTable {
        self.shared.lock().host.table()
    }

    /// Every lane and seat at one moment.
    #[must_use]
    pub fn status(&self) -> crate::status::FleetStatus {
        self.shared.status_of(&self.shared.lock())
    }

    /// Closes the fleet within `timeout`: intake ends and held units end as not run at once, queued
    /// units still run, and what is owed when the drain ends, ends as closed. The drain leaves a
    /// quarter of the time, at most a second, for the thread to end in. Every receipt has resolved when
    /// this returns. Closing a closed fleet returns the report again.
    ///
    /// A unit that closes a fleet does not wait for it: the drain is over at once.
    pub fn close(&self, timeout: std::time::Duration) -> CloseReport {
        let timeout = if serial::on_a_seat() {
            std::time::Duration::ZERO
        } else {
            timeout
        };
        let deadline = std::time::Instant::now().checked_add(timeout);
        let drain_end = deadline.and_then(|at| at.checked_sub(RESERVE.min(timeout / 4)));
        self.step_close(ClosePhase::Quiesce);
        let drained = |state: &State<W>| state.host.is_idle() || state.thread_ended;
        drop(self.shared.watch(self.shared.lock(), drain_end, drained));
        self.step_close(ClosePhase::Fence);
        let (state, _) = self
            .shared
            .watch(self.shared.lock(), deadline, |s| s.thread_ended);
        let report = CloseReport {
            not_run: state.not_run,
            closed: state.closed,
            thread_ended: state.thread_ended,
        };
        drop(state);
        if report.thread_ended {
            let mut handle = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            let thread = handle.take();
            drop(handle);
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("the cycle thread unwound");
            }
        }
        report
    }

    fn step_close(&self, phase: ClosePhase) {
        let mut state = self.shared.lock();
        let (now, guard) = self.shared.guard();
        // Refused where the step was taken before: closing again is no fault.
        let taken = state.host.close(phase, now, &guard).is_ok();
        self.shared.settle(&mut state);
        // Whoever waits for room waits in vain from here on.
        self.shared.changed.notify_all();
        drop(state);
        if taken {
            self.shared.live.announce();
        }
    }
}

impl<W: Workload> Drop for Fleet<W> {
    fn drop(&mut self) {
        let report = self.close(DROP_DRAIN);
        if !report.thread_ended {
            tracing::error!("a unit runs on past the drain; its thread is left behind");
        }
    }
}
