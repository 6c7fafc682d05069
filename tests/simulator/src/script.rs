//! The alphabet: what a script can do to a fleet.
//!
//! A script is plain data. Whatever a run does follows from it alone, so it can be kept, cut down and
//! run again.

use std::fmt::{self, Write as _};

/// Which binding the fleet has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tier {
    /// A seat with a thread for each key, the fixed pin and the pooled roles, on eight cores.
    Pinned,
    /// One seat for every role, on two cores.
    Serial,
}

/// One thing that happens. Roles, keys and seats are numbers of their tables and are taken modulo
/// the tables' lengths; times are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// So many atomic steps are taken by whoever can take one.
    Steps(u8),
    /// Time passes; everyone takes all steps that they can.
    Wait(u16),
    /// So many minutes pass, likewise.
    Minutes(u8),
    /// The process is stopped and goes on later: time passes and nobody takes a step.
    Stop(u32),
    /// A unit is submitted.
    Submit {
        /// Its role.
        role: u8,
        /// How long it runs.
        ms: u16,
        /// Whether it panics at the end.
        panics: bool,
        /// Whether nobody keeps its receipt.
        abandoned: bool,
    },
    /// A walk outside of every epoch, which may wait or run when one ends.
    Walk {
        /// Its key.
        key: u8,
        /// How long it runs.
        ms: u16,
    },
    /// So many units at once, more than there is room for.
    Flood {
        /// Their role.
        role: u8,
        /// How many.
        units: u8,
        /// How long each runs.
        ms: u16,
    },
    /// The receipt of the newest unit without an outcome is dropped.
    Abandon,
    /// A block comes in: an epoch with a solver unit for each bit of `bins`. While the last one is
    /// worked on, it is missed.
    Block {
        /// The bins touched.
        bins: u8,
        /// How long each walk takes.
        ms: u16,
    },
    /// So many more paths are to be registered, 32 receipts outstanding at most.
    Crawl(u16),
    /// Runs until the crawl has registered so many paths in all.
    CrawlTo(u16),
    /// Whether the crawl submits.
    CrawlGoesOn(bool),
    /// Whether the clients collect their receipts.
    Collect(bool),
    /// Posture edges are delivered from now on.
    EdgesDelivered,
    /// They are lost.
    EdgesLost,
    /// Each comes twice.
    EdgesTwice,
    /// Each comes so much later.
    EdgesLate(u16),
    /// The kernel throttles.
    Throttle {
        /// Throttled periods.
        periods: u8,
        /// Throttled time, summed over run queues.
        ms: u16,
    },
    /// Whether the throttle counters cannot be read.
    Blind(bool),
    /// The sampler takes no sample for so long.
    SamplerGap(u16),
    /// The sampler takes a sample now, whether one is due or not.
    Sample,
    /// The thresholds of the posture are changed, to one of a few policies.
    Retune(u8),
    /// The quota is detected anew.
    Quota {
        /// In thousandths of a core; zero is "could not be read".
        milli: u16,
        /// Whether the host is told, or only the guard changes.
        told: bool,
    },
    /// The quota ledger holds these roles back.
    Ledger {
        /// A bit for each role.
        roles: u8,
        /// When it will have room again, from now; zero is "cannot tell".
        refill_ms: u16,
    },
    /// Timers fire so much late from now on.
    TimersLate(u16),
    /// The thread of a seat takes no step for so long, wherever it is.
    Stall {
        /// The seat.
        seat: u8,
        /// For how long.
        ms: u16,
    },
    /// The thread of a seat wakes without a reason, if it sleeps.
    Spurious(u8),
    /// The thread of a seat is lost.
    Die {
        /// The seat.
        seat: u8,
        /// Whether it is only taken for lost, and reports its unit later.
        hung: bool,
    },
    /// The fleet begins to close.
    Quiesce,
    /// The drain is over.
    Fence,
    /// So many items go into the drain pipe at once.
    Publish(u8),
    /// How long the drainer takes for an item from now on.
    DrainSlow(u16),
    /// Whether the drainer is stuck.
    DrainFrozen(bool),
    /// The verifier takes the newest epoch.
    Verify,
}

/// A run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    /// Which of those who can take a step takes the next one.
    pub schedule: u64,
    /// The binding.
    pub tier: Tier,
    /// What happens, in this order.
    pub ops: Vec<Op>,
}

impl Script {
    /// The script as a test of the module of kept scripts.
    #[must_use]
    pub fn as_test(&self, name: &str) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{}", AsTest { script: self, name });
        text
    }
}

struct AsTest<'a> {
    script: &'a Script,
    name: &'a str,
}

impl fmt::Display for AsTest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Script {
            schedule,
            tier,
            ops,
        } = self.script;
        writeln!(f, "#[test]\nfn {}() {{", self.name)?;
        writeln!(f, "    holds(&Script {{")?;
        writeln!(f, "        schedule: {schedule},")?;
        writeln!(f, "        tier: Tier::{tier:?},")?;
        writeln!(f, "        ops: vec![")?;
        for op in ops {
            writeln!(f, "            Op::{op:?},")?;
        }
        write!(f, "        ],\n    }});\n}}")
    }
}
