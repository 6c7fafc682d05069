//! `regatta doctor`: what bounds this process, how sure that is, and the plan that follows.
//!
//! It is of use to whoever runs nothing else of ours: the limits are those of any process in the group.
//! With `--rpc` it measures a node instead ([`rpc`]).

mod hints;
mod record;
pub mod rpc;
mod text;

pub use record::{
    BudgetBound, CoresRecord, DoctorRecord, HintRecord, LevelRecord, PlanAnswer, PlannedRecord,
    QuotaRecord, RefusedRecord, ThrottleRecord, TierRecord, WakeRecord,
};

use crate::cli::{DoctorArgs, PlanArgs};
use crate::exit::Exit;
use crate::machine::{self, BINDINGS, Findings, LookError, Seats};
use crate::plan::{self, PlanError};
use regatta_core::affinity::SeatAffinity;
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, pinned_floor};
use regatta_core::plan::{BootRefused, FleetPlan, HOST_FLOOR};
use regatta_core::role::FLEET_ROLES;
use std::io::{self, Write};
use thiserror::Error;

/// Why there is no diagnosis.
#[derive(Debug, Error)]
pub enum DoctorError {
    /// The copy of a machine cannot be looked at.
    #[error("--root: {0}")]
    Root(#[from] LookError),
    /// An override is wrong.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no node, or it is unfit and that was to be an error.
    #[error(transparent)]
    Node(#[from] rpc::NodeError),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
}

impl DoctorError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Root(_) => Exit::Input,
            Self::Plan(_) => Exit::Usage,
            Self::Node(_) => Exit::Node,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Output(_) => Exit::Failed,
        }
    }
}

/// Looks at the machine, or measures a node, and writes the diagnosis to `out`. A plan that is refused is a diagnosis too.
pub fn doctor(args: &DoctorArgs, mut out: impl Write) -> Result<(), DoctorError> {
    if let Some(endpoint) = &args.node.rpc {
        return rpc::doctor(endpoint, &args.node, args.json, out);
    }
    let findings = match &args.root {
        Some(root) => machine::copy(root)?,
        None => machine::this(),
    };
    let overrides = plan::from_process(&args.plan)?;
    let planned = plan::derive_for(&args.plan, findings.quota, &overrides, BINDINGS);
    let planned = match planned {
        Ok(plan) => Ok(plan),
        Err(PlanError::Boot(refused)) => Err(refused),
        Err(error) => return Err(error.into()),
    };
    let mut record = diagnose(
        &args.plan,
        &findings,
        &overrides,
        planned.as_ref().map_err(|r| &**r),
    );
    if args.root.is_none() {
        ask_kernel(&mut record, &args.plan);
    }
    if args.json {
        serde_json::to_writer(&mut out, &record).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    } else {
        let shares = planned.as_ref().ok();
        let shares = shares.map(|plan| {
            let bound = machine::affinity(plan, &findings, &args.plan);
            plan::record(plan, &findings, machine::seats_record(plan, bound, None))
        });
        text::write(&mut out, &record, shares.as_ref())?;
    }
    Ok(out.flush()?)
}

/// What only the kernel of this machine can tell, and no copy of its files.
fn ask_kernel(record: &mut DoctorRecord, args: &PlanArgs) {
    let wakes = machine::wakes().into_iter();
    record.wakes = wakes
        .map(|wake| WakeRecord {
            kind: wake.kind,
            offered: wake.offered,
            says: wake.says,
        })
        .collect();
    if let PlanAnswer::Planned(planned) = &mut record.plan {
        let (wake, because) = Seats::choose(args, SeatAffinity::AllowedSet).wake();
        (planned.seats.wake, planned.seats.wake_because) = (Some(wake), Some(because));
    }
}

/// The diagnosis.
fn diagnose(
    args: &PlanArgs,
    findings: &Findings,
    overrides: &Overrides,
    planned: Result<&FleetPlan, &BootRefused>,
) -> DoctorRecord {
    let budget = budget(findings, overrides);
    let milli = budget.milli.map_or(MilliCpu::new(0), MilliCpu::new);
    let evidence = &findings.groups.evidence;
    DoctorRecord {
        quota: QuotaRecord {
            milli: findings.groups.bound.map(MilliCpu::milli),
            limiting_level: findings.limit.as_ref().map(|limit| limit.level.clone()),
            levels_above: findings.limit.as_ref().map(|limit| limit.above),
            file: findings.limit.as_ref().map(|limit| limit.file.clone()),
            hierarchy: findings.hierarchy().map(BoundedBy::name),
            confidence: evidence.confidence.name(),
            reason: evidence.reason.to_string(),
        },
        levels: findings
            .levels
            .iter()
            .map(|level| LevelRecord {
                path: level.path.clone(),
                file: level.file.clone(),
                milli: level.limit.map(MilliCpu::milli),
                says: level.says,
            })
            .collect(),
        affinity_cpus: findings.cpus.as_ref().map(|_| findings.allowed.count),
        cpus: findings.cpus.clone(),
        cores: CoresRecord {
            whole: milli.floor_cores(),
            ceil: milli.ceil_cores(),
            fraction_milli: milli.fraction(),
        },
        tiers: tiers(milli),
        plan: match planned {
            Ok(plan) => PlanAnswer::Planned(Box::new(answer(plan, findings, args))),
            Err(refused) => PlanAnswer::Refused(RefusedRecord {
                refused: refused.name(),
                refused_because: refused.to_string(),
            }),
        },
        throttle: throttle(findings),
        wakes: Vec::new(),
        hints: hints::hints(
            findings,
            &budget,
            planned.ok(),
            args.affinity.map(Into::into),
        ),
        budget,
    }
}

fn budget(findings: &Findings, overrides: &Overrides) -> BudgetBound {
    let evidence = &findings.quota.evidence;
    match overrides.quota() {
        Some(given) => BudgetBound {
            milli: Some(given.value.milli()),
            bounded_by: BoundedBy::Override.name(),
            confidence: evidence.confidence.name(),
            reason: format!("set by the {}", given.origin),
        },
        None => BudgetBound {
            milli: findings.quota.bound.map(MilliCpu::milli),
            bounded_by: evidence.bounded_by.name(),
            confidence: evidence.confidence.name(),
            reason: evidence.reason.to_string(),
        },
    }
}

fn tiers(milli: MilliCpu) -> Vec<TierRecord> {
    [
        ("serial", HOST_FLOOR),
        ("pinned", pinned_floor(&FLEET_ROLES)),
    ]
    .map(|(tier, needs)| {
        let lacks = MilliCpu::from_cores(needs)
            .milli()
            .saturating_sub(milli.milli());
        TierRecord {
            tier,
            needs_cores: needs,
            lacks_milli: lacks,
        }
    })
    .to_vec()
}

fn answer(plan: &FleetPlan, findings: &Findings, args: &PlanArgs) -> PlannedRecord {
    let bound = machine::affinity(plan, findings, args);
    let record = plan::record(plan, findings, machine::seats_record(plan, bound, None));
    PlannedRecord {
        profile: record.profile,
        binding: record.binding,
        oversubscribed: record.oversubscribed,
        tier_refused: record.tier_refused,
        tier_refused_because: record.tier_refused_because,
        permits: record.permits,
        seats: record.seats,
        shares: record.budget,
        idle_overrides: record.idle_overrides,
    }
}

fn throttle(findings: &Findings) -> ThrottleRecord {
    match &findings.throttle {
        Some(counted) => ThrottleRecord {
            measured: true,
            nr_periods: counted.nr_periods,
            nr_throttled: counted.nr_throttled,
            throttled_ns: counted.throttled_ns,
            source: Some(counted.source.clone()),
        },
        None => ThrottleRecord::default(),
    }
}
