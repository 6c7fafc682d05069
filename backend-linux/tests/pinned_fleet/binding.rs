//! The binding under test: the pinned one.

use regatta_core::budget::{BoundedBy, MilliCpu, Origin, Overrides, Quota, Reason, Setting};
use regatta_core::plan::{Binding, FleetPlan, PlanInput, Profile};
use regatta_core::role::{FLEET_ROLES, SeatKind, WorkerRole};
use regatta_linux::wake::WakeKind;
use regatta_linux::{BINDINGS, LinuxSeats};
use regatta_portable::{BootError, Census, Fleet, FleetConfig, Workload};

/// So many cores, stated.
pub(crate) fn cores(cores: u16) -> Quota {
    let milli = MilliCpu::from_cores(cores);
    Quota::exact(milli, BoundedBy::Override, Reason::Given)
}

/// The plan of six cores, with three solver pins of which two may walk at once.
pub(crate) fn plan() -> FleetPlan {
    let mut overrides = Overrides::none();
    let pins = Setting::Pins(WorkerRole::Solver.id());
    overrides
        .insert(&FLEET_ROLES, pins, 3, Origin::Config)
        .unwrap();
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: cores(6),
        profile: Profile::Auto,
        overrides: &overrides,
        bindings: BINDINGS,
    });
    let plan = plan.unwrap();
    assert_eq!(plan.binding, Binding::Pinned);
    plan
}

/// A configuration without lanes, with one seat for all pooled roles.
pub(crate) fn bare() -> FleetConfig {
    let mut plan = plan();
    let mut pooled = 0;
    plan.seats.retain(|seat| {
        pooled += u32::from(seat.kind == SeatKind::Pooled);
        seat.kind != SeatKind::Pooled || pooled == 1
    });
    FleetConfig::new(&FLEET_ROLES, plan)
}

/// Says which wake the tests of this process use.
pub(crate) const WAKE: &str = "REGATTA_TEST_WAKE";

/// The wake that the tests of this process use.
pub(crate) fn wake() -> WakeKind {
    match std::env::var(WAKE) {
        Ok(name) => name.parse().unwrap(),
        Err(_) => WakeKind::Futex,
    }
}

pub(crate) fn boot<W: Workload>(
    workload: W,
    config: FleetConfig,
    census: &Census,
) -> Result<Fleet<W>, BootError> {
    Fleet::boot_on(&LinuxSeats::new(wake()), workload, config, census)
}
