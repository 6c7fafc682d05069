//! A small simulated chain.
//!
//! # Invariants
//! - A block's hash is new: no two blocks ever made have the same, also with the same parent, number and logs.
//! - A bloom holds exactly what its block's logs put into it.
//! - What a reorganisation takes back stays known by its hash, as nodes have it.

use std::collections::HashMap;

use alloy_primitives::{Address, B256, Bloom, Bytes, Log, keccak256};
use serde_json::{Value, json};

/// A log of a contract, without its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FakeLog {
    /// The contract.
    pub address: Address,
    /// What it is about.
    pub topics: Vec<B256>,
    /// The rest.
    pub data: Bytes,
}

impl FakeLog {
    /// A log of `address`.
    #[must_use]
    pub fn new(address: Address, topics: Vec<B256>, data: impl Into<Bytes>) -> Self {
        Self {
            address,
            topics,
            data: data.into(),
        }
    }
}

/// A block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its height.
    pub number: u64,
    /// Its identity.
    pub hash: B256,
    /// The block it builds on.
    pub parent: B256,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// Which addresses and topics its logs have.
    pub bloom: Bloom,
    /// Its logs, in their order.
    pub logs: Vec<FakeLog>,
}

impl Block {
    /// The header as a node gives it.
    #[must_use]
    pub fn header(&self) -> Value {
        json!({
            "number": quantity(self.number),
            "hash": self.hash,
            "parentHash": self.parent,
            "timestamp": quantity(self.timestamp),
            "logsBloom": self.bloom,
            "baseFeePerGas": quantity(1_000_000_000),
            "gasLimit": quantity(30_000_000),
            "gasUsed": quantity(21_000 * self.logs.len() as u64),
            "difficulty": "0x0",
            "miner": Address::ZERO,
            "extraData": "0x",
        })
    }

    /// Its log at `index`, as a node gives it.
    #[must_use]
    pub fn log(&self, index: usize, removed: bool) -> Option<Value> {
        let log = self.logs.get(index)?;
        Some(json!({
            "address": log.address,
            "topics": log.topics,
            "data": log.data,
            "blockHash": self.hash,
            "blockNumber": quantity(self.number),
            "transactionHash": keccak256([self.hash.as_slice(), &index.to_be_bytes()].concat()),
            "transactionIndex": quantity(index as u64),
            "logIndex": quantity(index as u64),
            "removed": removed,
        }))
    }
}

/// What a reorganisation did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reorg {
    /// The blocks that it took back, the lowest first.
    pub removed: Vec<B256>,
    /// The blocks in their place, the lowest first.
    pub added: Vec<B256>,
}

/// A chain, with the branches that it left.
#[derive(Clone, Debug)]
pub struct FakeChain {
    chain_id: u64,
    block_seconds: u64,
    first: u64,
    made: u64,
    blocks: HashMap<B256, Block>,
    canonical: Vec<B256>,
}

impl Default for FakeChain {
    fn default() -> Self {
        Self::starting_at(0)
    }
}

impl FakeChain {
    /// A chain with one block, whose height is `number`. Chain id 1, 12 seconds a block.
    #[must_use]
    pub fn starting_at(number: u64) -> Self {
        let mut chain = Self {
            chain_id: 1,
            block_seconds: 12,
            first: number,
            made: 0,
            blocks: HashMap::new(),
            canonical: Vec::new(),
        };
        chain.extend(Vec::new());
        chain
    }

    /// Has this chain id.
    #[must_use]
    pub fn with_id(mut self, chain_id: u64) -> Self {
        self.chain_id = chain_id;
        self
    }

    /// Its blocks are so many seconds apart; with 0 they share a timestamp (row N21).
    #[must_use]
    pub fn every(mut self, seconds: u64) -> Self {
        self.block_seconds = seconds;
        self
    }

    /// The chain's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.chain_id
    }

    /// Adds a block with `logs`, and returns its hash.
    pub fn extend(&mut self, logs: Vec<FakeLog>) -> B256 {
        let (parent, number, timestamp) = match self.head() {
            Some(head) => (
                head.hash,
                head.number + 1,
                head.timestamp + self.block_seconds,
            ),
            None => (B256::ZERO, self.first, 1_700_000_000),
        };
        self.made += 1;
        let hash = keccak256(
            [
                parent.as_slice(),
                &number.to_be_bytes(),
                &self.made.to_be_bytes(),
            ]
            .concat(),
        );
        let mut bloom = Bloom::ZERO;
        for log in &logs {
            bloom.accrue_log(&Log::new_unchecked(
                log.address,
                log.topics.clone(),
                log.data.clone(),
            ));
        }
        self.blocks.insert(
            hash,
            Block {
                number,
                hash,
                parent,
                timestamp,
                bloom,
                logs,
            },
        );
        self.canonical.push(hash);
        hash
    }

    /// Takes the last `depth` blocks back, the first of all excepted, and adds one for each part of `branch`.
    pub fn reorg(&mut self, depth: usize, branch: Vec<Vec<FakeLog>>) -> Reorg {
        let keep = self.canonical.len().saturating_sub(depth).max(1);
        let removed = self.canonical.split_off(keep.min(self.canonical.len()));
        let added = branch.into_iter().map(|logs| self.extend(logs)).collect();
        Reorg { removed, added }
    }

    /// The last block.
    #[must_use]
    pub fn head(&self) -> Option<&Block> {
        self.block(*self.canonical.last()?)
    }

    /// The hash of the last block.
    #[must_use]
    pub fn head_hash(&self) -> B256 {
        self.canonical.last().copied().unwrap_or_default()
    }

    /// The height of the last block.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.first + (self.canonical.len() as u64).saturating_sub(1)
    }

    /// A block by its hash, also of a branch that was left.
    #[must_use]
    pub fn block(&self, hash: B256) -> Option<&Block> {
        self.blocks.get(&hash)
    }

    /// The block of the present branch at a height.
    #[must_use]
    pub fn at(&self, number: u64) -> Option<&Block> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.block(*self.canonical.get(index)?)
    }

    /// The height of the first block.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The hashes of the present branch, the first block's first.
    #[must_use]
    pub fn canonical(&self) -> &[B256] {
        &self.canonical
    }
}

/// A number as nodes write it.
#[must_use]
pub fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// A number as nodes read it.
pub(crate) fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}
