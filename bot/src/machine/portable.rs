//! What the standard library says.

use super::{Findings, Wake};
use crate::cli::{PlanArgs, WakeArg};
use crate::pipeline::{Unwatched, Watch};
use regatta_core::affinity::SeatAffinity;
use regatta_core::budget::{Quota, Reason};
use regatta_portable::quota::platform_quota;
use regatta_portable::{BootError, Census, Fleet, FleetConfig, Workload};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

pub use regatta_portable::BINDINGS;

/// A copy of a machine cannot be looked at.
#[derive(Debug, Error)]
pub enum LookError {
    /// This build does not know how.
    #[error(
        "this build does not read control groups: --root takes one for Linux, with its Linux backend"
    )]
    Unsupported,
}

/// This process on this machine.
#[must_use]
pub fn this() -> Findings {
    Findings {
        groups: Quota::unknown(Reason::Unsupported),
        ..Findings::of(platform_quota())
    }
}

/// A copy of a machine.
pub fn copy(_: &Path) -> Result<Findings, LookError> {
    Err(LookError::Unsupported)
}

/// The threads of seats park, and run where the platform likes.
#[derive(Clone, Copy, Debug)]
pub struct Seats;

impl Seats {
    /// There is one way; another one that was asked for is not to be had.
    #[must_use]
    pub fn choose(args: &PlanArgs, affinity: SeatAffinity) -> Self {
        if args.wake != WakeArg::Auto || affinity != SeatAffinity::AllowedSet {
            tracing::warn!("this build has no Linux backend: threads park, on any CPU");
        }
        Self
    }

    /// The wake and why it is that one.
    #[must_use]
    pub fn wake(&self) -> (&'static str, String) {
        ("park", "it is the standard library's".to_owned())
    }

    /// Boots a fleet on these seats.
    pub fn boot<W: Workload>(
        &self,
        workload: W,
        config: FleetConfig,
        census: &Census,
    ) -> Result<Fleet<W>, BootError> {
        Fleet::boot(workload, config, census)
    }
}

/// Whether the process has the threads that the census knows, and no others: nobody is asked.
#[must_use]
pub const fn reconciled(_: &Census) -> bool {
    true
}

/// The ways to wake that this kernel has: nobody is asked.
#[must_use]
pub const fn wakes() -> Vec<Wake> {
    Vec::new()
}

/// Throttling is not measured here.
#[derive(Debug)]
pub struct Sampling(Unwatched);

impl Sampling {
    /// Nothing is sampled for `fleet`.
    #[must_use]
    pub const fn new<W: Workload>(_: &Fleet<W>) -> Self {
        Self(Unwatched)
    }
}

impl Watch for Sampling {
    fn work(&self, working: bool) {
        self.0.work(working);
    }

    fn tend(&self) -> Option<Duration> {
        self.0.tend()
    }
}
