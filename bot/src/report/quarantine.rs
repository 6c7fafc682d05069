//! What is said of a pool that is not what the source says.

use super::record::decimal;
use crate::market::{Address, UntrustedText};
use crate::source::BlockHash;
use serde::Serialize;

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
