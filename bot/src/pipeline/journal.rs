//! What takes the last blocks back.
//!
//! # Invariants
//! - The journal holds the last blocks that were applied and not reverted, oldest first, at most
//!   [`JOURNAL_DEPTH`] of them. Only the last can be taken off.
//! - The inverse updates of the entries lie one after the other, in the order in which their updates were
//!   made.

use crate::market::{PoolId, ReserveUpdate};
use crate::source::BlockHash;
use std::collections::VecDeque;

/// How many blocks can be reverted one after the other.
///
/// Four epochs of Ethereum: the chain finalises what is two to three epochs (of 32 slots) old, and a
/// finalised block is not reverted. A source remembers no more than that either.
pub const JOURNAL_DEPTH: usize = 128;

/// Updates that there is room for from the start: a warm pump does not allocate for 32 of them a block.
const ROOM: usize = 32 * JOURNAL_DEPTH;

/// A block in the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) hash: BlockHash,
    /// How many of the inverse updates are its own.
    updates: usize,
    /// Whether the market was read anew at it, so that what it takes back is not the state of its parent.
    pub(super) reread: bool,
    /// What a run still owed when it was applied: touched by blocks before it that had not run.
    pub(super) owed: Vec<PoolId>,
}

/// The last blocks and what takes them back.
#[derive(Debug)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    inverse: VecDeque<ReserveUpdate>,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::with_capacity(JOURNAL_DEPTH),
            inverse: VecDeque::with_capacity(ROOM),
        }
    }

    /// A block begins. The oldest is forgotten if there are too many.
    pub(super) fn begin(&mut self, number: u64, hash: BlockHash, owed: Vec<PoolId>) {
        if self.entries.len() == JOURNAL_DEPTH
            && let Some(oldest) = self.entries.pop_front()
        {
            self.inverse.drain(..oldest.updates);
        }
        self.entries.push_back(Entry {
            number,
            hash,
            updates: 0,
            reread: false,
            owed,
        });
    }

    /// Forgets all blocks, and begins one that the market is read anew at.
    pub(super) fn restart(&mut self, number: u64, hash: BlockHash, owed: Vec<PoolId>) {
        self.entries.clear();
        self.inverse.clear();
        self.begin(number, hash, owed);
        if let Some(entry) = self.entries.back_mut() {
            entry.reread = true;
        }
    }

    /// The last block has made an update, which `inverse` takes back.
    pub(super) fn push(&mut self, inverse: ReserveUpdate) {
        if let Some(entry) = self.entries.back_mut() {
            entry.updates += 1;
            self.inverse.push_back(inverse);
        }
    }

    /// The last block.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// Takes an update off the last block: the newest that is left.
    pub(super) fn pop_update(&mut self) -> Option<ReserveUpdate> {
        let entry = self.entries.back_mut()?;
        entry.updates = entry.updates.checked_sub(1)?;
        self.inverse.pop_back()
    }

    /// Takes off the last block, whose updates have been taken off.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_back()
    }
}
