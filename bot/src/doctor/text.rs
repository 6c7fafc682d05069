//! The diagnosis for people.

use super::record::{DoctorRecord, LevelRecord, PlanAnswer, ThrottleRecord};
use crate::report::{PlanRecord, cores, write_seats, write_shares};
use std::io::{self, Write};

pub(super) fn write(
    out: &mut impl Write,
    record: &DoctorRecord,
    plan: Option<&PlanRecord>,
) -> io::Result<()> {
    write_quota(out, record)?;
    match (&record.cpus, record.affinity_cpus) {
        (Some(cpus), Some(count)) => writeln!(out, "cpus     {count} allowed: {cpus}")?,
        _ => writeln!(out, "cpus     unknown: the affinity mask could not be read")?,
    }
    let budget = &record.budget;
    match budget.milli {
        Some(milli) => writeln!(
            out,
            "budget   {} cores by {} ({}: {}); {} whole to share out, {} rounded up",
            cores(milli),
            budget.bounded_by,
            budget.confidence,
            budget.reason,
            record.cores.whole,
            record.cores.ceil
        )?,
        None => writeln!(
            out,
            "budget   not known ({}: {})",
            budget.confidence, budget.reason
        )?,
    }
    write_throttle(out, &record.throttle)?;
    for (tier, label) in record.tiers.iter().zip(["tiers", ""]) {
        write!(
            out,
            "{label:<8} {} needs {} whole cores: ",
            tier.tier, tier.needs_cores
        )?;
        match tier.lacks_milli {
            0 => writeln!(out, "fits")?,
            lacks => writeln!(out, "{} short", cores(lacks))?,
        }
    }
    write_plan(out, &record.plan, plan)?;
    for (wake, label) in record
        .wakes
        .iter()
        .zip(std::iter::once("wakes").chain(std::iter::repeat("")))
    {
        let offered = if wake.offered {
            "offered"
        } else {
            "not offered"
        };
        writeln!(out, "{label:<8} {} {offered}: {}", wake.kind, wake.says)?;
    }
    for (hint, label) in record
        .hints
        .iter()
        .zip(std::iter::once("hints").chain(std::iter::repeat("")))
    {
        writeln!(out, "{label:<8} - {}", hint.text)?;
    }
    Ok(())
}

fn write_quota(out: &mut impl Write, record: &DoctorRecord) -> io::Result<()> {
    let quota = &record.quota;
    let sure = format!("{}: {}", quota.confidence, quota.reason);
    match (quota.milli, &quota.limiting_level, &quota.file) {
        (Some(milli), Some(level), Some(file)) => {
            writeln!(
                out,
                "quota    {} cores, the limit of {level} ({sure})",
                cores(milli)
            )?;
            writeln!(
                out,
                "         {}, read from {file}",
                match quota.levels_above {
                    Some(0) | None => "the process's own group".to_owned(),
                    Some(1) => "one level above the process's own group".to_owned(),
                    Some(n) => format!("{n} levels above the process's own group"),
                }
            )?;
        }
        _ => writeln!(out, "quota    no limit found ({sure})")?,
    }
    for (at, level) in record.levels.iter().enumerate() {
        let label = if at == 0 { "levels" } else { "" };
        let mark = if Some(&level.path) == quota.limiting_level.as_ref() {
            '*'
        } else {
            ' '
        };
        let LevelRecord { path, file, .. } = level;
        let says = level.milli.map_or_else(
            || level.says.to_owned(),
            |milli| format!("{} cores", cores(milli)),
        );
        writeln!(out, "{label:<7}{mark} {path}  {says}  {file}")?;
    }
    Ok(())
}

fn write_throttle(out: &mut impl Write, throttle: &ThrottleRecord) -> io::Result<()> {
    let Some(source) = &throttle.source else {
        return writeln!(out, "throttle unmeasured");
    };
    let or_unmeasured =
        |count: Option<u64>| count.map_or_else(|| "unmeasured".to_owned(), |n| n.to_string());
    writeln!(
        out,
        "throttle periods {}, throttled {}, for {} since the group began, summed over CPUs",
        or_unmeasured(throttle.nr_periods),
        or_unmeasured(throttle.nr_throttled),
        throttle.throttled_ns.map_or_else(
            || "unmeasured".to_owned(),
            |ns| format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000)
        ),
    )?;
    writeln!(out, "         read from {source}")
}

fn write_plan(
    out: &mut impl Write,
    answer: &PlanAnswer,
    plan: Option<&PlanRecord>,
) -> io::Result<()> {
    let planned = match answer {
        PlanAnswer::Refused(refused) => {
            return writeln!(
                out,
                "plan     {}: {}",
                refused.refused, refused.refused_because
            );
        }
        PlanAnswer::Planned(planned) => planned,
    };
    writeln!(
        out,
        "plan     profile {}, binding {}{}, {} permit{}",
        planned.profile,
        planned.binding,
        if planned.oversubscribed {
            ", oversubscribed"
        } else {
            ""
        },
        planned.permits,
        if planned.permits == 1 { "" } else { "s" },
    )?;
    if let (Some(name), Some(because)) = (planned.tier_refused, &planned.tier_refused_because) {
        writeln!(out, "         {name}: {because}")?;
    }
    write_seats(out, "         ", &planned.seats)?;
    if let Some(plan) = plan {
        write_shares(out, plan)?;
    }
    for key in &planned.idle_overrides {
        writeln!(out, "         {key} is set and has no say on this tier")?;
    }
    Ok(())
}
