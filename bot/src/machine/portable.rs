//! What the standard library says.

use super::Findings;
use crate::pipeline::{Unwatched, Watch};
use regatta_core::budget::{Quota, Reason};
use regatta_portable::PostureControl;
use regatta_portable::quota::platform_quota;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

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

/// Throttling is not measured here.
#[derive(Debug)]
pub struct Sampling(Unwatched);

impl Sampling {
    /// Nothing is sampled for `posture`.
    #[must_use]
    pub const fn new(_: &PostureControl) -> Self {
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
