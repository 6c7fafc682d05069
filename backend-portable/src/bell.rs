//! The bell of a seat: how it is told to look at the state again.
//!
//! Whoever leaves something for a seat marks its bell while it holds the state's lock, and rings it after
//! it has let go. The seat takes the ring under the lock, before it looks; the core has the protocol.

use regatta_core::port::{Park, Wake};
use regatta_core::time::Instant;
use regatta_core::wake::Doorbell;
use std::fmt;
use std::sync::Arc;

/// The bell of one seat.
pub(crate) struct Bell {
    bell: Doorbell,
    waker: Arc<dyn Wake + Send + Sync>,
}

impl Bell {
    pub(crate) fn new(waker: Arc<dyn Wake + Send + Sync>) -> Self {
        Self {
            bell: Doorbell::new(),
            waker,
        }
    }

    /// Under the lock: something was left for the seat.
    pub(crate) fn mark(&self) {
        self.bell.mark();
    }

    /// Outside the lock, after [`mark`](Self::mark).
    pub(crate) fn ring(&self) {
        self.bell.announce(&*self.waker);
    }

    /// Under the lock, by the seat, before it looks.
    pub(crate) fn silence(&self) {
        self.bell.take();
    }

    /// Blocks until the bell is rung, or until `deadline`.
    pub(crate) fn sleep(&self, park: &dyn Park, deadline: Option<Instant>) {
        self.bell.wait(park, deadline);
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}
