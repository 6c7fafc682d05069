//! The supervisor: starts and stops the components of a graph, one decision at a time.
//!
//! It knows no thread and no clock. A backend gives it what happened ([`Supervisor::handle`]), then asks
//! until nothing is left what to do ([`Supervisor::poll_action`]), and comes back with the next answer or at
//! [`Supervisor::next_deadline`], whichever is first. Actions that are polled together run together.
//!
//! # Invariants
//! - At most one component is starting, and all it depends on is up.
//! - A component quiesces when whoever depends on it is drained, and stops when they are over; the control
//!   plane does both when the data plane is over. Only a component that is over by a fence excuses that.
//! - Whoever has not answered by its limit is fenced in the same call that sees the limit, so the last
//!   component is over at the deadline at the latest, as far as the caller comes back in time.

mod input;
mod stop;

use super::report::{ComponentReport, ErrorCode, Remaining, Report, StopReason};
use super::{
    ComponentEvent, ComponentId, ComponentSet, ComponentState, Deadline, DrainCounts, Generation,
    Graph, Liveness, Probe, Readiness, Reconnect, RuntimeEvent, RuntimeState, Stale, liveness,
    readiness,
};
use crate::past::Past;
use crate::time::{Duration, Instant};
use heapless::Vec;
use thiserror::Error;

/// The times of a supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SupervisorConfig {
    /// How long the start of everything may take.
    pub start_budget: Duration,
    /// How long the stop of everything may take.
    pub stop_budget: Duration,
    /// From which the jitter of all reconnects follows.
    pub seed: u64,
}

impl SupervisorConfig {
    /// Half a minute to start, ten seconds to stop.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            start_budget: Duration::from_secs(30),
            stop_budget: Deadline::DEFAULT_BUDGET,
            seed,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Input {
    /// Start everything.
    StartAll,
    /// A start succeeded.
    Started {
        /// Whose.
        id: ComponentId,
        /// Whether it came up without something that it needs, and is to reconnect.
        degraded: bool,
    },
    /// A start failed, and took back what it had begun.
    StartFailed {
        /// Whose.
        id: ComponentId,
        /// Why.
        error: ErrorCode,
        /// What it could not take back.
        remaining: Remaining,
    },
    /// Stop everything.
    Stop(StopReason),
    /// Whoever asked to stop has asked again: end the drain, leave the safe minimum.
    SecondSignal,
    /// A quiesce has answered.
    Quiesced {
        /// Whose.
        id: ComponentId,
        /// What it says.
        result: Result<(), ErrorCode>,
    },
    /// A drain has answered.
    Drained {
        /// Whose.
        id: ComponentId,
        /// What it says.
        result: Result<(), ErrorCode>,
        /// What became of the work.
        counts: DrainCounts,
    },
    /// A stop has answered.
    Stopped {
        /// Whose.
        id: ComponentId,
        /// What it says.
        result: Result<(), ErrorCode>,
        /// What is left.
        remaining: Remaining,
    },
    /// A component was fenced, and this is left of it. Nothing waits for it.
    Fenced {
        /// Which.
        id: ComponentId,
        /// What is left.
        remaining: Remaining,
    },
    /// A component lost something that it needs. Any number of threads may notice the same loss.
    Lost {
        /// Which.
        id: ComponentId,
    },
    /// A component without a reconnect policy has again what it had lost.
    Recovered {
        /// Which.
        id: ComponentId,
    },
    /// An attempt to reconnect failed.
    AttemptFailed {
        /// Whose.
        id: ComponentId,
        /// Which attempt.
        generation: Generation,
    },
    /// A deadline has come. Early, late or doubled ones are harmless.
    Tick,
}

/// What an input did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Reaction {
    /// It was taken.
    Noted,
    /// There was nothing to do: nothing runs, or it stops already.
    Already,
    /// The answer came after the component had been fenced, or after the end. It changed at most what the
    /// report says is left.
    Late,
    /// A component came up after the end: close what it brought, nobody else will.
    CloseIt,
}

/// Why an input was not taken. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum InputError {
    /// The graph has no such component.
    #[error("component {id:?}: the graph has {count}")]
    Unknown {
        /// The id.
        id: ComponentId,
        /// How many there are.
        count: usize,
    },
    /// A runtime starts once.
    #[error("the runtime is {} and starts once", state.name())]
    AlreadyStarted {
        /// The state.
        state: RuntimeState,
    },
    /// Nobody waits for this answer.
    #[error("{component}: {source}")]
    NotAwaited {
        /// Whose.
        component: &'static str,
        /// What its state says.
        source: super::ComponentStepError,
    },
    /// The component was not fenced.
    #[error("{component} is {} and was not fenced", state.name())]
    NotFenced {
        /// Which.
        component: &'static str,
        /// Its state.
        state: ComponentState,
    },
    /// The component recovers by an attempt.
    #[error("{component} has a reconnect policy: it recovers when an attempt is committed")]
    RecoversByCommit {
        /// Which.
        component: &'static str,
    },
}

/// Why what an attempt brought is not to be installed: close it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CommitError {
    /// The runtime is not up.
    #[error("the runtime is {}: close what the attempt brought", .0.name())]
    NotUp(RuntimeState),
    /// Another generation is current, or none.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// No such component reconnects.
    #[error("component {0:?} does not reconnect: close what the attempt brought")]
    NoPolicy(ComponentId),
}

/// What to do now. Whoever is told something answers with the input of the same name, before `until`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Action {
    /// Start it.
    Start {
        /// Which.
        id: ComponentId,
        /// Until when.
        until: Instant,
    },
    /// Attempt to reconnect it, then [`Supervisor::commit`] or [`Input::AttemptFailed`].
    Reconnect {
        /// Which.
        id: ComponentId,
        /// The attempt.
        generation: Generation,
        /// Until when.
        until: Instant,
    },
    /// Close its intake.
    Quiesce {
        /// Which.
        id: ComponentId,
        /// Until when.
        until: Instant,
    },
    /// Let it finish what it accepted, and answer at `until` with what it could not.
    Drain {
        /// Which.
        id: ComponentId,
        /// Until when.
        until: Instant,
    },
    /// Stop it. A component that was not asked to quiesce does that too.
    Stop {
        /// Which.
        id: ComponentId,
        /// Until when.
        until: Instant,
    },
    /// Cut it off at once, without waiting for anything: what it does from now on must have no effect, and
    /// its threads are not joined. A component that was fenced because its start took too long is told to
    /// stop if it comes up after all, and fenced again if it does not; nobody else hears anything more.
    Fence {
        /// Which.
        id: ComponentId,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Row {
    state: ComponentState,
    /// When its stop is fenced.
    stop_by: Instant,
    reconnect: Option<Reconnect>,
    report: ComponentReport,
}

/// The supervisor. See the module documentation of [`component`](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Supervisor<const N: usize> {
    graph: Past<Graph<N>>,
    config: SupervisorConfig,
    runtime: RuntimeState,
    rows: Vec<Row, N>,
    start_by: Instant,
    stop: Option<Stop>,
    /// Fenced, and the caller does not know yet.
    fences: ComponentSet,
}

/// A stop that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Stop {
    reason: StopReason,
    began: Instant,
    deadline: Deadline,
    completed: Instant,
}

impl<const N: usize> Supervisor<N> {
    /// A supervisor of the components of `graph`, none of which has started.
    #[must_use]
    pub fn new(graph: Graph<N>, config: SupervisorConfig) -> Self {
        let row = |id: ComponentId| Row {
            state: ComponentState::Registered,
            stop_by: Instant::ORIGIN,
            reconnect: None,
            report: ComponentReport::new(graph.name(id)),
        };
        Self {
            rows: graph.ids().map(row).collect(),
            graph: Past(graph),
            config,
            runtime: RuntimeState::Idle,
            start_by: Instant::ORIGIN,
            stop: None,
            fences: ComponentSet::EMPTY,
        }
    }

    /// Installs what the attempt of `generation` brought: to be called where it is installed, under the lock
    /// that every other call takes too, and to be obeyed. An error means that it is to be closed.
    pub fn commit(
        &mut self,
        id: ComponentId,
        generation: Generation,
        now: Instant,
    ) -> Result<(), CommitError> {
        self.expire(now);
        if !self.runtime.is_up() {
            return Err(CommitError::NotUp(self.runtime));
        }
        let row = self.rows.get_mut(id.index());
        let reconnect = row.and_then(|row| row.reconnect.as_mut());
        let reconnect = reconnect.ok_or(CommitError::NoPolicy(id))?;
        reconnect.commit(generation, now)?;
        self.step_surely(id, ComponentEvent::Recover);
        Ok(())
    }

    /// What to do now, until there is nothing. A start is decided here, so none is begun after a stop was.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.expire(now);
        let fenced = self
            .graph
            .0
            .stop_order()
            .find(|id| self.fences.contains(*id));
        if let Some(id) = fenced {
            self.fences = self.fences.without(id);
            return Some(Action::Fence { id });
        }
        match self.runtime {
            RuntimeState::Starting => self.poll_start().or_else(|| self.poll_reconnect(now)),
            RuntimeState::Running => self.poll_reconnect(now),
            RuntimeState::Stopping => self.poll_stop(now),
            RuntimeState::Idle | RuntimeState::Stopped => None,
        }
    }

    fn poll_start(&mut self) -> Option<Action> {
        let mut ids = self.graph.0.start_order().iter().copied();
        let id = ids.find(|id| !self.state(*id).is_some_and(Self::came_up))?;
        if self.state(id) != Some(ComponentState::Registered) {
            return None;
        }
        self.step_surely(id, ComponentEvent::Start);
        if let Some(row) = self.rows.get_mut(id.index()) {
            row.report.start = super::StartResult::Pending;
        }
        let until = self.start_by;
        Some(Action::Start { id, until })
    }

    const fn came_up(state: ComponentState) -> bool {
        use ComponentState::{Degraded, Failed, Reconnecting, Running};
        matches!(state, Running | Degraded | Reconnecting | Failed)
    }

    fn poll_reconnect(&mut self, now: Instant) -> Option<Action> {
        let due = |id: ComponentId| {
            let reconnect = self.rows.get_mut(id.index())?.reconnect.as_mut()?;
            let (generation, until) = reconnect.poll(now)?;
            Some(Action::Reconnect {
                id,
                generation,
                until,
            })
        };
        let action = self.graph.0.ids().find_map(due)?;
        if let Action::Reconnect { id, .. } = action {
            self.step_surely(id, ComponentEvent::Retry);
        }
        Some(action)
    }

    /// When to call again, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let limits = self.graph.0.ids().filter_map(|id| self.limit(id));
        let start = (self.runtime == RuntimeState::Starting).then_some(self.start_by);
        limits.chain(start).min()
    }

    /// Until when the component may take for what it is doing, after which it is fenced; while the runtime
    /// is up, when something about its reconnect is due. A second signal makes it earlier.
    #[must_use]
    pub fn limit(&self, id: ComponentId) -> Option<Instant> {
        let row = self.rows.get(id.index())?;
        match (self.runtime, &self.stop) {
            (RuntimeState::Stopping, Some(stop)) => self.stop_limit(row, &stop.deadline),
            (RuntimeState::Starting | RuntimeState::Running, _) => {
                row.reconnect.as_ref()?.next_deadline()
            }
            _ => None,
        }
    }

    /// The components and their orders.
    #[must_use]
    pub const fn graph(&self) -> &Graph<N> {
        &self.graph.0
    }

    /// The state of the whole.
    #[must_use]
    pub const fn runtime(&self) -> RuntimeState {
        self.runtime
    }

    /// The state of a component.
    #[must_use]
    pub fn state(&self, id: ComponentId) -> Option<ComponentState> {
        self.rows.get(id.index()).map(|row| row.state)
    }

    /// The states, in the order of registration.
    #[must_use]
    pub fn states(&self) -> Vec<ComponentState, N> {
        self.rows.iter().map(|row| row.state).collect()
    }

    /// The reconnect of a component that has come up and has a policy: its generation and attempts.
    #[must_use]
    pub fn connection(&self, id: ComponentId) -> Option<&Reconnect> {
        self.rows.get(id.index())?.reconnect.as_ref()
    }

    /// The deadline of the stop, once it has begun. Components that wait should look at it again, since a
    /// second signal shortens it.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        self.stop.map(|stop| stop.deadline)
    }

    /// The report, once the runtime has stopped.
    #[must_use]
    pub fn report(&self) -> Option<Report<N>> {
        let stop = self.stop?;
        (self.runtime == RuntimeState::Stopped).then(|| Report {
            reason: stop.reason,
            started_at: stop.began,
            deadline: stop.deadline.at(),
            completed_at: stop.completed,
            components: self.rows.iter().map(|row| row.report).collect(),
        })
    }

    /// Whether the process is ready; see [`readiness`].
    #[must_use]
    pub fn readiness(&self, probes: &[Probe], reconciled: bool) -> Readiness<N> {
        readiness(
            &self.graph.0,
            self.runtime,
            &self.states(),
            probes,
            reconciled,
        )
    }

    /// Whether the process is alive; see [`liveness`].
    #[must_use]
    pub fn liveness(&self, stalled: bool, now: Instant) -> Liveness {
        liveness(self.runtime, self.next_deadline(), stalled, now)
    }

    /// A step that the caller has checked.
    fn step_surely(&mut self, id: ComponentId, event: ComponentEvent) {
        let stepped = self.step(id, event);
        debug_assert!(stepped.is_ok(), "{stepped:?}");
    }

    fn runtime_surely(&mut self, event: RuntimeEvent) {
        let stepped = self.runtime.on(event);
        debug_assert!(stepped.is_ok(), "{stepped:?}");
        self.runtime = stepped.unwrap_or(self.runtime);
    }

    fn step(&mut self, id: ComponentId, event: ComponentEvent) -> Result<(), InputError> {
        let count = self.rows.len();
        let Some(row) = self.rows.get_mut(id.index()) else {
            return Err(InputError::Unknown { id, count });
        };
        let component = row.report.name;
        let stepped = row.state.on(event);
        row.state = stepped.map_err(|source| InputError::NotAwaited { component, source })?;
        Ok(())
    }
}
