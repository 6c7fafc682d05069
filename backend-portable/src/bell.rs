//! The bell of a seat: how it is told to look at the state again.
//!
//! Whoever leaves something for a seat sets its bell while it holds the state's lock, and rings it after
//! it has let go. The seat silences the bell under the lock, before it looks.
//!
//! # Invariants
//! - What was left before the bell was set is seen: the seat looks after that, or it is woken.
//! - A bell that has been silenced since it was set wakes nobody: the seat has looked.

use regatta_core::port::{Park, Wake};
use regatta_core::time::Instant;
use regatta_core::wake::WakeWord;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bell of one seat.
pub(crate) struct Bell {
    set: AtomicBool,
    word: WakeWord,
    waker: Arc<dyn Wake + Send + Sync>,
}

impl Bell {
    pub(crate) fn new(waker: Arc<dyn Wake + Send + Sync>) -> Self {
        Self {
            set: AtomicBool::new(false),
            word: WakeWord::new(),
            waker,
        }
    }

    /// Under the lock: something was left for the seat.
    pub(crate) fn set(&self) {
        // Relaxed: the lock orders this with the seat's look, and the word with its sleep.
        self.set.store(true, Ordering::Relaxed);
    }

    /// Outside the lock, after [`set`](Self::set).
    pub(crate) fn ring(&self) {
        if self.set.load(Ordering::Relaxed) {
            self.word.notify(&*self.waker);
        }
    }

    /// Under the lock, by the seat, before it looks.
    pub(crate) fn silence(&self) {
        self.set.store(false, Ordering::Relaxed);
    }

    /// Blocks until the bell is rung, or until `deadline`.
    pub(crate) fn sleep(&self, park: &dyn Park, deadline: Option<Instant>) {
        self.word
            .wait(park, deadline, || self.set.load(Ordering::Relaxed));
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}
