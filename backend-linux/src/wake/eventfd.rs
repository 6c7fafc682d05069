//! The eventfd wake: a counter behind a descriptor, waited for with others by `ppoll`.
//!
//! # Invariants
//! - The token is the counter: it is set while the counter is not zero, and taken by reading it.
//! - Waiting is level-triggered: a counter that is not zero when the block begins ends it.

use super::watched::{MAX_WATCHED, Ready, WatchError, Watched};
use super::{WakeError, WakeKind, WatchPark};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use regatta_core::port::{Clock, Park, Wake};
use regatta_core::time::{Duration, Instant};
use regatta_portable::clock::MonotonicClock;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The waker's end of an eventfd wake, and of one that is waited for by `io_uring`.
#[derive(Debug)]
pub struct EventfdWaker {
    counter: EventFd,
}

impl EventfdWaker {
    /// A counter at zero.
    fn new() -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let counter = EventFd::from_flags(flags)?;
        Ok(Self { counter })
    }
}

impl Wake for EventfdWaker {
    fn wake(&self) {
        // Refused only when the counter is at its limit, and then the token is set.
        let _: Result<usize, Errno> = self.counter.write(1);
    }
}

/// The waiting thread's end of an eventfd wake.
#[derive(Debug)]
pub struct EventfdPark {
    shared: Arc<EventfdWaker>,
    clock: MonotonicClock,
    watched: Watched,
}

impl EventfdPark {
    /// The two ends of an eventfd wake whose deadlines are instants of `clock`.
    pub fn pair(clock: MonotonicClock) -> Result<(Arc<EventfdWaker>, Self), WakeError> {
        let shared = EventfdWaker::new()
            .map_err(|errno| WakeError::refused(WakeKind::Eventfd, "an eventfd", errno))?;
        let shared = Arc::new(shared);
        let park = Self {
            shared: Arc::clone(&shared),
            clock,
            watched: Watched::default(),
        };
        Ok((shared, park))
    }

    pub(super) fn clock(&self) -> MonotonicClock {
        self.clock
    }

    pub(super) fn counter(&self) -> BorrowedFd<'_> {
        self.shared.counter.as_fd()
    }

    pub(super) fn watched(&self) -> &Watched {
        &self.watched
    }

    pub(super) fn watched_mut(&mut self) -> &mut Watched {
        &mut self.watched
    }

    /// Takes the token; whether it was set.
    pub(super) fn take_token(&self) -> bool {
        self.shared.counter.read().is_ok()
    }
}

/// Whether the kernel gives an eventfd now.
pub(super) fn probe() -> Result<(), WakeError> {
    EventfdPark::pair(MonotonicClock::new()).map(drop)
}

impl Park for EventfdPark {
    fn park(&self, deadline: Option<Instant>) {
        let mut polled: heapless::Vec<PollFd<'_>, { MAX_WATCHED + 1 }> = heapless::Vec::new();
        let mut slots = [0; MAX_WATCHED];
        // There is room for all: the table has `MAX_WATCHED` slots.
        let _ = polled.push(PollFd::new(self.counter(), PollFlags::POLLIN));
        for ((slot, fd), at) in self.watched.iter().zip(&mut slots) {
            *at = slot;
            let _ = polled.push(PollFd::new(fd, PollFlags::POLLIN));
        }
        loop {
            let left = deadline.map(|at| at.since(self.clock.now()));
            match ppoll(&mut polled, left.map(time_spec), None) {
                // Cut short by a time that is longer than the type can say, or by a signal.
                Ok(0) if deadline.is_none_or(|at| self.clock.now() < at) => {}
                Err(Errno::EINTR) => {}
                // What the kernel refuses for want of memory is an early return: the caller comes again.
                Ok(0) | Err(_) => return,
                Ok(_) => break,
            }
        }
        let came = |polled: &PollFd<'_>| polled.any() != Some(false);
        if polled.first().is_some_and(came) {
            self.take_token();
        }
        for (polled, slot) in polled.iter().skip(1).zip(slots) {
            if came(polled) {
                self.watched.mark(slot);
            }
        }
    }
}

impl WatchPark for EventfdPark {
    fn watch(&mut self, fd: OwnedFd, token: u64) -> Result<(), WatchError> {
        self.watched.insert(fd, token).map(drop)
    }

    fn unwatch(&mut self, token: u64) -> Result<OwnedFd, WatchError> {
        self.watched.remove(token).map(|(_, fd)| fd)
    }

    fn take_ready(&self) -> Ready {
        self.watched.take_ready()
    }
}

fn time_spec(left: Duration) -> TimeSpec {
    TimeSpec::from_duration(left.into())
}
