//! What came of a stop, component by component.
//!
//! # Invariants
//! - A report is clean if and only if everything that started says that its stop is done and nothing of
//!   its own is left: no unit without an outcome, no thread, no handle. Who was not heard says nothing.

use crate::time::Instant;
use core::fmt;
use heapless::Vec;

/// The short name of an error, for logs and metrics: lower case with underscores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorCode(pub &'static str);

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why everything stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StopReason {
    /// A signal, by its number.
    Signal(u8),
    /// The program was done, or was asked to by its control plane.
    Requested,
    /// A component could not start.
    StartFailed(&'static str),
    /// A component did not start in time.
    StartTimedOut(&'static str),
    /// A component without which the program cannot go on failed.
    ComponentFailed(&'static str),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Requested => f.write_str("requested"),
            Self::StartFailed(name) => write!(f, "{name} failed to start"),
            Self::StartTimedOut(name) => write!(f, "{name} did not start in time"),
            Self::ComponentFailed(name) => write!(f, "{name} failed"),
        }
    }
}

/// What came of a start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StartResult {
    /// It was never started.
    #[default]
    NotStarted,
    /// It has not answered.
    Pending,
    /// It came up.
    Up,
    /// It failed.
    Failed(ErrorCode),
    /// It did not answer in time.
    TimedOut,
}

/// What came of quiesce, drain or stop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PhaseResult {
    /// It was not its turn, and never became so.
    #[default]
    NotRun,
    /// It has not answered.
    Pending,
    /// There was no time for it, and the stop did what it would have done.
    Skipped,
    /// Done.
    Done,
    /// It answered with an error.
    Failed(ErrorCode),
    /// It did not answer in time.
    TimedOut,
    /// The component was fenced in place of it.
    Fenced,
}

impl From<Result<(), ErrorCode>> for PhaseResult {
    fn from(result: Result<(), ErrorCode>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Done)
    }
}

/// What became of the work that a component had, as it closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DrainCounts {
    /// Accepted and owed when intake closed.
    pub accepted_before_quiesce: u64,
    /// Of these, ended unrun as intake closed, because they were held back.
    pub not_run: u64,
    /// Of these, ended during the drain.
    pub completed_during_drain: u64,
    /// Of these, still owed when the drain ended.
    pub remaining_at_deadline: u64,
    /// Of these, left in a durable place for whoever comes next.
    pub handed_off: u64,
    /// Refused, typed, because intake was closed.
    pub rejected_after_quiesce: u64,
}

impl DrainCounts {
    /// Whether everything that was accepted is accounted for.
    #[must_use]
    pub const fn balanced(&self) -> bool {
        let ended = self.not_run.saturating_add(self.completed_during_drain);
        let left = self.remaining_at_deadline.saturating_add(self.handed_off);
        self.accepted_before_quiesce == ended.saturating_add(left)
    }
}

/// What a component still owns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Remaining {
    /// Units of work without an outcome.
    pub receipts: u64,
    /// Threads that have not ended.
    pub threads: u32,
    /// Sockets, files and other handles that are open.
    pub handles: u32,
}

impl Remaining {
    /// Nothing.
    pub const NONE: Self = Self {
        receipts: 0,
        threads: 0,
        handles: 0,
    };

    /// Whether that is nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.receipts == 0 && self.threads == 0 && self.handles == 0
    }
}

/// How one component came through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ComponentReport {
    /// Its name.
    pub name: &'static str,
    /// Its start.
    pub start: StartResult,
    /// Its quiesce.
    pub quiesce: PhaseResult,
    /// Its drain.
    pub drain: PhaseResult,
    /// Its stop.
    pub stop: PhaseResult,
    /// What became of its work, as its drain said.
    pub counts: DrainCounts,
    /// What it still owns; `None` if nobody could say.
    pub remaining: Option<Remaining>,
}

impl ComponentReport {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            start: StartResult::NotStarted,
            quiesce: PhaseResult::NotRun,
            drain: PhaseResult::NotRun,
            stop: PhaseResult::NotRun,
            counts: DrainCounts {
                accepted_before_quiesce: 0,
                not_run: 0,
                completed_during_drain: 0,
                remaining_at_deadline: 0,
                handed_off: 0,
                rejected_after_quiesce: 0,
            },
            remaining: None,
        }
    }

    /// Whether it left nothing behind, as far as it can be held to that.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let gone = self.remaining.is_some_and(|remaining| remaining.is_none());
        match self.start {
            StartResult::NotStarted => true,
            StartResult::Failed(_) => gone,
            StartResult::Pending | StartResult::Up | StartResult::TimedOut => {
                gone && self.stop == PhaseResult::Done
            }
        }
    }

    /// Whether it was fenced, or left behind when the deadline passed.
    #[must_use]
    pub const fn timed_out(&self) -> bool {
        matches!(self.stop, PhaseResult::TimedOut | PhaseResult::Fenced)
    }

    /// What went wrong, in the order of the phases: the phase and the error's code, or `timed_out`.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, ErrorCode)> {
        let start = match self.start {
            StartResult::Failed(code) => Some(code),
            StartResult::TimedOut => Some(ErrorCode("timed_out")),
            StartResult::NotStarted | StartResult::Pending | StartResult::Up => None,
        };
        let phase = |result: PhaseResult| match result {
            PhaseResult::Failed(code) => Some(code),
            PhaseResult::TimedOut => Some(ErrorCode("timed_out")),
            _ => None,
        };
        let of = [
            ("start", start),
            ("quiesce", phase(self.quiesce)),
            ("drain", phase(self.drain)),
            ("stop", phase(self.stop)),
        ];
        of.into_iter()
            .filter_map(|(name, code)| Some((name, code?)))
    }
}

/// How a stop ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// Nothing is left.
    Clean,
    /// Everybody answered, and something is left or could not be vouched for.
    Incomplete,
    /// Somebody did not answer in time.
    TimedOut,
}

impl Outcome {
    /// The name in logs and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Incomplete => "incomplete",
            Self::TimedOut => "timed_out",
        }
    }
}

/// The report of a stop, or of the rollback of a start.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Report<const N: usize> {
    /// Why.
    pub reason: StopReason,
    /// When the stop began.
    pub started_at: Instant,
    /// The deadline, as it was at the end.
    pub deadline: Instant,
    /// When nothing more was to be done.
    pub completed_at: Instant,
    /// The components, in the order of registration.
    pub components: Vec<ComponentReport, N>,
}

impl<const N: usize> Report<N> {
    /// How it ended.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.completed_at > self.deadline
            || self.components.iter().any(ComponentReport::timed_out)
        {
            Outcome::TimedOut
        } else if self.components.iter().all(ComponentReport::is_clean) {
            Outcome::Clean
        } else {
            Outcome::Incomplete
        }
    }
}
