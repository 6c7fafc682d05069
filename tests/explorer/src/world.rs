//! What is explored: small fleets, and how much of the outside world they meet.
//!
//! A [`World`] is a role table with lanes and seats. A [`Size`] bounds what happens to it: how many
//! units are alive at once, what the guard can say, how many seats die. Nothing bounds how often
//! something happens: a walk has no last step.

use regatta_core::guard::Permits;
use regatta_core::host::HostConfig;
use regatta_core::lane::LaneConfig;
use regatta_core::role::{
    CordonClass, GrantStep, RoleId, RoleMask, RoleSpec, RoleTable, SeatKind, ShareRule,
};
use regatta_core::seat::SeatSpec;
use regatta_core::time::Duration;

/// Rows of the unit table; the lanes of a world reserve at most as many.
pub const ROWS: usize = 8;
/// Seats that a host has room for.
pub const SEATS: usize = 4;
/// Roles that a host has room for.
pub const ROLES: usize = 4;
/// Δ. Any number would do: nothing is compared with it but itself.
pub const DELTA: Duration = Duration::from_millis(250);
/// K, the fewest ticks with which a correct driver can be told from a stuck one.
pub const STUCK_TICKS: u32 = 2;

/// The number of pins after boot: all there can be.
pub const ALL_PINS: u8 = 64;

/// Units that may wait for a cordon to lift, and whose receipts someone waits on.
pub const CHORE: RoleId = RoleId::new(0);
/// Units that a cordon slows down to a floor.
pub const SIM: RoleId = RoleId::new(1);
/// Units of keyed pins, never held by a cordon.
pub const WALK: RoleId = RoleId::new(2);
/// Units of a fixed pin.
pub const PIPE: RoleId = RoleId::new(3);

/// A fleet to explore.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is there for.
    pub about: &'static str,
    /// The roles.
    pub table: &'static RoleTable,
    /// One lane per role.
    pub lanes: &'static [LaneConfig],
    /// Kind, roles and key of each seat.
    pub seats: &'static [(SeatKind, &'static [RoleId], u8)],
    /// By how many units a size is less here, where states are many.
    pub fewer: usize,
}

/// How much happens in a world.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its name on the command line.
    pub name: &'static str,
    /// Units from acceptance to the release of their receipts, at once.
    pub units: usize,
    /// Doubled or late reports that are on their way at once.
    pub stale: usize,
    /// Seats that die.
    pub deaths: usize,
    /// What the permits can be. The first is the one that holds nothing.
    pub permits: &'static [Permits],
    /// What the ledger can hold, and whether it knows when it will stop. The first is nothing.
    pub ledgers: &'static [(&'static [RoleId], bool)],
    /// Numbers of pins that a resize can ask for.
    pub pins: &'static [u8],
    /// Whether ended units are read at once, or any time later.
    pub reads_at_once: bool,
    /// Whether the driver may take several inputs before it polls grants.
    pub batches: bool,
}

const fn role(
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

const ROLE_ROWS: [RoleSpec; 4] = [
    role("chore", CordonClass::Deferrable, SeatKind::Pooled, true),
    role("sim", CordonClass::SimFloor, SeatKind::Pooled, true),
    role("walk", CordonClass::Never, SeatKind::KeyedPin, false),
    role("pipe", CordonClass::Never, SeatKind::FixedPin, false),
];

/// A chore, a sim and a walk.
static THREE: RoleTable = RoleTable {
    roles: ROLE_ROWS.split_at(3).0,
    consumers: &[],
    order: &[
        GrantStep::Pinned(WALK),
        GrantStep::Pooled(SIM),
        GrantStep::Claim(WALK),
        GrantStep::Pooled(CHORE),
    ],
};

/// The same and a fixed pin.
static FOUR: RoleTable = RoleTable {
    roles: &ROLE_ROWS,
    consumers: &[],
    order: &[
        GrantStep::Pinned(WALK),
        GrantStep::Pinned(PIPE),
        GrantStep::Pooled(SIM),
        GrantStep::Claim(WALK),
        GrantStep::Claim(PIPE),
        GrantStep::Pooled(CHORE),
    ],
};

const fn lane(rows: u32, queue: u32, keys: u8, slots: Option<u16>) -> LaneConfig {
    LaneConfig {
        rows,
        queue,
        keys,
        slots,
    }
}

const CLOSED_LANE: LaneConfig = lane(0, 0, 1, None);

/// Every world.
pub static WORLDS: &[World] = &[
    World {
        name: "fleet",
        about: "one keyed pin and two pooled seats for a chore lane, a sim lane and a walk lane",
        table: &THREE,
        lanes: &[
            lane(3, 1, 1, None),
            lane(3, 2, 1, None),
            lane(2, 2, 1, None),
        ],
        seats: &[
            (SeatKind::KeyedPin, &[WALK], 0),
            (SeatKind::Pooled, &[CHORE, SIM], 0),
            (SeatKind::Pooled, &[CHORE, SIM], 0),
        ],
        fewer: 0,
    },
    World {
        name: "pins",
        about: "two keyed pins whose keys move, and a pooled seat for chores",
        table: &THREE,
        lanes: &[lane(2, 1, 1, None), CLOSED_LANE, lane(4, 4, 2, None)],
        seats: &[
            (SeatKind::KeyedPin, &[WALK], 0),
            (SeatKind::KeyedPin, &[WALK], 1),
            (SeatKind::Pooled, &[CHORE], 0),
        ],
        fewer: 1,
    },
    World {
        name: "pipe",
        about: "a fixed pin, a keyed pin and a pooled seat with fewer sim slots than seats",
        table: &FOUR,
        lanes: &[
            lane(2, 1, 1, None),
            lane(2, 1, 1, Some(1)),
            lane(1, 1, 1, None),
            lane(2, 2, 1, None),
        ],
        seats: &[
            (SeatKind::FixedPin, &[PIPE], 0),
            (SeatKind::KeyedPin, &[WALK], 0),
            (SeatKind::Pooled, &[CHORE, SIM], 0),
            (SeatKind::Pooled, &[SIM], 0),
        ],
        fewer: 1,
    },
    World {
        name: "serial",
        about: "one pooled seat for every role",
        table: &THREE,
        lanes: &[
            lane(3, 1, 1, None),
            lane(2, 2, 1, None),
            lane(2, 2, 2, None),
        ],
        seats: &[(SeatKind::Pooled, &[CHORE, SIM, WALK], 0)],
        fewer: 0,
    },
];

const fn permits(total: u16, keyed: u16, below_floor: bool) -> Permits {
    Permits {
        total,
        keyed,
        below_floor,
    }
}

const ENOUGH: Permits = permits(16, 16, false);

/// Every role.
const ALL: &[RoleId] = &[CHORE, SIM, WALK, PIPE];

const TINY: Size = Size {
    name: "tiny",
    units: 2,
    stale: 0,
    deaths: 1,
    permits: &[ENOUGH, permits(1, 0, true)],
    ledgers: &[(&[], false)],
    pins: &[1, ALL_PINS],
    reads_at_once: true,
    batches: false,
};

const SMALL: Size = Size {
    name: "small",
    stale: 1,
    ledgers: &[(&[], false), (ALL, true)],
    ..TINY
};

/// Every size, in growing order.
pub static SIZES: &[Size] = &[
    TINY,
    SMALL,
    Size {
        name: "medium",
        units: 3,
        reads_at_once: false,
        ..SMALL
    },
    Size {
        name: "large",
        units: 4,
        ..SMALL
    },
    Size {
        name: "huge",
        units: 4,
        reads_at_once: false,
        batches: true,
        ..SMALL
    },
];

impl World {
    /// The world called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        WORLDS.iter().find(|world| world.name == name)
    }

    /// The seats as a host takes them.
    #[must_use]
    pub fn seat_specs(&self) -> Vec<SeatSpec> {
        let specs = self.seats.iter();
        specs
            .map(|(kind, roles, key)| SeatSpec {
                kind: *kind,
                roles: roles.iter().copied().collect(),
                key: *key,
            })
            .collect()
    }

    /// The configuration of the host.
    #[must_use]
    pub fn config<'a>(&self, seats: &'a [SeatSpec]) -> HostConfig<'a> {
        HostConfig {
            table: self.table,
            lanes: self.lanes,
            seats,
            windows: &[],
            backstop: DELTA,
            stuck_ticks: STUCK_TICKS,
        }
    }

    /// The units that are alive at once.
    #[must_use]
    pub fn units(&self, size: &Size) -> usize {
        size.units.saturating_sub(self.fewer).max(2)
    }

    /// The numbers of pins that a resize asks for. With one pin or none, they all mean the same.
    #[must_use]
    pub fn pins(&self, size: &Size) -> &'static [u8] {
        let keyed = self
            .seats
            .iter()
            .filter(|(kind, ..)| *kind == SeatKind::KeyedPin);
        if keyed.count() > 1 {
            size.pins
        } else {
            &[ALL_PINS]
        }
    }

    /// Whether seats pin to the keys of `role`.
    #[must_use]
    pub fn keyed(&self, role: RoleId) -> bool {
        let mut seats = self.seats.iter();
        seats.any(|(kind, roles, _)| *kind == SeatKind::KeyedPin && roles.contains(&role))
    }
}

impl Size {
    /// The size called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SIZES.iter().find(|size| size.name == name)
    }

    /// What the ledger holds at a level.
    #[must_use]
    pub fn ledger(&self, level: u8) -> (RoleMask, bool) {
        let row = self.ledgers.get(usize::from(level));
        row.map_or((RoleMask::EMPTY, false), |(roles, refill)| {
            (roles.iter().copied().collect(), *refill)
        })
    }
}
