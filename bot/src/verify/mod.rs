//! The Verifier: compares the reserves of the latest published block with what the source says of that block.
//!
//! ```text
//! pump ─► verifier pipe ─► thread of the verifier ─► reader (ambient I/O)
//!   ▲     (newest wins)      │    ▲
//!   │                        ▼    │
//!   └───── findings ◄──── Verifier unit: compares
//! ```
//!
//! # Invariants
//! - Only a difference that was read is a finding: a read that fails, takes too long or leaves a pool out is counted and
//!   nothing else.
//! - A block is told by its hash, so a reader answers for exactly the state that the world is compared at.
//! - A finding takes effect where the pump looks for it, between two cycles, and from then on no cycle over the pool is
//!   simulated. It stays so until the process is started anew: what is wrong is our picture of the pool, or the pool,
//!   and reserves that agree again later do not say which it was, nor that the way they went wrong is gone.

mod job;
mod recomputed;
mod worker;

pub use job::{Check, MOST, Mismatch, ROTATING, VerifyJob};
pub use recomputed::Recomputed;
pub use worker::verify;

use crate::market::Address;
use crate::source::BlockHash;
use std::error::Error;
use std::time::Duration;
use thiserror::Error as ThisError;

/// Why reserves were not read.
#[derive(Debug, ThisError)]
pub enum ReadError {
    /// The source did not answer in time.
    #[error("the source did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The source knows no such block, or none any more.
    #[error("the source does not know block {0}")]
    UnknownBlock(BlockHash),
    /// The source answered for another number of pools than it was asked for.
    #[error("the source was asked for {asked} pools and answered for {answered}")]
    Count {
        /// Pools asked for.
        asked: usize,
        /// Pools answered for.
        answered: usize,
    },
    /// It could not be asked, or its answer not be understood.
    #[error("the source could not be read: {0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

/// A source that can be asked for reserves.
///
/// It is asked on the verifier's own thread, so it may wait, but not for ever: it gives up by itself
/// with [`ReadError::TimedOut`]. One that hangs is cut off and left behind when the process stops.
pub trait ReserveReader: Send {
    /// The reserves of `pools` at the end of `block`, in their order: of the first and the second token. `None` where
    /// the source cannot say, such as for an address without a contract.
    fn reserves_at(
        &self,
        block: BlockHash,
        pools: &[Address],
    ) -> Result<Vec<Option<(u128, u128)>>, ReadError>;
}
