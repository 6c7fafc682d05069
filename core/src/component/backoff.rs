//! How long to wait before the next attempt, and when to give up.
//!
//! # Invariants
//! - A delay is never above the cap, and every series of attempts ends.
//! - The same seed and the same calls give the same delays.

use crate::time::{Duration, Instant};
use thiserror::Error;

/// What ends a series of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Limit {
    /// So many attempts.
    Attempts(u32),
    /// No attempt begins so long after the series began.
    Within(Duration),
}

/// When a component reconnects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BackoffPolicy {
    /// The delay before the first attempt, before jitter.
    pub initial: Duration,
    /// By how much each delay is longer than the one before.
    pub factor: u32,
    /// The longest delay.
    pub cap: Duration,
    /// The share of a delay, in percent, that chance may take off it.
    pub jitter_percent: u8,
    /// When to give up.
    pub limit: Limit,
    /// How long an attempt may take before it counts as failed.
    pub attempt: Duration,
    /// How long a connection must last before the next loss begins a new series.
    pub stable: Duration,
}

/// Why a policy cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BackoffError {
    /// A time is zero.
    #[error("{what} is zero: a peer that is away would be asked without end")]
    Zero {
        /// Which.
        what: &'static str,
    },
    /// The cap is below the first delay.
    #[error("the cap is {} ns and the first delay {} ns: the cap is the longest delay", cap.as_nanos(), initial.as_nanos())]
    Cap {
        /// The cap.
        cap: Duration,
        /// The first delay.
        initial: Duration,
    },
    /// The jitter is not a share.
    #[error("a jitter of {percent} percent: it takes 0 to 100")]
    Jitter {
        /// The value.
        percent: u8,
    },
}

impl BackoffPolicy {
    /// A quarter of a second, doubling up to half a minute, half of it left to chance, twenty attempts of
    /// at most five seconds, and a minute to be stable.
    pub const DEFAULT: Self = Self {
        initial: Duration::from_millis(250),
        factor: 2,
        cap: Duration::from_secs(30),
        jitter_percent: 50,
        limit: Limit::Attempts(20),
        attempt: Duration::from_secs(5),
        stable: Duration::from_secs(60),
    };

    /// Whether it can be used.
    pub fn check(&self) -> Result<(), BackoffError> {
        let limit = match self.limit {
            Limit::Attempts(attempts) => Duration::from_nanos(u64::from(attempts)),
            Limit::Within(window) => window,
        };
        for (what, value) in [
            ("the first delay", self.initial),
            ("the factor", Duration::from_nanos(u64::from(self.factor))),
            ("the limit", limit),
            ("the time of an attempt", self.attempt),
            ("the stable period", self.stable),
        ] {
            if value == Duration::ZERO {
                return Err(BackoffError::Zero { what });
            }
        }
        let (cap, initial) = (self.cap, self.initial);
        if cap < initial {
            return Err(BackoffError::Cap { cap, initial });
        }
        let percent = self.jitter_percent;
        if percent > 100 {
            return Err(BackoffError::Jitter { percent });
        }
        Ok(())
    }
}

/// A series of attempts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    random: u64,
    attempts: u32,
    began: Option<Instant>,
}

impl Backoff {
    /// A series that has not begun. Whoever has another `seed` waits otherwise.
    #[must_use]
    pub const fn new(policy: BackoffPolicy, seed: u64) -> Self {
        Self {
            policy,
            random: seed,
            attempts: 0,
            began: None,
        }
    }

    /// Its policy.
    #[must_use]
    pub const fn policy(&self) -> &BackoffPolicy {
        &self.policy
    }

    /// Attempts of the series so far.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long to wait before the next attempt; `None` to give up.
    pub fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let began = *self.began.get_or_insert(now);
        let growth = u64::from(self.policy.factor).saturating_pow(self.attempts);
        let whole = self.policy.initial.times(growth).min(self.policy.cap);
        let most = u128::from(whole.as_nanos()) * u128::from(self.policy.jitter_percent) / 100;
        let taken = (most * u128::from(self.draw())) >> u64::BITS;
        let delay = whole.saturating_sub(Duration::from_nanos(
            u64::try_from(taken).unwrap_or(u64::MAX),
        ));
        let goes_on = match self.policy.limit {
            Limit::Attempts(most) => self.attempts < most,
            Limit::Within(window) => now + delay < began + window,
        };
        self.attempts = self.attempts.saturating_add(1);
        goes_on.then_some(delay)
    }

    /// Ends the series: the next delay is the first again.
    pub fn reset(&mut self) {
        self.attempts = 0;
        self.began = None;
    }

    /// The next number of the splitmix sequence.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.random;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
