//! What is simulated: one call of the executor, in one block.
//!
//! # Invariants
//! - The bytes of a call depend on nothing but the call.

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::code::Code;

/// What the executor is told and says, what a pair and a token are told, and what a pair says in a log.
pub mod abi {
    pub use regatta_settle::abi::bindings::*;

    alloy_sol_types::sol! {
        function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata data) external;
        function balanceOf(address holder) external view returns (uint256);
        event Swap(address indexed sender, uint256 amount0In, uint256 amount1In, uint256 amount0Out,
            uint256 amount1Out, address indexed to);
    }
}

/// The gas that a call may use unless it is told otherwise: many times what four hops over plain tokens take (about
/// 400,000), and little enough that a token that loops ends in some tens of milliseconds.
pub const DEFAULT_GAS: u64 = 3_000_000;

/// The block in which a call is simulated: the one to be built on the state's block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockEnv {
    /// Its height.
    pub number: u64,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// Wei that a unit of gas costs at least.
    pub base_fee: u64,
    /// The most gas that the block may use.
    pub gas_limit: u64,
    /// Who builds it: what `COINBASE` answers. Not known before the block is there, and few contracts ask.
    pub beneficiary: Address,
    /// What `PREVRANDAO` answers. Not known before the block is there either.
    pub random: B256,
}

/// The executor contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executor {
    /// Where it is.
    pub address: Address,
    /// Code that takes the place of what is there: for an executor that is not deployed. It has no balance and its
    /// storage is empty, apart from slots that the state knows. `None` runs what the state has.
    pub code: Option<Code>,
}

pub use regatta_settle::abi::Hop;

/// One call of the executor's `execute`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The block that it is in.
    pub block: BlockEnv,
    /// Gas that it may use; the block's limit bounds it too. See [`DEFAULT_GAS`].
    pub gas: u64,
    /// Who sends it: the executor's owner.
    pub owner: Address,
    /// The contract.
    pub executor: Executor,
    /// The token that the cycle begins and ends with.
    pub base: Address,
    /// How much of it the first pair is paid, in its smallest unit.
    pub amount_in: U256,
    /// The swaps, in their order.
    pub hops: Vec<Hop>,
    /// The least profit, in the base token's smallest unit.
    pub min_profit: U256,
    /// The last block in which it may run.
    pub expiry_block: u64,
}

impl Call {
    /// The call's input.
    #[must_use]
    pub fn input(&self) -> Bytes {
        let cycle = regatta_settle::abi::Cycle {
            base: self.base,
            amount_in: self.amount_in,
            hops: self.hops.clone(),
            min_profit: self.min_profit,
            expiry: self.expiry_block,
        };
        cycle.calldata()
    }

    /// What should go into a hop: what comes out of the one before it.
    #[must_use]
    pub fn amount_in_of(&self, hop: usize) -> Option<U256> {
        match hop.checked_sub(1) {
            None => (!self.hops.is_empty()).then_some(self.amount_in),
            Some(before) if hop < self.hops.len() => {
                self.hops.get(before).map(|hop| hop.amount_out)
            }
            Some(_) => None,
        }
    }
}
