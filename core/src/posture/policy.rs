//! The thresholds of the posture, and how an operator changes them.
//!
//! # Invariants
//! - A [`PosturePolicy`] is in range: it is the default or made by [`PosturePolicy::patched`], which
//!   judges a whole patch before it applies any of it.
//! - Nothing is clamped or rounded: a value that cannot be taken as given is refused.

use crate::text::{Excerpt, whole_number};
use crate::time::Duration;
use core::fmt;
use heapless::Vec;
use thiserror::Error;

/// The keys of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PolicyKey {
    /// Throttled periods within the enter window that cordon.
    EnterEvents,
    /// The enter window in milliseconds.
    EnterWindowMs,
    /// The share of throttled time above which to cordon.
    DutyPercent,
    /// The window of that share in milliseconds.
    DutyWindowMs,
    /// How long every sample must be clean before a cordon ends, in milliseconds.
    ExitCleanMs,
    /// How many simulations may run under a cordon; null for half the slots.
    SimIntakeFloor,
}

impl PolicyKey {
    /// Every key.
    pub const ALL: [Self; 6] = [
        Self::EnterEvents,
        Self::EnterWindowMs,
        Self::DutyPercent,
        Self::DutyWindowMs,
        Self::ExitCleanMs,
        Self::SimIntakeFloor,
    ];

    /// The key's text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EnterEvents => "cordon_enter_events",
            Self::EnterWindowMs => "cordon_enter_window_ms",
            Self::DutyPercent => "cordon_duty_percent",
            Self::DutyWindowMs => "cordon_duty_window_ms",
            Self::ExitCleanMs => "cordon_exit_clean_ms",
            Self::SimIntakeFloor => "cordon_sim_intake_floor",
        }
    }

    /// What the key takes.
    #[must_use]
    pub const fn takes(self) -> &'static str {
        match self {
            Self::EnterEvents => "a whole number from 1 to 4294967295",
            Self::EnterWindowMs | Self::DutyWindowMs | Self::ExitCleanMs => {
                "whole milliseconds from 1 to 4294967295"
            }
            Self::DutyPercent => "a percentage above 0 and up to 100, with at most three decimals",
            Self::SimIntakeFloor => "a whole number from 1 to 65535, or null for half the slots",
        }
    }
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A percentage in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DutyPercent(u32);

impl DutyPercent {
    /// `thousandths` of a percent.
    #[must_use]
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }

    /// Thousandths of a percent.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// Reads a decimal number with at most three decimals, such as `2` or `0.5`.
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let scale = match decimals.len() {
            1 => 100,
            2 => 10,
            3 => 1,
            _ => return None,
        };
        let whole = whole_number(whole)?.checked_mul(1000)?;
        whole.checked_add(whole_number(decimals)? * scale).map(Self)
    }
}

impl fmt::Display for DutyPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_thousandths(f, self.0)
    }
}

/// The value of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PolicyValue {
    /// A count or milliseconds.
    Number(u32),
    /// A percentage.
    Percent(DutyPercent),
    /// A floor, or half the slots.
    Floor(Option<u16>),
}

impl fmt::Display for PolicyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Percent(p) => p.fmt(f),
            Self::Floor(Some(n)) => n.fmt(f),
            Self::Floor(None) => f.write_str("null"),
        }
    }
}

/// Why a patch was refused. Nothing of it was applied.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PolicyError {
    /// No such key.
    #[error("{key} is no key of the posture policy; they are {}", Keys)]
    UnknownKey {
        /// The key as given.
        key: Excerpt,
    },
    /// The text is not of the key's kind.
    #[error("{key} takes {}, not {text}", key.takes())]
    Malformed {
        /// The key.
        key: PolicyKey,
        /// The text as given.
        text: Excerpt,
    },
    /// The value is out of range.
    #[error("{key} takes {}, not {value}", key.takes())]
    OutOfRange {
        /// The key.
        key: PolicyKey,
        /// The value as given.
        value: PolicyValue,
    },
    /// The patch holds a key twice.
    #[error("{key} is set twice in one patch")]
    Twice {
        /// The key.
        key: PolicyKey,
    },
    /// The patch holds nothing.
    #[error("a patch sets at least one key of {}", Keys)]
    Empty,
}

/// Writes the list of keys.
struct Keys;

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in PolicyKey::ALL.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{key}")?;
        }
        Ok(())
    }
}

/// Some of the keys, each with a value that has yet to be judged. Absent keys keep theirs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PosturePolicyPatch {
    /// `cordon_enter_events`.
    pub enter_events: Option<u32>,
    /// `cordon_enter_window_ms`.
    pub enter_window_ms: Option<u32>,
    /// `cordon_duty_percent`.
    pub duty_percent: Option<DutyPercent>,
    /// `cordon_duty_window_ms`.
    pub duty_window_ms: Option<u32>,
    /// `cordon_exit_clean_ms`.
    pub exit_clean_ms: Option<u32>,
    /// `cordon_sim_intake_floor`; `Some(None)` goes back to half the slots.
    pub sim_intake_floor: Option<Option<u16>>,
}

impl PosturePolicyPatch {
    /// Reads `text` for `key`, the way an operator writes them.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), PolicyError> {
        let Some(key) = PolicyKey::ALL.into_iter().find(|k| k.name() == key) else {
            return Err(PolicyError::UnknownKey {
                key: Excerpt::of(key),
            });
        };
        if self.get(key).is_some() {
            return Err(PolicyError::Twice { key });
        }
        let malformed = || PolicyError::Malformed {
            key,
            text: Excerpt::of(text),
        };
        let number = || whole_number(text).ok_or_else(malformed);
        match key {
            PolicyKey::EnterEvents => self.enter_events = Some(number()?),
            PolicyKey::EnterWindowMs => self.enter_window_ms = Some(number()?),
            PolicyKey::DutyPercent => {
                self.duty_percent = Some(DutyPercent::parse(text).ok_or_else(malformed)?);
            }
            PolicyKey::DutyWindowMs => self.duty_window_ms = Some(number()?),
            PolicyKey::ExitCleanMs => self.exit_clean_ms = Some(number()?),
            PolicyKey::SimIntakeFloor if text == "null" => self.sim_intake_floor = Some(None),
            PolicyKey::SimIntakeFloor => {
                let floor = u16::try_from(number()?).map_err(|_| malformed())?;
                self.sim_intake_floor = Some(Some(floor));
            }
        }
        Ok(())
    }

    /// The value that the patch has for `key`.
    #[must_use]
    pub fn get(&self, key: PolicyKey) -> Option<PolicyValue> {
        match key {
            PolicyKey::EnterEvents => self.enter_events.map(PolicyValue::Number),
            PolicyKey::EnterWindowMs => self.enter_window_ms.map(PolicyValue::Number),
            PolicyKey::DutyPercent => self.duty_percent.map(PolicyValue::Percent),
            PolicyKey::DutyWindowMs => self.duty_window_ms.map(PolicyValue::Number),
            PolicyKey::ExitCleanMs => self.exit_clean_ms.map(PolicyValue::Number),
            PolicyKey::SimIntakeFloor => self.sim_intake_floor.map(PolicyValue::Floor),
        }
    }

    /// Whether the patch can be applied: it holds something, and all of that is in range.
    pub fn validate(&self) -> Result<(), PolicyError> {
        let mut empty = true;
        for key in PolicyKey::ALL {
            let Some(value) = self.get(key) else { continue };
            empty = false;
            let taken = match value {
                PolicyValue::Number(n) => n >= 1,
                PolicyValue::Percent(p) => (1..=100_000).contains(&p.0),
                PolicyValue::Floor(floor) => floor != Some(0),
            };
            if !taken {
                return Err(PolicyError::OutOfRange { key, value });
            }
        }
        if empty {
            Err(PolicyError::Empty)
        } else {
            Ok(())
        }
    }
}

/// One key whose value changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PolicyChange {
    /// The key.
    pub key: PolicyKey,
    /// Its value before.
    pub old: PolicyValue,
    /// Its value since.
    pub new: PolicyValue,
}

impl fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.key, self.old, self.new)
    }
}

/// What a patch changed; a key set to the value it had is not in it.
pub type PolicyChanges = Vec<PolicyChange, 6>;

/// The thresholds of the posture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PosturePolicy {
    enter_events: u32,
    enter_window_ms: u32,
    duty_percent: DutyPercent,
    duty_window_ms: u32,
    exit_clean_ms: u32,
    sim_intake_floor: Option<u16>,
}

impl Default for PosturePolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl PosturePolicy {
    /// Two throttled periods within a second, or 2 % over five seconds; ten clean seconds to leave;
    /// half the simulation slots under a cordon.
    pub const DEFAULT: Self = Self {
        enter_events: 2,
        enter_window_ms: 1_000,
        duty_percent: DutyPercent(2_000),
        duty_window_ms: 5_000,
        exit_clean_ms: 10_000,
        sim_intake_floor: None,
    };

    /// Throttled periods within [`enter_window`](Self::enter_window) that cordon; at least 1.
    #[must_use]
    pub const fn enter_events(&self) -> u32 {
        self.enter_events
    }

    /// The window of [`enter_events`](Self::enter_events).
    #[must_use]
    pub const fn enter_window(&self) -> Duration {
        Duration::from_millis(self.enter_window_ms as u64)
    }

    /// The share of throttled time above which to cordon.
    #[must_use]
    pub const fn duty_percent(&self) -> DutyPercent {
        self.duty_percent
    }

    /// The window of [`duty_percent`](Self::duty_percent).
    #[must_use]
    pub const fn duty_window(&self) -> Duration {
        Duration::from_millis(self.duty_window_ms as u64)
    }

    /// How long every measured sample must be clean before a cordon ends, and how long nothing must
    /// have been measured before one ends unmeasured.
    #[must_use]
    pub const fn exit_clean(&self) -> Duration {
        Duration::from_millis(self.exit_clean_ms as u64)
    }

    /// How many simulations may run under a cordon; see [`sim_cap`](super::sim_cap).
    #[must_use]
    pub const fn sim_intake_floor(&self) -> Option<u16> {
        self.sim_intake_floor
    }

    /// The policy as a patch of all six keys.
    #[must_use]
    pub const fn whole(&self) -> PosturePolicyPatch {
        PosturePolicyPatch {
            enter_events: Some(self.enter_events),
            enter_window_ms: Some(self.enter_window_ms),
            duty_percent: Some(self.duty_percent),
            duty_window_ms: Some(self.duty_window_ms),
            exit_clean_ms: Some(self.exit_clean_ms),
            sim_intake_floor: Some(self.sim_intake_floor),
        }
    }

    /// The policy with `patch` applied, and what that changed. The configuration at boot goes the same
    /// way, as a patch of the default.
    pub fn patched(
        &self,
        patch: &PosturePolicyPatch,
    ) -> Result<(Self, PolicyChanges), PolicyError> {
        patch.validate()?;
        let policy = Self {
            enter_events: patch.enter_events.unwrap_or(self.enter_events),
            enter_window_ms: patch.enter_window_ms.unwrap_or(self.enter_window_ms),
            duty_percent: patch.duty_percent.unwrap_or(self.duty_percent),
            duty_window_ms: patch.duty_window_ms.unwrap_or(self.duty_window_ms),
            exit_clean_ms: patch.exit_clean_ms.unwrap_or(self.exit_clean_ms),
            sim_intake_floor: patch.sim_intake_floor.unwrap_or(self.sim_intake_floor),
        };
        let (before, after) = (self.whole(), policy.whole());
        let changes = PolicyKey::ALL.into_iter().filter_map(|key| {
            let (old, new) = (before.get(key)?, after.get(key)?);
            (old != new).then_some(PolicyChange { key, old, new })
        });
        Ok((policy, changes.collect()))
    }
}
