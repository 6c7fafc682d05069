//! Receipts: the submitter's handle on a unit.
//!
//! # Invariants
//! - A receipt resolves exactly once, whatever dies or closes.
//! - Dropping a receipt abandons the unit's output, not the unit: it runs, is counted, and its row is
//!   given back.
//! - A seat never waits on a receipt: that would be a deadlock, and is a typed error.

use crate::shared::Shared;
use crate::workload::Workload;
use regatta_core::unit::UnitId;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Why a unit yielded nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Failure {
    /// It panicked; the seat lives.
    #[error("the unit panicked: {message}")]
    Panicked {
        /// What the panic said, if it was text.
        message: Box<str>,
    },
    /// The seat or lane that would have run it is dead.
    #[error("the lane died")]
    LaneDeath,
    /// The fleet closed before it ended.
    #[error("the fleet closed before the unit ended")]
    Closed,
    /// The fleet closed before it could begin.
    #[error("the fleet closed before the unit could begin")]
    NotRun,
}

/// How a unit ended.
pub enum Ended<W: Workload> {
    /// It ran and yielded this.
    Done(W::Output),
    /// It yielded nothing; a unit that never began is given back.
    Failed(Failure, Option<W::Unit>),
}

impl<W: Workload> Ended<W> {
    /// The output, if the unit ran to its end.
    #[must_use]
    pub fn done(self) -> Option<W::Output> {
        match self {
            Self::Done(output) => Some(output),
            Self::Failed(..) => None,
        }
    }

    /// Why it did not, otherwise.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Done(_) => None,
            Self::Failed(failure, _) => Some(failure),
        }
    }
}

impl<W: Workload> fmt::Debug for Ended<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => f.write_str("Done"),
            Self::Failed(failure, unit) => {
                write!(f, "Failed({failure:?}, given back: {})", unit.is_some())
            }
        }
    }
}

/// A seat asked to wait for what a seat must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a unit must not wait for the fleet: the seat it holds may be the one that is needed")]
pub struct WouldDeadlock;

/// Why a wait gave no outcome. The receipt comes back.
#[derive(Error)]
pub enum WaitError<W: Workload> {
    /// The caller is a seat.
    #[error("{WouldDeadlock}")]
    WouldDeadlock(Receipt<W>),
    /// The deadline came first.
    #[error("the unit has not ended within the time given")]
    TimedOut(Receipt<W>),
}

impl<W: Workload> WaitError<W> {
    /// The receipt.
    pub fn into_receipt(self) -> Receipt<W> {
        match self {
            Self::WouldDeadlock(receipt) | Self::TimedOut(receipt) => receipt,
        }
    }
}

impl<W: Workload> fmt::Debug for WaitError<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WouldDeadlock(_) => "WouldDeadlock",
            Self::TimedOut(_) => "TimedOut",
        })
    }
}

/// Why a wait for room ended without room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RoomError {
    /// The caller is a seat.
    #[error(transparent)]
    WouldDeadlock(#[from] WouldDeadlock),
    /// The deadline came first.
    #[error("the lane has had no room within the time given")]
    TimedOut,
    /// The lane takes no more units: the fleet is closing, or the lane is dead.
    #[error("the lane takes no more units")]
    Closed,
}

/// The submitter's handle on a unit. It resolves exactly once, whatever dies or closes.
///
/// Dropping it abandons the unit's output, not the unit: that runs, is counted, and its row is given
/// back. A unit that waits for a receipt is refused: it holds the seat that would have to run.
#[must_use = "a dropped receipt abandons the unit's output"]
pub struct Receipt<W: Workload> {
    shared: Option<Arc<Shared<W>>>,
    unit: UnitId,
}

impl<W: Workload> Receipt<W> {
    pub(crate) fn new(shared: Arc<Shared<W>>, unit: UnitId) -> Self {
        Self {
            shared: Some(shared),
            unit,
        }
    }

    /// The unit.
    #[must_use]
    pub const fn unit(&self) -> UnitId {
        self.unit
    }

    /// Blocks until the unit has ended.
    pub fn wait(self) -> Result<Ended<W>, WaitError<W>> {
        self.wait_until(None)
    }

    /// Blocks until the unit has ended, or until `timeout` has passed.
    pub fn wait_for(self, timeout: std::time::Duration) -> Result<Ended<W>, WaitError<W>> {
        let deadline = std::time::Instant::now().checked_add(timeout);
        self.wait_until(deadline)
    }

    /// The outcome, if the unit has ended; else the receipt.
    pub fn poll(mut self) -> Result<Ended<W>, Self> {
        match self
            .shared
            .as_ref()
            .and_then(|shared| shared.take_ended(self.unit))
        {
            Some(ended) => {
                self.shared = None;
                Ok(ended)
            }
            None => Err(self),
        }
    }

    fn wait_until(
        mut self,
        deadline: Option<std::time::Instant>,
    ) -> Result<Ended<W>, WaitError<W>> {
        if crate::seats::on_a_seat() {
            return self.poll().map_err(WaitError::WouldDeadlock);
        }
        let ended = self
            .shared
            .as_ref()
            .and_then(|shared| shared.wait_ended(self.unit, deadline));
        match ended {
            Some(ended) => {
                self.shared = None;
                Ok(ended)
            }
            None => Err(WaitError::TimedOut(self)),
        }
    }
}

impl<W: Workload> Drop for Receipt<W> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.abandon(self.unit);
        }
    }
}

impl<W: Workload> fmt::Debug for Receipt<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}
