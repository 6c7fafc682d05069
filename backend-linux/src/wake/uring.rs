//! The `io_uring` wake: the eventfd's counter and the other descriptors, waited for through a ring.
//!
//! One call hands in what is not armed yet, waits for the first completion or the deadline, and returns.
//! The counter is polled by one multishot request that stays armed over many blocks. A descriptor is
//! polled by a request that ends with its first completion and is handed in again by the next block:
//! arming looks at the descriptor, which makes it level-triggered.
//!
//! # Invariants
//! - A ring belongs to the thread that made it, which is what its kernel-side shortcuts rest on. The type
//!   cannot be sent to another:
//!
//!   ```compile_fail
//!   fn sent<T: Send>() {}
//!   sent::<regatta_linux::wake::UringPark>();
//!   ```
//! - Before a block, every request that ended is armed again, and every completion that is there is read.
//!   So a full completion ring delays nothing: the kernel keeps what did not fit until there is room.
//! - The counter is read when its request completes, before the thread blocks again; a completion whose
//!   counter is zero is no wake.
//! - A completion counts only for the request that its slot has now, by a generation.
//! - A ring that fails is given up, loudly, and the same counter is waited for by `ppoll`.

use super::eventfd::EventfdPark;
use super::watched::{MAX_WATCHED, Ready, WatchError};
use super::{WakeError, WakeKind, WatchPark};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, cqueue, opcode, squeue};
use regatta_core::port::{Clock, Park};
use regatta_core::time::Instant;
use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Entries of the submission ring: as many as one block can hand in, and the completion ring has twice
/// as many. Fewer would do, with more calls.
const ENTRIES: u32 = 32;

/// The counter's request.
const COUNTER: u64 = u64::MAX;

/// Requests whose completion says nothing.
const IGNORED: u64 = u64::MAX - 1;

/// What an eventfd and a socket say when they can be read.
const READABLE: u32 = libc::POLLIN as u32;

/// The waiting thread's end of an `io_uring` wake. The waker's end is the eventfd's.
pub struct UringPark {
    /// The counter, the descriptors and the marks; what waits when the ring is given up.
    base: EventfdPark,
    /// `None` once it was given up.
    ring: RefCell<Option<Ring>>,
    /// Not to be sent: see the module's invariants.
    owner: PhantomData<*const ()>,
}

impl std::fmt::Debug for UringPark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringPark")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// A ring and what is armed in it.
struct Ring {
    io: IoUring,
    counter_armed: bool,
    slots: [Request; MAX_WATCHED],
}

/// The request of a slot.
#[derive(Clone, Copy, Default)]
struct Request {
    armed: bool,
    /// Told apart from the requests of descriptors that had the slot before.
    generation: u32,
}

impl Request {
    fn user_data(self, slot: usize) -> u64 {
        // `slot` is below `MAX_WATCHED`, so this is neither of the two names above.
        (u64::from(self.generation) << 8) | slot as u64
    }
}

impl UringPark {
    /// Makes the ring of the calling thread, which is the one that waits. The waker is the one that came
    /// with `base`.
    pub fn enter(base: EventfdPark) -> Result<Self, WakeError> {
        Self::with_rings(base, ENTRIES, 2 * ENTRIES)
    }

    /// With this many entries of the two rings.
    fn with_rings(
        base: EventfdPark,
        submissions: u32,
        completions: u32,
    ) -> Result<Self, WakeError> {
        let ring = Ring {
            io: ring(submissions, completions)?,
            counter_armed: false,
            slots: [Request::default(); MAX_WATCHED],
        };
        Ok(Self {
            base,
            ring: RefCell::new(Some(ring)),
            owner: PhantomData,
        })
    }
}

/// Does something with a ring, and gives it up if that fails. Whether it was done.
fn with(ring: &mut Option<Ring>, run: impl FnOnce(&mut Ring) -> io::Result<()>) -> bool {
    let Some(open) = ring else {
        return false;
    };
    let done = run(open);
    if let Err(error) = &done {
        tracing::warn!(%error, "the ring of an io_uring wake failed: its thread waits by ppoll from now on");
        *ring = None;
    }
    done.is_ok()
}

impl Park for UringPark {
    fn park(&self, deadline: Option<Instant>) {
        let ring = &mut *self.ring.borrow_mut();
        if !with(ring, |ring| ring.block(&self.base, deadline)) {
            self.base.park(deadline);
        }
    }
}

impl WatchPark for UringPark {
    fn watch(&mut self, fd: OwnedFd, token: u64) -> Result<(), WatchError> {
        let slot = self.base.watched_mut().insert(fd, token)?;
        if let Some(ring) = self.ring.get_mut() {
            let request = &mut ring.slots[slot];
            request.generation = request.generation.wrapping_add(1);
        }
        Ok(())
    }

    fn unwatch(&mut self, token: u64) -> Result<OwnedFd, WatchError> {
        let (slot, fd) = self.base.watched_mut().remove(token)?;
        // At once, and not with the next block: until then the kernel keeps the file open.
        with(self.ring.get_mut(), |ring| ring.disarm(slot));
        Ok(fd)
    }

    fn take_ready(&self) -> Ready {
        self.base.take_ready()
    }
}

impl Ring {
    fn block(&mut self, base: &EventfdPark, deadline: Option<Instant>) -> io::Result<()> {
        let mut entered = false;
        loop {
            let came = self.reap(base)?;
            let now = || base.clock().now();
            if came || entered && deadline.is_some_and(|at| now() >= at) {
                return Ok(());
            }
            let left = deadline.map(|at| at.since(now()));
            let left = left.map(|left| Timespec::from(std::time::Duration::from(left)));
            if let Err(error) = self.arm(base).and_then(|()| self.enter(left.as_ref())) {
                match error.raw_os_error() {
                    // The time is over; a signal; completions have to be read before more is handed in.
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY) => {}
                    _ => return Err(error),
                }
            }
            entered = true;
        }
    }

    /// Hands in what was pushed and waits for a completion, for as long as `left`.
    fn enter(&self, left: Option<&Timespec>) -> io::Result<()> {
        let mut flags = EnterFlags::empty();
        if self.io.params().is_feature_no_iowait() {
            // A parked thread waits for work, not for a disk: it is not to be counted as one that does.
            flags |= EnterFlags::NO_IOWAIT;
        }
        let mut args = SubmitArgs::new();
        if let Some(left) = left {
            args = args.timespec(left);
        }
        let submitter = self.io.submitter();
        submitter
            .submit_with_args_and_flags(1, &args, flags)
            .map(drop)
    }

    /// Reads every completion. Whether one of them ends the block.
    fn reap(&mut self, base: &EventfdPark) -> io::Result<bool> {
        let (mut woken, mut ready) = (false, false);
        for entry in self.io.completion() {
            let (name, result) = (entry.user_data(), entry.result());
            if name == COUNTER {
                self.counter_armed &= cqueue::more(entry.flags());
                if result < 0 && result != -libc::ECANCELED {
                    return Err(io::Error::from_raw_os_error(-result));
                }
                woken = true;
                continue;
            }
            let slot = (name & 0xff) as usize;
            let Some(request) = self.slots.get_mut(slot) else {
                continue;
            };
            if request.armed && request.user_data(slot) == name {
                request.armed = false;
                // An error is for whoever reads the descriptor, as it is with `ppoll`.
                if result != -libc::ECANCELED {
                    base.watched().mark(slot);
                    ready = true;
                }
            }
        }
        // A wake may have been read together with the one before it.
        Ok(woken && base.take_token() || ready)
    }

    /// Pushes what is not armed.
    fn arm(&mut self, base: &EventfdPark) -> io::Result<()> {
        if !self.counter_armed {
            self.push(&poll(base.counter(), true).user_data(COUNTER))?;
            self.counter_armed = true;
        }
        for (slot, fd) in base.watched().iter() {
            let request = self.slots[slot];
            if !request.armed {
                self.push(&poll(fd, false).user_data(request.user_data(slot)))?;
                self.slots[slot].armed = true;
            }
        }
        Ok(())
    }

    /// Takes the request of a slot back.
    fn disarm(&mut self, slot: usize) -> io::Result<()> {
        let request = self.slots[slot];
        self.slots[slot].armed = false;
        if request.armed {
            let remove = opcode::PollRemove::new(request.user_data(slot)).build();
            self.push(&remove.user_data(IGNORED))?;
            // It completes at once. Waiting for that has the kernel free what was taken back, which keeps
            // the file open until then.
            self.io.submit_and_wait(1)?;
        }
        Ok(())
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            #[expect(
                unsafe_code,
                reason = "a pushed request is read by the kernel: the crate leaves its validity to the caller"
            )]
            // SAFETY: a poll request and its removal name a descriptor or a number, and no memory. The
            // descriptor is open until the entry is handed in, when the kernel takes a reference of its
            // own: it leaves the table only through `disarm`, which hands in all that was pushed, or else
            // the ring is closed.
            let pushed = unsafe { self.io.submission().push(entry) };
            if pushed.is_ok() {
                return Ok(());
            }
            self.io.submit()?;
        }
    }
}

fn poll(fd: BorrowedFd<'_>, multi: bool) -> squeue::Entry {
    opcode::PollAdd::new(Fd(fd.as_raw_fd()), READABLE)
        .multi(multi)
        .build()
}

/// What a kernel may have for rings of one thread, the best first; each came with a later version.
const SHORTCUTS: [fn(&mut Builder) -> &mut Builder; 4] = [
    |builder| builder.setup_single_issuer().setup_defer_taskrun(),
    |builder| builder.setup_single_issuer().setup_coop_taskrun(),
    |builder| builder.setup_coop_taskrun(),
    |builder| builder,
];

/// A ring of the calling thread, with what shortcuts the kernel has.
fn ring(submissions: u32, completions: u32) -> Result<IoUring, WakeError> {
    let set_up = |shortcut: fn(&mut Builder) -> &mut Builder| {
        let mut builder = IoUring::builder();
        shortcut(builder.dontfork().setup_cqsize(completions)).build(submissions)
    };
    let mut outcome = set_up(SHORTCUTS[0]);
    for shortcut in &SHORTCUTS[1..] {
        match outcome {
            // A flag that it does not know.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => outcome = set_up(*shortcut),
            _ => break,
        }
    }
    let io = outcome.map_err(|error| WakeError::refused(WakeKind::IoUring, "a ring", error))?;
    let parameters = io.params();
    let needed = [
        (
            parameters.is_feature_nodrop(),
            "completions that are never dropped",
            "5.5",
        ),
        (
            parameters.is_feature_ext_arg(),
            "waiting with a deadline",
            "5.11",
        ),
        // They came with the same version, and multishot has no mark of its own.
        (
            parameters.is_feature_resource_tagging(),
            "multishot polls",
            "5.13",
        ),
    ];
    match needed.into_iter().find(|(has, ..)| !has) {
        None => Ok(io),
        Some((_, feature, since)) => Err(WakeError::TooOld {
            kind: WakeKind::IoUring,
            feature,
            since,
        }),
    }
}

/// Whether the kernel gives a ring now.
pub(super) fn probe() -> Result<(), WakeError> {
    ring(1, 1).map(drop)
}

#[cfg(test)]
mod tests;
