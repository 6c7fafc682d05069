//! The wake word: how a thread goes to sleep without missing what it sleeps for.
//!
//! A waiter declares that it parks, looks once more for work, and only then blocks. A waker publishes
//! work, and only then looks whether anybody is parked. Each side writes one word and reads the
//! other's, so on both sides a full fence must stand between the write and the read; without it both
//! reads can miss both writes and the waiter sleeps for ever.
//!
//! Declaring before blocking also tells a watchdog the truth: a parked thread is not a stalled one.
//!
//! # Invariants
//! - Work published before [`WakeWord::notify`] is seen by the waiter's look, or the waiter is woken.
//! - Wakes coalesce: any number of notifications while the waiter is parked wake it once, and it
//!   looks for all of the work. A notification while it is working costs a fence and a load.
//! - One waiter at a time per word; any number of wakers.

use crate::port::{Park, Wake};
use crate::time::Instant;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

const WORKING: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// Why [`WakeWord::wait`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Waited {
    /// There was work already; the thread did not block.
    Work,
    /// A notification came.
    Notified,
    /// The block ended without a notification: the deadline came, or the platform returned early.
    Unprompted,
}

/// The word that a waiter and its wakers share. See the [module documentation](self).
#[derive(Debug)]
pub struct WakeWord(AtomicU32);

impl Default for WakeWord {
    fn default() -> Self {
        Self::new()
    }
}

impl WakeWord {
    /// A word whose waiter is working.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(WORKING))
    }

    /// A word whose waiter is working.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(WORKING))
    }

    /// Blocks until notified or until `deadline`, unless `has_work` finds something after the thread
    /// has declared that it parks. `has_work` may read with relaxed ordering.
    pub fn wait<P: Park + ?Sized>(
        &self,
        platform: &P,
        deadline: Option<Instant>,
        has_work: impl FnOnce() -> bool,
    ) -> Waited {
        // Release: what this thread wrote before is visible to whoever wakes it.
        self.0.store(PARKED, Ordering::Release);
        // Pairs with the fence in `notify`: of the two looks, at least one sees the other's write.
        fence(Ordering::SeqCst);
        let found = has_work();
        if !found {
            platform.park(deadline);
        }
        // Acquire: what the notifier published is visible once its mark is.
        match (found, self.0.swap(WORKING, Ordering::Acquire)) {
            (true, _) => Waited::Work,
            (false, NOTIFIED) => Waited::Notified,
            (false, _) => Waited::Unprompted,
        }
    }

    /// Wakes the waiter if it is parked. Call it after the work is published; relaxed stores will do.
    /// Returns whether a wake was sent.
    pub fn notify<W: Wake + ?Sized>(&self, platform: &W) -> bool {
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        let parked = self.0.load(Ordering::Relaxed) == PARKED
            && self
                .0
                .compare_exchange(PARKED, NOTIFIED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if parked {
            platform.wake();
        }
        parked
    }

    /// Whether the waiter has declared that it parks and has not been notified since.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.0.load(Ordering::Relaxed) == PARKED
    }
}

/// A bell beside a door: a [`WakeWord`] and a flag that says whether somebody rang.
///
/// For a waiter whose work is elsewhere, such as in a mailbox behind a lock. Who brings something puts it
/// there and rings; the waiter waits, takes the ring, and then looks at all there is.
///
/// # Invariants
/// - A ring stays until it is taken; any number of rings are as one.
/// - What was written before a ring, however many rings came since, is visible to who takes it.
#[derive(Debug)]
pub struct Doorbell {
    word: WakeWord,
    rung: AtomicBool,
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

impl Doorbell {
    /// A bell that nobody rang.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            word: WakeWord::new(),
            rung: AtomicBool::new(false),
        }
    }

    /// A bell that nobody rang.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: WakeWord::new(),
            rung: AtomicBool::new(false),
        }
    }

    /// Rings, and wakes the waiter if it is parked. Returns whether a wake was sent.
    pub fn ring<W: Wake + ?Sized>(&self, platform: &W) -> bool {
        self.mark();
        self.word.notify(platform)
    }

    /// The first half of a ring: the waiter will not block any more, and is not woken yet if it does.
    ///
    /// For who brings something under a lock that the waiter takes before it looks: mark under the lock,
    /// and [`announce`](Self::announce) once it is free, so that nobody is woken only to wait for it.
    pub fn mark(&self) {
        // A swap and no store: it carries the rings before it on to who takes this one.
        self.rung.swap(true, Ordering::Release);
    }

    /// The second half of a ring. A waiter that has taken the mark meanwhile has looked, and is left
    /// alone. Returns whether a wake was sent.
    pub fn announce<W: Wake + ?Sized>(&self, platform: &W) -> bool {
        self.rung.load(Ordering::Relaxed) && self.word.notify(platform)
    }

    /// Blocks until somebody rings or until `deadline`, unless somebody rang already. It takes no ring.
    pub fn wait<P: Park + ?Sized>(&self, platform: &P, deadline: Option<Instant>) -> Waited {
        let rung = || self.rung.load(Ordering::Relaxed);
        self.word.wait(platform, deadline, rung)
    }

    /// Takes the ring, if there is one. Look for what was brought after this, never before.
    pub fn take(&self) -> bool {
        self.rung.swap(false, Ordering::Acquire)
    }

    /// Whether the waiter has declared that it parks and has not been woken since.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.word.is_parked()
    }
}
