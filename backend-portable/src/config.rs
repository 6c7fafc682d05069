//! How a fleet is set up.

use crate::census::CensusError;
use crate::live::EdgeDelivery;
use crate::platform::PlatformError;
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::host::{Alarm, HostError, Window};
use regatta_core::lane::LaneConfig;
use regatta_core::plan::{Binding, Bindings, BootRefused, FleetPlan, PlanInput, Profile};
use regatta_core::posture::PosturePolicy;
use regatta_core::role::{FLEET_ROLES, RoleId, RoleTable};
use regatta_core::seat::SeatId;
use regatta_core::time::Duration;
use std::fmt;
use thiserror::Error;

/// What this backend offers: the serial binding.
pub const BINDINGS: Bindings = Bindings { pinned: false };

/// Δ, unless the configuration says otherwise.
const BACKSTOP: Duration = Duration::from_millis(250);

/// K, unless the configuration says otherwise.
const STUCK_TICKS: u32 = 8;

/// An alarm of the host with the state of the fleet at that moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlarmReport {
    /// What the host found.
    pub alarm: Alarm,
    /// The name of the role it concerns.
    pub role: &'static str,
    /// The state of every lane and seat, for the log.
    pub dump: String,
}

impl fmt::Display for AlarmReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.alarm {
            Alarm::Stuck {
                ticks, credited, ..
            } => write!(
                f,
                "lane {} could have moved and did not for {ticks} ticks ({} ms)",
                self.role,
                credited.as_millis()
            )?,
            Alarm::StrandedPipe { .. } => {
                write!(f, "the seat that drains the {} pipe is dead", self.role)?;
            }
        }
        write!(f, "\n{}", self.dump)
    }
}

/// What happens on an alarm, after it was logged with its dump.
#[derive(Default)]
pub enum AlarmAction {
    /// The process aborts. An alarm means that the fleet can no longer be trusted.
    #[default]
    Abort,
    /// The function decides. For tests, and for programs with a last will of their own. It is called
    /// under the fleet's lock and must not use the fleet; a panic of it is logged.
    Call(Box<dyn Fn(&AlarmReport) + Send + Sync>),
}

impl fmt::Debug for AlarmAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Abort => "Abort",
            Self::Call(_) => "Call",
        })
    }
}

/// How a fleet is set up. Lanes that are not configured have no rows and refuse every unit.
#[derive(Debug)]
pub struct FleetConfig {
    pub(crate) name: String,
    pub(crate) table: &'static RoleTable,
    pub(crate) plan: FleetPlan,
    pub(crate) lanes: Vec<LaneConfig>,
    pub(crate) windows: Vec<Window>,
    /// A role that was configured and is not in the table.
    pub(crate) unknown: Option<RoleId>,
    pub(crate) backstop: Duration,
    pub(crate) stuck_ticks: u32,
    pub(crate) policy: PosturePolicy,
    pub(crate) edges: EdgeDelivery,
    pub(crate) alarm: AlarmAction,
    pub(crate) cpus: u16,
}

impl FleetConfig {
    /// A configuration of `table` by `plan`, whose seats and permits it takes.
    #[must_use]
    pub fn new(table: &'static RoleTable, plan: FleetPlan) -> Self {
        let lanes = table
            .ids()
            .map(|role| LaneConfig {
                rows: 0,
                queue: 1,
                keys: plan.keys(role),
                slots: Some(plan.slots(role).max(1)),
            })
            .collect();
        Self {
            name: "fleet".to_owned(),
            table,
            plan,
            lanes,
            windows: Vec::new(),
            unknown: None,
            backstop: BACKSTOP,
            stuck_ticks: STUCK_TICKS,
            policy: PosturePolicy::default(),
            edges: EdgeDelivery::default(),
            alarm: AlarmAction::default(),
            cpus: u16::MAX,
        }
    }

    /// The shipped roles on the serial tier of so many cores, which the caller vouches for.
    pub fn serial(cores: u16) -> Result<Self, BootRefused> {
        Self::serial_with(&FLEET_ROLES, cores)
    }

    /// The roles of `table`, likewise.
    pub fn serial_with(table: &'static RoleTable, cores: u16) -> Result<Self, BootRefused> {
        let plan = FleetPlan::derive(&PlanInput {
            table,
            quota: Quota::exact(
                MilliCpu::from_cores(cores),
                BoundedBy::Override,
                Reason::Given,
            ),
            profile: Profile::Serial,
            overrides: &Overrides::none(),
            bindings: BINDINGS,
        })?;
        Ok(Self::new(table, plan))
    }

    /// The name of the fleet in the census, which distinguishes its threads from another fleet's.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Reserves `rows` units for a role without keys: so many may be in the lane at once, from
    /// acceptance until their receipt is collected.
    #[must_use]
    pub fn lane(self, role: impl Into<RoleId>, rows: u32) -> Self {
        self.keyed_lane(role, rows, 1)
    }

    /// Reserves `rows` units for a role with `keys` keys.
    #[must_use]
    pub fn keyed_lane(mut self, role: impl Into<RoleId>, rows: u32, keys: u8) -> Self {
        let role = role.into();
        match self.lanes.get_mut(role.index()) {
            Some(lane) => (lane.rows, lane.queue, lane.keys) = (rows, rows.max(1), keys),
            None => self.unknown = Some(role),
        }
        self
    }

    /// Declares how many units a producer keeps outstanding at most; boot checks that the windows of
    /// a lane fit its rows.
    #[must_use]
    pub fn window(mut self, producer: &'static str, role: impl Into<RoleId>, units: u32) -> Self {
        let role = role.into();
        if self.table.get(role).is_none() {
            self.unknown = Some(role);
        }
        self.windows.push(Window {
            producer,
            role,
            units,
        });
        self
    }

    /// Sets Δ, the interval at which a held unit is looked at again, and K, after how many ticks
    /// without movement a lane that could have moved is an alarm.
    #[must_use]
    pub fn backstop(mut self, interval: std::time::Duration, stuck_ticks: u32) -> Self {
        (self.backstop, self.stuck_ticks) = (interval.into(), stuck_ticks);
        self
    }

    /// Sets the posture policy at boot.
    #[must_use]
    pub fn posture_policy(mut self, policy: PosturePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether posture edges reach the host.
    #[must_use]
    pub fn edges(mut self, edges: EdgeDelivery) -> Self {
        self.edges = edges;
        self
    }

    /// Says on how many CPUs the process may run, if that is known: no more can be throttled at once.
    #[must_use]
    pub const fn allowed_cpus(mut self, cpus: u16) -> Self {
        self.cpus = cpus;
        self
    }

    /// Sets what happens on an alarm.
    #[must_use]
    pub fn on_alarm(mut self, action: AlarmAction) -> Self {
        self.alarm = action;
        self
    }
}

/// Why a fleet did not boot.
#[derive(Debug, Error)]
pub enum BootError {
    /// The plan asks for a binding that the platform does not have.
    #[error("the plan asks for the {} binding and this platform has the serial one", .0.name())]
    Binding(Binding),
    /// A lane or a window names a role that the table does not have.
    #[error("a lane or window is configured for role {role:?}: the table has {roles} roles")]
    Role {
        /// The role named.
        role: RoleId,
        /// How many there are.
        roles: usize,
    },
    /// The host refused its configuration.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The thread of a seat did not come to be.
    #[error(transparent)]
    Thread(#[from] CensusError),
    /// The platform could not set a seat up.
    #[error("seat {}: {source}", seat.index())]
    Seat {
        /// The seat.
        seat: SeatId,
        /// What the platform says.
        source: PlatformError,
    },
}
