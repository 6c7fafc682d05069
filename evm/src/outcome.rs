//! What comes of a simulation.
//!
//! # Invariants
//! - What a contract says is bounded and printed escaped: it may be anything.
//! - [`Outcome::Missing`] is never empty, and names no key that the state knows.

use core::fmt;

use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolError;

use crate::call::abi;
use crate::state::Key;

/// The most bytes of a revert's data that are kept.
pub const REASON_BYTES: usize = 512;
/// The most characters of a revert's text that are kept.
pub const TEXT_CHARS: usize = 120;

/// What comes of a simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The cycle ran.
    Done(Done),
    /// A contract undid it.
    Reverted(Reverted),
    /// The state does not hold what decides it. Tell the state these keys and simulate again. The first that the run
    /// met is needed for certain; the others very likely will be.
    Missing(Vec<Key>),
    /// It ended otherwise.
    Halted(Halt),
}

/// A cycle that ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// The profit that the executor reports, in the base token's smallest unit.
    pub profit: U256,
    /// Gas that the transaction pays for, its base cost included and refunds taken off.
    pub gas_used: u64,
    /// What each hop's pair says went in and came out (its `Swap` log), by hop. `None`: it said nothing of the kind.
    pub hops: Vec<Option<Swapped>>,
}

/// What a pair says of a swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swapped {
    /// What went in of the token that goes in.
    pub amount_in: U256,
    /// What came out of the token that comes out.
    pub amount_out: U256,
}

/// A call that a contract undid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reverted {
    /// What it says of why.
    pub revert: Revert,
    /// The data, at most [`REASON_BYTES`] of it.
    pub data: Bytes,
    /// Gas that the transaction pays for.
    pub gas_used: u64,
}

/// Why a contract undid a call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Revert {
    /// The executor: the sender is not its owner.
    #[error("the sender does not own the executor")]
    NotOwner,
    /// The executor: the block is past the expiry block.
    #[error("the block is past the expiry block {0}")]
    Expired(U256),
    /// The executor: the caller of the callback is not the pair that was called.
    #[error("the callback was called by {0}, which is not the pair that was called")]
    NotThePool(Address),
    /// The executor: there are no hops.
    #[error("the cycle has no hops")]
    NoHops,
    /// The executor: the cycle gave less than the least profit.
    #[error("the profit is {profit} and must be at least {min_profit}")]
    ProfitTooSmall {
        /// The profit; 0 for a loss.
        profit: U256,
        /// The least profit.
        min_profit: U256,
    },
    /// The executor: a cycle is running.
    #[error("the executor is running another cycle")]
    Busy,
    /// The executor: a token refused a transfer and gave no reason.
    #[error("the token {0} refused a transfer and gave no reason")]
    TransferFailed(Address),
    /// A pair: less was paid than the constant product asks for, with its fee.
    #[error("a pair was paid too little (UniswapV2: K)")]
    K,
    /// Text that a contract gives.
    #[error("a contract says: {0}")]
    Text(Text),
    /// The compiler's checks: a code of Solidity's `Panic(uint256)`.
    #[error("a contract failed a check of the compiler's: panic {0:#x}")]
    Panic(U256),
    /// Anything else, an empty reason too.
    #[error("a contract gives no reason that is known")]
    Other,
}

/// Text from a contract: at most [`TEXT_CHARS`] characters, and printed escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text(String);

impl Text {
    /// The text as it was given, up to its bound. Not fit for printing: [`fmt::Display`] escapes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_debug())
    }
}

/// Why a simulation ended otherwise than by success or by a contract's revert.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Halt {
    /// It used all of its gas.
    #[error("it used all of its {gas} gas")]
    OutOfGas {
        /// The gas that it had.
        gas: u64,
    },
    /// A contract did what the machine does not know or allow.
    #[error("the machine stopped it: {0}")]
    Machine(String),
    /// The executor's answer is not an amount: there is no code at its address, or other code.
    #[error(
        "the executor at {executor} answered {length} bytes, and a profit is 32: there is no executor"
    )]
    NoExecutor {
        /// Where it was to be.
        executor: Address,
        /// The answer's length in bytes.
        length: usize,
    },
    /// It asked for the hash of an earlier block, which the state does not hold.
    #[error("it asked for the hash of block {0}, which a simulation does not know")]
    BlockHash(u64),
    /// The gas that it may use does not pay for the transaction's base cost.
    #[error("{gas} gas does not pay for the transaction's base cost")]
    TooLittleGas {
        /// The gas that it had.
        gas: u64,
    },
}

impl Revert {
    /// Reads a revert's data.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let Some(selector) = data.first_chunk::<4>().copied() else {
            return Self::Other;
        };
        Self::known(selector, data).unwrap_or(Self::Other)
    }

    fn known(selector: [u8; 4], data: &[u8]) -> Option<Self> {
        Some(match selector {
            abi::NotOwner::SELECTOR => Self::NotOwner,
            abi::NoHops::SELECTOR => Self::NoHops,
            abi::Busy::SELECTOR => Self::Busy,
            abi::Expired::SELECTOR => {
                Self::Expired(abi::Expired::abi_decode(data).ok()?.expiryBlock)
            }
            abi::NotThePool::SELECTOR => {
                Self::NotThePool(abi::NotThePool::abi_decode(data).ok()?.caller)
            }
            abi::TransferFailed::SELECTOR => {
                Self::TransferFailed(abi::TransferFailed::abi_decode(data).ok()?.token)
            }
            abi::ProfitTooSmall::SELECTOR => {
                let error = abi::ProfitTooSmall::abi_decode(data).ok()?;
                Self::ProfitTooSmall {
                    profit: error.profit,
                    min_profit: error.minProfit,
                }
            }
            alloy_sol_types::Panic::SELECTOR => {
                Self::Panic(alloy_sol_types::Panic::abi_decode(data).ok()?.code)
            }
            alloy_sol_types::Revert::SELECTOR => {
                let reason = alloy_sol_types::Revert::abi_decode(data).ok()?.reason;
                if reason == "UniswapV2: K" {
                    Self::K
                } else {
                    Self::Text(Text(reason.chars().take(TEXT_CHARS).collect()))
                }
            }
            _ => return None,
        })
    }
}
