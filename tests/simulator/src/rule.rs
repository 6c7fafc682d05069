//! What must hold of a run, each with its name and its sentence.

use std::fmt;

/// A property of every run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// S.
    Conserves,
    /// Nothing that could run waits.
    Granted,
    /// The guard is obeyed.
    Guarded,
    /// Whoever has a grant will look.
    Rung,
    /// L3.
    Held,
    /// L.
    Live,
    /// One outcome a unit.
    Once,
    /// The end.
    Ends,
    /// Parity.
    Agrees,
    /// The state machines.
    Tables,
    /// Alarms.
    Silent,
    /// No wakeups at rest.
    Quiet,
    /// Typed refusals.
    Refused,
    /// The outcome ledger.
    Fused,
    /// The stall rule.
    Stalls,
    /// The queues and the pipes.
    Ordered,
}

impl Rule {
    /// Every rule, in the order in which they are printed.
    pub const ALL: [Self; 16] = [
        Self::Conserves,
        Self::Granted,
        Self::Guarded,
        Self::Rung,
        Self::Held,
        Self::Live,
        Self::Once,
        Self::Ends,
        Self::Agrees,
        Self::Tables,
        Self::Silent,
        Self::Quiet,
        Self::Refused,
        Self::Fused,
        Self::Stalls,
        Self::Ordered,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conserves => "conserves",
            Self::Granted => "granted",
            Self::Guarded => "guarded",
            Self::Rung => "rung",
            Self::Held => "held",
            Self::Live => "live",
            Self::Once => "once",
            Self::Ends => "ends",
            Self::Agrees => "agrees",
            Self::Tables => "tables",
            Self::Silent => "silent",
            Self::Quiet => "quiet",
            Self::Refused => "refused",
            Self::Fused => "fused",
            Self::Stalls => "stalls",
            Self::Ordered => "ordered",
        }
    }

    /// The property, in one sentence.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::Conserves => {
                "after every call each lane has submitted = in flight + waiting + resolved; now and then, and at the end, recounted from rows"
            }
            Self::Granted => {
                "when whoever brought an input lets go of the lock, no unit waits that a seat could take and the guard allowed"
            }
            Self::Guarded => {
                "what is granted or begun, the guard allows at that moment: posture, floor, ledger, permits"
            }
            Self::Rung => {
                "a seat with a grant in its mailbox runs, or will look without waiting for a timer"
            }
            Self::Held => {
                "while the backstop is armed one thread sleeps until it at the latest, or some thread will look; never two sleep for it"
            }
            Self::Live => {
                "no unit waits longer than \u{394} with a seat that could take it and a guard that allows it, but for the time that the script stole"
            }
            Self::Once => {
                "a unit runs at most once, its receipt ends once, as what ended it, and with its own output"
            }
            Self::Ends => {
                "when the faults are over, every receipt is terminal, every lane is empty and idle, or typed; after a fence every thread has ended"
            }
            Self::Agrees => {
                "without a death and a close the outcomes and outputs are those of a plain serial driver"
            }
            Self::Tables => "seats and lanes go by their tables of transitions",
            Self::Silent => "the self-check never fires, and a pipe is stranded by its death alone",
            Self::Quiet => "at rest no timer is set and no thread is awake",
            Self::Refused => {
                "what comes late, twice or for a unit that is gone is refused, and nothing else is, but by a full, closed or faulted lane"
            }
            Self::Fused => "the fuse of an epoch closes with one outcome for each path",
            Self::Stalls => {
                "a drainer that completes nothing for the window while the process runs is found, and no other is"
            }
            Self::Ordered => {
                "what was handed back goes first; the drain keeps its order; the verifier sees the newest epoch and none twice"
            }
        }
    }
}

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// What was found.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(rule: Rule, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { rule, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` does not hold: {}", self.rule.name(), self.what)
    }
}

/// What a step says.
pub(crate) type Step<T = ()> = Result<T, Violation>;

/// `Ok` if `holds`, else a violation of `rule`.
#[inline]
pub(crate) fn ensure(holds: bool, rule: Rule, what: impl FnOnce() -> String) -> Step {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(rule, what()))
    }
}
