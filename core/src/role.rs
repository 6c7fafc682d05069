//! Roles: what a seat may be leased for.
//!
//! The core takes its roles as constant data. [`WorkerRole`] and [`FLEET_ROLES`] are the shipped
//! instance, eight roles of an arbitrage pipeline; a pipeline of another kind writes a table of its
//! own and everything else stays as it is.
//!
//! # Invariants
//! - A checked table ([`RoleTable::check`]) names at most [`MAX_ROLES`] roles and [`MAX_CONSUMERS`]
//!   other consumers, all with distinct names, and its grant order mentions each pooled role once and each pinned role twice, first
//!   [`GrantStep::Pinned`], later [`GrantStep::Claim`].

mod check;

pub use check::RoleTableError;

/// The most roles a table can hold; a [`RoleMask`] has a bit for each.
pub const MAX_ROLES: usize = 16;

/// The most consumers beside the roles that a table can hold.
pub const MAX_CONSUMERS: usize = 16;

/// A role, as its row number in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RoleId(u8);

impl RoleId {
    /// The role of row `row`.
    #[must_use]
    pub const fn new(row: u8) -> Self {
        Self(row)
    }

    /// The row number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of roles. A row that no table can have is in no set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RoleMask(u16);

impl RoleMask {
    /// No role.
    pub const EMPTY: Self = Self(0);

    /// `self` and `role`.
    #[must_use]
    pub const fn with(self, role: RoleId) -> Self {
        Self(self.0 | Self::bit(role))
    }

    /// `self` without `role`.
    #[must_use]
    pub const fn without(self, role: RoleId) -> Self {
        Self(self.0 & !Self::bit(role))
    }

    /// Whether `role` is in the set.
    #[must_use]
    pub const fn contains(self, role: RoleId) -> bool {
        self.0 & Self::bit(role) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn bit(role: RoleId) -> u16 {
        if role.index() < MAX_ROLES {
            1 << role.0
        } else {
            0
        }
    }

    /// The set as a word, a bit per row.
    pub(crate) const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// The set of a word that [`bits`](Self::bits) made.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self((bits & 0xffff) as u16)
    }

    /// The members in row order.
    pub fn iter(self) -> impl Iterator<Item = RoleId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let row = u8::try_from(rest.trailing_zeros()).ok()?;
            rest &= rest.checked_sub(1)?;
            Some(RoleId(row))
        })
    }
}

impl FromIterator<RoleId> for RoleMask {
    fn from_iter<I: IntoIterator<Item = RoleId>>(roles: I) -> Self {
        roles.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// How a cordon treats new leases of a role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CordonClass {
    /// Never held: holding it would strand work that is already paid for.
    Never,
    /// New leases go on up to a floor, half the slots unless the policy says otherwise.
    SimFloor,
    /// New leases are held until the cordon lifts.
    Deferrable,
}

/// What kind of seat serves a role on the pinned tier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeatKind {
    /// One seat per key, its arena warm across cycles.
    KeyedPin,
    /// Exactly one seat, always the same.
    FixedPin,
    /// Seats shared by all pooled roles, switching between units.
    Pooled,
}

/// How a consumer's share of the quota follows from the whole cores `Q` of the quota.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ShareRule {
    /// So many cores, whatever the quota.
    Fixed {
        /// Whole cores.
        cores: u16,
    },
    /// `max(min, floor(Q / 4))` cores.
    Quarter {
        /// Least whole cores.
        min: u16,
    },
    /// What the other consumers leave, at least `min`. The seats are a number of their own: a pinned
    /// seat that waits uses no CPU, so there may be more seats than cores.
    Rest {
        /// Least whole cores for which the pinned tier may start.
        min: u16,
        /// Seats, whatever the share.
        pins: u16,
    },
    /// At most so many at once, each under a permit, none in the sum: work that mostly waits
    /// elsewhere and lives on the fraction and on idle shares.
    Slots {
        /// Units at once.
        slots: u16,
    },
    /// No share and no slots of its own: rides permits that others leave.
    Permits,
}

/// One row of a role table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RoleSpec {
    /// The name in metrics, logs and JSON: lower case, words joined by `_`.
    pub name: &'static str,
    /// At most seven bytes for kernel thread names, which end at fifteen.
    pub short: &'static str,
    /// How a cordon treats it.
    pub cordon: CordonClass,
    /// What serves it on the pinned tier.
    pub seat: SeatKind,
    /// Its share of the quota.
    pub share: ShareRule,
    /// Whether someone waits on the receipts of this role. Such a lane faults when it can never run
    /// again; a lane without receipts has its outcomes in a ledger and never faults.
    pub owns_receipts: bool,
}

/// A consumer of CPU that is not a role: it has a share and never a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ConsumerSpec {
    /// The name in tables and logs.
    pub name: &'static str,
    /// Its share of the quota.
    pub share: ShareRule,
    /// Whether its threads are counted one per core of its share; otherwise it has none of its own.
    pub threads: bool,
}

/// One step of the order in which a grant looks for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum GrantStep {
    /// A waiting unit of a pooled role, for any idle pooled seat.
    Pooled(RoleId),
    /// A waiting unit of a pinned role whose seat is pinned already.
    Pinned(RoleId),
    /// A waiting unit of a pinned role whose seat has yet to be claimed.
    Claim(RoleId),
}

impl GrantStep {
    /// The role the step looks at.
    #[must_use]
    pub const fn role(self) -> RoleId {
        match self {
            Self::Pooled(role) | Self::Pinned(role) | Self::Claim(role) => role,
        }
    }
}

/// The roles of a fleet and the order in which they are granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleTable {
    /// The roles; a [`RoleId`] is an index into these rows.
    pub roles: &'static [RoleSpec],
    /// Consumers beside the roles.
    pub consumers: &'static [ConsumerSpec],
    /// The grant order. On a tier whose seats never pin, the [`GrantStep::Pinned`] steps find
    /// nothing and the rest is that tier's order.
    pub order: &'static [GrantStep],
}

impl RoleTable {
    /// The row of `role`, if the table has it.
    #[must_use]
    pub fn get(&self, role: RoleId) -> Option<&'static RoleSpec> {
        self.roles.get(role.index())
    }

    /// The ids of all rows, in row order.
    pub fn ids(&self) -> impl Iterator<Item = RoleId> + use<> {
        (0..u8::try_from(self.roles.len()).unwrap_or(u8::MAX)).map(RoleId)
    }
}

/// The shipped roles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum WorkerRole {
    /// Screens and solves the cycles of one bin.
    Solver,
    /// Simulates a candidate exactly.
    SimDriver,
    /// Finds which cycles a block touched.
    Resolve,
    /// Orders candidates and closes the outcome ledger.
    Merge,
    /// Applies refreshed pool states.
    PoolStateUpdater,
    /// Registers paths.
    Registrar,
    /// Compares published state with the source.
    Verifier,
    /// Delivers settlements.
    Submitter,
}

/// The shipped roles in row order.
pub const ALL_ROLES: [WorkerRole; 8] = [
    WorkerRole::Solver,
    WorkerRole::SimDriver,
    WorkerRole::Resolve,
    WorkerRole::Merge,
    WorkerRole::PoolStateUpdater,
    WorkerRole::Registrar,
    WorkerRole::Verifier,
    WorkerRole::Submitter,
];

impl WorkerRole {
    /// The role's row in [`FLEET_ROLES`].
    #[must_use]
    pub const fn id(self) -> RoleId {
        RoleId(self as u8)
    }
}

impl From<WorkerRole> for RoleId {
    fn from(role: WorkerRole) -> Self {
        role.id()
    }
}

const fn row(
    name: &'static str,
    short: &'static str,
    cordon: CordonClass,
    seat: SeatKind,
    share: ShareRule,
    owns_receipts: bool,
) -> RoleSpec {
    RoleSpec {
        name,
        short,
        cordon,
        seat,
        share,
        owns_receipts,
    }
}

/// The shipped role table.
///
/// Solver, resolve and merge own no receipts: what they owe stands in the outcome ledger. The
/// others are awaited by whoever submitted them.
pub const FLEET_ROLES: RoleTable = {
    use CordonClass::{Deferrable, Never, SimFloor};
    use SeatKind::{FixedPin, KeyedPin, Pooled};
    use ShareRule::{Fixed, Permits, Quarter, Rest, Slots};
    RoleTable {
        roles: &[
            row(
                "solver",
                "solve",
                Never,
                KeyedPin,
                Rest { min: 2, pins: 6 },
                false,
            ),
            row(
                "sim_driver",
                "sim",
                SimFloor,
                Pooled,
                Slots { slots: 4 },
                true,
            ),
            row(
                "resolve",
                "resolve",
                Never,
                Pooled,
                Fixed { cores: 1 },
                false,
            ),
            row("merge", "merge", Never, FixedPin, Fixed { cores: 1 }, false),
            row(
                "pool_state_updater",
                "poolupd",
                Deferrable,
                Pooled,
                Permits,
                true,
            ),
            row("registrar", "registr", Deferrable, Pooled, Permits, true),
            row("verifier", "verify", Deferrable, Pooled, Permits, true),
            row("submitter", "submit", Never, Pooled, Permits, true),
        ],
        consumers: &[
            ConsumerSpec {
                name: "reserve",
                share: Fixed { cores: 1 },
                threads: false,
            },
            ConsumerSpec {
                name: "ambient_io",
                share: Quarter { min: 1 },
                threads: true,
            },
        ],
        order: &[
            GrantStep::Pooled(WorkerRole::Submitter.id()),
            GrantStep::Pinned(WorkerRole::Solver.id()),
            GrantStep::Pinned(WorkerRole::Merge.id()),
            GrantStep::Pooled(WorkerRole::SimDriver.id()),
            GrantStep::Pooled(WorkerRole::Resolve.id()),
            GrantStep::Claim(WorkerRole::Solver.id()),
            GrantStep::Claim(WorkerRole::Merge.id()),
            GrantStep::Pooled(WorkerRole::PoolStateUpdater.id()),
            GrantStep::Pooled(WorkerRole::Registrar.id()),
            GrantStep::Pooled(WorkerRole::Verifier.id()),
        ],
    }
};

const _: () = assert!(
    FLEET_ROLES.check().is_ok(),
    "the shipped role table must check"
);

#[cfg(test)]
mod tests;
