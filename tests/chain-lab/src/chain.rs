//! Sends the lab's transactions and mines them.
//!
//! # Invariants
//! - A block is mined 12 s after its parent by its timestamp, whatever the clock says: hashes follow from what is in it.
//! - Transactions of the lab tip one wei a gas, so any sender that tips more comes before them in the block.

use alloy_primitives::{Address, B256, Bytes, U256};
use serde_json::{Value, json};

use crate::abi;
use crate::error::LabError;
use crate::rpc::{Call, Head, Rpc, read};

/// Seconds between two blocks, by their timestamps.
pub(crate) const BLOCK_TIME: u64 = 12;

/// What the lab pays for gas at most: any base fee that can come up here.
const MAX_FEE: u64 = 1_000_000_000_000_000;

/// A transaction of the lab's.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    to: Address,
    data: Bytes,
    gas: u64,
}

impl Send {
    pub(crate) fn new(to: Address, data: Vec<u8>, gas: u64) -> Self {
        let data = data.into();
        Self { to, data, gas }
    }

    /// As a request; the node signs.
    pub(crate) fn request(&self, from: Address) -> Value {
        json!({
            "from": from, "to": self.to, "data": self.data, "gas": format!("{:#x}", self.gas),
            "maxFeePerGas": format!("{MAX_FEE:#x}"), "maxPriorityFeePerGas": "0x1",
        })
    }
}

/// A block that the lab mined, and how its own transactions in it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mined {
    pub(crate) head: Head,
    pub(crate) sent: usize,
    pub(crate) done: usize,
}

impl Mined {
    /// An error unless each of the lab's transactions did what it should.
    pub(crate) const fn all_succeeded(&self) -> Result<(), LabError> {
        let Self { head, sent, done } = *self;
        if sent == done {
            Ok(())
        } else {
            let block = head.hash;
            Err(LabError::Transactions { sent, done, block })
        }
    }
}

/// Sends the transactions and mines one block.
pub(crate) fn mine(rpc: &mut Rpc, from: Address, sends: &[Send]) -> Result<Mined, LabError> {
    let nonce: U256 = rpc.ask("eth_getTransactionCount", json!([from, "latest"]))?;
    let calls: Vec<Call> = sends
        .iter()
        .zip(0_u64..)
        .map(|(send, after)| {
            let mut request = send.request(from);
            if let Some(fields) = request.as_object_mut() {
                fields.insert("nonce".to_owned(), json!(nonce + U256::from(after)));
            }
            Call::new("eth_sendTransaction", json!([request]))
        })
        .collect();
    let mut receipts = Vec::new();
    for hash in rpc.batch(&calls)? {
        receipts.push(Call::new("eth_getTransactionReceipt", json!([hash])));
    }
    let next = rpc.head()?.timestamp + BLOCK_TIME;
    rpc.call("evm_setNextBlockTimestamp", json!([next]))?;
    rpc.call("anvil_mine", json!(["0x1"]))?;
    let head = rpc.head()?;
    let receipts = rpc.batch(&receipts)?;
    let succeeded = |receipt: &&Value| receipt.get("status").and_then(Value::as_str) == Some("0x1");
    Ok(Mined {
        head,
        sent: sends.len(),
        done: receipts.iter().filter(succeeded).count(),
    })
}

/// The reserves that a block leaves in each pool it touched, by the pool's last Sync event.
pub(crate) fn synced(rpc: &mut Rpc, block: B256) -> Result<Vec<(Address, [u128; 2])>, LabError> {
    const METHOD: &str = "eth_getLogs";
    let filter = json!([{"blockHash": block, "topics": [abi::SYNC]}]);
    let logs = rpc.call(METHOD, filter)?;
    let mut found: Vec<(Address, [u128; 2])> = Vec::new();
    for log in logs.as_array().into_iter().flatten() {
        let pool: Address = read(METHOD, log.get("address").unwrap_or(&Value::Null))?;
        let data: Bytes = read(METHOD, log.get("data").unwrap_or(&Value::Null))?;
        let word = |at: usize| {
            let bytes = data.get(32 * at..32 * at + 32).unwrap_or_default();
            U256::try_from_be_slice(bytes).and_then(|word| word.try_into().ok())
        };
        let Some(reserves) = word(0).zip(word(1)) else {
            continue;
        };
        found.retain(|(known, _)| *known != pool);
        found.push((pool, reserves.into()));
    }
    Ok(found)
}
