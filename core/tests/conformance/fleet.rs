//! The stub's fleet: the shipped plan of a number of cores over a host of nothing.

use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::guard::Guard;
use regatta_core::host::{Grant, Host, HostConfig, Input, InputError, Reaction};
use regatta_core::lane::LaneConfig;
use regatta_core::plan::{Bindings, FleetPlan, PlanInput, Profile};
use regatta_core::role::{FLEET_ROLES, RoleId};
use regatta_core::seat::SeatId;
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{RunResult, UnitRow};

/// Rows of each lane.
const ROWS: u32 = 8;

pub(crate) fn quota(milli: u32) -> Quota {
    Quota::exact(MilliCpu::new(milli), BoundedBy::Cgroup2, Reason::LimitRead)
}

pub(crate) fn plan(milli: u32, profile: Profile) -> FleetPlan {
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: quota(milli),
        profile,
        overrides: &Overrides::none(),
        bindings: Bindings { pinned: true },
    });
    plan.unwrap()
}

/// A host that is audited after every call.
pub(crate) struct Fleet {
    pub(crate) host: Host<Vec<UnitRow>>,
    pub(crate) guard: Guard,
    now: Instant,
}

impl Fleet {
    pub(crate) fn new(plan: &FleetPlan) -> Self {
        let lane = |role| LaneConfig {
            rows: ROWS,
            queue: ROWS,
            keys: plan.keys(role),
            slots: None,
        };
        let lanes: Vec<LaneConfig> = FLEET_ROLES.ids().map(lane).collect();
        let config = HostConfig {
            table: &FLEET_ROLES,
            lanes: &lanes,
            seats: &plan.seats,
            windows: &[],
            backstop: Duration::from_millis(250),
            stuck_ticks: 8,
        };
        let rows = vec![UnitRow::FREE; ROWS as usize * lanes.len()];
        let mut guard = Guard::open(0);
        guard.permits = plan.permits;
        Self {
            host: Host::new(&config, rows).unwrap(),
            guard,
            now: Instant::from_nanos(1_000_000_000),
        }
    }

    /// Hands in an input; a refusal must have changed nothing.
    pub(crate) fn handle(&mut self, input: Input) -> Result<Reaction, InputError> {
        let before = self.host.clone();
        let reaction = self.host.handle(input, self.now, &self.guard);
        if reaction.is_err() {
            assert!(
                self.host == before,
                "{input:?} was refused and changed something"
            );
        }
        self.host.audit().unwrap();
        reaction
    }

    pub(crate) fn enqueue(&mut self, role: impl Into<RoleId>, key: u8) {
        let role = role.into();
        self.handle(Input::Enqueue { role, key }).unwrap();
    }

    /// Grants and starts everything that may run.
    pub(crate) fn pump(&mut self) -> Vec<Grant> {
        let mut started = Vec::new();
        while let Some(grant) = self.host.poll_grant(self.now, &self.guard) {
            let begun = self
                .host
                .start(grant.seat, grant.unit, self.now, &self.guard);
            begun.unwrap();
            started.push(grant);
        }
        self.host.audit().unwrap();
        started
    }

    pub(crate) fn finish(&mut self, grant: Grant) {
        let (seat, unit) = (grant.seat, grant.unit);
        let result = RunResult::Done;
        let reaction = self.handle(Input::SeatDone { seat, unit, result });
        assert_eq!(reaction, Ok(Reaction::Finished));
    }

    /// Reads every outcome and gives the rows back.
    pub(crate) fn collect(&mut self) -> usize {
        let mut ended = 0;
        while let Some(resolved) = self.host.poll_resolved() {
            self.host.release(resolved.unit).unwrap();
            ended += 1;
        }
        ended
    }

    /// Seat and key of every pin.
    pub(crate) fn pins(&self) -> Vec<(SeatId, u8)> {
        self.host.pins().map(|(seat, _, key)| (seat, key)).collect()
    }
}
