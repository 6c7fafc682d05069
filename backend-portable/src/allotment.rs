//! What a fleet has been allotted: its plan as it is now, after quotas came and went.

use regatta_core::budget::Quota;
use regatta_core::plan::FleetPlan;
use std::fmt;

/// The plan of a running fleet, and the CPUs it may use.
#[derive(Debug)]
pub(crate) struct Allotment {
    plan: FleetPlan,
    cpus: u16,
    /// Counts detections that were taken.
    generation: u32,
}

impl Allotment {
    pub(crate) const fn new(plan: FleetPlan, cpus: u16) -> Self {
        Self {
            plan,
            cpus,
            generation: 0,
        }
    }

    pub(crate) const fn plan(&self) -> &FleetPlan {
        &self.plan
    }

    /// How many CPUs can be throttled at once: as many as there are, and no more than threads.
    pub(crate) fn width(&self) -> u16 {
        let seats = u16::try_from(self.plan.seats.len()).unwrap_or(u16::MAX);
        self.cpus.min(seats).max(1)
    }

    pub(crate) fn detected(&mut self, quota: Quota, cpus: Option<u16>) -> QuotaChange {
        let now = self.plan.resized(quota);
        let before = std::mem::replace(&mut self.plan, now.clone());
        self.cpus = cpus.unwrap_or(self.cpus);
        self.generation = self.generation.wrapping_add(1);
        QuotaChange {
            before,
            now,
            generation: self.generation,
        }
    }
}

/// What a new detection of the quota changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotaChange {
    /// The plan before.
    pub before: FleetPlan,
    /// The plan now. Binding and seats are as booted.
    pub now: FleetPlan,
    /// The number of the detection.
    pub generation: u32,
}

impl QuotaChange {
    /// How many pins each keyed role keeps.
    pub(crate) fn pins(&self) -> u8 {
        let pins = self.now.table.ids().map(|role| self.now.keys(role));
        pins.max().unwrap_or(1).max(1)
    }
}

impl fmt::Display for QuotaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, now) = (&self.before, &self.now);
        write!(
            f,
            "the quota changed: {} to {}, {} to {} permits",
            before.allocation, now.allocation, before.permits.total, now.permits.total
        )?;
        match (before.permits.below_floor, now.permits.below_floor) {
            (_, true) => f.write_str(
                "; that is below what a fleet needs: only critical roles go on, and the fleet is not ready",
            ),
            (true, false) => f.write_str("; the fleet has enough again"),
            (false, false) if now.oversubscribed => f.write_str("; the shares do not fit it"),
            (false, false) => Ok(()),
        }
    }
}
