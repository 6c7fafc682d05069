//! What an operator sets instead of a rule.
//!
//! The keys follow from the role table: `quota`, `NAME_cores` for each consumer that has a share,
//! `NAME_pins` for each keyed role and `NAME_slots` for each role that is sized in slots. Another
//! table has other keys and needs no other code.
//!
//! # Invariants
//! - Precedence is stated once: whatever order values come in, the later [`Origin`] wins.
//! - A value out of range is refused with key, text and range; none is clamped.

use super::{MilliCpu, Origin};
use crate::role::{MAX_CONSUMERS, MAX_ROLES, RoleId, RoleTable, SeatKind, ShareRule};
use crate::seat::MAX_SEATS;
use crate::text::{Excerpt, whole_number};
use core::fmt;
use core::ops::RangeInclusive;
use thiserror::Error;

/// A consumer of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Consumer {
    /// One beside the roles, by its row.
    Beside(u8),
    /// A role.
    Role(RoleId),
}

/// What can be overridden.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Setting {
    /// The quota that is shared out, in milli-cores. What is enforced stays what it is.
    Quota,
    /// A consumer's share in whole cores.
    Cores(Consumer),
    /// How many seats a keyed role has.
    Pins(RoleId),
    /// How many units of a role run at once.
    Slots(RoleId),
}

/// The text of a setting's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SettingKey {
    name: &'static str,
    suffix: &'static str,
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        f.write_str(self.suffix)
    }
}

impl Setting {
    /// Every setting that `table` has.
    pub fn all(table: &RoleTable) -> impl Iterator<Item = Self> + '_ {
        let beside = (0..)
            .zip(table.consumers)
            .map(|(row, _)| Consumer::Beside(row));
        let roles = table.ids().map(Consumer::Role);
        core::iter::once(Self::Quota)
            .chain(beside.chain(roles).map(Self::Cores))
            .chain(table.ids().map(Self::Pins))
            .chain(table.ids().map(Self::Slots))
            .filter(|setting| setting.key(table).is_some())
    }

    /// The key, if `table` has the setting.
    #[must_use]
    pub fn key(self, table: &RoleTable) -> Option<SettingKey> {
        let (name, suffix) = match self {
            Self::Quota => ("quota", ""),
            Self::Cores(consumer) => {
                let (name, share) = match consumer {
                    Consumer::Beside(row) => {
                        let spec = table.consumers.get(usize::from(row))?;
                        (spec.name, spec.share)
                    }
                    Consumer::Role(role) => {
                        let spec = table.get(role)?;
                        (spec.name, spec.share)
                    }
                };
                if matches!(share, ShareRule::Slots { .. } | ShareRule::Permits) {
                    return None;
                }
                (name, "_cores")
            }
            Self::Pins(role) => {
                let spec = table.get(role)?;
                if spec.seat != SeatKind::KeyedPin {
                    return None;
                }
                (spec.name, "_pins")
            }
            Self::Slots(role) => {
                let spec = table.get(role)?;
                let slots = matches!(spec.share, ShareRule::Slots { .. });
                if spec.seat != SeatKind::Pooled || !slots {
                    return None;
                }
                (spec.name, "_slots")
            }
        };
        Some(SettingKey { name, suffix })
    }

    /// The setting with this key.
    #[must_use]
    pub fn find(table: &RoleTable, key: &str) -> Option<Self> {
        Self::all(table).find(|setting| {
            setting
                .key(table)
                .is_some_and(|k| key.strip_prefix(k.name) == Some(k.suffix))
        })
    }

    /// The values it takes. A role must have a core to run on; what is not a role may go without.
    #[must_use]
    pub fn takes(self) -> RangeInclusive<u32> {
        match self {
            Self::Quota => 1..=u32::MAX,
            Self::Cores(Consumer::Beside(_)) => 0..=u32::from(u16::MAX),
            Self::Cores(Consumer::Role(_)) => 1..=u32::from(u16::MAX),
            Self::Pins(_) | Self::Slots(_) => 1..=u32::try_from(MAX_SEATS).unwrap_or(u32::MAX),
        }
    }

    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Quota => "milli-cores",
            Self::Cores(_) => "cores",
            Self::Pins(_) => "pins",
            Self::Slots(_) => "slots",
        }
    }
}

/// A value and who set it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Override<T> {
    /// The value.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// Why a text was not taken as an override.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OverrideError {
    /// The table has no such setting.
    #[error("{key} from the {origin} is no setting of this fleet")]
    UnknownKey {
        /// The key as given.
        key: Excerpt,
        /// Who set it.
        origin: Origin,
    },
    /// The value is not one the setting takes.
    #[error(
        "{key} from the {origin}: {text} is not what it takes, a whole number of {} from {} to {}",
        setting.unit(), setting.takes().start(), setting.takes().end()
    )]
    Value {
        /// The setting.
        setting: Setting,
        /// Its key.
        key: SettingKey,
        /// The value as given.
        text: Excerpt,
        /// Who set it.
        origin: Origin,
    },
}

/// What an operator sets instead of a rule; empty by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Overrides {
    quota: Option<Override<u32>>,
    beside: [Option<Override<u32>>; MAX_CONSUMERS],
    roles: [Option<Override<u32>>; MAX_ROLES],
    counts: [Option<Override<u32>>; MAX_ROLES],
}

impl Overrides {
    /// Nothing is overridden.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads `text` for the setting `key`. The later origin wins, and at the same origin the later
    /// call.
    pub fn set(
        &mut self,
        table: &RoleTable,
        key: &str,
        text: &str,
        origin: Origin,
    ) -> Result<(), OverrideError> {
        let unknown = || OverrideError::UnknownKey {
            key: Excerpt::of(key),
            origin,
        };
        let setting = Setting::find(table, key).ok_or_else(unknown)?;
        let known = setting.key(table).ok_or_else(unknown)?;
        let value = whole_number(text).filter(|value| setting.takes().contains(value));
        let value = value.ok_or_else(|| OverrideError::Value {
            setting,
            key: known,
            text: Excerpt::of(text),
            origin,
        })?;
        self.place(setting, Override { value, origin });
        Ok(())
    }

    /// As [`set`](Self::set), for a value that is a number already.
    pub fn insert(
        &mut self,
        table: &RoleTable,
        setting: Setting,
        value: u32,
        origin: Origin,
    ) -> Result<(), OverrideError> {
        let Some(key) = setting.key(table) else {
            return Err(OverrideError::UnknownKey {
                key: Excerpt::show(format_args!("{setting:?}")),
                origin,
            });
        };
        if !setting.takes().contains(&value) {
            return Err(OverrideError::Value {
                setting,
                key,
                text: Excerpt::show(value),
                origin,
            });
        }
        self.place(setting, Override { value, origin });
        Ok(())
    }

    /// Takes over what `layer` sets. The order in which layers are merged does not matter as long as
    /// each has an origin of its own.
    pub fn merge(&mut self, layer: &Self) {
        if let Some(o) = layer.quota {
            self.place(Setting::Quota, o);
        }
        let beside = (0..).map(Consumer::Beside).zip(layer.beside);
        let roles = (0..)
            .map(|row| Consumer::Role(RoleId::new(row)))
            .zip(layer.roles);
        for (consumer, o) in beside.chain(roles) {
            if let Some(o) = o {
                self.place(Setting::Cores(consumer), o);
            }
        }
        for (row, o) in (0..).zip(layer.counts) {
            if let Some(o) = o {
                self.place(Setting::Slots(RoleId::new(row)), o);
            }
        }
    }

    /// The quota to share out.
    #[must_use]
    pub fn quota(&self) -> Option<Override<MilliCpu>> {
        self.quota.map(|o| Override {
            value: MilliCpu::new(o.value),
            origin: o.origin,
        })
    }

    /// The share of `consumer` in whole cores.
    #[must_use]
    pub fn cores(&self, consumer: Consumer) -> Option<Override<u16>> {
        self.get(Setting::Cores(consumer)).and_then(narrow)
    }

    /// The pins or slots of `role`.
    #[must_use]
    pub fn count(&self, role: RoleId) -> Option<Override<u16>> {
        self.get(Setting::Slots(role)).and_then(narrow)
    }

    /// What is set, with its key, in the order of [`Setting::all`].
    pub fn iter<'a>(
        &'a self,
        table: &'a RoleTable,
    ) -> impl Iterator<Item = (Setting, SettingKey, Override<u32>)> + 'a {
        Setting::all(table).filter_map(|s| Some((s, s.key(table)?, self.get(s)?)))
    }

    fn get(&self, setting: Setting) -> Option<Override<u32>> {
        match setting {
            Setting::Quota => self.quota,
            Setting::Cores(Consumer::Beside(row)) => *self.beside.get(usize::from(row))?,
            Setting::Cores(Consumer::Role(role)) => *self.roles.get(role.index())?,
            Setting::Pins(role) | Setting::Slots(role) => *self.counts.get(role.index())?,
        }
    }

    /// The one statement of precedence.
    fn place(&mut self, setting: Setting, given: Override<u32>) {
        let cell = match setting {
            Setting::Quota => Some(&mut self.quota),
            Setting::Cores(Consumer::Beside(row)) => self.beside.get_mut(usize::from(row)),
            Setting::Cores(Consumer::Role(role)) => self.roles.get_mut(role.index()),
            Setting::Pins(role) | Setting::Slots(role) => self.counts.get_mut(role.index()),
        };
        if let Some(cell) = cell
            && cell.is_none_or(|held| held.origin <= given.origin)
        {
            *cell = Some(given);
        }
    }
}

fn narrow(o: Override<u32>) -> Option<Override<u16>> {
    Some(Override {
        value: u16::try_from(o.value).ok()?,
        origin: o.origin,
    })
}
