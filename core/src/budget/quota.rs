//! What is known about the CPU that the process may use.
//!
//! # Invariants
//! - "Could not read" is never "unlimited": a source that could not be read makes the whole quota
//!   [`Confidence::Unknown`], whatever bound another source gave.

use crate::text::{Excerpt, whole_number};
use core::fmt;
use thiserror::Error;

/// An amount of CPU in thousandths of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MilliCpu(u32);

impl MilliCpu {
    /// `milli` thousandths of a core.
    #[must_use]
    pub const fn new(milli: u32) -> Self {
        Self(milli)
    }

    /// `cores` whole cores.
    #[must_use]
    pub const fn from_cores(cores: u16) -> Self {
        Self(cores as u32 * 1000)
    }

    /// Thousandths of a core.
    #[must_use]
    pub const fn milli(self) -> u32 {
        self.0
    }

    /// Whole cores for allocation: rounded down, and at most 65,535.
    #[must_use]
    pub fn floor_cores(self) -> u16 {
        saturate(self.0 / 1000)
    }

    /// Whole cores for display and for whether a worker may exist at all: rounded up, and at most
    /// 65,535.
    #[must_use]
    pub fn ceil_cores(self) -> u16 {
        saturate(self.0.div_ceil(1000))
    }

    /// What [`floor_cores`](Self::floor_cores) leaves over, in thousandths of a core, below 1000.
    #[must_use]
    pub const fn fraction(self) -> u32 {
        self.0 % 1000
    }

    /// Reads a whole number of milli-cores, at least one.
    pub fn parse(text: &str) -> Result<Self, MilliCpuError> {
        match whole_number(text) {
            Some(milli) if milli > 0 => Ok(Self(milli)),
            _ => Err(MilliCpuError {
                text: Excerpt::of(text),
            }),
        }
    }
}

fn saturate(cores: u32) -> u16 {
    u16::try_from(cores).unwrap_or(u16::MAX)
}

/// Cores as a decimal number: `1.25`.
impl fmt::Display for MilliCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_thousandths(f, self.0)
    }
}

/// A text is no amount of CPU.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error(
    "{text} is no amount of CPU: it takes a whole number of milli-cores from 1 to {}, such as 2000 for two cores",
    u32::MAX
)]
pub struct MilliCpuError {
    /// The text.
    pub text: Excerpt,
}

/// What bounds the quota.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BoundedBy {
    /// A bandwidth limit of the first control group hierarchy.
    Cgroup1,
    /// A bandwidth limit of the second control group hierarchy.
    Cgroup2,
    /// The CPUs on which the process may run.
    Affinity,
    /// What the platform's standard library says.
    Platform,
    /// The operator.
    Override,
    /// Nothing that was found.
    Nothing,
}

impl BoundedBy {
    /// The name in JSON and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cgroup1 => "cgroup1",
            Self::Cgroup2 => "cgroup2",
            Self::Affinity => "affinity",
            Self::Platform => "platform",
            Self::Override => "override",
            Self::Nothing => "nothing",
        }
    }
}

/// How far a quota can be relied on. Later variants are weaker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Confidence {
    /// Every level that can limit was read.
    Exact,
    /// A limit may be tighter than what was seen.
    Approximate,
    /// A limit exists that could not be read, or may.
    Unknown,
}

impl Confidence {
    /// The name in JSON and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approximate => "approximate",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a quota is what it is, and as sure as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reason {
    /// The limit was read where it stands.
    LimitRead,
    /// Every level was read and none has a limit.
    NoLimit,
    /// The kernel has no bandwidth control here.
    NoBandwidthControl,
    /// The CPUs of the affinity mask were counted.
    MaskCounted,
    /// The platform gave a number that it had already rounded.
    PlatformRounded,
    /// The operator said so.
    Given,
    /// The process is in a group outside what its namespace shows, so levels above stay unseen.
    OutsideNamespace,
    /// The process is in a group whose hierarchy is mounted nowhere.
    NotMounted,
    /// A file of the limit could not be read.
    Unreadable,
    /// A file of the limit holds something else than a limit.
    Malformed,
    /// The platform has no way to ask.
    Unsupported,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LimitRead => "the limit was read",
            Self::NoLimit => "no level has a limit",
            Self::NoBandwidthControl => "the kernel has no bandwidth control here",
            Self::MaskCounted => "the CPUs of the affinity mask were counted",
            Self::PlatformRounded => "the platform gave a rounded number",
            Self::Given => "the operator said so",
            Self::OutsideNamespace => "the process's group is outside its namespace",
            Self::NotMounted => "the hierarchy of the process's group is not mounted",
            Self::Unreadable => "a limit could not be read",
            Self::Malformed => "a limit could not be understood",
            Self::Unsupported => "the platform cannot be asked",
        })
    }
}

/// Where a quota came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Evidence {
    /// What bounds.
    pub bounded_by: BoundedBy,
    /// For a control group, how many levels above the process's own group the limit stands.
    pub level: Option<u16>,
    /// How far it can be relied on.
    pub confidence: Confidence,
    /// Why.
    pub reason: Reason,
}

/// What is known about the CPU that the process may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Quota {
    /// The tightest bound that was found. With [`Confidence::Unknown`] there may be a tighter one.
    pub bound: Option<MilliCpu>,
    /// Where it came from.
    pub evidence: Evidence,
}

impl Quota {
    /// A bound that stands where it was read.
    #[must_use]
    pub const fn exact(bound: MilliCpu, bounded_by: BoundedBy, reason: Reason) -> Self {
        Self {
            bound: Some(bound),
            evidence: Evidence {
                bounded_by,
                level: None,
                confidence: Confidence::Exact,
                reason,
            },
        }
    }

    /// A source that was read whole and has no limit, for `reason`. It is no quota by itself: something
    /// else must bound.
    #[must_use]
    pub const fn unlimited(reason: Reason) -> Self {
        Self {
            bound: None,
            evidence: Evidence {
                bounded_by: BoundedBy::Nothing,
                level: None,
                confidence: Confidence::Exact,
                reason,
            },
        }
    }

    /// A source that could not say, for `reason`.
    #[must_use]
    pub const fn unknown(reason: Reason) -> Self {
        Self {
            bound: None,
            evidence: Evidence {
                bounded_by: BoundedBy::Nothing,
                level: None,
                confidence: Confidence::Unknown,
                reason,
            },
        }
    }

    /// What two sources say together: the tighter bound, and the weaker confidence with its reason.
    ///
    /// At equal bounds `self` is the one that is named, so the source that is asked first is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let tighter = match (self.bound, other.bound) {
            (Some(a), Some(b)) if b < a => other,
            (None, Some(_)) => other,
            _ => self,
        };
        let weaker = if other.evidence.confidence > self.evidence.confidence {
            other
        } else {
            self
        };
        let mut evidence = tighter.evidence;
        if weaker.evidence.confidence > evidence.confidence {
            evidence.confidence = weaker.evidence.confidence;
            evidence.reason = weaker.evidence.reason;
        }
        Self {
            bound: tighter.bound,
            evidence,
        }
    }

    /// The bound, unless one that could not be read may be tighter.
    #[must_use]
    pub fn known(&self) -> Option<MilliCpu> {
        match self.evidence.confidence {
            Confidence::Exact | Confidence::Approximate => self.bound,
            Confidence::Unknown => None,
        }
    }
}
