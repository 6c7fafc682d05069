//! What the tests' hosts are made of.

use crate::host::HostConfig;
use crate::lane::LaneConfig;
use crate::role::{
    CordonClass, FLEET_ROLES, GrantStep, RoleId, RoleMask, RoleSpec, RoleTable, SeatKind,
    ShareRule, WorkerRole,
};
use crate::seat::SeatSpec;
use crate::time::Duration;

/// The interval of the backstop in every layout.
pub(super) const DELTA: Duration = Duration::from_millis(250);
/// The ticks after which a lane is reported stuck, in every layout.
pub(super) const K: u32 = 8;
/// Solver pins of [`Layout::pinned`].
pub(super) const PINS: u8 = 6;
/// The merge seat of [`Layout::pinned`].
pub(super) const MERGE_SEAT: u8 = 6;
/// The first of the five pooled seats of [`Layout::pinned`].
pub(super) const POOL: u8 = 7;

/// A host's configuration, owned.
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) table: &'static RoleTable,
    pub(super) lanes: Vec<LaneConfig>,
    pub(super) seats: Vec<SeatSpec>,
}

pub(super) const fn lane(rows: u32, queue: u32, keys: u8, slots: Option<u16>) -> LaneConfig {
    LaneConfig {
        rows,
        queue,
        keys,
        slots,
    }
}

pub(super) fn seat(kind: SeatKind, key: u8, roles: &[RoleId]) -> SeatSpec {
    SeatSpec {
        kind,
        roles: roles.iter().copied().collect(),
        key,
    }
}

impl Layout {
    /// The shipped table as the pinned tier lays it out: six solver pins, the merge pin, five pooled
    /// seats. Eight rows a lane, of which four may be queued.
    pub(super) fn pinned() -> Self {
        let pooled: RoleMask = FLEET_ROLES
            .ids()
            .filter(|r| FLEET_ROLES.get(*r).unwrap().seat == SeatKind::Pooled)
            .collect();
        let mut seats: Vec<SeatSpec> = (0..PINS)
            .map(|key| seat(SeatKind::KeyedPin, key, &[WorkerRole::Solver.id()]))
            .collect();
        seats.push(seat(SeatKind::FixedPin, 0, &[WorkerRole::Merge.id()]));
        seats.extend(
            [SeatSpec {
                kind: SeatKind::Pooled,
                roles: pooled,
                key: 0,
            }; 5],
        );
        Self {
            table: &FLEET_ROLES,
            lanes: fleet_lanes(),
            seats,
        }
    }

    /// The shipped table as the serial tier lays it out: one pooled seat for everything.
    pub(super) fn serial() -> Self {
        let roles: Vec<RoleId> = FLEET_ROLES.ids().collect();
        Self {
            table: &FLEET_ROLES,
            lanes: fleet_lanes(),
            seats: vec![seat(SeatKind::Pooled, 0, &roles)],
        }
    }

    /// One role on `seats` pooled seats.
    pub(super) fn one(table: &'static RoleTable, lane: LaneConfig, seats: usize) -> Self {
        Self {
            table,
            lanes: vec![lane],
            seats: vec![seat(SeatKind::Pooled, 0, &[R0]); seats],
        }
    }

    /// Two pins that defer and are waited on, and a pool of one deferrable role without receipts and
    /// one floored role: the combinations that the shipped table does not have.
    pub(super) fn odd() -> Self {
        Self {
            table: &ODD,
            lanes: vec![
                lane(6, 9, 3, None),
                lane(4, 2, 1, Some(1)),
                lane(5, 1, 1, Some(2)),
            ],
            seats: vec![
                seat(SeatKind::KeyedPin, 0, &[R0]),
                seat(SeatKind::KeyedPin, 1, &[R0]),
                seat(SeatKind::KeyedPin, 2, &[R0]),
                seat(SeatKind::Pooled, 0, &[R1, R2]),
                seat(SeatKind::Pooled, 0, &[R1, R2]),
            ],
        }
    }

    pub(super) fn config(&self) -> HostConfig<'_> {
        HostConfig {
            table: self.table,
            lanes: &self.lanes,
            seats: &self.seats,
            windows: &[],
            backstop: DELTA,
            stuck_ticks: K,
        }
    }
}

fn fleet_lanes() -> Vec<LaneConfig> {
    FLEET_ROLES
        .ids()
        .map(|role| match role {
            r if r == WorkerRole::Solver.id() => lane(8, 4, PINS, None),
            r if r == WorkerRole::SimDriver.id() => lane(8, 4, 1, Some(4)),
            _ => lane(8, 4, 1, None),
        })
        .collect()
}

pub(super) const R0: RoleId = RoleId::new(0);
pub(super) const R1: RoleId = RoleId::new(1);
pub(super) const R2: RoleId = RoleId::new(2);

pub(super) const fn role(
    name: &'static str,
    cordon: CordonClass,
    seat: SeatKind,
    owns_receipts: bool,
) -> RoleSpec {
    RoleSpec {
        name,
        short: name,
        cordon,
        seat,
        share: ShareRule::Permits,
        owns_receipts,
    }
}

/// One deferrable role with receipts, as the crawl's.
pub(super) const DEFERRABLE: RoleTable = RoleTable {
    roles: &[role(
        "crawl",
        CordonClass::Deferrable,
        SeatKind::Pooled,
        true,
    )],
    consumers: &[],
    order: &[GrantStep::Pooled(R0)],
};

/// One role that nothing but permits and seats holds.
pub(super) const PLAIN: RoleTable = RoleTable {
    roles: &[role("plain", CordonClass::Never, SeatKind::Pooled, true)],
    consumers: &[],
    order: &[GrantStep::Pooled(R0)],
};

/// A role that is always first, one behind it, and one that a cordon holds.
pub(super) const RANKED: RoleTable = RoleTable {
    roles: &[
        role("first", CordonClass::Never, SeatKind::Pooled, true),
        role("second", CordonClass::Never, SeatKind::Pooled, true),
        role("held", CordonClass::Deferrable, SeatKind::Pooled, true),
    ],
    consumers: &[],
    order: &[
        GrantStep::Pooled(R0),
        GrantStep::Pooled(R1),
        GrantStep::Pooled(R2),
    ],
};

/// See [`Layout::odd`].
pub(super) const ODD: RoleTable = RoleTable {
    roles: &[
        role("walk", CordonClass::Deferrable, SeatKind::KeyedPin, true),
        role("chore", CordonClass::Deferrable, SeatKind::Pooled, false),
        role("sim", CordonClass::SimFloor, SeatKind::Pooled, true),
    ],
    consumers: &[],
    order: &[
        GrantStep::Pinned(R0),
        GrantStep::Pooled(R2),
        GrantStep::Claim(R0),
        GrantStep::Pooled(R1),
    ],
};
