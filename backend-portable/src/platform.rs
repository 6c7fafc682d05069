//! What a backend brings to a fleet: how the threads of its seats sleep, and where they run.
//!
//! The fleet is the same on every platform; what differs is what a thread blocks in and on which CPUs it
//! may run. A backend says so in one place, [`SeatPlatform`].

use crate::clock::MonotonicClock;
use regatta_core::plan::Bindings;
use regatta_core::port::{Clock, Park, Wake};
use regatta_core::seat::SeatId;
use regatta_core::time::Instant;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Why a platform could not set a seat up.
pub type PlatformError = Box<dyn Error + Send + Sync>;

/// Sets the sleeping side of a seat up, on the thread that will sleep: what it blocks in may belong to
/// that thread alone.
pub type Enter = Box<dyn FnOnce() -> Result<Box<dyn Park>, PlatformError> + Send>;

/// How one seat sleeps and is woken.
pub struct Sleeper {
    /// Wakes the seat, from any thread.
    pub waker: Arc<dyn Wake + Send + Sync>,
    /// Called once on the seat's thread, before it does anything else.
    pub enter: Enter,
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeper").finish_non_exhaustive()
    }
}

/// A platform for the threads of seats.
pub trait SeatPlatform: Send + Sync {
    /// The bindings that a fleet may have here.
    fn bindings(&self) -> Bindings;

    /// How `seat` sleeps. Deadlines are instants of `clock`.
    fn sleeper(&self, seat: SeatId, clock: MonotonicClock) -> Result<Sleeper, PlatformError>;
}

/// The standard library: threads park, and run where the platform likes.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdPlatform;

impl SeatPlatform for StdPlatform {
    fn bindings(&self) -> Bindings {
        crate::BINDINGS
    }

    fn sleeper(&self, _: SeatId, clock: MonotonicClock) -> Result<Sleeper, PlatformError> {
        let thread = Arc::new(OnceLock::new());
        let of_waker = Arc::clone(&thread);
        Ok(Sleeper {
            waker: Arc::new(Unparker(of_waker)),
            enter: Box::new(move || {
                thread.get_or_init(std::thread::current);
                Ok(Box::new(Parker(clock)))
            }),
        })
    }
}

/// Unparks the thread that entered. Nobody who has not entered is parked, so a wake before that is for
/// nobody.
struct Unparker(Arc<OnceLock<Thread>>);

impl Wake for Unparker {
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

struct Parker(MonotonicClock);

impl Park for Parker {
    fn park(&self, deadline: Option<Instant>) {
        match deadline {
            None => std::thread::park(),
            Some(at) => std::thread::park_timeout(at.since(self.0.now()).into()),
        }
    }
}
