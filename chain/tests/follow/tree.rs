//! Blocks as a node has them.
//!
//! # Invariants
//! - A block's hash tells its number and what was asked for; no two blocks share one.
//! - A bloom contains all logs of its block. It may admit more.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bloom, Bytes, U64};
use regatta_chain::types::{Header, Log};

/// The topic that matters.
pub(crate) const TOPIC: B256 = B256::repeat_byte(0x55);

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) header: Header,
    /// Its logs that matter, by index.
    pub(crate) logs: Vec<Log>,
}

/// Blocks by hash.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tree {
    pub(crate) blocks: BTreeMap<B256, Block>,
}

impl Tree {
    /// Adds a block on another (or a first one) with so many logs; `noisy` if its bloom admits logs that it has not.
    pub(crate) fn add(
        &mut self,
        parent: Option<B256>,
        number: u64,
        logs: u64,
        noisy: bool,
    ) -> B256 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[24..].copy_from_slice(&(self.blocks.len() as u64 + 1).to_be_bytes());
        let hash = B256::new(bytes);
        let log = |index: u64| Log {
            address: Address::repeat_byte(u8::try_from(index % 5).unwrap()),
            topics: vec![TOPIC],
            data: Bytes::from(index.to_be_bytes().to_vec()),
            block_hash: hash,
            block_number: U64::from(number),
            transaction_hash: None,
            log_index: U64::from(index * 2),
            removed: false,
        };
        let logs: Vec<Log> = (0..logs).map(log).collect();
        let mut bloom = Bloom::ZERO;
        for log in &logs {
            bloom.accrue_raw_log(log.address, &log.topics);
        }
        if noisy {
            bloom = Bloom::repeat_byte(0xff);
        }
        let header = Header {
            number: U64::from(number),
            hash,
            parent_hash: parent.unwrap_or(B256::ZERO),
            timestamp: U64::from(number / 4),
            logs_bloom: bloom,
            base_fee_per_gas: None,
            gas_limit: None,
            gas_used: None,
        };
        self.blocks.insert(hash, Block { header, logs });
        hash
    }

    /// Adds a block on another.
    pub(crate) fn on(&mut self, parent: B256, logs: u64) -> B256 {
        let number = self.header(parent).number.to::<u64>() + 1;
        self.add(Some(parent), number, logs, false)
    }

    /// Adds so many blocks on another, each with so many logs.
    pub(crate) fn branch(&mut self, parent: B256, blocks: usize, logs: u64) -> Vec<B256> {
        let mut tip = parent;
        (0..blocks)
            .map(|_| {
                tip = self.on(tip, logs);
                tip
            })
            .collect()
    }

    pub(crate) fn header(&self, hash: B256) -> Header {
        self.blocks[&hash].header.clone()
    }

    pub(crate) fn logs(&self, hash: B256) -> Vec<Log> {
        self.blocks[&hash].logs.clone()
    }

    pub(crate) fn parent(&self, hash: B256) -> B256 {
        self.blocks[&hash].header.parent_hash
    }
}
