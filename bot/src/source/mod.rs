//! Where blocks come from.
//!
//! A [`BlockSource`] is a stream of [`Event`]s about one market: a block came, a block that had come is no
//! longer part of the chain, the market grew, or it was read anew. [`embedded`] makes blocks up from a seed,
//! [`crate::capture`] has them from a file, and [`crate::node`] from an Ethereum node, whose thread delivers by itself.
//!
//! # Invariants
//! - The events of a source describe one chain at a time: the parent of a [`Event::Block`] is the last
//!   block that came and was not reverted, and only that block can be reverted.
//! - A block's updates are in the order in which they happened. A pool may be in a block more than
//!   once.
//! - A pool is said to exist ([`Event::Pools`]) before the first update of it.

pub mod embedded;
mod rng;

use core::fmt;

use serde::{Serialize, Serializer};

pub use rng::SplitMix64;

use crate::capture::{ReadError, WriteError};
use crate::market::{Address, ApplyError, ExchangeId, ReserveUpdate, Token};

/// The identity of a block. Two blocks of one number are told apart by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash([u8; 32]);

impl BlockHash {
    /// The hash with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for BlockHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A block's header, as far as the bot reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its height.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// The identity of the block it builds on.
    pub parent: BlockHash,
    /// Seconds since 1970. Blocks of one second share it.
    pub timestamp: u64,
    /// Wei that a unit of gas costs at least in this block, where the chain has such a price.
    pub base_fee: Option<u128>,
}

/// A block and what it did to the market.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its height.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// The identity of the block it builds on.
    pub parent: BlockHash,
    /// Seconds since 1970. Blocks of one second share it.
    pub timestamp: u64,
    /// Wei that a unit of gas costs at least in this block, where the chain has such a price.
    pub base_fee: Option<u128>,
    /// The reserves of the pools it moved, after each move, in order.
    pub updates: Vec<ReserveUpdate>,
}

impl Block {
    /// Its header.
    #[must_use]
    pub const fn head(&self) -> Head {
        Head {
            number: self.number,
            hash: self.hash,
            parent: self.parent,
            timestamp: self.timestamp,
            base_fee: self.base_fee,
        }
    }
}

/// A pool that comes to the market while it is followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPool {
    /// The pool contract.
    pub address: Address,
    /// Where it trades.
    pub exchange: ExchangeId,
    /// The first token.
    pub token0: Token,
    /// The second token.
    pub token1: Token,
    /// Reserve of the first token in its smallest unit.
    pub reserve0: u128,
    /// Reserve of the second token in its smallest unit.
    pub reserve1: u128,
}

/// What a source has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A block was added to the chain. It is complete: no update of it is missing.
    Block(Block),
    /// The last block was taken off the chain: a consumer undoes its updates and retracts what it
    /// published for it. A reorganisation is the reverted blocks, newest first, and then the new ones.
    Reverted {
        /// The block's height.
        number: u64,
        /// The block's identity.
        hash: BlockHash,
    },
    /// The market grows by these pools, with their reserves as of the last block that came. Their numbers are those
    /// that [`Market::extend`](crate::market::Market::extend) gives them one after the other: a pool that it refuses
    /// has none. If that block is reverted, they have no reserves until they are said again.
    Pools(Vec<NewPool>),
    /// Blocks could not be followed one by one, and the market was read anew: these are the reserves at `head`,
    /// which is the last block from here on. Pools that are not listed are as they were. Blocks that came before and are
    /// no longer part of the chain were reverted by events of their own, as far as the source remembers
    /// them.
    Reread {
        /// The block at which the reserves were read.
        head: Head,
        /// What was read.
        reserves: Vec<ReserveUpdate>,
    },
}

/// Why a source has no next event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A block moves a pool in a way that the market refuses.
    #[error("block {number}: {problem}")]
    Update {
        /// The block's height.
        number: u64,
        /// What the market said.
        problem: ApplyError,
    },
    /// The capture that it reads from is damaged.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// What it said could not be written down.
    #[error(transparent)]
    Record(#[from] WriteError),
}

/// A stream of blocks.
pub trait BlockSource {
    /// The next event, or `None` when the stream is over. It may wait for one, so it is not to be
    /// called from a seat. After an error the source's state is unknown and it is to be dropped.
    fn next_event(&mut self) -> Result<Option<Event>, SourceError>;
}

impl<S: BlockSource + ?Sized> BlockSource for Box<S> {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        (**self).next_event()
    }
}
