//! The binding under test: the pinned one, with one seat for the pooled roles.

use regatta_core::plan::Bindings;
use regatta_core::budget::{BoundedBy, MilliCpu, Origin, Overrides, Quota, Reason, Setting};
use regatta_core::plan::{Binding, FleetPlan, PlanInput, Profile};
use regatta_core::role::{FLEET_ROLES, SeatKind, WorkerRole};
use regatta_core::seat::SeatId;
use regatta_portable::clock::MonotonicClock;
use regatta_portable::platform::{PlatformError, SeatPlatform, Sleeper, StdPlatform};
use regatta_portable::{BootError, Census, Fleet, FleetConfig, Workload};

/// The plan of eight cores with three solver pins.
pub(crate) fn bare() -> FleetConfig {
    let mut overrides = Overrides::none();
    let pins = Setting::Pins(WorkerRole::Solver.id());
    overrides
        .insert(&FLEET_ROLES, pins, 3, Origin::Config)
        .unwrap();
    let quota = Quota::exact(MilliCpu::from_cores(8), BoundedBy::Override, Reason::Given);
    let mut plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota,
        profile: Profile::Auto,
        overrides: &overrides,
        bindings: Bindings { pinned: true },
    })
    .unwrap();
    assert_eq!(plan.binding, Binding::Pinned);
    let mut pooled = 0;
    plan.seats.retain(|seat| {
        pooled += u32::from(seat.kind == SeatKind::Pooled);
        seat.kind != SeatKind::Pooled || pooled == 1
    });
    FleetConfig::new(&FLEET_ROLES, plan)
}

struct P;
impl SeatPlatform for P {
    fn bindings(&self) -> Bindings { Bindings { pinned: true } }
    fn sleeper(&self, s: SeatId, c: MonotonicClock) -> Result<Sleeper, PlatformError> { StdPlatform.sleeper(s, c) }
}

pub(crate) fn boot<W: Workload>(
    workload: W,
    config: FleetConfig,
    census: &Census,
) -> Result<Fleet<W>, BootError> {
    Fleet::boot_on(&P, workload, config, census)
}
