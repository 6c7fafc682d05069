//! Threads: where each is, and the wake word between them.
//!
//! A step of a thread is what no other thread can see half done: a critical section, a store, a look.
//! The wake word is that of the core with its two fences taken for granted, one memory operation a step;
//! that the fences give this is what the interleavings of the word itself prove.

use regatta_core::host::{ClosePhase, Grant};
use regatta_core::time::Instant;

/// The seats whose bells are yet to be rung, after the lock was let go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rings {
    /// A bit for each seat.
    pub(crate) seats: u64,
    /// The bell of the lowest is set, and its word not yet looked at.
    pub(crate) set: bool,
}

impl Rings {
    pub(crate) const fn of(seats: u64) -> Self {
        Self { seats, set: false }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.seats == 0
    }
}

/// What a seat's thread does after it has rung the bells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// It takes the lock again.
    Look,
    /// It runs the unit that it has started.
    Run { grant: Grant, unit: Option<usize> },
    /// It sleeps, until the deadline if it is the timekeeper.
    Sleep(Option<Instant>),
    /// It ends.
    End,
    /// It ends, as one that was taken for lost.
    Leave,
}

/// Where a seat's thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// Before the lock.
    Lock,
    /// Behind it.
    Ring(Rings, Then),
    /// In a unit.
    Run {
        grant: Grant,
        /// None if the payload was gone.
        unit: Option<usize>,
        ends: Instant,
    },
    /// About to say that it sleeps.
    Declare(Option<Instant>),
    /// About to look for its bell once more.
    Look(Option<Instant>),
    /// Asleep. The timer fires at the second instant, late or not.
    Blocked(Option<(Instant, Instant)>),
    /// Lost.
    Gone,
    /// At its end.
    Ended,
}

/// The wake word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    Working,
    Parked,
    Notified,
}

/// A seat's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thread {
    pub(crate) at: At,
    pub(crate) word: Word,
    /// The token of a park that was ended before it began.
    pub(crate) token: bool,
    /// It takes no step before.
    pub(crate) stalled: Instant,
    /// It comes out of a sleep because its timer has fired.
    pub(crate) timed: bool,
    /// It was taken for lost and still runs its unit.
    pub(crate) hung: bool,
}

impl Thread {
    pub(crate) const NEW: Self = Self {
        at: At::Lock,
        word: Word::Working,
        token: false,
        stalled: Instant::ORIGIN,
        timed: false,
        hung: false,
    };

    /// Whether it can take a step.
    pub(crate) fn can_step(&self, now: Instant) -> bool {
        self.stalled <= now
            && match self.at {
                At::Lock | At::Ring(..) | At::Declare(_) | At::Look(_) => true,
                At::Blocked(timer) => self.token || timer.is_some_and(|(_, fires)| fires <= now),
                At::Run { ends, .. } => ends <= now,
                At::Gone | At::Ended => false,
            }
    }

    /// The deadline with which it sleeps or is about to.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.at {
            At::Ring(_, Then::Sleep(deadline)) | At::Declare(deadline) | At::Look(deadline) => {
                deadline
            }
            At::Blocked(Some((deadline, _))) => Some(deadline),
            _ => None,
        }
    }

    /// Whether it will take the lock although no timer fires, given whether its bell is set, or is
    /// about to be.
    pub(crate) const fn will_look(&self, bell: bool, ringing: bool) -> bool {
        match self.at {
            At::Lock | At::Ring(_, Then::Look) => true,
            At::Ring(_, Then::Sleep(_)) | At::Declare(_) | At::Look(_) => bell || ringing,
            At::Blocked(_) => self.token || ringing,
            At::Ring(_, Then::Run { .. } | Then::End | Then::Leave)
            | At::Run { .. }
            | At::Gone
            | At::Ended => false,
        }
    }

    /// The bells that it has yet to ring.
    pub(crate) const fn rings(&self) -> u64 {
        match self.at {
            At::Ring(rings, _) => rings.seats,
            _ => 0,
        }
    }

    pub(crate) const fn is_alive(&self) -> bool {
        !matches!(self.at, At::Gone | At::Ended)
    }
}

/// What somebody outside the fleet brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bring {
    Submit(usize),
    Edge(u32),
    Resize(u8),
    /// The posture hears of the death of a seat.
    Died(usize),
    /// Then the host does.
    Buried(usize),
    Close(ClosePhase),
    Boundary,
    /// The quota ledger has room again, if nothing else was said since.
    Refilled(u32),
}

/// A thread outside the fleet that brings one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    pub(crate) bring: Option<Bring>,
    pub(crate) not_before: Instant,
    pub(crate) rings: Rings,
}
