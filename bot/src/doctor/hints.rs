//! What an operator may want to know or do.

use super::record::{BudgetBound, HintRecord};
use crate::machine::Findings;
use crate::report::cores;
use regatta_core::affinity::{AffinityReason, SeatAffinity, seat_affinity};
use regatta_core::budget::{BoundedBy, Confidence, MilliCpu};
use regatta_core::plan::{Binding, FleetPlan, HOST_FLOOR};

/// The hints for what was found, in a set order.
pub(super) fn hints(
    findings: &Findings,
    budget: &BudgetBound,
    plan: Option<&FleetPlan>,
    affinity: Option<SeatAffinity>,
) -> Vec<HintRecord> {
    let mut hints = Vec::new();
    let mut hint = |name, text| hints.push(HintRecord { name, text });
    let milli = budget.milli.map_or(MilliCpu::new(0), MilliCpu::new);
    if findings.quota.evidence.confidence == Confidence::Unknown {
        hint("quota_unknown", unknown(findings));
    }
    if milli.floor_cores() < HOST_FLOOR {
        hint("below_floor", below_floor(findings));
    }
    if milli.fraction() > 0 {
        let whole = milli.floor_cores();
        hint(
            "fraction",
            format!(
                "{} of a core is above the {whole} whole: shares are cut from whole cores, and only what mostly \
                 waits may use the rest",
                cores(milli.fraction())
            ),
        );
    }
    if budget.bounded_by == BoundedBy::Override.name()
        && findings.quota.bound.is_some_and(|bound| bound < milli)
    {
        let bound = findings.quota.bound.map_or(0, MilliCpu::milli);
        hint(
            "more_than_enforced",
            format!(
                "{} cores are allocated and the kernel enforces {}: under load the process is throttled, or shares \
                 its CPUs with itself",
                cores(milli.milli()),
                cores(bound)
            ),
        );
    }
    if let (Some(limit), BoundedBy::Affinity) =
        (findings.groups.bound, findings.quota.evidence.bounded_by)
    {
        hint(
            "affinity_is_smaller",
            format!(
                "the limit of {} cores is more than the {} CPUs that the process may run on, which is what bounds it",
                cores(limit.milli()),
                findings.allowed.count
            ),
        );
    }
    if findings.limit.is_some() && findings.throttle.is_none() {
        hint(
            "throttling_unmeasured",
            "the level that limits has no counters of throttling that can be read: the posture cannot see throttling, \
             and holds nothing back for it"
                .to_owned(),
        );
    }
    if let (Some(_), Some(counted)) = (&findings.limit, &findings.throttle)
        && counted.nr_throttled.is_none()
    {
        hint(
            "throttle_events_unmeasured",
            "only the time of throttling can be read, not how often: the posture goes by the share of time alone"
                .to_owned(),
        );
    }
    if findings.hidden_above {
        hint(
            "levels_hidden",
            "groups above the last level are not shown to this process: a tighter limit there would not be seen"
                .to_owned(),
        );
    }
    if findings.skipped_lines > 0 {
        hint(
            "lines_skipped",
            format!(
                "{} lines of the kernel's files were not understood and are left out",
                findings.skipped_lines
            ),
        );
    }
    if let Some(plan) = plan.filter(|plan| plan.binding == Binding::Pinned) {
        let seats = u16::try_from(plan.seats.len()).unwrap_or(u16::MAX);
        let (_, reason) = seat_affinity(findings.allowed, seats, affinity);
        if reason == AffinityReason::SharedSet {
            hint(
                "shared_pins",
                "seats run on every allowed CPU, since others may run there too; a seat bound to one CPU waits for a \
                 neighbour on it while others idle. An exclusive cpuset changes that"
                    .to_owned(),
            );
        }
    }
    hints
}

fn unknown(findings: &Findings) -> String {
    format!(
        "{}: what is known is an upper bound at best. --quota MILLI states the quota",
        findings.quota.evidence.reason
    )
}

fn below_floor(findings: &Findings) -> String {
    let raise = findings.limit.as_ref().map_or_else(
        || "give the process more CPUs".to_owned(),
        |limit| format!("raise the limit of {} ({})", limit.level, limit.file),
    );
    format!(
        "a fleet needs {HOST_FLOOR} whole cores: {raise}, or pass --quota {} to allocate as if it had them",
        MilliCpu::from_cores(HOST_FLOOR).milli()
    )
}
