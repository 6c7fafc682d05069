//! The futex wake: a word of memory and the kernel's queue behind it.
//!
//! # Invariants
//! - The word is [`EMPTY`], [`TOKEN`] or [`PARKED`]; only the waiter writes [`EMPTY`] and [`PARKED`],
//!   only wakers write [`TOKEN`].
//! - A waker calls into the kernel only if the waiter is parked.
//! - The kernel compares the word with [`PARKED`] under its own lock before it blocks the thread, so a
//!   token that came in between is not slept over, whichever thread came first.

#![expect(
    unsafe_code,
    reason = "neither std nor nix offers a futex with an absolute deadline"
)]

use regatta_core::port::{Clock, Park, Wake};
use regatta_core::time::Instant;
use regatta_portable::clock::MonotonicClock;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
/// One less than [`EMPTY`], so that a single subtraction takes a token or declares the thread parked.
const PARKED: u32 = u32::MAX;

/// Tries at reading two clocks at once.
const TRIES: usize = 8;

const NANOS: u64 = 1_000_000_000;

/// The waker's end of a futex wake.
#[derive(Debug, Default)]
pub struct FutexWaker {
    word: AtomicU32,
}

/// The waiting thread's end of a futex wake. It can move to the thread that waits, and is used by one at
/// a time.
#[derive(Debug)]
pub struct FutexPark {
    shared: Arc<FutexWaker>,
    clock: MonotonicClock,
    /// The origin of `clock` on the kernel's monotonic clock, in nanoseconds; never too early.
    origin: u64,
    /// The word has one waiter.
    one: PhantomData<Cell<()>>,
}

/// A time as this system call takes it, whatever the C library's idea of one is.
#[repr(C)]
struct KernelTime {
    seconds: libc::c_long,
    nanos: libc::c_long,
}

impl FutexPark {
    /// The two ends of a futex wake whose deadlines are instants of `clock`.
    #[must_use]
    pub fn pair(clock: MonotonicClock) -> (Arc<FutexWaker>, Self) {
        let shared = Arc::new(FutexWaker::default());
        let park = Self {
            shared: Arc::clone(&shared),
            clock,
            origin: origin(clock),
            one: PhantomData,
        };
        (shared, park)
    }

    fn kernel_time(&self, at: Instant) -> KernelTime {
        let ns = self.origin.saturating_add(at.as_nanos());
        KernelTime {
            // Further ahead than the type can say is further than anybody waits: the loop comes again.
            seconds: libc::c_long::try_from(ns / NANOS).unwrap_or(libc::c_long::MAX),
            nanos: libc::c_long::try_from(ns % NANOS).unwrap_or_default(),
        }
    }
}

impl Park for FutexPark {
    fn park(&self, deadline: Option<Instant>) {
        let word = &self.shared.word;
        // Acquire, here and below: what the waker wrote before is visible with its token.
        if word.fetch_sub(1, Ordering::Acquire) == TOKEN {
            return;
        }
        let until = deadline.map(|at| self.kernel_time(at));
        loop {
            wait(word, until.as_ref());
            if word.load(Ordering::Relaxed) != PARKED
                || deadline.is_some_and(|at| self.clock.now() >= at)
            {
                break;
            }
        }
        // A token that came with the deadline is taken with it.
        word.swap(EMPTY, Ordering::Acquire);
    }
}

impl Wake for FutexWaker {
    fn wake(&self) {
        if self.word.swap(TOKEN, Ordering::Release) == PARKED {
            wake_one(&self.word);
        }
    }
}

/// The origin of `clock` on the kernel's monotonic clock. The two are read one after the other, so it is
/// late by the time in between: the shortest of a few.
fn origin(clock: MonotonicClock) -> u64 {
    let read = |_| {
        let before = kernel_now();
        let of_clock = clock.now().as_nanos();
        let after = kernel_now();
        (after - before, after.saturating_sub(of_clock))
    };
    (0..TRIES).map(read).min().map_or(0, |(_, origin)| origin)
}

/// The kernel's monotonic clock, in nanoseconds.
fn kernel_now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes one `timespec` to where one is. It cannot fail for a clock that every kernel has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * NANOS + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// Blocks while `word` is [`PARKED`], until woken, until a time of the monotonic clock, or until a signal.
fn wait(word: &AtomicU32, until: Option<&KernelTime>) {
    let until = until.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time, if there is one, live until the call returns; the kernel reads both
    // and writes neither. The result says nothing that the caller does not look at itself.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            PARKED,
            until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
}

/// Wakes the thread that waits on `word`, if one does.
fn wake_one(word: &AtomicU32) {
    // SAFETY: the kernel takes the address as a key and reads nothing through it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}
