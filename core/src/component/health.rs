//! Whether the process is ready, and whether it is alive.
//!
//! # Invariants
//! - Ready is what every required component says of itself. That a component is there says nothing.
//! - From the moment a stop begins nothing is ready, and until its deadline it is alive: it ends by itself.

use super::{ComponentState, Graph, RuntimeState};
use crate::time::{Duration, Instant};
use core::fmt;
use heapless::Vec;

/// What a component says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Probe {
    /// It does what it is for.
    Ready,
    /// It does not; the reason in lower case with underscores.
    NotReady(&'static str),
}

/// What is wrong with a component.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Problem {
    /// It is not running.
    State(ComponentState),
    /// Its probe says no, for this reason.
    Probe(&'static str),
    /// There is no probe of it.
    NotProbed,
}

/// A component that is not ready.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Unready {
    /// Its name.
    pub component: &'static str,
    /// Why.
    pub problem: Problem,
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.problem {
            Problem::State(state) => state.name(),
            Problem::Probe(reason) => reason,
            Problem::NotProbed => "not_probed",
        };
        write!(f, "{}: {reason}", self.component)
    }
}

/// Whether the process is ready, and what is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Readiness<const N: usize> {
    /// The runtime.
    pub runtime: RuntimeState,
    /// Whether the threads that there are, are those that the components own.
    pub reconciled: bool,
    /// Required components that are not ready, in the order of registration.
    pub missing: Vec<Unready, N>,
    /// Optional components that are not ready; they take nothing away from the answer.
    pub degraded: Vec<Unready, N>,
}

impl<const N: usize> Readiness<N> {
    /// The answer.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.runtime == RuntimeState::Running && self.reconciled && self.missing.is_empty()
    }
}

impl<const N: usize> fmt::Display for Readiness<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready() {
            "ready"
        } else {
            "not ready"
        })?;
        if self.runtime != RuntimeState::Running {
            write!(f, "\nruntime: {}", self.runtime.name())?;
        }
        if !self.reconciled {
            f.write_str("\nthreads: not_reconciled")?;
        }
        for unready in &self.missing {
            write!(f, "\n{unready}")?;
        }
        for unready in &self.degraded {
            write!(f, "\n{unready} (optional)")?;
        }
        Ok(())
    }
}

/// Whether the process is ready: `states` and `probes` are by component, and what is not in them is not
/// ready.
#[must_use]
pub fn readiness<const N: usize>(
    graph: &Graph<N>,
    runtime: RuntimeState,
    states: &[ComponentState],
    probes: &[Probe],
    reconciled: bool,
) -> Readiness<N> {
    let problem = |index: usize| {
        let state = states.get(index).copied();
        let state = state.unwrap_or(ComponentState::Registered);
        match (state, probes.get(index)) {
            (ComponentState::Running, Some(Probe::Ready)) => None,
            (ComponentState::Running, Some(Probe::NotReady(reason))) => {
                Some(Problem::Probe(reason))
            }
            (ComponentState::Running, None) => Some(Problem::NotProbed),
            (state, _) => Some(Problem::State(state)),
        }
    };
    let of = |required: bool| {
        let ids = graph.ids().filter(|id| graph.required(*id) == required);
        ids.filter_map(|id| {
            Some(Unready {
                component: graph.name(id),
                problem: problem(id.index())?,
            })
        })
        .collect()
    };
    Readiness {
        runtime,
        reconciled,
        missing: of(true),
        degraded: of(false),
    }
}

/// Whether the process is alive: whether ending it from outside would help.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Liveness {
    /// It gets on.
    Alive,
    /// The work stands still.
    Stalled,
    /// Whoever drives the components has missed a time at which there was something to do, by this much.
    Late(Duration),
}

impl Liveness {
    /// The answer.
    #[must_use]
    pub fn is_alive(self) -> bool {
        self == Self::Alive
    }
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive => f.write_str("alive"),
            Self::Stalled => f.write_str("stalled"),
            Self::Late(by) => write!(f, "supervisor: late by {} ms", by.as_millis()),
        }
    }
}

/// How late the driver of the components may be.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the process is alive. `due` is the supervisor's next deadline; `stalled` is what the rules about
/// stalls say of the work.
///
/// A stop makes progress by its deadline alone: whoever hangs is fenced when its time comes. So once it has
/// begun a stall does not count, and only a driver that misses those times does.
#[must_use]
pub fn liveness(
    runtime: RuntimeState,
    due: Option<Instant>,
    stalled: bool,
    now: Instant,
) -> Liveness {
    let late = due.map_or(Duration::ZERO, |due| now.since(due));
    if late > PATIENCE {
        Liveness::Late(late)
    } else if stalled && !matches!(runtime, RuntimeState::Stopping | RuntimeState::Stopped) {
        Liveness::Stalled
    } else {
        Liveness::Alive
    }
}
