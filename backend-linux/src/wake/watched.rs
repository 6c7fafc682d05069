//! The descriptors that a block waits for, and which of them it found readable.
//!
//! # Invariants
//! - At most [`MAX_WATCHED`], in slots that do not move: a slot's index names its descriptor.
//! - No two slots have the same token.
//! - A mark of a slot that is emptied goes with it.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thiserror::Error;

/// The most descriptors that a parker waits for, beside its own.
pub const MAX_WATCHED: usize = 16;

/// A descriptor was not taken, or is not there.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WatchError {
    /// Every slot is taken.
    #[error(
        "descriptor of token {token}: {MAX_WATCHED} are watched already, and that is the most: unwatch one first"
    )]
    Full {
        /// The token of the one too many.
        token: u64,
    },
    /// The token is another descriptor's.
    #[error(
        "token {token} is that of a descriptor that is watched already: it takes one of its own"
    )]
    Taken {
        /// The token.
        token: u64,
    },
    /// No descriptor has the token.
    #[error("token {token} is that of no descriptor that is watched")]
    Unknown {
        /// The token.
        token: u64,
    },
}

#[derive(Debug)]
struct Slot {
    fd: OwnedFd,
    token: u64,
}

/// The descriptors and their marks.
#[derive(Debug, Default)]
pub(super) struct Watched {
    slots: [Option<Slot>; MAX_WATCHED],
    /// A bit for each slot: found readable since it was last asked.
    ready: Cell<u32>,
}

impl Watched {
    /// Takes a descriptor; the slot that it got.
    pub(super) fn insert(&mut self, fd: OwnedFd, token: u64) -> Result<usize, WatchError> {
        if self.find(token).is_some() {
            return Err(WatchError::Taken { token });
        }
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.ok_or(WatchError::Full { token })?;
        self.slots[slot] = Some(Slot { fd, token });
        Ok(slot)
    }

    /// Gives a descriptor up, with the slot that it had.
    pub(super) fn remove(&mut self, token: u64) -> Result<(usize, OwnedFd), WatchError> {
        let unknown = WatchError::Unknown { token };
        let Some(slot) = self.find(token) else {
            return Err(unknown);
        };
        self.ready.set(self.ready.get() & !(1 << slot));
        let emptied = self.slots[slot].take().ok_or(unknown)?;
        Ok((slot, emptied.fd))
    }

    /// The descriptors with their slots, in the order of the slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, taken)| Some((slot, taken.as_ref()?.fd.as_fd())))
    }

    /// Marks the descriptor in `slot` as readable.
    pub(super) fn mark(&self, slot: usize) {
        self.ready.set(self.ready.get() | 1 << slot);
    }

    /// Takes the marks.
    pub(super) fn take_ready(&self) -> Ready {
        let marks = self.ready.take();
        let mut ready = Ready::default();
        for (slot, taken) in self.slots.iter().enumerate() {
            if let Some(taken) = taken
                && marks & 1 << slot != 0
            {
                ready.tokens[ready.end] = taken.token;
                ready.end += 1;
            }
        }
        ready
    }

    fn find(&self, token: u64) -> Option<usize> {
        let has = |taken: &Option<Slot>| taken.as_ref().is_some_and(|slot| slot.token == token);
        self.slots.iter().position(has)
    }
}

/// The tokens of descriptors that were found readable, each once.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    tokens: [u64; MAX_WATCHED],
    next: usize,
    end: usize,
}

impl Iterator for Ready {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let token = *self.tokens[..self.end].get(self.next)?;
        self.next += 1;
        Some(token)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Ready {}
