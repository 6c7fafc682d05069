//! How a worker sleeps and is woken: three ways to block, under the core's wake protocol.
//!
//! [`WakeWord`](regatta_core::wake::WakeWord) decides when a thread may block; this module gives it
//! something to block in. A [`Sleeper`] is a waker for everybody and a parker for one thread:
//!
//! ```
//! use regatta_core::wake::{Waited, WakeWord};
//! use regatta_linux::wake::{Sleeper, WakeKind, sleeper};
//! use regatta_portable::clock::MonotonicClock;
//!
//! let Sleeper { waker, parker } = sleeper(WakeKind::Futex, MonotonicClock::new())?;
//! let word = WakeWord::new();
//! // On the thread that waits:
//! let park = parker()?;
//! waker.wake();
//! assert_eq!(word.wait(&*park, None, || false), Waited::Unprompted);
//! # Ok::<(), regatta_linux::wake::WakeError>(())
//! ```
//!
//! # Invariants
//! - One token: a wake that comes before the block ends the block at once; several are as one.
//! - A block with a deadline does not end before it without a cause: a wake, or a descriptor.
//!   Signals are no cause. Deadlines are of the monotonic clock.
//! - Nothing is allocated and nothing spins while a thread parks or is woken.
//! - A parker is entered on the thread that waits, and what it gives stays there.

mod choice;
mod eventfd;
mod futex;
mod measure;
mod uring;
mod watched;

use regatta_core::port::{Park, Wake};
use regatta_portable::clock::MonotonicClock;
use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

pub use choice::{Offer, Picked, Refusal, WakeChoice, choose, offered};
pub use eventfd::{EventfdPark, EventfdWaker};
pub use futex::{FutexPark, FutexWaker};
pub use measure::{MeasureError, Measured, Placement, measure, measure_pair};
pub use uring::UringPark;
pub use watched::{MAX_WATCHED, Ready, WatchError};

/// A way to block and to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WakeKind {
    /// A word of memory that the kernel waits on.
    Futex,
    /// A counter behind a descriptor; waits for other descriptors too.
    Eventfd,
    /// The same counter, waited for through a ring of the waiting thread's own.
    IoUring,
}

impl WakeKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Futex, Self::Eventfd, Self::IoUring];

    /// The name, as in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
            Self::IoUring => "io_uring",
        }
    }

    /// Whether its parker can wait for descriptors.
    #[must_use]
    pub const fn takes_descriptors(self) -> bool {
        !matches!(self, Self::Futex)
    }
}

impl fmt::Display for WakeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text is no name of a wake.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("wake {text:?} is none: it takes {takes}")]
pub struct WakeNameError {
    /// The text.
    pub text: String,
    /// What it could have been.
    pub takes: &'static str,
}

impl FromStr for WakeKind {
    type Err = WakeNameError;

    fn from_str(text: &str) -> Result<Self, WakeNameError> {
        let named = Self::ALL.into_iter().find(|kind| kind.name() == text);
        named.ok_or_else(|| WakeNameError {
            text: text.to_owned(),
            takes: "futex, eventfd or io_uring",
        })
    }
}

/// A wake could not be set up.
#[derive(Debug, Error)]
pub enum WakeError {
    /// The kernel refused.
    #[error("{kind} wake: {step} was refused: {source}")]
    Refused {
        /// The kind of wake.
        kind: WakeKind,
        /// What was asked for.
        step: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The kernel has it, but is too old.
    #[error("{kind} wake: this kernel's lacks {feature}: it takes Linux {since} or later")]
    TooOld {
        /// The kind of wake.
        kind: WakeKind,
        /// What is missing.
        feature: &'static str,
        /// The first version that has it.
        since: &'static str,
    },
    /// The kind cannot wait for descriptors.
    #[error("{kind} wake: it cannot wait for descriptors: it takes eventfd or io_uring")]
    NoDescriptors {
        /// The kind of wake.
        kind: WakeKind,
    },
}

impl WakeError {
    fn refused(kind: WakeKind, step: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::Refused {
            kind,
            step,
            source: source.into(),
        }
    }
}

/// A [`Park`] that also waits for descriptors to become readable.
///
/// Descriptors are level-triggered: one that is readable, has hung up or is in error ends every block
/// until it is read empty or unwatched.
pub trait WatchPark: Park {
    /// Ends a block when `fd` is readable, and reports `token` then. At most [`MAX_WATCHED`] at a time.
    ///
    /// The descriptor should be non-blocking: a report says that it was readable, and somebody else may
    /// have read it since.
    fn watch(&mut self, fd: OwnedFd, token: u64) -> Result<(), WatchError>;

    /// Gives the descriptor of `token` back.
    fn unwatch(&mut self, token: u64) -> Result<OwnedFd, WatchError>;

    /// The tokens of the descriptors that the blocks since the last call found readable, each once.
    fn take_ready(&self) -> Ready;
}

/// Gives what the thread that waits parks in. Call it on that thread.
pub type Parker<P = dyn Park> = Box<dyn FnOnce() -> Result<Box<P>, WakeError> + Send>;

/// The two ends of a wake.
pub struct Sleeper<P: ?Sized = dyn Park> {
    /// Wakes the thread that waits, from any thread, before it waits too.
    pub waker: Arc<dyn Wake + Send + Sync>,
    /// What the thread that waits parks in.
    pub parker: Parker<P>,
}

impl<P: ?Sized> fmt::Debug for Sleeper<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeper").finish_non_exhaustive()
    }
}

/// A wake of this kind; its deadlines are instants of `clock`.
pub fn sleeper(kind: WakeKind, clock: MonotonicClock) -> Result<Sleeper, WakeError> {
    Ok(match kind {
        WakeKind::Futex => {
            let (waker, park) = FutexPark::pair(clock);
            Sleeper {
                waker,
                parker: Box::new(move || Ok(Box::new(park))),
            }
        }
        WakeKind::Eventfd => {
            let (waker, park) = EventfdPark::pair(clock)?;
            Sleeper {
                waker,
                parker: Box::new(move || Ok(Box::new(park))),
            }
        }
        WakeKind::IoUring => {
            let (waker, park) = EventfdPark::pair(clock)?;
            Sleeper {
                waker,
                parker: Box::new(move || Ok(Box::new(UringPark::enter(park)?))),
            }
        }
    })
}

/// A wake of this kind that can wait for descriptors too.
pub fn watch_sleeper(
    kind: WakeKind,
    clock: MonotonicClock,
) -> Result<Sleeper<dyn WatchPark>, WakeError> {
    if !kind.takes_descriptors() {
        return Err(WakeError::NoDescriptors { kind });
    }
    let (waker, park) = EventfdPark::pair(clock)?;
    let parker: Parker<dyn WatchPark> = match kind {
        WakeKind::IoUring => Box::new(move || Ok(Box::new(UringPark::enter(park)?))),
        _ => Box::new(move || Ok(Box::new(park))),
    };
    Ok(Sleeper { waker, parker })
}
