//! How the quota is shared out: the shares, where each number came from, and the check of their sum.
//!
//! A share is a number of whole cores that one consumer may use at its peak. Shares follow from the
//! role table by rule, or from an operator's override, and they are static until the quota itself
//! changes: nothing here tunes itself.
//!
//! # Invariants
//! - Every role and every other consumer of the table has exactly one row, on either tier.
//! - Shares are cut from `floor(quota)`; the fraction is left to consumers that mostly wait.
//! - An override is never clamped. It stands in the row as given, and the sum check judges it.

pub mod overrides;
pub mod quota;

pub use overrides::{Consumer, Override, OverrideError, Overrides, Setting, SettingKey};
pub use quota::{BoundedBy, Confidence, Evidence, MilliCpu, MilliCpuError, Quota, Reason};

use crate::role::{MAX_CONSUMERS, MAX_ROLES, RoleId, RoleSpec, RoleTable, SeatKind, ShareRule};
use core::fmt;
use heapless::Vec;
use thiserror::Error;

/// The most rows of a budget: each role, each other consumer, and the serial tier's cycle thread.
pub const MAX_ROWS: usize = MAX_ROLES + MAX_CONSUMERS + 1;

/// The row of the serial tier's one thread, on whose share every role draws.
pub const CYCLE: &str = "cycle";

/// Where a number came from. Later variants win over earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Origin {
    /// The table's rule, or what was detected.
    Rule,
    /// The configuration file.
    Config,
    /// The environment.
    Environment,
    /// The command line.
    CommandLine,
}

impl Origin {
    /// The name in tables and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Config => "config",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rule as an operator reads it, `Q` being the whole cores of the quota.
impl fmt::Display for ShareRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { cores } => write!(f, "{cores}"),
            Self::Quarter { min } => write!(f, "max({min}, floor(Q/4))"),
            Self::Rest { min, pins } => {
                write!(f, "the rest of Q, at least {min}, on {pins} pins")
            }
            Self::Slots { slots } => write!(f, "{slots} slots"),
            Self::Permits => f.write_str("permits that others leave"),
        }
    }
}

/// What one consumer may use at its peak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BudgetRow {
    /// The consumer, by its name in the role table.
    pub name: &'static str,
    /// The role, if the consumer is one.
    pub role: Option<RoleId>,
    /// Whole cores of its own.
    pub peak_cores: u16,
    /// The row whose cores this one uses as well, when it shares instead of having its own.
    pub within: Option<&'static str>,
    /// Threads of its own.
    pub threads: u16,
    /// The rule that the table states.
    pub rule: ShareRule,
    /// Where `peak_cores` came from.
    pub origin: Origin,
    /// Where `threads` came from.
    pub threads_origin: Origin,
}

/// The shares of a fleet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Budget {
    rows: Vec<BudgetRow, MAX_ROWS>,
}

impl Budget {
    /// The shares of the pinned tier on `cores` whole cores: each consumer by its rule, or as
    /// overridden. The one that takes the rest gets at least its minimum, so the sum may exceed
    /// `cores`; [`check`](Self::check) says so.
    ///
    /// `table` must have passed [`RoleTable::check`].
    #[must_use]
    pub fn pinned(table: &RoleTable, cores: u16, overrides: &Overrides) -> Self {
        let mut budget = Self::default();
        for (index, spec) in (0..).zip(table.consumers) {
            let (peak, origin) = share(spec.share, cores, overrides.cores(Consumer::Beside(index)));
            budget.push(BudgetRow {
                name: spec.name,
                role: None,
                peak_cores: peak,
                within: None,
                threads: threads_beside(spec.threads, peak),
                rule: spec.share,
                origin,
                threads_origin: origin,
            });
        }
        for (role, spec) in table.ids().zip(table.roles) {
            let (peak, origin) = share(spec.share, cores, overrides.cores(Consumer::Role(role)));
            budget.push(role_row(role, spec, peak, origin));
        }
        let sum = budget.sum();
        for row in &mut budget.rows {
            if matches!(row.rule, ShareRule::Rest { .. }) && row.origin == Origin::Rule {
                let left = u32::from(cores).saturating_sub(sum);
                row.peak_cores = row.peak_cores.saturating_add(narrow(left));
            }
        }
        for (role, spec) in table.ids().zip(table.roles) {
            if let Some(row) = budget.rows.iter_mut().find(|row| row.role == Some(role)) {
                (row.threads, row.threads_origin) =
                    seats(spec, row.peak_cores, row.origin, overrides.count(role));
            }
        }
        budget
    }

    /// The shares of the serial tier on `cores` whole cores: one for the cycle thread, on which all
    /// roles run, and what is left for the other consumers together, at least one. A consumer whose
    /// share is overridden has that share to itself.
    ///
    /// `table` must have passed [`RoleTable::check`].
    #[must_use]
    pub fn serial(table: &RoleTable, cores: u16, overrides: &Overrides) -> Self {
        let mut budget = Self::default();
        budget.push(BudgetRow {
            name: CYCLE,
            role: None,
            peak_cores: 1,
            within: None,
            threads: 1,
            rule: ShareRule::Fixed { cores: 1 },
            origin: Origin::Rule,
            threads_origin: Origin::Rule,
        });
        let own = |index| overrides.cores(Consumer::Beside(index));
        let apart: u32 = (0..)
            .zip(table.consumers)
            .filter_map(|(index, _)| own(index))
            .map(|o| u32::from(o.value))
            .sum();
        let together = narrow(u32::from(cores).saturating_sub(1 + apart)).max(1);
        let mut holder = None;
        for (index, spec) in (0..).zip(table.consumers) {
            let (by_rule, _) = share(spec.share, cores, None);
            let (peak_cores, within, usable, origin) = match own(index) {
                Some(o) => (o.value, None, o.value, o.origin),
                None if holder.is_some() => (0, holder, by_rule.min(together), Origin::Rule),
                None => {
                    holder = Some(spec.name);
                    (together, None, by_rule.min(together), Origin::Rule)
                }
            };
            budget.push(BudgetRow {
                name: spec.name,
                role: None,
                peak_cores,
                within,
                threads: threads_beside(spec.threads, usable),
                rule: spec.share,
                origin,
                threads_origin: origin,
            });
        }
        for (role, spec) in table.ids().zip(table.roles) {
            budget.push(BudgetRow {
                within: Some(CYCLE),
                threads: 0,
                ..role_row(role, spec, 0, Origin::Rule)
            });
        }
        budget
    }

    /// Whether the shares fit `cores`.
    pub fn check(&self, cores: u16) -> Result<(), Overrun> {
        if self.sum() <= u32::from(cores) {
            Ok(())
        } else {
            Err(Overrun {
                cores,
                budget: self.clone(),
            })
        }
    }

    /// The sum of all shares in whole cores.
    #[must_use]
    pub fn sum(&self) -> u32 {
        self.rows.iter().map(|row| u32::from(row.peak_cores)).sum()
    }

    /// The rows: the serial tier's cycle thread, the consumers beside the roles, the roles.
    #[must_use]
    pub fn rows(&self) -> &[BudgetRow] {
        &self.rows
    }

    /// The row of the consumer `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&BudgetRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The row of `role`.
    #[must_use]
    pub fn role(&self, role: RoleId) -> Option<&BudgetRow> {
        self.rows.iter().find(|row| row.role == Some(role))
    }

    /// A checked table has a row for everyone: [`MAX_ROWS`] is the sum of its bounds.
    fn push(&mut self, row: BudgetRow) {
        let fits = self.rows.push(row).is_ok();
        debug_assert!(fits, "a checked table has at most MAX_ROWS rows");
    }
}

/// The least whole cores on which the pinned tier's shares fit, all by rule; never less than one.
///
/// It is where the sum of the others and the least of the one that takes the rest first fits. A
/// table that fits nowhere has the floor 65,535.
#[must_use]
pub fn pinned_floor(table: &RoleTable) -> u16 {
    let rules = || {
        let consumers = table.consumers.iter().map(|spec| spec.share);
        consumers.chain(table.roles.iter().map(|spec| spec.share))
    };
    (1..u16::MAX)
        .find(|&cores| {
            let least: u32 = rules().map(|rule| u32::from(by_rule(rule, cores))).sum();
            least <= u32::from(cores)
        })
        .unwrap_or(u16::MAX)
}

/// The shares do not fit the quota.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Overrun {
    /// Whole cores there are.
    pub cores: u16,
    /// What was to fit.
    pub budget: Budget,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the shares sum to {} cores and there are {}:",
            self.budget.sum(),
            self.cores
        )?;
        let mut separator = " ";
        for row in self.budget.rows.iter().filter(|row| row.peak_cores > 0) {
            write!(
                f,
                "{separator}{} {} ({})",
                row.name, row.peak_cores, row.origin
            )?;
            separator = ", ";
        }
        write!(
            f,
            "; lower one of them, or allocate more with --quota {}",
            self.budget.sum().saturating_mul(1000)
        )
    }
}

/// The share that `rule` gives on `cores`; for the one that takes the rest, its minimum.
const fn by_rule(rule: ShareRule, cores: u16) -> u16 {
    match rule {
        ShareRule::Fixed { cores } => cores,
        ShareRule::Quarter { min } => {
            let quarter = cores / 4;
            if quarter > min { quarter } else { min }
        }
        ShareRule::Rest { min, .. } => min,
        ShareRule::Slots { .. } | ShareRule::Permits => 0,
    }
}

fn share(rule: ShareRule, cores: u16, given: Option<Override<u16>>) -> (u16, Origin) {
    given.map_or((by_rule(rule, cores), Origin::Rule), |o| {
        (o.value, o.origin)
    })
}

/// One thread per core, and one where the share is none: its work has to run somewhere.
const fn threads_beside(counted: bool, cores: u16) -> u16 {
    match (counted, cores) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, cores) => cores,
    }
}

fn role_row(role: RoleId, spec: &RoleSpec, peak_cores: u16, origin: Origin) -> BudgetRow {
    BudgetRow {
        name: spec.name,
        role: Some(role),
        peak_cores,
        within: None,
        threads: 0,
        rule: spec.share,
        origin,
        threads_origin: origin,
    }
}

/// How many seats a role brings to the pinned tier, and where that number came from.
fn seats(
    spec: &RoleSpec,
    peak_cores: u16,
    origin: Origin,
    given: Option<Override<u16>>,
) -> (u16, Origin) {
    if let Some(o) = given {
        return (o.value, o.origin);
    }
    match (spec.seat, spec.share) {
        (SeatKind::FixedPin, _) | (SeatKind::KeyedPin, ShareRule::Permits) => (1, Origin::Rule),
        (SeatKind::KeyedPin, ShareRule::Rest { pins, .. }) => (pins, Origin::Rule),
        (SeatKind::KeyedPin | SeatKind::Pooled, ShareRule::Slots { slots }) => {
            (slots, Origin::Rule)
        }
        (SeatKind::KeyedPin, _) => (peak_cores.max(1), origin),
        (SeatKind::Pooled, _) => (peak_cores, origin),
    }
}

fn narrow(cores: u32) -> u16 {
    u16::try_from(cores).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
