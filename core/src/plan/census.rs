//! What a plan will put on the machine, before anything runs: the projection of the census.

use super::{Binding, FleetPlan};
use crate::budget::{CYCLE, Origin};
use crate::role::{MAX_CONSUMERS, MAX_ROLES, RoleId, SeatKind, ShareRule};
use crate::seat::SeatId;
use core::fmt::{self, Write as _};
use heapless::{String, Vec};

/// The most bytes of a kernel thread name.
const THREAD_NAME: usize = 15;

/// The beginning of the names of a row's threads: the index follows, and kernel names end at fifteen
/// bytes.
pub type ThreadPrefix = String<THREAD_NAME>;

/// The most rows: every role, every other consumer, and the seats that roles share.
const MAX_CENSUS: usize = MAX_ROLES + MAX_CONSUMERS + 1;

/// How a lane meets threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LaneBinding {
    /// Threads of its own.
    Pinned,
    /// A pooled runtime's threads.
    Shared,
    /// The time of another row's threads.
    Logical,
}

impl LaneBinding {
    /// The name in JSON and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Shared => "shared",
            Self::Logical => "logical",
        }
    }
}

/// How the count of a census row came about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Sizing {
    /// By a rule of the role table.
    Rule(ShareRule),
    /// As many as the pooled roles bring together.
    PooledRoles,
    /// Always one.
    One,
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::PooledRoles => f.write_str("what the pooled roles bring"),
            Self::One => f.write_str("1"),
        }
    }
}

/// One resource of the fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CensusRow {
    /// What it is.
    pub resource: &'static str,
    /// Whose it is.
    pub owner: &'static str,
    /// The role, if it serves one alone.
    pub role: Option<RoleId>,
    /// How many.
    pub count: u16,
    /// How that number came about.
    pub sizing: Sizing,
    /// Who set it.
    pub origin: Origin,
    /// How its thread names begin, if it has threads of its own.
    pub threads: Option<ThreadPrefix>,
    /// How it meets threads.
    pub binding: LaneBinding,
}

/// The labels of the one series that says on which tier a fleet runs; its value is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FleetProfile {
    /// What the operator wanted.
    pub profile: &'static str,
    /// What runs.
    pub binding: &'static str,
    /// `true` or `false`.
    pub oversubscribed: &'static str,
}

impl FleetPlan {
    /// The labels of the `fleet_profile` series.
    #[must_use]
    pub const fn fleet_profile(&self) -> FleetProfile {
        FleetProfile {
            profile: self.profile.name(),
            binding: self.binding.name(),
            oversubscribed: if self.oversubscribed { "true" } else { "false" },
        }
    }

    /// How many threads the plan puts on the machine.
    #[must_use]
    pub fn threads(&self) -> u16 {
        let census = self.census();
        let own = census.iter().filter(|row| row.threads.is_some());
        own.fold(0, |sum: u16, row| sum.saturating_add(row.count))
    }

    /// The row that a seat's thread belongs to; `None` if the plan has no such seat.
    #[must_use]
    pub fn seat_row(&self, seat: SeatId) -> Option<CensusRow> {
        let spec = self.seats.get(seat.index())?;
        let rows = self.census();
        let mut own = rows.into_iter().filter(|row| row.threads.is_some());
        own.find(|row| match (spec.kind, row.role) {
            // The row of the seats that roles share comes before those of other consumers.
            (SeatKind::Pooled, None) => true,
            (SeatKind::KeyedPin | SeatKind::FixedPin, Some(role)) => spec.roles.contains(role),
            _ => false,
        })
    }

    /// What the plan puts on the machine: the seats that roles share, the roles, other consumers.
    #[must_use]
    pub fn census(&self) -> Vec<CensusRow, MAX_CENSUS> {
        let shared_seats = match self.binding {
            Binding::Serial => Some((CYCLE, "serial", Sizing::One)),
            Binding::Pinned => Some(("pooled", "pool", Sizing::PooledRoles)),
        };
        let pooled = self
            .seats
            .iter()
            .filter(|seat| seat.kind == SeatKind::Pooled)
            .count();
        let shared = shared_seats
            .filter(|_| pooled > 0)
            .map(|(resource, short, sizing)| CensusRow {
                resource,
                owner: "fleet",
                role: None,
                count: u16::try_from(pooled).unwrap_or(u16::MAX),
                sizing,
                origin: Origin::Rule,
                threads: Some(seat_prefix(short)),
                binding: LaneBinding::Pinned,
            });
        let roles = self.table.ids().zip(self.table.roles).map(|(role, spec)| {
            let own = self.binding == Binding::Pinned && spec.seat != SeatKind::Pooled;
            CensusRow {
                resource: spec.name,
                owner: "fleet",
                role: Some(role),
                count: self.slots(role),
                sizing: Sizing::Rule(spec.share),
                origin: self
                    .budget
                    .role(role)
                    .map_or(Origin::Rule, |row| row.threads_origin),
                threads: own.then(|| seat_prefix(spec.short)),
                binding: if own {
                    LaneBinding::Pinned
                } else {
                    LaneBinding::Logical
                },
            }
        });
        let beside = self.table.consumers.iter().filter_map(|spec| {
            let row = self.budget.named(spec.name)?;
            Some(CensusRow {
                resource: spec.name,
                owner: spec.name,
                role: None,
                count: if spec.threads {
                    row.threads
                } else {
                    row.peak_cores
                },
                sizing: Sizing::Rule(spec.share),
                origin: row.origin,
                threads: spec.threads.then(|| consumer_prefix(spec.name)),
                binding: if spec.threads {
                    LaneBinding::Shared
                } else {
                    LaneBinding::Logical
                },
            })
        });
        shared.into_iter().chain(roles).chain(beside).collect()
    }
}

/// `work-NAME-`: a short name has at most seven bytes, which leaves two digits for the seat.
fn seat_prefix(short: &str) -> ThreadPrefix {
    let mut prefix = ThreadPrefix::new();
    // Five bytes, at most seven, and one fit in fifteen.
    let _ = write!(prefix, "work-{short}-");
    prefix
}

/// `NAME-`, the name cut so that three digits still fit.
fn consumer_prefix(name: &str) -> ThreadPrefix {
    let mut prefix = ThreadPrefix::new();
    for c in name.chars() {
        if prefix.len() + c.len_utf8() > THREAD_NAME - 4 || prefix.push(c).is_err() {
            break;
        }
    }
    let _ = prefix.push('-');
    prefix
}
