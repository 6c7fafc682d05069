//! The fleets that are simulated: the shipped roles on the two shipped bindings.

use crate::rule::{Rule, Step, Violation};
use crate::script::Tier;
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::host::{Host, HostConfig, Window};
use regatta_core::lane::LaneConfig;
use regatta_core::plan::{Bindings, FleetPlan, PlanInput, Profile};
use regatta_core::role::{FLEET_ROLES, RoleId, WorkerRole};
use regatta_core::time::Duration;
use regatta_core::unit::UnitRow;

/// Δ.
pub(crate) const DELTA: Duration = Duration::from_millis(250);
/// K.
pub(crate) const STUCK_TICKS: u32 = 8;
/// Receipts that the crawl keeps outstanding at most.
pub(crate) const CRAWL_WINDOW: u32 = 32;
/// Rows of the registrar's lane: the crawl's window and what clients submit.
const REGISTRAR_ROWS: u32 = CRAWL_WINDOW + 8;
/// Rows of every other lane.
const ROWS: u32 = 8;
/// The keys of the solver lane on either tier.
pub(crate) const BINS: u8 = 6;

/// The host as it ships: 64 seats, 16 roles.
pub(crate) type SimHost = Host<Box<[UnitRow]>>;

pub(crate) const SOLVER: RoleId = WorkerRole::Solver.id();
pub(crate) const MERGE: RoleId = WorkerRole::Merge.id();
pub(crate) const REGISTRAR: RoleId = WorkerRole::Registrar.id();

/// A quota that was read.
pub(crate) fn quota(milli: u16) -> Quota {
    if milli == 0 {
        return Quota::unknown(Reason::Unreadable);
    }
    Quota::exact(
        MilliCpu::new(milli.into()),
        BoundedBy::Cgroup2,
        Reason::LimitRead,
    )
}

/// The quota at boot, in thousandths of a core.
pub(crate) const fn boot_quota(tier: Tier) -> u16 {
    match tier {
        Tier::Pinned => 8_000,
        Tier::Serial => 2_000,
    }
}

/// The plan of a tier.
pub(crate) fn plan(tier: Tier) -> Step<FleetPlan> {
    let profile = match tier {
        Tier::Pinned => Profile::Pinned,
        Tier::Serial => Profile::Serial,
    };
    FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: quota(boot_quota(tier)),
        profile,
        overrides: &Overrides::none(),
        bindings: Bindings { pinned: true },
    })
    .map_err(|refused| Violation::new(Rule::Refused, refused.to_string()))
}

/// The lanes of a plan.
pub(crate) fn lanes(plan: &FleetPlan) -> Vec<LaneConfig> {
    let lane = |role: RoleId| {
        let rows = if role == REGISTRAR {
            REGISTRAR_ROWS
        } else {
            ROWS
        };
        LaneConfig {
            rows,
            queue: rows / 2,
            keys: plan.keys(role),
            slots: Some(plan.slots(role).max(1)),
        }
    };
    plan.table.ids().map(lane).collect()
}

/// The host of a plan.
pub(crate) fn host(plan: &FleetPlan) -> Step<SimHost> {
    let lanes = lanes(plan);
    let rows: u32 = lanes.iter().map(|lane| lane.rows).sum();
    let config = HostConfig {
        table: &FLEET_ROLES,
        lanes: &lanes,
        seats: &plan.seats,
        windows: &[Window {
            producer: "crawl",
            role: REGISTRAR,
            units: CRAWL_WINDOW,
        }],
        backstop: DELTA,
        stuck_ticks: STUCK_TICKS,
    };
    let rows = vec![UnitRow::FREE; rows as usize].into_boxed_slice();
    Host::new(&config, rows).map_err(|error| Violation::new(Rule::Refused, error.to_string()))
}
