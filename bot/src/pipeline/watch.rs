//! What the pump's thread sees to while it waits.
//!
//! The pump sleeps on a receipt or on the next block, and somebody has to look at the counters of
//! throttling meanwhile. So it sleeps no longer than until that is due.

use super::workload::Pipeline;
use regatta_portable::{Ended, Receipt, WaitError};
use std::fmt::Debug;
use std::time::Duration;

/// Something to see to.
pub trait Watch: Debug {
    /// Is told when the fleet begins and ends to work, as often as may be.
    fn work(&self, working: bool);

    /// Whether the pump is to stop waiting for what may take long, such as units that are held.
    fn interrupted(&self) -> bool {
        false
    }

    /// Does what is due, and says how long it is until there is something to do; `None` if there is
    /// nothing until the fleet works again.
    fn tend(&self) -> Option<Duration>;
}

/// Nothing to see to.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn work(&self, _: bool) {}

    fn tend(&self) -> Option<Duration> {
        None
    }
}

/// Blocks until the unit has ended.
pub(super) fn wait<W: Pipeline>(
    receipt: Receipt<W>,
    watch: &dyn Watch,
) -> Result<Ended<W>, WaitError<W>> {
    let mut receipt = receipt;
    loop {
        receipt = match step(receipt, watch.tend()) {
            Err(WaitError::TimedOut(receipt)) => receipt,
            ended => return ended,
        };
    }
}

/// Blocks until the unit has ended, or `None` once `watch` has interrupted: it is asked whenever it is
/// tended, which is often while units are held.
pub(super) fn wait_unless_interrupted<W: Pipeline>(
    receipt: Receipt<W>,
    watch: &dyn Watch,
) -> Option<Result<Ended<W>, WaitError<W>>> {
    let mut receipt = receipt;
    loop {
        let due = watch.tend();
        if watch.interrupted() {
            return None;
        }
        receipt = match step(receipt, due) {
            Err(WaitError::TimedOut(receipt)) => receipt,
            ended => return Some(ended),
        };
    }
}

fn step<W: Pipeline>(receipt: Receipt<W>, due: Option<Duration>) -> Result<Ended<W>, WaitError<W>> {
    match due {
        None => receipt.wait(),
        Some(due) => receipt.wait_for(due),
    }
}

#[cfg(test)]
mod tests;
