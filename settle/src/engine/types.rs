//! What the engine is told, what it asks for, and what it is configured with.

use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::abi::{self, Cycle};
use crate::ledger::{Block, Entry, Id};
use crate::nonce::{Behind, Counts};
use crate::tx::{Signed, Transaction};

/// Whether anything is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Transactions are signed and sent.
    Live,
    /// Nothing is signed or sent: what would be is scored in the next block's state.
    Shadow,
}

/// What the engine goes by.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether anything is sent.
    pub mode: Mode,
    /// The chain.
    pub chain_id: u64,
    /// The executor contract.
    pub executor: Address,
    /// Its owner: the key's account.
    pub owner: Address,
    /// How many settlements are open at a time, at most.
    pub window: usize,
    /// In how many blocks after the one it was found in a settlement may run; 1 or more.
    pub expiry_blocks: u64,
    /// What a settlement must leave after gas at its dearest, in wei.
    pub min_profit: U256,
    /// Wei that are offered for a unit of gas at most.
    pub max_fee_cap: u128,
    /// The same for what replaces a transaction to free its nonce: above it, so that one at the cap can be replaced.
    pub max_replacement_fee: u128,
    /// Wei of it for the block's maker.
    pub priority_fee: u128,
    /// Hundredths of the estimated gas that are added to it.
    pub gas_room: u64,
    /// The gas that a transaction may use at most.
    pub max_gas: u64,
    /// How many transactions may replace one, at most.
    pub max_replacements: usize,
    /// Settling stops when the settlements that cost more than they brought in have lost so much, in wei.
    pub loss_limit: U256,
    /// How long an answer may take.
    pub call_timeout: Duration,
    /// After how many blocks an outcome is looked at once more and then let be.
    pub depth: u64,
}

impl Config {
    /// What suits Ethereum's mainnet, for this executor and its owner.
    #[must_use]
    pub fn new(mode: Mode, chain_id: u64, executor: Address, owner: Address) -> Self {
        Self {
            mode,
            chain_id,
            executor,
            owner,
            window: 8,
            expiry_blocks: 3,
            min_profit: U256::ZERO,
            // 500 gwei, twice that, and 1 gwei.
            max_fee_cap: 500_000_000_000,
            max_replacement_fee: 1_000_000_000_000,
            priority_fee: 1_000_000_000,
            gas_room: 25,
            max_gas: 5_000_000,
            max_replacements: 8,
            // A tenth of an ether.
            loss_limit: U256::from(100_000_000_000_000_000_u64),
            call_timeout: Duration::from_secs(10),
            // Two epochs: then a block is final.
            depth: 64,
        }
    }
}

/// A cycle worth settling. Its base token is the chain's wrapped native one, so that its unit is the wei.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunity {
    /// The block in whose state it was found.
    pub found: Block,
    /// The base token.
    pub base: Address,
    /// What goes into the first pair.
    pub amount_in: U256,
    /// The swaps.
    pub hops: Vec<abi::Hop>,
    /// What is left over before gas, to the wei.
    pub profit: U256,
}

impl Opportunity {
    pub(super) fn cycle(self, expiry: u64) -> Cycle {
        Cycle {
            base: self.base,
            amount_in: self.amount_in,
            hops: self.hops,
            min_profit: self.profit,
            expiry,
        }
    }
}

/// Why an opportunity is not taken. It is not recorded: count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Skip {
    /// The engine was told to drain.
    #[error("settlement is ending")]
    Draining,
    /// Settling has stopped; [`super::Engine::stopped`] says why.
    #[error("settling has stopped")]
    Stopped,
    /// The head is not known, or what is out is not reconciled with the node.
    #[error("not reconciled with the node yet")]
    NotReady,
    /// No hops, or a pair twice.
    #[error("a cycle has a pair twice, or none")]
    Malformed,
    /// Its block is not of the chain, or too old.
    #[error("its block is too old or orphaned")]
    Late,
    /// Below the minimum before gas.
    #[error("its profit is below the minimum before gas")]
    TooSmall,
    /// An open settlement has one of its pairs.
    #[error("an open settlement has its pair {0}")]
    PoolTaken(Address),
    /// As many are open as may be.
    #[error("as many settlements are open as may be")]
    Full,
}

/// Why settling has stopped. Everything else goes on, and what is out is followed to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// Too much was lost.
    #[error("settlements have lost {loss} wei, the limit is {limit}")]
    LossLimit {
        /// Lost, in wei.
        loss: U256,
        /// The limit, in wei.
        limit: U256,
    },
    /// A settlement brought in something else than was predicted, and did not revert.
    #[error("{id} realised {realised:?} wei, not {predicted} as predicted")]
    ProfitDiffers {
        /// The settlement.
        id: Id,
        /// Predicted, in wei.
        predicted: U256,
        /// Realised, in wei; nothing if the executor reported none.
        realised: Option<U256>,
    },
    /// A nonce does not get free.
    #[error("nonce {nonce} is still open after {tries} replacements")]
    Stuck {
        /// The nonce.
        nonce: u64,
        /// How often it was tried.
        tries: usize,
    },
    /// The ledger is of another chain.
    #[error(transparent)]
    Behind(#[from] Behind),
    /// The ledger cannot be appended to: nothing is sent any more at all.
    #[error("the settlement ledger failed: {0}")]
    Ledger(String),
}

/// A new end of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The block.
    pub block: Block,
    /// Its base fee, in wei for a unit of gas.
    pub base_fee: u128,
}

/// Which request an answer is to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Call the executor in a block's state (`eth_call`, by the block's hash) and, if asked, estimate its gas
    /// (`eth_estimateGas`). Answer: [`Answer::DryRun`].
    DryRun {
        /// To answer with.
        call: CallId,
        /// The block.
        at: Block,
        /// The sender.
        from: Address,
        /// The executor.
        to: Address,
        /// The call's data.
        data: Bytes,
        /// Whether the gas is wanted.
        estimate: bool,
    },
    /// Sign: CPU work. Answer: [`Answer::Signed`].
    Sign {
        /// To answer with.
        call: CallId,
        /// What to sign.
        transaction: Transaction,
    },
    /// Send (`eth_sendRawTransaction`). Answer: [`Answer::Sent`].
    Send {
        /// To answer with.
        call: CallId,
        /// The transaction's identity.
        hash: B256,
        /// The transaction.
        raw: Bytes,
    },
    /// Ask for a receipt (`eth_getTransactionReceipt`). Answer: [`Answer::Receipt`].
    Receipt {
        /// To answer with.
        call: CallId,
        /// The transaction's identity.
        hash: B256,
    },
    /// Ask for both counts (`eth_getTransactionCount`, `latest` first, then `pending`). Answer: [`Answer::Counts`].
    Counts {
        /// To answer with.
        call: CallId,
        /// Whose.
        account: Address,
    },
    /// Append to the ledger, durably, in this order; then [`super::Engine::recorded`] or
    /// [`super::Engine::record_failed`].
    Record {
        /// To confirm with.
        sequence: u64,
        /// The entry.
        entry: Entry,
    },
}

/// What a dry run gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DryRun {
    /// It would run.
    Done {
        /// What the call returned.
        output: Bytes,
        /// The estimated gas; 0 if it was not asked for.
        gas: u64,
    },
    /// It would revert, with this data.
    Reverted(Bytes),
}

/// What a node said to a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It has it, now or before.
    Accepted,
    /// A block has a transaction with its nonce.
    NonceTooLow,
    /// It offers too little, or too little more than what it would replace.
    Underpriced,
    /// It does not take it for another reason.
    Refused,
}

impl Sent {
    /// What a node's error says. Codes differ between nodes, so the text decides.
    #[must_use]
    pub fn of_error(message: &str) -> Self {
        let message = message.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if has(&[
            "already known",
            "already imported",
            "known transaction",
            "already exists",
        ]) {
            Self::Accepted
        } else if has(&["nonce too low", "nonce is too low"]) {
            Self::NonceTooLow
        } else if has(&["underpriced", "fee too low", "less than block base fee"]) {
            Self::Underpriced
        } else {
            Self::Refused
        }
    }
}

/// A log in a receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptLog {
    /// The contract.
    pub address: Address,
    /// Its topics.
    pub topics: Vec<B256>,
    /// Its data.
    pub data: Bytes,
}

/// A receipt, as far as it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The block.
    pub block: Block,
    /// Whether it was not undone.
    pub succeeded: bool,
    /// The gas it used.
    pub gas_used: u64,
    /// Wei it paid for a unit.
    pub gas_price: U256,
    /// Its logs.
    pub logs: Vec<ReceiptLog>,
}

/// What came of an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To [`Action::DryRun`].
    DryRun(DryRun),
    /// To [`Action::Sign`].
    Signed(Signed),
    /// To [`Action::Send`].
    Sent(Sent),
    /// To [`Action::Receipt`]: nothing if no block has it.
    Receipt(Option<Receipt>),
    /// To [`Action::Counts`].
    Counts(Counts),
    /// To any: no answer, and no way to know what was done.
    Failed(String),
}
