//! The rules of what leaves the process: when a pipe's consumer is frozen, and a cell whose newest
//! value wins.

use crate::time::{Duration, Instant};
use thiserror::Error;

/// When a consumer counts as frozen.
///
/// It does when at least `floor` items are owed, the one in hand counted, and none was completed for
/// `window`. Slow but progressing is never frozen, however long the backlog.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StallRule {
    /// The least backlog. One item in hand may simply be long.
    pub floor: u64,
    /// How long without a completion.
    pub window: Duration,
    /// The longest planned time between two looks while armed; not zero, which would credit nothing.
    pub interval: Duration,
}

impl Default for StallRule {
    /// Two items and thirty seconds, looked at every second.
    fn default() -> Self {
        Self {
            floor: 2,
            window: Duration::from_secs(30),
            interval: Duration::from_secs(1),
        }
    }
}

/// A consumer is frozen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Stalled {
    /// It owes items and completes none.
    #[error(
        "{backlog} items are owed and none was completed for {} ms; at most {} ms are allowed",
        credited.as_millis(), window.as_millis()
    )]
    Frozen {
        /// Items accepted and not completed, the one in hand counted.
        backlog: u64,
        /// The time without a completion that counted.
        credited: Duration,
        /// The time that is allowed.
        window: Duration,
    },
    /// Its end of the pipe is gone.
    #[error("the pipe's consumer is gone with {backlog} items owed")]
    Closed {
        /// Items accepted and not completed.
        backlog: u64,
    },
}

/// What the two ends of a pipe have counted, each only growing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PipeProgress {
    /// Items that went in.
    pub accepted: u64,
    /// Items that are done.
    pub completed: u64,
    /// The consumer's end is gone.
    pub closed: bool,
}

impl PipeProgress {
    /// Items owed, the one in hand counted: the lag.
    #[must_use]
    pub const fn backlog(&self) -> u64 {
        self.accepted.saturating_sub(self.completed)
    }
}

/// Watches one consumer under a [`StallRule`].
///
/// It is looked at whenever something is dispatched, and at [`next_deadline`](Self::next_deadline).
///
/// # Invariants
/// - Only time counts, not looks: any number of looks at one moment credits nothing.
/// - A look credits at most twice the planned interval, so a process that was stopped, or a machine
///   that was, has not stalled.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StallWatch {
    rule: StallRule,
    completed: u64,
    armed: Option<Armed>,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Armed {
    looked: Instant,
    credited: Duration,
}

impl StallWatch {
    /// A watch that is not armed.
    #[must_use]
    pub const fn new(rule: StallRule) -> Self {
        Self {
            rule,
            completed: 0,
            armed: None,
        }
    }

    /// Looks at the pipe.
    pub fn look(&mut self, now: Instant, pipe: PipeProgress) -> Result<(), Stalled> {
        let backlog = pipe.backlog();
        if pipe.closed {
            return Err(Stalled::Closed { backlog });
        }
        let progressed = core::mem::replace(&mut self.completed, pipe.completed) != pipe.completed;
        if backlog < self.rule.floor {
            self.armed = None;
            return Ok(());
        }
        let Some(armed) = self.armed.as_mut().filter(|_| !progressed) else {
            self.armed = Some(Armed {
                looked: now,
                credited: Duration::ZERO,
            });
            return Ok(());
        };
        let elapsed = now.since(armed.looked);
        armed.credited = armed.credited + elapsed.min(self.rule.interval.times(2));
        armed.looked = armed.looked.max(now);
        if armed.credited < self.rule.window {
            return Ok(());
        }
        Err(Stalled::Frozen {
            backlog,
            credited: armed.credited,
            window: self.rule.window,
        })
    }

    /// When to look again; `None` while too little is owed for a stall.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let armed = self.armed?;
        let left = self.rule.window.saturating_sub(armed.credited);
        Some(armed.looked + left.min(self.rule.interval))
    }
}

/// What became of a value offered to a [`LatestWins`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Offered<T> {
    /// It waits to be taken.
    Held,
    /// It waits in place of an older one, which nobody will see.
    Replaced(T),
    /// It is not newer than one offered before, and is handed back.
    Stale(T),
}

/// A cell for a reader that only wants the newest value: offering never waits, taking yields each value
/// at most once, and never an older one after a newer one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LatestWins<T> {
    newest: Option<u64>,
    held: Option<T>,
}

impl<T> Default for LatestWins<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> LatestWins<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            newest: None,
            held: None,
        }
    }

    /// Offers `value` as number `seq`.
    pub fn offer(&mut self, seq: u64, value: T) -> Offered<T> {
        if self.newest.is_some_and(|newest| seq <= newest) {
            return Offered::Stale(value);
        }
        self.newest = Some(seq);
        match self.held.replace(value) {
            Some(old) => Offered::Replaced(old),
            None => Offered::Held,
        }
    }

    /// The value that waits to be taken.
    #[must_use]
    pub const fn held(&self) -> Option<&T> {
        self.held.as_ref()
    }

    /// Takes the newest value, with its number, unless it was taken already.
    pub fn take(&mut self) -> Option<(u64, T)> {
        self.newest.zip(self.held.take())
    }
}

#[cfg(test)]
mod tests;
