//! Why a tier, or every tier, was refused, and what to do about it.

use super::Profile;
use crate::budget::{MilliCpu, Overrun};
use crate::role::RoleTableError;
use crate::seat::MAX_SEATS;
use crate::text::Excerpt;
use thiserror::Error;

/// A text names no profile.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error(
    "{text} is no profile: it takes {}, {} or {}",
    Profile::Auto.name(), Profile::Pinned.name(), Profile::Serial.name()
)]
pub struct ProfileError {
    /// The text.
    pub text: Excerpt,
}

/// Why a plan is not on the tier above its own, or stands where that tier does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TierRefused {
    /// The pinned tier's shares need more.
    #[error(
        "the pinned tier needs {floor} whole cores and there are {cores}; --quota {floor}000 allocates them"
    )]
    QuotaTooSmallForPinnedRoles {
        /// The least whole cores of the pinned tier.
        floor: u16,
        /// The whole cores there are.
        cores: u16,
    },
    /// A limit could not be read, so the quota may be smaller than what was seen.
    #[error(
        "the quota is not known; --quota MILLI states it, --profile pinned goes by what was seen"
    )]
    QuotaUnknown,
    /// The backend has no pinned binding.
    #[error("this backend has no pinned binding")]
    PinnedUnavailable,
}

impl TierRefused {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QuotaTooSmallForPinnedRoles { .. } => "QuotaTooSmallForPinnedRoles",
            Self::QuotaUnknown => "QuotaUnknown",
            Self::PinnedUnavailable => "PinnedUnavailable",
        }
    }
}

/// Why no fleet boots.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(
    clippy::large_enum_variant,
    reason = "a refusal is built once, at boot, and without an allocator it holds the budget itself"
)]
pub enum BootRefused {
    /// The role table cannot be used.
    #[error("the role table cannot be used: {0}")]
    Table(#[from] RoleTableError),
    /// No tier fits.
    #[error(
        "the quota is {quota} cores and a fleet needs {floor} whole ones; raise the limit, or pass \
         --quota {floor}000 to allocate as if it had them"
    )]
    BelowHostFloor {
        /// The allocation.
        quota: MilliCpu,
        /// The least whole cores.
        floor: u16,
    },
    /// The forced binding is not offered.
    #[error(
        "profile pinned is forced and this backend has no pinned binding; use --profile auto or serial"
    )]
    BindingUnavailable,
    /// The shares do not fit.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    /// More seats than a fleet can have.
    #[error("{seats} seats and a fleet has at most {MAX_SEATS}: lower the pins or the slots")]
    TooManySeats {
        /// How many were asked for.
        seats: u32,
    },
}

impl BootRefused {
    /// The name in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Table(_) => "RoleTable",
            Self::BelowHostFloor { .. } => "BelowHostFloor",
            Self::BindingUnavailable => "BindingUnavailable",
            Self::Overrun(_) => "Overrun",
            Self::TooManySeats { .. } => "TooManySeats",
        }
    }
}
