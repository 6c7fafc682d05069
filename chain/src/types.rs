//! What a node says, as far as this crate reads it.
//!
//! Quantities are hexadecimal strings without leading zeros, data has an even number of digits: the encoding of
//! the Ethereum JSON-RPC specification (<https://ethereum.github.io/execution-apis/>).

use alloy_primitives::{Address, B256, Bloom, Bytes, U64, U256};
use serde::{Deserialize, Serialize};

/// A block's header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Its height.
    pub number: U64,
    /// Its identity.
    pub hash: B256,
    /// The identity of the block it builds on.
    pub parent_hash: B256,
    /// Seconds since 1970. Blocks of one second share it.
    pub timestamp: U64,
    /// Which addresses and topics its logs may have.
    pub logs_bloom: Bloom,
    /// Wei that a unit of gas costs at least, where the chain has such a price.
    #[serde(default)]
    pub base_fee_per_gas: Option<U256>,
    /// The gas that the block may use.
    #[serde(default)]
    pub gas_limit: Option<U64>,
    /// The gas that it used.
    #[serde(default)]
    pub gas_used: Option<U64>,
}

/// A log of a contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// The contract.
    pub address: Address,
    /// What it is about: the event's signature, then its indexed parameters.
    pub topics: Vec<B256>,
    /// The other parameters.
    pub data: Bytes,
    /// The block's identity.
    pub block_hash: B256,
    /// The block's height.
    pub block_number: U64,
    /// The transaction's identity.
    #[serde(default)]
    pub transaction_hash: Option<B256>,
    /// Its place in the block.
    pub log_index: U64,
    /// Whether the node takes it back.
    #[serde(default)]
    pub removed: bool,
}
