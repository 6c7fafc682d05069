//! The one deadline of a stop.
//!
//! # Invariants
//! - No operation moves the deadline, or anything that follows from it, to a later time.

use crate::time::{Duration, Instant};

/// An absolute point of the monotonic clock by which everything has stopped.
///
/// It is computed once, when the stop begins, and shared by all phases. A fifth of the budget is the
/// *reserve*, in which nothing drains any more and everything stops. The first quarter of the reserve
/// is the *grace*: a drain that ends exactly when it was told to still has that long to say so before it
/// counts as hung.
///
/// ```text
/// begin ─── quiesce, drain ─── drain_end ─ grace ─ fence_at ─── stop ─── at
///                              ├─────────────── reserve ────────────────┤
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadline {
    at: Instant,
    reserve: Duration,
}

impl Deadline {
    /// The budget unless configured.
    pub const DEFAULT_BUDGET: Duration = Duration::from_secs(10);

    /// The deadline of a stop that begins `now` and may take `budget`.
    #[must_use]
    pub fn new(now: Instant, budget: Duration) -> Self {
        Self {
            at: now + budget,
            reserve: Duration::from_nanos(budget.as_nanos() / 5),
        }
    }

    /// The deadline.
    #[must_use]
    pub const fn at(&self) -> Instant {
        self.at
    }

    /// How long before the deadline the drain ends. Also the safe minimum: what a second signal leaves.
    #[must_use]
    pub const fn reserve(&self) -> Duration {
        self.reserve
    }

    /// How long after the end of the drain an answer still counts.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        Duration::from_nanos(self.reserve.as_nanos() / 4)
    }

    /// When the drain ends.
    #[must_use]
    pub fn drain_end(&self) -> Instant {
        self.at - self.reserve
    }

    /// When whatever has not answered its quiesce or its drain is fenced.
    #[must_use]
    pub fn fence_at(&self) -> Instant {
        (self.drain_end() + self.grace()).min(self.at)
    }

    /// What is left at `now`; nothing once it has passed.
    #[must_use]
    pub const fn left(&self, now: Instant) -> Duration {
        self.at.since(now)
    }

    /// Moves the deadline to `to` if that is earlier.
    pub fn shorten(&mut self, to: Instant) {
        self.at = self.at.min(to);
    }

    /// Ends the drain `now` and leaves the reserve, if that is earlier.
    pub fn shorten_to_safe_minimum(&mut self, now: Instant) {
        self.shorten(now + self.reserve);
    }
}
