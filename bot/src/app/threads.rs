//! The threads of a run beside its fleet's seats: what each component asks for.
//!
//! They sleep but for a moment at a time, and run on the core that the plan keeps in reserve. Together with the
//! plan's own rows they are all the threads that the process is to have, and the audit holds it to that.

use crate::cli::RunArgs;
use crate::drain;
use regatta_core::budget::Origin;
use regatta_core::component::{DemandError, ThreadClaim, check_threads};
use regatta_core::plan::{CensusRow, FleetPlan, LaneBinding, Sizing, ThreadPrefix};

/// A component's threads.
struct Service {
    component: &'static str,
    resource: &'static str,
    /// How their names begin.
    name: &'static str,
    count: u16,
    /// Whether a run with these arguments has them.
    has: fn(&RunArgs) -> bool,
}

const SERVICES: [Service; 10] = [
    service("signals", "signals", "rg-signals", 1, |_| true),
    service("health", "health", "rg-health", 1, |args| {
        args.health.is_some()
    }),
    service("watchdog", "watchdog", "rg-watchdog", 1, |_| true),
    service("drain", "drain", "rg-drain", drain::OWN_THREADS, |_| true),
    service("drain", "sink", "rg-sink-", 1, |_| true),
    service("source", "source", "rg-source", 1, |args| {
        args.source.block_time > 0
    }),
    service("source", "node", "rg-node", 1, |args| {
        args.source.rpc.is_some()
    }),
    service("verifier", "verifier", "rg-verifier", 1, RunArgs::verifies),
    service("settler", "settler", "rg-settler", 1, RunArgs::settles),
    service("pump", "pump", "rg-pump", 1, |_| true),
];

/// The threads of a capture from a node, which has no plan and no fleet.
const OF_CAPTURE: [(&str, &str); 3] = [
    ("signals", "signals"),
    ("source", "node"),
    ("recorder", "recorder"),
];

/// What the components of a capture claim.
pub(super) fn claims_of_capture(components: &[&'static str]) -> Vec<ThreadClaim<'static>> {
    let there = OF_CAPTURE
        .iter()
        .filter(|(owner, _)| components.contains(owner));
    there
        .map(|(owner, resource)| ThreadClaim {
            resource,
            owner,
            count: 1,
        })
        .collect()
}

const fn service(
    component: &'static str,
    resource: &'static str,
    name: &'static str,
    count: u16,
    has: fn(&RunArgs) -> bool,
) -> Service {
    Service {
        component,
        resource,
        name,
        count,
        has,
    }
}

/// The rows of a run's threads beside its seats. The watchdog's is there only if a service manager asks for it.
pub(crate) fn rows(args: &RunArgs) -> Vec<CensusRow> {
    let services = SERVICES.iter().filter(|service| (service.has)(args));
    services
        .map(|service| CensusRow {
            resource: service.resource,
            owner: service.component,
            role: None,
            count: service.count,
            sizing: Sizing::One,
            origin: Origin::Rule,
            threads: ThreadPrefix::try_from(service.name).ok(),
            binding: LaneBinding::Pinned,
        })
        .collect()
}

/// What the components claim: the seats for the fleet, and its own threads for each that is there.
pub(super) fn claims(
    args: &RunArgs,
    plan: &FleetPlan,
    components: &[&'static str],
) -> Vec<ThreadClaim<'static>> {
    let seats = plan.census();
    let seats = seats.iter().filter(|row| row.owner == "fleet").cloned();
    let services = rows(args).into_iter();
    let own = seats.chain(services.filter(|row| components.contains(&row.owner)));
    own.filter(|row| row.threads.is_some())
        .map(|row| ThreadClaim {
            resource: row.resource,
            owner: row.owner,
            count: row.count,
        })
        .collect()
}

/// Whether every claim is granted.
pub(super) fn granted(
    args: &RunArgs,
    plan: &FleetPlan,
    claims: &[ThreadClaim<'_>],
) -> Result<(), DemandError> {
    let all: Vec<CensusRow> = plan.census().into_iter().chain(rows(args)).collect();
    check_threads(claims, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
    use regatta_core::plan::{Bindings, PlanInput, Profile};
    use regatta_core::role::FLEET_ROLES;

    fn args(line: &[&str]) -> RunArgs {
        let line = ["regatta", "run"].iter().chain(line);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Run(args) => args,
            _ => unreachable!(),
        }
    }

    #[test]
    fn what_is_claimed_is_granted_and_no_more() {
        for cores in [2, 8] {
            let plan = FleetPlan::derive(&PlanInput {
                table: &FLEET_ROLES,
                quota: Quota::exact(
                    MilliCpu::from_cores(cores),
                    BoundedBy::Override,
                    Reason::Given,
                ),
                profile: Profile::Auto,
                overrides: &Overrides::none(),
                bindings: Bindings { pinned: true },
            })
            .unwrap();
            let args = args(&["--block-time", "5", "--health", "127.0.0.1:1", "--verify"]);
            let all = [
                "signals", "health", "watchdog", "drain", "fleet", "source", "verifier", "pump",
            ];
            let mut claimed = claims(&args, &plan, &all);
            granted(&args, &plan, &claimed).unwrap();
            let seats: u16 = claimed
                .iter()
                .filter(|c| c.owner == "fleet")
                .map(|c| c.count)
                .sum();
            assert_eq!(usize::from(seats), plan.seats.len());
            claimed.push(ThreadClaim {
                resource: "pump",
                owner: "another",
                count: 1,
            });
            let refused = granted(&args, &plan, &claimed).unwrap_err();
            assert_eq!(
                (refused.resource, refused.asked, refused.granted),
                ("pump", 2, 1)
            );
        }
        // A replay has no thread for its source, and who asks for none has no endpoint and no verifier.
        let few = rows(&args(&[]));
        assert!(
            few.iter()
                .all(|row| !["source", "health", "verifier"].contains(&row.resource))
        );
    }
}
