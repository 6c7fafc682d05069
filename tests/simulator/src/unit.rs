//! Units of the simulated fleet, as their submitters know them.

use crate::rng::mix;
use regatta_core::role::RoleId;
use regatta_core::time::Duration;
use regatta_core::unit::{Outcome, UnitId};

/// Who waits for a unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    Client,
    Crawl,
    /// A bin of the open epoch.
    Bin(u8),
    /// The merge of an epoch.
    Merge(u64),
}

/// Where the payload of a unit is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// With the fleet or on its way there.
    Payload,
    /// With the fleet again: the guard took it back from a seat.
    Returned,
    /// A seat has taken it.
    Began,
    /// The lane takes no more units: the submitter keeps it.
    Refused,
}

/// A unit and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) role: RoleId,
    pub(crate) key: u8,
    pub(crate) runs: Duration,
    pub(crate) panics: bool,
    pub(crate) source: Source,
    /// Nobody will collect the receipt.
    pub(crate) abandoned: bool,
    /// Once it was accepted.
    pub(crate) id: Option<UnitId>,
    pub(crate) stage: Stage,
    /// What the seat reported.
    pub(crate) output: Option<u64>,
    pub(crate) outcome: Option<Outcome>,
}

impl Unit {
    pub(crate) const fn new(role: RoleId, key: u8, runs: Duration, source: Source) -> Self {
        Self {
            role,
            key,
            runs,
            panics: false,
            source,
            abandoned: false,
            id: None,
            stage: Stage::Payload,
            output: None,
            outcome: None,
        }
    }

    /// What the unit with number `n` yields, wherever and whenever it runs.
    pub(crate) fn result(&self, n: usize) -> u64 {
        mix(mix(n as u64) ^ ((self.role.index() as u64) << 8 | u64::from(self.key)))
    }
}
