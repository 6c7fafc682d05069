//! The last blocks that were said, and the way from a head down to them.
//!
//! # Invariants
//! - Each block of the journal is the parent of the one after it, by hash, and its number is one less.
//! - A way from a head goes down by one number a step and ends at the journal's bottom at the latest, or when it is longer
//!   than what may be filled in: headers that name each other as parents cannot hold it up.

use std::collections::{BTreeMap, VecDeque};

use alloy_primitives::B256;

use crate::types::{Header, Log};

/// A block that was said.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub(super) header: Header,
    /// Its logs; none for a block at which the pools were read.
    pub(super) logs: Option<Vec<Log>>,
}

/// The last blocks that were said.
#[derive(Clone, Default, Debug)]
pub(super) struct Journal {
    blocks: VecDeque<Applied>,
}

/// How a head hangs together with the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It builds on the block at this place of the journal, over these blocks, lowest first.
    Linked {
        /// The place of the common ancestor.
        ancestor: usize,
        /// The blocks above it.
        path: Vec<B256>,
    },
    /// The header of this hash is needed, and has this number.
    Missing {
        /// The hash.
        hash: B256,
        /// The number.
        number: u64,
        /// The blocks above it.
        path: Vec<B256>,
    },
    /// It cannot be followed block by block. So many of the newest blocks of the journal are known to be orphaned.
    Anew {
        /// How many.
        orphaned: usize,
        /// Whether that is since no block of the journal belongs to the chain.
        deep: bool,
    },
    /// The header of this block does not fit its parent's.
    Lie(B256, u64),
}

impl Journal {
    pub(super) fn tip(&self) -> Option<&Applied> {
        self.blocks.back()
    }

    pub(super) fn bottom(&self) -> Option<u64> {
        self.blocks.front().map(|block| block.header.number.to())
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn place(&self, hash: &B256) -> Option<usize> {
        self.blocks
            .iter()
            .rposition(|block| block.header.hash == *hash)
    }

    pub(super) fn get(&self, place: usize) -> Option<&Applied> {
        self.blocks.get(place)
    }

    /// The blocks above a place.
    pub(super) fn above(&self, place: usize) -> impl Iterator<Item = &Applied> {
        self.blocks.iter().skip(place.saturating_add(1))
    }

    pub(super) fn push(&mut self, block: Applied, depth: usize) {
        self.blocks.push_back(block);
        while self.blocks.len() > depth {
            self.blocks.pop_front();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Applied> {
        self.blocks.pop_back()
    }

    /// Begins anew at a block at which the pools were read.
    pub(super) fn anchor(&mut self, header: Header) {
        self.blocks.clear();
        self.blocks.push_back(Applied { header, logs: None });
    }

    /// The way from a head down to the journal.
    pub(super) fn way(&self, head: &Header, known: &BTreeMap<B256, Header>, most: usize) -> Way {
        let (Some(bottom), Some(tip)) = (self.bottom(), self.tip()) else {
            return Way::Anew {
                orphaned: 0,
                deep: false,
            };
        };
        if let Some(ancestor) = self.place(&head.hash) {
            return Way::Linked {
                ancestor,
                path: Vec::new(),
            };
        }
        let span = u64::try_from(most).unwrap_or(u64::MAX);
        let top: u64 = head.number.to();
        if top.saturating_sub(tip.header.number.to()) > span {
            return Way::Anew {
                orphaned: 0,
                deep: false,
            };
        }
        let mut low = head;
        let mut path = vec![head.hash];
        loop {
            let number: u64 = low.number.to();
            if let Some(ancestor) = self.place(&low.parent_hash) {
                let parent = self
                    .blocks
                    .get(ancestor)
                    .map(|block| block.header.number.to::<u64>());
                if parent.and_then(|parent| parent.checked_add(1)) != Some(number) {
                    return Way::Lie(low.hash, number);
                }
                path.reverse();
                return Way::Linked { ancestor, path };
            }
            // Its parent is below the journal, or beside its bottom.
            if number <= bottom.saturating_add(1) {
                return Way::Anew {
                    orphaned: self.len(),
                    deep: true,
                };
            }
            if path.len() >= most {
                // Neither this block nor its parent is in the journal, so what is there at their heights is orphaned.
                let from = number.saturating_sub(1);
                let orphaned = self
                    .blocks
                    .iter()
                    .filter(|block| block.header.number.to::<u64>() >= from)
                    .count();
                return Way::Anew {
                    orphaned,
                    deep: false,
                };
            }
            let Some(parent) = known.get(&low.parent_hash) else {
                return Way::Missing {
                    hash: low.parent_hash,
                    number: number.saturating_sub(1),
                    path,
                };
            };
            if parent.number.to::<u64>().checked_add(1) != Some(number) {
                return Way::Lie(low.hash, number);
            }
            path.push(parent.hash);
            low = parent;
        }
    }
}
