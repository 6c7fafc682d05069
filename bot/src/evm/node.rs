//! A node as what knows the state.
//!
//! # Invariants
//! - The answers to one reading are asked for in one go, by the block's hash, once: a block that the node no longer knows was
//!   taken back.

use super::reader::{StateError, StateReader, Told};
use crate::node::{AskError, Asker, plain_hash};
use crate::source::BlockHash;
use alloy_primitives::{Bytes, U64, U256};
use regatta_chain::rpc::{CallError, Request};
use regatta_evm::Key;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// Reads the state by the call socket.
#[derive(Debug)]
pub(crate) struct NodeStates(pub(crate) Asker);

impl StateReader for NodeStates {
    fn read(
        &self,
        block: BlockHash,
        keys: &[Key],
        wait: Duration,
    ) -> Result<Vec<Told>, StateError> {
        let at = json!({ "blockHash": plain_hash(block) });
        let mut requests = Vec::with_capacity(keys.len());
        for key in keys {
            match *key {
                Key::Account(of) => {
                    for method in ["eth_getCode", "eth_getBalance", "eth_getTransactionCount"] {
                        requests.push(Request::new(method, json!([of, at])));
                    }
                }
                Key::Slot(of, slot) => {
                    let params = json!([of, format!("{slot:#x}"), at]);
                    requests.push(Request::new("eth_getStorageAt", params));
                }
            }
        }
        let answers = self.0.ask(requests, 1, wait).map_err(|error| match error {
            AskError::TimedOut(after) => StateError::TimedOut(after),
            error => StateError::Failed(Box::new(error)),
        })?;
        let mut answers = answers.into_iter();
        keys.iter().map(|key| told(*key, &mut answers)).collect()
    }
}

type Answers = std::vec::IntoIter<Result<Value, CallError>>;

fn told(key: Key, answers: &mut Answers) -> Result<Told, StateError> {
    Ok(match key {
        Key::Account(_) => Told::Account {
            code: next::<Bytes>(key, answers)?,
            balance: next(key, answers)?,
            nonce: next::<U64>(key, answers)?.to(),
        },
        Key::Slot(..) => Told::Slot(next::<U256>(key, answers)?),
    })
}

fn next<T: DeserializeOwned>(key: Key, answers: &mut Answers) -> Result<T, StateError> {
    let answer = answers.next().ok_or(StateError::Garbled(key))?;
    let answer = answer.map_err(|error| StateError::Failed(Box::new(error)))?;
    serde_json::from_value(answer).map_err(|_| StateError::Garbled(key))
}
