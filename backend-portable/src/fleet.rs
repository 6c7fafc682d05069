//! The fleet: boot, submission, closing.

use crate::allotment::{Allotment, QuotaChange};
use crate::bell::Bell;
use crate::census::Census;
use crate::config::{BootError, FleetConfig};
use crate::live::{Live, Nudge, PostureControl};
use crate::platform::{Enter, SeatPlatform, Sleeper, StdPlatform};
use crate::receipt::{Receipt, RoomError, WouldDeadlock};
use crate::seats;
use crate::shared::{Shared, State};
use crate::workload::Workload;
use regatta_core::budget::Quota;
use regatta_core::component::DrainCounts;
use regatta_core::host::{ClosePhase, EnqueueError, Host, HostConfig};
use regatta_core::lane::Progress;
use regatta_core::plan::{Binding, FleetPlan};
use regatta_core::role::{RoleId, RoleTable};
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::unit::UnitRow;
use std::fmt;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use thiserror::Error;

/// The most that closing keeps of its time for the threads to end in, after the drain.
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
    /// Whether the thread of every seat has ended. One has not if its unit runs on past the deadline.
    pub threads_ended: bool,
}

impl CloseReport {
    /// Whether every unit ended by itself and every thread is gone.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.closed == 0 && self.threads_ended
    }
}

/// A running fleet.
///
/// Any number of threads may submit. Dropping the fleet closes it; receipts outlive it and are all
/// resolved by then.
pub struct Fleet<W: Workload> {
    shared: Arc<Shared<W>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    quota: Mutex<Allotment>,
    census: Census,
}

impl<W: Workload> fmt::Debug for Fleet<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").finish_non_exhaustive()
    }
}

impl<W: Workload> Fleet<W> {
    /// Boots a fleet whose threads are the standard library's; it has the serial binding.
    pub fn boot(workload: W, config: FleetConfig, census: &Census) -> Result<Self, BootError> {
        Self::boot_on(&StdPlatform, workload, config, census)
    }

    /// Boots a fleet on a platform. Everything that units will need is allocated when this returns.
    pub fn boot_on(
        platform: &dyn SeatPlatform,
        workload: W,
        config: FleetConfig,
        census: &Census,
    ) -> Result<Self, BootError> {
        let binding = config.plan.binding;
        if binding == Binding::Pinned && !platform.bindings().pinned {
            return Err(BootError::Binding(binding));
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
        let allotment = Allotment::new(config.plan.clone(), config.cpus);
        let posture = PostureControl::new(&live, config.policy, allotment.width());
        let (mut bells, mut enters) = (Vec::new(), Vec::new());
        for seat in SeatId::all(config.plan.seats.len()) {
            let Sleeper { waker, enter } = platform
                .sleeper(seat, live.clock)
                .map_err(|source| BootError::Seat { seat, source })?;
            bells.push(Bell::new(waker));
            enters.push(enter);
        }
        let keys = config
            .lanes
            .iter()
            .map(|lane| if lane.rows > 0 { lane.keys } else { 0 })
            .collect();
        let shared = Arc::new(Shared::new(
            workload,
            config.plan,
            (live, posture),
            bells.into_boxed_slice(),
            keys,
            config.alarm,
            State::new(host, rows),
        ));
        let nudge: Weak<dyn Nudge> = Arc::<Shared<W>>::downgrade(&shared);
        shared.live.set_host(nudge);
        // From here on a fleet that is given up closes, and its threads end.
        let fleet = Self {
            shared,
            threads: Mutex::new(Vec::with_capacity(enters.len())),
            quota: Mutex::new(allotment),
            census: census.clone(),
        };
        fleet.spawn(&config.name, enters)?;
        Ok(fleet)
    }

    /// Spawns the seats' threads and waits until each is ready, or has died on the way.
    fn spawn(&self, name: &str, enters: Vec<Enter>) -> Result<(), BootError> {
        let (ready, readied) = channel();
        for (seat, enter) in SeatId::all(enters.len()).zip(enters) {
            let call = (enter, ready.clone());
            let thread = seats::spawn(&self.shared, seat, name, &self.census, call)?;
            self.handles().push(thread);
        }
        drop(ready);
        // Only what fails is told; the end of all senders says that all are ready.
        readied.recv().map_or(Ok(()), |(seat, source)| {
            Err(BootError::Seat { seat, source })
        })
    }

    fn handles(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        // A push or a take is whole or was not.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a unit. `key` is zero for a role without keys.
    pub fn submit(
        &self,
        role: impl Into<RoleId>,
        key: u8,
        unit: W::Unit,
    ) -> Result<Receipt<W>, SubmitError<W::Unit>> {
        let mut turn = self.shared.turn();
        let (host, now, guard) = turn.host();
        let accepted = match host.enqueue(role.into(), key, now, &guard) {
            Ok(accepted) => accepted.unit(),
            Err(error) => return Err(SubmitError { unit, error }),
        };
        turn.slots.put(accepted, unit);
        turn.advance(None);
        drop(turn);
        Ok(Receipt::new(Arc::clone(&self.shared), accepted))
    }

    /// Blocks until the lane of `role` has room for a unit, or until `timeout` has passed. Another
    /// submitter may take the room first. A lane without rows never has room and counts as closed.
    pub fn wait_for_room(
        &self,
        role: impl Into<RoleId>,
        timeout: Option<std::time::Duration>,
    ) -> Result<(), RoomError> {
        if seats::on_a_seat() {
            return Err(WouldDeadlock.into());
        }
        let role = role.into();
        let deadline = timeout.and_then(|t| std::time::Instant::now().checked_add(t));
        let rows = self.shared.keys.get(role.index()).is_some_and(|n| *n > 0);
        let open = |state: &State<W>| {
            let progress = state.host.progress(role);
            rows && matches!(progress, Some(Progress::Idle | Progress::Backed))
        };
        let (turn, done) = self
            .shared
            .watch(deadline, |s| s.host.room(role) > 0 || !open(s));
        match (open(&turn), done) {
            (false, _) => Err(RoomError::Closed),
            (true, true) => Ok(()),
            (true, false) => Err(RoomError::TimedOut),
        }
    }

    /// Tells the host that the work of an epoch is over and the next one begins.
    pub fn epoch_boundary(&self, seq: u64) -> Result<(), regatta_core::host::EpochError> {
        let mut turn = self.shared.turn();
        let (host, now, guard) = turn.host();
        let result = host.epoch_boundary(seq, now, &guard);
        turn.advance(None);
        // A pin that was released leaves an arena, which its seat drops.
        let parted = SeatId::members(turn.warm).filter(|seat| turn.phase(*seat) == SlotPhase::Idle);
        let parted = parted.fold(0, |mask, seat| mask | seat.bit());
        SeatId::members(parted).for_each(|seat| turn.call(seat));
        result
    }

    /// Takes a new detection of the quota: shares and permits are derived again, units beyond the permits
    /// drain, and pins change at the next epoch boundary. The binding stays as booted. `cpus` is how many
    /// CPUs the process may use, if that is known.
    ///
    /// Below the least that hosts a fleet, critical roles go on with one permit and everything else is
    /// held; the next detection that finds enough undoes it.
    pub fn requota(&self, detected: Quota, cpus: Option<u16>) -> QuotaChange {
        let mut allotment = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        let change = allotment.detected(detected, cpus);
        let (live, plan) = (&self.shared.live, &change.now);
        live.guard.set_permits(plan.permits, change.generation);
        self.shared.posture.set_width(allotment.width());
        let mut turn = self.shared.turn();
        let (host, now, guard) = turn.host();
        if let Err(error) = host.resize(change.pins(), now, &guard) {
            tracing::error!("the new quota was not taken: {error}");
        }
        turn.advance(None);
        drop(turn);
        tracing::warn!("{change}");
        change
    }

    /// The plan as it is now: as booted, with what the last detection of the quota changed.
    #[must_use]
    pub fn current_plan(&self) -> FleetPlan {
        let allotment = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        allotment.plan().clone()
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

    /// The census that the fleet's threads are in.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// The role table.
    #[must_use]
    pub fn table(&self) -> &'static RoleTable {
        self.shared.turn().host.table()
    }

    /// How many of the fleet's threads live.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.shared.turn().living.count_ones()
    }

    /// What became of the units that were owed when intake closed; `None` as long as it has not.
    #[must_use]
    pub fn drain_counts(&self) -> Option<DrainCounts> {
        self.shared.turn().host.drain_counts()
    }

    /// Every lane and seat at one moment.
    #[must_use]
    pub fn status(&self) -> crate::status::FleetStatus {
        self.shared.status_of(&self.shared.turn())
    }

    /// Closes the fleet within `timeout`: intake ends and held units end as not run at once, queued
    /// units still run, and what is owed when the drain ends, ends as closed. The drain leaves a
    /// quarter of the time, at most a second, for the thread to end in. Every receipt has resolved when
    /// this returns. Closing a closed fleet returns the report again.
    ///
    /// A unit that closes a fleet does not wait for it: the drain is over at once.
    pub fn close(&self, timeout: std::time::Duration) -> CloseReport {
        let timeout = if seats::on_a_seat() {
            std::time::Duration::ZERO
        } else {
            timeout
        };
        let deadline = std::time::Instant::now().checked_add(timeout);
        let drain_end = deadline.and_then(|at| at.checked_sub(RESERVE.min(timeout / 4)));
        self.shared.step_close(ClosePhase::Quiesce);
        let drained = |state: &State<W>| state.host.is_idle() || state.threads_ended();
        drop(self.shared.watch(drain_end, drained));
        self.shared.step_close(ClosePhase::Fence);
        let (turn, threads_ended) = self.shared.watch(deadline, State::threads_ended);
        let report = CloseReport {
            not_run: turn.not_run,
            closed: turn.closed,
            threads_ended,
        };
        drop(turn);
        if threads_ended {
            let threads = std::mem::take(&mut *self.handles());
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("the thread of a seat unwound");
                }
            }
        }
        report
    }
}

impl<W: Workload> Drop for Fleet<W> {
    fn drop(&mut self) {
        let report = self.close(DROP_DRAIN);
        if !report.threads_ended {
            tracing::error!("a unit runs on past the drain; its thread is left behind");
        }
    }
}
