//! Components: who owns what, in which order it starts, and how all of it stops before one deadline.
//!
//! A [`Graph`] is the checked registry: names, dependencies, planes, thread demand, reconnect policies,
//! and the orders that follow from them. A [`Supervisor`] runs it like a sans-I/O protocol: results
//! come in through [`Supervisor::handle`] with an explicit `now`, what to do next is read with
//! [`Supervisor::poll_action`], and [`Supervisor::next_deadline`] is its only timer. A [`Report`] says
//! what came of the stop, and [`readiness`] and [`liveness`] what to tell whoever asks.
//!
//! ```text
//! StartAll ─► Start(a) ─► Start(b) ─► … running … Stop(reason)
//!                                                    │ one Deadline
//!      dependents first: Quiesce ─► Drain ─► Stop, and Fence for whatever does not answer
//! ```
//!
//! Whoever drives it holds one lock around it and, after every input and at every deadline, does what
//! `poll_action` says until it says nothing: each action on a thread of its own or of its component, none of
//! them waited for. It ends when [`Supervisor::report`] is there. Probes, signals, attempts to connect and
//! threads are the driver's; when each is due and what its result is worth is decided here.
//!
//! # Invariants
//! - There is one [`Deadline`] a stop. It can shrink and not grow, and every limit is a part of it.
//! - Nothing is started once a stop began, nothing is told twice to stop, and whatever started is told
//!   to stop or is fenced.

mod backoff;
mod deadline;
mod graph;
mod health;
mod reconnect;
mod report;
mod supervisor;
mod threads;

pub use backoff::{Backoff, BackoffError, BackoffPolicy, Limit};
pub use deadline::Deadline;
pub use graph::{ComponentSpec, Graph, GraphError, Plane};
pub use health::{Liveness, Probe, Problem, Readiness, Unready, liveness, readiness};
pub use reconnect::{Generation, Reconnect, Stale};
pub use report::{
    ComponentReport, DrainCounts, ErrorCode, Outcome, PhaseResult, Remaining, Report, StartResult,
    StopReason,
};
pub use supervisor::{
    Action, CommitError, Input, InputError, Reaction, Supervisor, SupervisorConfig,
};
pub use threads::{DemandError, ThreadClaim, check_threads};

/// The most components of a graph; a [`ComponentSet`] has a bit for each.
pub const MAX_COMPONENTS: usize = 64;

/// A component, as its place in the order of registration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ComponentId(u8);

impl ComponentId {
    /// The component that was registered after `index` others.
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The place in the order of registration.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The ids of the first `count` components, in order of registration.
    pub(crate) fn all(count: usize) -> impl DoubleEndedIterator<Item = Self> {
        (0..u8::try_from(count).unwrap_or(u8::MAX)).map(Self)
    }
}

/// A set of components. An id that no graph can have is in no set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ComponentSet(u64);

impl ComponentSet {
    /// No component.
    pub const EMPTY: Self = Self(0);

    /// `self` and `id`.
    #[must_use]
    pub const fn with(self, id: ComponentId) -> Self {
        Self(self.0 | Self::bit(id))
    }

    /// `self` without `id`.
    #[must_use]
    pub const fn without(self, id: ComponentId) -> Self {
        Self(self.0 & !Self::bit(id))
    }

    /// What is in `self`, in `other` or in both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `id` is in the set.
    #[must_use]
    pub const fn contains(self, id: ComponentId) -> bool {
        self.0 & Self::bit(id) != 0
    }

    /// Whether everything in `self` is in `other`.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members in order of registration.
    pub fn iter(self) -> impl Iterator<Item = ComponentId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let index = u8::try_from(rest.trailing_zeros()).ok()?;
            rest &= rest.checked_sub(1)?;
            Some(ComponentId(index))
        })
    }

    const fn bit(id: ComponentId) -> u64 {
        if id.index() < MAX_COMPONENTS {
            1 << id.0
        } else {
            0
        }
    }
}

impl FromIterator<ComponentId> for ComponentSet {
    fn from_iter<I: IntoIterator<Item = ComponentId>>(ids: I) -> Self {
        ids.into_iter().fold(Self::EMPTY, Self::with)
    }
}

crate::fsm! {
    /// Where a component is in its life.
    pub states ComponentState {
        /// Known, and never started.
        Registered,
        /// Its start was asked for and has not answered.
        Starting,
        /// Up.
        Running,
        /// Up, without something that it needs.
        Degraded,
        /// An attempt to reconnect is on its way.
        Reconnecting,
        /// It gave up reconnecting. It still has what it started with, so it stops like the others.
        Failed,
        /// The runtime stops: it works on and installs nothing new, until it is its turn.
        Closing,
        /// It was asked to take in nothing more.
        Quiescing,
        /// It takes in nothing more.
        Quiet,
        /// It finishes what it had accepted.
        Draining,
        /// It has nothing more to do, and stops when nobody depends on it any more.
        Drained,
        /// It was asked to stop.
        Stopping,
        /// Its stop has answered. Settled.
        Stopped,
        /// Its start failed. Settled.
        StartFailed,
        /// Its start did not answer in time and was fenced. Should it come up after all, it is stopped.
        Overdue,
        /// It did not answer in time and was fenced. Settled.
        TimedOut,
    }
    /// What can happen to a component.
    pub events ComponentEvent {
        /// It is its turn to start.
        Start,
        /// Its start succeeded.
        Up,
        /// Its start failed.
        Fail,
        /// Something that it needs is gone, or an attempt to get it back failed.
        Degrade,
        /// An attempt to reconnect begins.
        Retry,
        /// What it needs is there again.
        Recover,
        /// Its policy allows no further attempt.
        GiveUp,
        /// The runtime begins to stop.
        Close,
        /// It is its turn to quiesce.
        Quiesce,
        /// Its quiesce has answered.
        Quiesced,
        /// It is to drain.
        Drain,
        /// Its drain has answered.
        Drained,
        /// It is its turn to stop.
        Stop,
        /// Its stop has answered.
        Stopped,
        /// Its time is over.
        Expire,
    }
    /// A transition that a component does not have.
    pub error ComponentStepError;
    transitions {
        "start": Registered -- Start --> Starting;
        "up": Starting -- Up --> Running;
        "start failed": Starting -- Fail --> StartFailed;
        "start timed out": Starting -- Expire --> Overdue;
        "up too late": Overdue -- Up --> Drained;
        "failed too late": Overdue -- Fail --> StartFailed;
        "degrade": Running -- Degrade --> Degraded;
        "heal": Degraded -- Recover --> Running;
        "retry": Degraded -- Retry --> Reconnecting;
        "reconnected": Reconnecting -- Recover --> Running;
        "attempt failed": Reconnecting -- Degrade --> Degraded;
        "give up": Degraded -- GiveUp --> Failed;
        "give up": Reconnecting -- GiveUp --> Failed;
        "close": Running -- Close --> Closing;
        "close": Degraded -- Close --> Closing;
        "close": Reconnecting -- Close --> Closing;
        "close": Failed -- Close --> Closing;
        "quiesce": Closing -- Quiesce --> Quiescing;
        "quiesced": Quiescing -- Quiesced --> Quiet;
        "drain": Quiet -- Drain --> Draining;
        "drained": Draining -- Drained --> Drained;
        "stop undrained": Closing -- Stop --> Stopping;
        "stop undrained": Quiet -- Stop --> Stopping;
        "stop": Drained -- Stop --> Stopping;
        "stopped": Stopping -- Stopped --> Stopped;
        "fence": Closing -- Expire --> TimedOut;
        "fence": Quiescing -- Expire --> TimedOut;
        "fence": Quiet -- Expire --> TimedOut;
        "fence": Draining -- Expire --> TimedOut;
        "fence": Drained -- Expire --> TimedOut;
        "fence": Stopping -- Expire --> TimedOut;
    }
}

impl ComponentState {
    /// Whether a stop has nothing more to wait for: it never came up, it has stopped, or it was fenced.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            Self::Registered | Self::Stopped | Self::StartFailed | Self::Overdue | Self::TimedOut
        )
    }

    /// Whether it brings no further work to what it depends on.
    #[must_use]
    pub const fn is_drained(self) -> bool {
        self.is_over() || matches!(self, Self::Drained | Self::Stopping)
    }

    /// The name in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Degraded => "degraded",
            Self::Reconnecting => "reconnecting",
            Self::Failed => "failed",
            Self::Closing => "closing",
            Self::Quiescing => "quiescing",
            Self::Quiet => "quiet",
            Self::Draining => "draining",
            Self::Drained => "drained",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::StartFailed => "start_failed",
            Self::Overdue => "overdue",
            Self::TimedOut => "timed_out",
        }
    }
}

crate::fsm! {
    /// Where the runtime, all components together, is in its life.
    pub states RuntimeState {
        /// Nothing was started.
        Idle,
        /// Components start, one after the other.
        Starting,
        /// Every component came up.
        Running,
        /// Components stop, before the deadline.
        Stopping,
        /// Nothing more will happen, and the report is there.
        Stopped,
    }
    /// What can happen to the runtime.
    pub events RuntimeEvent {
        /// It is to start.
        Start,
        /// The last component came up.
        AllUp,
        /// It is to stop, or a start failed.
        Stop,
        /// Every component is over.
        Over,
    }
    /// A transition that the runtime does not have.
    pub error RuntimeStepError;
    transitions {
        "start": Idle -- Start --> Starting;
        "all up": Starting -- AllUp --> Running;
        "roll back": Starting -- Stop --> Stopping;
        "stop": Running -- Stop --> Stopping;
        "over": Stopping -- Over --> Stopped;
    }
}

impl RuntimeState {
    /// Whether components may start and install what they reconnected.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }

    /// The name in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

#[cfg(test)]
mod tests;
