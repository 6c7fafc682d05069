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
    mut receipt: Receipt<W>,
    watch: &dyn Watch,
) -> Result<Ended<W>, WaitError<W>> {
    loop {
        receipt = match watch.tend() {
            None => return receipt.wait(),
            Some(due) => match receipt.wait_for(due) {
                Err(WaitError::TimedOut(receipt)) => receipt,
                ended => return ended,
            },
        }
    }
}

#[cfg(test)]
mod tests;
