//! From the machine, the environment and the command line to a plan.

use crate::cli::PlanArgs;
use crate::config::{ConfigFile, ConfigFileError};
use crate::machine::{self, BINDINGS, Findings};
use crate::report::{BudgetRecord, CensusRecord, PlanRecord, SeatsRecord};
use regatta_core::budget::{MilliCpu, Origin, OverrideError, Overrides, Quota, Setting};
use regatta_core::plan::{Bindings, BootRefused, CensusRow, FleetPlan, PlanInput, TierRefused};
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use std::ffi::OsString;
use thiserror::Error;

/// The prefix of a setting's environment variable.
const ENV_PREFIX: &str = "REGATTA_";

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// An override is wrong.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// An override on the command line is no pair.
    #[error("--set {text:?}: it takes KEY=VALUE, such as ambient_io_cores=1")]
    NoPair {
        /// What was given.
        text: String,
    },
    /// The environment has an override that is not Unicode.
    #[error("{name} from the environment is not Unicode; it takes a whole number")]
    NotUnicode {
        /// The variable.
        name: String,
    },
    /// The configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// The fleet refuses to boot.
    #[error(transparent)]
    Boot(Box<BootRefused>),
}

impl From<BootRefused> for PlanError {
    fn from(refused: BootRefused) -> Self {
        // It holds the budget it refuses, which is large.
        Self::Boot(Box::new(refused))
    }
}

/// The overrides of both layers.
pub fn overrides(
    args: &PlanArgs,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Overrides, PlanError> {
    let table = &FLEET_ROLES;
    let mut overrides = Overrides::none();
    if let Some(path) = &args.config {
        ConfigFile::read(path)?.overrides(path, &mut overrides)?;
    }
    for (name, value) in env {
        let Some(key) = name.to_str().and_then(|name| name.strip_prefix(ENV_PREFIX)) else {
            continue;
        };
        // A variable of ours that is no setting is a slip of the pen, and must not fall through.
        let key = key.to_lowercase();
        let value = value.into_string().map_err(|_| PlanError::NotUnicode {
            name: name.to_string_lossy().into_owned(),
        })?;
        overrides.set(table, &key, &value, Origin::Environment)?;
    }
    for pair in &args.set {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| PlanError::NoPair { text: pair.clone() })?;
        overrides.set(table, key, value, Origin::CommandLine)?;
    }
    if let Some(quota) = args.quota {
        overrides.insert(table, Setting::Quota, quota.milli(), Origin::CommandLine)?;
    }
    Ok(overrides)
}

/// The plan of this process, and what of the machine it was made from.
pub fn derive(args: &PlanArgs) -> Result<(FleetPlan, Findings), PlanError> {
    let overrides = from_process(args)?;
    for (_, key, given) in overrides.iter(&FLEET_ROLES) {
        tracing::warn!("{key} = {} set by the {}", given.value, given.origin);
    }
    let findings = machine::this();
    let plan = derive_for(args, findings.quota, &overrides, BINDINGS)?;
    Ok((plan, findings))
}

/// The overrides of the command line and of the process's environment.
pub fn from_process(args: &PlanArgs) -> Result<Overrides, PlanError> {
    overrides(args, std::env::vars_os())
}

/// The plan that follows from `quota` where `bindings` are offered.
pub fn derive_for(
    args: &PlanArgs,
    quota: Quota,
    overrides: &Overrides,
    bindings: Bindings,
) -> Result<FleetPlan, PlanError> {
    Ok(FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota,
        profile: args.profile.into(),
        overrides,
        bindings,
    })?)
}

/// The record of a plan for a quota that was detected as `findings` tell.
#[must_use]
pub fn record(plan: &FleetPlan, findings: &Findings, seats: SeatsRecord) -> PlanRecord {
    let evidence = &plan.detected.evidence;
    PlanRecord {
        quota_milli: plan.allocation.milli(),
        quota_origin: plan.allocation_origin.name(),
        detected_milli: plan.detected.bound.map(MilliCpu::milli),
        bounded_by: evidence.bounded_by.name(),
        confidence: evidence.confidence.name(),
        reason: evidence.reason.to_string(),
        limiting_level: findings.limit.as_ref().map(|limit| limit.level.clone()),
        limiting_file: findings.limit.as_ref().map(|limit| limit.file.clone()),
        profile: plan.profile.name(),
        binding: plan.binding.name(),
        oversubscribed: plan.oversubscribed,
        tier_refused: plan.tier_refused.map(TierRefused::name),
        tier_refused_because: plan.tier_refused.map(|refused| refused.to_string()),
        permits: plan.permits.total,
        bins: plan.keys(WorkerRole::Solver.id()),
        seats,
        budget: plan
            .budget
            .rows()
            .iter()
            .map(|row| BudgetRecord {
                name: row.name,
                cores: row.peak_cores,
                within: row.within,
                threads: row.threads,
                rule: row.rule.to_string(),
                origin: row.origin.name(),
            })
            .collect(),
        census: plan.census().iter().map(census_record).collect(),
        idle_overrides: plan.idle_overrides().map(|key| key.to_string()).collect(),
    }
}

/// The record of a row of the census.
#[must_use]
pub fn census_record(row: &CensusRow) -> CensusRecord {
    CensusRecord {
        resource: row.resource,
        owner: row.owner,
        count: row.count,
        sizing: row.sizing.to_string(),
        threads: row
            .threads
            .as_ref()
            .map(|prefix| prefix.as_str().to_owned()),
        binding: row.binding.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command, PlanArgs};
    use clap::Parser;
    use regatta_core::budget::{BoundedBy, Reason};

    fn args(line: &[&str]) -> PlanArgs {
        let line = ["regatta", "run"].iter().chain(line);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Run(args) => args.plan,
            Command::Doctor(args) => args.plan,
            Command::Replay(args) => args.plan,
            Command::Capture(_) | Command::Settle(_) => unreachable!(),
        }
    }

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let owned = |pair: &(&str, &str)| (pair.0.into(), pair.1.into());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_misspelt_variable_does_not_fall_through() {
        let error = overrides(&args(&[]), env(&[("REGATTA_SOLVER_PIN", "3")])).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("solver_pin") && error.contains("environment"),
            "{error}"
        );
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let env = || {
            env(&[
                ("REGATTA_QUOTA", "3000"),
                ("REGATTA_AMBIENT_IO_CORES", "1"),
                ("PATH", "somewhere"),
            ])
        };
        let both = overrides(&args(&["--quota", "4000"]), env())
            .unwrap()
            .quota()
            .unwrap();
        assert_eq!(
            (both.value.milli(), both.origin),
            (4000, Origin::CommandLine)
        );
        let one = overrides(&args(&[]), env()).unwrap().quota().unwrap();
        assert_eq!((one.value.milli(), one.origin), (3000, Origin::Environment));
    }

    #[test]
    fn a_malformed_override_names_key_text_and_what_it_takes() {
        let many = env(&[("REGATTA_SOLVER_PINS", "many")]);
        let error = overrides(&args(&[]), many).unwrap_err().to_string();
        for part in ["solver_pins", "many", "environment", "1 to 64"] {
            assert!(error.contains(part), "{error}");
        }
        let error = overrides(&args(&["--set", "nothing"]), env(&[]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("KEY=VALUE"), "{error}");
        let error = overrides(&args(&["--set", "no_such=1"]), env(&[]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no_such"), "{error}");
    }

    #[test]
    fn eight_cores_without_a_pinned_binding_run_serial_and_say_why() {
        let quota = Quota::exact(
            MilliCpu::from_cores(8),
            BoundedBy::Cgroup2,
            Reason::LimitRead,
        );
        let bindings = Bindings { pinned: false };
        let plan = derive_for(&args(&[]), quota, &Overrides::none(), bindings).unwrap();
        let findings = Findings::of(quota);
        let bound = machine::affinity(&plan, &findings, &args(&[]));
        let record = record(&plan, &findings, machine::seats_record(&plan, bound, None));
        assert_eq!(
            (record.binding, record.tier_refused),
            ("serial", Some("PinnedUnavailable"))
        );
        assert_eq!(record.bins, 6);
    }
}
