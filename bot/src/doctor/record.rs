//! The diagnosis as a value. `docs/operations.md` describes its JSON.

use crate::report::{BudgetRecord, SeatsRecord};
use serde::Serialize;

/// Everything the doctor says.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorRecord {
    /// What the control groups say.
    pub quota: QuotaRecord,
    /// Each level that was asked, the process's own group first.
    pub levels: Vec<LevelRecord>,
    /// What holds: the smaller of the quota and the CPUs, or the operator's word.
    pub budget: BudgetBound,
    /// How many CPUs the process may run on, if that is known.
    pub affinity_cpus: Option<u16>,
    /// Which, as the kernel lists them.
    pub cpus: Option<String>,
    /// The budget in cores.
    pub cores: CoresRecord,
    /// What each tier needs.
    pub tiers: Vec<TierRecord>,
    /// The plan that follows.
    pub plan: PlanAnswer,
    /// The counters of throttling at the level that limits.
    pub throttle: ThrottleRecord,
    /// The ways to wake threads; empty for a copy of a machine, whose kernel cannot be asked.
    pub wakes: Vec<WakeRecord>,
    /// What an operator may want to know or do.
    pub hints: Vec<HintRecord>,
}

/// What the control groups say.
#[derive(Clone, Debug, Serialize)]
pub struct QuotaRecord {
    /// The limit in milli-cores; none where no level has one.
    pub milli: Option<u32>,
    /// The group that has it.
    pub limiting_level: Option<String>,
    /// How many levels above the process's own group that is.
    pub levels_above: Option<u16>,
    /// The file it was read from.
    pub file: Option<String>,
    /// `cgroup1` or `cgroup2`.
    pub hierarchy: Option<&'static str>,
    /// How sure that is.
    pub confidence: &'static str,
    /// Why.
    pub reason: String,
}

/// A level.
#[derive(Clone, Debug, Serialize)]
pub struct LevelRecord {
    /// The group.
    pub path: String,
    /// The file that was asked.
    pub file: String,
    /// Its limit in milli-cores.
    pub milli: Option<u32>,
    /// What the file says.
    pub says: &'static str,
}

/// What holds.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetBound {
    /// In milli-cores; none if nothing is known.
    pub milli: Option<u32>,
    /// `cgroup1`, `cgroup2`, `affinity` or `override`; on a build without Linux `platform`; `nothing`
    /// if nothing is known.
    pub bounded_by: &'static str,
    /// How sure that is.
    pub confidence: &'static str,
    /// Why.
    pub reason: String,
}

/// The budget in cores.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CoresRecord {
    /// Whole cores to share out.
    pub whole: u16,
    /// Whole cores rounded up.
    pub ceil: u16,
    /// What the shares leave over, in milli-cores.
    pub fraction_milli: u32,
}

/// What a tier needs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TierRecord {
    /// The tier.
    pub tier: &'static str,
    /// Whole cores.
    pub needs_cores: u16,
    /// What is missing, in milli-cores; zero if it fits.
    pub lacks_milli: u32,
}

/// The plan, or its refusal.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PlanAnswer {
    /// A plan.
    Planned(Box<PlannedRecord>),
    /// None.
    Refused(RefusedRecord),
}

/// A plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedRecord {
    /// What was asked for.
    pub profile: &'static str,
    /// What would run.
    pub binding: &'static str,
    /// Whether the shares exceed the budget.
    pub oversubscribed: bool,
    /// The tier that did not fit.
    pub tier_refused: Option<&'static str>,
    /// The same as a sentence.
    pub tier_refused_because: Option<String>,
    /// Units that may be runnable at once.
    pub permits: u16,
    /// The seats.
    pub seats: SeatsRecord,
    /// Every share with its rule.
    pub shares: Vec<BudgetRecord>,
    /// Overrides that have no say in it.
    pub idle_overrides: Vec<String>,
}

/// A refusal.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedRecord {
    /// Its name.
    pub refused: &'static str,
    /// The same as a sentence.
    pub refused_because: String,
}

/// The counters of throttling. What is not counted is null, not zero.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThrottleRecord {
    /// Whether anything is counted.
    pub measured: bool,
    /// Periods in which something was runnable.
    pub nr_periods: Option<u64>,
    /// Periods in which the group was throttled.
    pub nr_throttled: Option<u64>,
    /// For how long, summed over CPUs, in nanoseconds.
    pub throttled_ns: Option<u64>,
    /// The file.
    pub source: Option<String>,
}

/// A way to wake threads.
#[derive(Clone, Debug, Serialize)]
pub struct WakeRecord {
    /// `futex`, `eventfd` or `io_uring`.
    pub kind: &'static str,
    /// Whether this kernel has it, for this process.
    pub offered: bool,
    /// Why not, or what it is like here.
    pub says: String,
}

/// A hint.
#[derive(Clone, Debug, Serialize)]
pub struct HintRecord {
    /// A name that stays.
    pub name: &'static str,
    /// A sentence for people.
    pub text: String,
}
