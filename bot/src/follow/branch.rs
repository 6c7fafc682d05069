//! What was said of the last blocks of the chain.
//!
//! # Invariants
//! - The blocks are those of the world's journal, oldest first: a block that the world can revert is here with all
//!   that was published for it, and what is not here cannot be reverted.
//! - A block waits from when it came until it ran or was said to be missed: exactly one of the two.

use crate::pipeline::JOURNAL_DEPTH;
use crate::source::BlockHash;
use std::collections::VecDeque;

/// A record that was published, less the block's part of its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Published {
    pub(super) kind: &'static str,
    pub(super) path: String,
}

/// A block of the chain.
#[derive(Debug)]
struct Known {
    number: u64,
    hash: BlockHash,
    published: Vec<Published>,
}

/// A block that came and has not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) hash: BlockHash,
    /// It was reverted before it ran.
    pub(super) orphaned: bool,
}

/// The last blocks of the chain, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Branch {
    blocks: VecDeque<Known>,
    /// In the order in which they came.
    waiting: Vec<Waiting>,
}

impl Branch {
    /// A block came, and waits.
    pub(super) fn came(&mut self, number: u64, hash: BlockHash) {
        if self.blocks.len() == JOURNAL_DEPTH {
            self.blocks.pop_front();
        }
        self.blocks.push_back(Known {
            number,
            hash,
            published: Vec::new(),
        });
        self.waiting.push(Waiting {
            number,
            hash,
            orphaned: false,
        });
    }

    /// The market was read anew at a block, which waits. What was published for that block before, in that order:
    /// it is from a market that was not known. Blocks before it cannot be reverted any more.
    pub(super) fn reread(&mut self, number: u64, hash: BlockHash) -> Vec<Published> {
        let before = self.blocks.drain(..).filter(|block| block.hash == hash);
        let published = before.flat_map(|block| block.published).collect();
        self.came(number, hash);
        published
    }

    /// The last block was reverted: what was published for it, in that order.
    pub(super) fn reverted(&mut self, hash: BlockHash) -> Vec<Published> {
        let last = self.blocks.pop_back_if(|last| last.hash == hash);
        let mut waiting = self.waiting.iter_mut().rev();
        if let Some(waiting) = waiting.find(|block| block.hash == hash && !block.orphaned) {
            waiting.orphaned = true;
        }
        last.map_or_else(Vec::new, |last| last.published)
    }

    /// The last block ran, and this was published for it. The blocks that waited with it are missed.
    pub(super) fn ran(
        &mut self,
        published: Vec<Published>,
    ) -> impl Iterator<Item = Waiting> + use<'_> {
        if let Some(last) = self.blocks.back_mut() {
            last.published = published;
        }
        let last = self.waiting.pop();
        debug_assert!(last.is_some_and(|last| !last.orphaned));
        self.waiting.drain(..)
    }

    /// Nothing that waits will run: all of it is missed.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Waiting> + use<'_> {
        self.waiting.drain(..)
    }

    /// The last block.
    pub(super) fn last(&self) -> Option<(u64, BlockHash)> {
        self.blocks.back().map(|last| (last.number, last.hash))
    }

    /// How many wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
