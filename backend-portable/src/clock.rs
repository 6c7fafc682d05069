//! The platform's monotonic clock as the core counts it.

use regatta_core::port::Clock;
use regatta_core::time::{Duration, Instant};

/// Nanoseconds since the clock was made. Steps of the system's wall clock do not move it.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    origin: std::time::Instant,
}

impl MonotonicClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: std::time::Instant::now(),
        }
    }

    /// The platform's instant for an instant of this clock, or `None` if it lies too far ahead to be
    /// stated.
    #[must_use]
    pub fn to_std(&self, at: Instant) -> Option<std::time::Instant> {
        self.origin.checked_add(at.since(Instant::ORIGIN).into())
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::ORIGIN + Duration::from(self.origin.elapsed())
    }
}
