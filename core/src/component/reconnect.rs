//! Reconnect: attempts with generations, so that nothing is installed too late.
//!
//! # Invariants
//! - A generation is current from the attempt that it names until that attempt is committed, has failed
//!   or has run out of time, or something else happened; it never becomes current again.
//! - [`Reconnect::commit`] accepts the current generation of an attempt that is on its way, once.
//! - Once fenced, nothing is attempted and nothing is accepted.

use super::backoff::{Backoff, BackoffPolicy};
use crate::time::{Duration, Instant};
use core::fmt;
use thiserror::Error;

/// The number of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Generation(u64);

impl Generation {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A result that came too late: whoever has it closes what it brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("generation {offered} is too late, the current one is {current}: close what it brought")]
pub struct Stale {
    /// Of the result.
    pub offered: Generation,
    /// The current one.
    pub current: Generation,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Connected since then.
    Up(Instant),
    /// The next attempt begins then.
    Waiting(Instant),
    /// The current generation is attempted, until then.
    Attempting(Instant),
    GaveUp,
    Fenced,
}

/// The reconnect of one component. It decides when to attempt; the caller attempts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reconnect {
    backoff: Backoff,
    generation: Generation,
    phase: Phase,
}

impl Reconnect {
    /// A connection that is there since `now`.
    #[must_use]
    pub const fn new(policy: BackoffPolicy, seed: u64, now: Instant) -> Self {
        Self {
            backoff: Backoff::new(policy, seed),
            generation: Generation(0),
            phase: Phase::Up(now),
        }
    }

    /// The current generation.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Attempts of the current series.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.backoff.attempts()
    }

    /// Whether it will attempt no more.
    #[must_use]
    pub const fn gave_up(&self) -> bool {
        matches!(self.phase, Phase::GaveUp)
    }

    /// The connection is gone. Only if it had lasted a stable period do the attempts count anew: a peer
    /// that accepts and drops is not asked without end. Returns whether it was there.
    pub fn lost(&mut self, now: Instant) -> bool {
        let Phase::Up(since) = self.phase else {
            return false;
        };
        if now.since(since) >= self.backoff.policy().stable {
            self.backoff.reset();
        }
        self.retry(now);
        true
    }

    /// The attempt that is to begin, if it is time, and until when it may take.
    pub fn poll(&mut self, now: Instant) -> Option<(Generation, Instant)> {
        let Phase::Waiting(until) = self.phase else {
            return None;
        };
        if now < until {
            return None;
        }
        self.supersede();
        let until = now + self.backoff.policy().attempt;
        self.phase = Phase::Attempting(until);
        Some((self.generation, until))
    }

    /// Ends an attempt whose time is over. Returns whether one did.
    pub fn expire(&mut self, now: Instant) -> bool {
        let over = matches!(self.phase, Phase::Attempting(until) if now >= until);
        if over {
            self.retry(now);
        }
        over
    }

    /// The attempt of `generation` failed.
    pub fn failed(&mut self, generation: Generation, now: Instant) -> Result<(), Stale> {
        self.current(generation)?;
        self.retry(now);
        Ok(())
    }

    /// The attempt of `generation` has a connection to install. To be asked at the place and in the
    /// moment of installing, under whatever excludes a fence: an earlier answer proves nothing.
    pub fn commit(&mut self, generation: Generation, now: Instant) -> Result<(), Stale> {
        self.current(generation)?;
        self.phase = Phase::Up(now);
        Ok(())
    }

    /// Ends all reconnecting: a pending attempt is not begun, and one on its way will be stale.
    pub fn fence(&mut self) {
        self.supersede();
        self.phase = Phase::Fenced;
    }

    /// When to call again.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting(until) | Phase::Attempting(until) => Some(until),
            Phase::Up(_) | Phase::GaveUp | Phase::Fenced => None,
        }
    }

    fn current(&self, offered: Generation) -> Result<(), Stale> {
        let current = self.generation;
        if offered == current && matches!(self.phase, Phase::Attempting(_)) {
            Ok(())
        } else {
            Err(Stale { offered, current })
        }
    }

    fn supersede(&mut self) {
        self.generation = Generation(self.generation.0.saturating_add(1));
    }

    fn retry(&mut self, now: Instant) {
        self.supersede();
        self.phase = match self.backoff.next_delay(now) {
            Some(delay) => Phase::Waiting(now + delay.max(Duration::from_nanos(1))),
            None => Phase::GaveUp,
        };
    }
}
