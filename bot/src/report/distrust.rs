//! What is said of candidates that run as bytecode, and of what is not what it is said to be.

use crate::evm::{EvmResult, Mark, Marked, Reason};
use crate::market::{Address, UntrustedText};
use crate::source::{BlockHash, Head};
use serde::Serialize;

/// What the machine came to in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct EvmRecord {
    /// Runs that gave what the exact integers say.
    pub agreed: usize,
    /// Runs that gave something else.
    pub disagreed: usize,
    /// Candidates that could not be decided.
    pub unavailable: usize,
}

impl From<&EvmResult> for EvmRecord {
    fn from(result: &EvmResult) -> Self {
        Self {
            agreed: result.agreed,
            disagreed: result.disagreed,
            unavailable: result.unavailable,
        }
    }
}

/// Something is not what it is said to be, by its bytecode. From here on nothing is traded through it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DistrustRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// The height of the block at which it showed.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// `token_lies`, `fee_differs`, `reserves_differ` or `pool_fails`.
    pub reason: &'static str,
    /// The pool at which it showed.
    pub pool: Address,
    /// The token, if it is one.
    pub token: Option<Address>,
    /// The exchange, if it is one.
    pub exchange: Option<UntrustedText>,
    /// The fees of the exchange.
    pub fee: Option<FeeRecord>,
    /// Pools that are out of trade for it.
    pub pools: usize,
    /// All of it in words.
    #[serde(skip)]
    pub shown: String,
}

/// A fee that is not what is configured, in parts per million of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct FeeRecord {
    /// What is configured.
    pub configured_ppm: u32,
    /// The least that it can be.
    pub least_ppm: u32,
    /// The most that it can be.
    pub most_ppm: u32,
}

impl DistrustRecord {
    pub(crate) fn of(mark: &Mark, chain: &UntrustedText, head: &Head) -> Self {
        let (token, exchange) = match &mark.marked {
            Marked::Token(token) => (Some(*token), None),
            Marked::Exchange(name) => (None, Some(name.clone())),
            Marked::Pool => (None, None),
        };
        let fee = match mark.reason {
            Reason::FeeDiffers {
                configured,
                least,
                most,
            } => Some(FeeRecord {
                configured_ppm: configured,
                least_ppm: least,
                most_ppm: most,
            }),
            _ => None,
        };
        Self {
            chain: chain.clone(),
            number: head.number,
            hash: head.hash,
            reason: mark.reason.name(),
            pool: mark.pool,
            token,
            exchange,
            fee,
            pools: mark.pools,
            shown: mark.to_string(),
        }
    }
}
