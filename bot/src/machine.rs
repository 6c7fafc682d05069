//! What the machine says about this process's CPU, whichever backend asked.
//!
//! The one place where the platform shows: what is found is a plain value, and everything after that is
//! the same everywhere.

#[cfg_attr(all(feature = "linux", target_os = "linux"), path = "machine/linux.rs")]
#[cfg_attr(
    not(all(feature = "linux", target_os = "linux")),
    path = "machine/portable.rs"
)]
mod platform;

pub use platform::{BINDINGS, LookError, Sampling, Seats, copy, reconciled, this, wakes};

use crate::cli::PlanArgs;
use crate::report::SeatsRecord;
use regatta_core::affinity::{AllowedCpus, SeatAffinity, seat_affinity};
use regatta_core::budget::{BoundedBy, MilliCpu, Quota};
use regatta_core::plan::FleetPlan;

/// A limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The path of the group that has it.
    pub level: String,
    /// How many levels above the process's own group that is.
    pub above: u16,
    /// The file it was read from.
    pub file: String,
}

/// A level that was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Level {
    /// The path of the group.
    pub path: String,
    /// The file.
    pub file: String,
    /// Its limit, if it has one.
    pub limit: Option<MilliCpu>,
    /// What the file says, or why it says nothing.
    pub says: &'static str,
}

/// The counters of throttling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Throttle {
    /// Periods in which something was runnable.
    pub nr_periods: Option<u64>,
    /// Periods in which the group was throttled.
    pub nr_throttled: Option<u64>,
    /// For how long, summed over CPUs, in nanoseconds.
    pub throttled_ns: Option<u64>,
    /// The file they were read from.
    pub source: String,
}

/// A way to wake threads, and whether this kernel has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wake {
    /// Its name.
    pub kind: &'static str,
    /// Whether it can be had.
    pub offered: bool,
    /// Why not, or what it is like here.
    pub says: String,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Findings {
    /// What the control groups say alone.
    pub groups: Quota,
    /// What holds: with the CPUs on which the process may run.
    pub quota: Quota,
    /// The limit that `groups` is.
    pub limit: Option<Limit>,
    /// The levels from the process's own group up.
    pub levels: Vec<Level>,
    /// Whether groups stand above the last level that are not shown.
    pub hidden_above: bool,
    /// Lines that were not understood and left out.
    pub skipped_lines: usize,
    /// The CPUs, as the kernel lists them, if they are known.
    pub cpus: Option<String>,
    /// The same for the core.
    pub allowed: AllowedCpus,
    /// The counters at the level that limits; `None` is unmeasured.
    pub throttle: Option<Throttle>,
}

impl Findings {
    /// What is found where nobody can be asked about more than a quota.
    #[must_use]
    pub const fn of(quota: Quota) -> Self {
        Self {
            groups: quota,
            quota,
            limit: None,
            levels: Vec::new(),
            hidden_above: false,
            skipped_lines: 0,
            cpus: None,
            allowed: AllowedCpus {
                count: 0,
                exclusive: false,
            },
            throttle: None,
        }
    }

    /// The hierarchy whose limit bounds, if a limit does.
    #[must_use]
    pub const fn hierarchy(&self) -> Option<BoundedBy> {
        match self.groups.evidence.bounded_by {
            by @ (BoundedBy::Cgroup1 | BoundedBy::Cgroup2) => Some(by),
            _ => None,
        }
    }
}

/// How the seats of `plan` would be bound by what was found and what the operator wants.
#[must_use]
pub fn affinity(
    plan: &FleetPlan,
    findings: &Findings,
    args: &PlanArgs,
) -> (SeatAffinity, &'static str) {
    let seats = u16::try_from(plan.seats.len()).unwrap_or(u16::MAX);
    let (affinity, because) = seat_affinity(findings.allowed, seats, args.affinity.map(Into::into));
    (affinity, because.text())
}

/// The record of the seats of `plan`.
#[must_use]
pub fn seats_record(
    plan: &FleetPlan,
    (affinity, because): (SeatAffinity, &'static str),
    wake: Option<(&'static str, String)>,
) -> SeatsRecord {
    let (wake, wake_because) = wake.unzip();
    SeatsRecord {
        count: u16::try_from(plan.seats.len()).unwrap_or(u16::MAX),
        affinity: match affinity {
            SeatAffinity::AllowedSet => "allowed_set",
            SeatAffinity::OneCpuEach => "one_cpu_each",
        },
        because,
        wake,
        wake_because,
    }
}
