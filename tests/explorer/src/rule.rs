//! The properties, each with its name and its sentence, and what a walk has to say about them.

use regatta_core::lane::Progress;
use regatta_core::seat::SlotPhase;
use std::fmt;

/// A property of every state and step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// Conservation.
    Conserves,
    /// Nothing that could run waits.
    Grants,
    /// When the backstop is armed.
    Armed,
    /// Held lanes say so.
    Reasons,
    /// The slot state machine.
    Slots,
    /// The progress state machine.
    Progress,
    /// One outcome for each unit.
    Once,
    /// What a fence leaves.
    Fenced,
    /// Liveness.
    Drains,
    /// The self-check is silent.
    Silent,
    /// Errors change nothing.
    Inert,
    /// Edges and early ticks say nothing.
    Nudges,
    /// No panic.
    Panics,
    /// Some input can come.
    Alive,
}

impl Rule {
    /// Every rule, in the order in which they are printed.
    pub const ALL: [Self; 14] = [
        Self::Conserves,
        Self::Grants,
        Self::Armed,
        Self::Reasons,
        Self::Slots,
        Self::Progress,
        Self::Once,
        Self::Fenced,
        Self::Drains,
        Self::Silent,
        Self::Inert,
        Self::Nudges,
        Self::Panics,
        Self::Alive,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conserves => "conserves",
            Self::Grants => "grants",
            Self::Armed => "armed",
            Self::Reasons => "reasons",
            Self::Slots => "slots",
            Self::Progress => "progress",
            Self::Once => "once",
            Self::Fenced => "fenced",
            Self::Drains => "drains",
            Self::Silent => "silent",
            Self::Inert => "inert",
            Self::Nudges => "nudges",
            Self::Panics => "panics",
            Self::Alive => "alive",
        }
    }

    /// The property, in one sentence.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::Conserves => {
                "in every state each lane has submitted = in flight + waiting + resolved, recounted from rows and from outside"
            }
            Self::Grants => {
                "once grants are polled, no unit waits that a seat could take and the guard allows; what is granted, they did; what is handed back comes first"
            }
            Self::Armed => {
                "once grants are polled, there is a deadline iff a waiting unit has an idle seat and the guard holds it; it is at most \u{394} ahead"
            }
            Self::Reasons => {
                "a waiting unit that does not run has the reason that the words of the guard and the seats give; a held lane is backed"
            }
            Self::Slots => "a seat changes its phase by T1 to T12 and in no other way",
            Self::Progress => "a lane changes its progress by its table and in no other way",
            Self::Once => {
                "an accepted unit ends once, as what ended it, and its id is never given again while anyone holds it"
            }
            Self::Fenced => {
                "after a fence every unit has its outcome, and every seat is gone or reports once more and is gone"
            }
            Self::Drains => {
                "if the guard opens and stays open, ticks alone bring everything that waits to its end: no edge is needed"
            }
            Self::Silent => "the self-check never fires for a driver that polls grants",
            Self::Inert => "what is refused changes nothing, and what is out of date is refused",
            Self::Nudges => "an early tick does what an edge does, and no edge carries a value",
            Self::Panics => "nothing panics",
            Self::Alive => {
                "if units wait and the guard allows them, something is in flight, on its way, or due"
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
        write!(f, "`{}` is violated: {}", self.rule.name(), self.what)
    }
}

/// `Ok` if `holds`, else a violation of `rule`.
pub(crate) fn ensure(
    holds: bool,
    rule: Rule,
    what: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(rule, what()))
    }
}

/// Which rows of the two transition tables have been walked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    slots: u32,
    progress: u32,
}

impl Coverage {
    pub(crate) fn slot(&mut self, row: usize) {
        self.slots |= 1 << row;
    }

    pub(crate) fn progress(&mut self, row: usize) {
        self.progress |= 1 << row;
    }

    /// Both together.
    pub fn merge(&mut self, other: Self) {
        self.slots |= other.slots;
        self.progress |= other.progress;
    }

    /// The rows that have not been walked, by name, with the number of all rows.
    #[must_use]
    pub fn missing(&self) -> (Vec<String>, usize) {
        let slots = SlotPhase::TRANSITIONS;
        let progress = Progress::TRANSITIONS;
        let mut missing = Vec::new();
        for (row, t) in slots.iter().enumerate() {
            if self.slots & 1 << row == 0 {
                missing.push(format!("{} {:?} -> {:?}", t.name, t.from, t.to));
            }
        }
        for (row, t) in progress.iter().enumerate() {
            if self.progress & 1 << row == 0 {
                missing.push(format!("{} {:?} -> {:?}", t.name, t.from, t.to));
            }
        }
        (missing, slots.len() + progress.len())
    }
}
