//! The records of what a chain does beside its blocks: missed, taken back, grown, and not as we have it.

use super::record::decimal;
use crate::market::{Address, UntrustedText};
use crate::source::BlockHash;
use serde::Serialize;

/// A block that was coalesced into a later one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MissedRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// The block's height.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// The height of the block whose cycle covers what it touched; none if none came.
    pub covered_by: Option<u64>,
    /// Whether it was reverted before it could run.
    pub orphaned: bool,
}

/// A record that was published does not hold: its block is no longer part of the chain. The fields are the
/// record's key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RetractRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// The block's height.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// The pools of the cycle joined by `-`.
    pub path: String,
    /// The kind of the record that was published.
    pub kind: &'static str,
}

/// A pool whose reserves are not what the source says. From here on no trade goes through it.
#[derive(Clone, Debug, Serialize)]
pub struct QuarantineRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// The pool.
    pub pool: Address,
    /// The height of the block at which they differ.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// What the run had.
    pub expected: ReservesRecord,
    /// What the source says.
    pub read: ReservesRecord,
}

/// Reserves of a pool.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReservesRecord {
    /// Of the first token.
    #[serde(serialize_with = "decimal")]
    pub reserve0: u128,
    /// Of the second token.
    #[serde(serialize_with = "decimal")]
    pub reserve1: u128,
}

impl From<(u128, u128)> for ReservesRecord {
    fn from((reserve0, reserve1): (u128, u128)) -> Self {
        Self { reserve0, reserve1 }
    }
}

/// The market has grown, and what was registered over the new pools took effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RegisteredRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// The epoch that ended last: one for each block that ran.
    pub epoch: u64,
    /// The height of the last block, if one came.
    pub after: Option<u64>,
    /// Its identity.
    pub hash: Option<BlockHash>,
    /// Pools that came.
    pub pools: usize,
    /// Pools that the market refused.
    pub skipped: usize,
    /// Cycles over the pools that came.
    pub cycles: usize,
    /// Cycles that are registered.
    pub total: usize,
    /// Why nothing was registered, if that was refused.
    pub refused: Option<String>,
}
