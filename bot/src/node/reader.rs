//! A node as what published reserves are verified against.

use super::bytes::{plain, plain_hash};
use super::{AskError, Asker};
use crate::market::Address;
use crate::source::BlockHash;
use crate::verify::{ReadError, ReserveReader};
use alloy_primitives::Bytes;
use regatta_chain::abi;
use regatta_chain::read::Question;
use regatta_chain::rpc::Request;
use serde_json::json;
use std::time::Duration;

/// How long reserves may take to be read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads reserves by the call socket, by the block's hash.
#[derive(Debug)]
pub(crate) struct NodeReader(pub(crate) Asker);

impl ReserveReader for NodeReader {
    fn reserves_at(
        &self,
        block: BlockHash,
        pools: &[Address],
    ) -> Result<Vec<Option<(u128, u128)>>, ReadError> {
        let at = json!({ "blockHash": plain_hash(block) });
        let requests = pools.iter().map(|pool| {
            let Question { to, data } = Question::new(plain(*pool), &abi::Pair::getReservesCall {});
            Request::new("eth_call", json!([{ "to": to, "data": data }, at]))
        });
        // Once: a block that the node does not know any more was taken back, and the next one is verified.
        let answers = self
            .0
            .ask(requests.collect(), 1, PATIENCE)
            .map_err(|error| match error {
                AskError::TimedOut(after) => ReadError::TimedOut(after),
                error => ReadError::Failed(Box::new(error)),
            })?;
        let mut failed = None;
        let read: Vec<_> = answers
            .into_iter()
            .map(|answer| {
                let bytes = answer.map_err(|error| failed = Some(error)).ok()?;
                abi::reserves(&serde_json::from_value::<Bytes>(bytes).ok()?)
            })
            .collect();
        // Where nothing could be read it is the block or the node, not the pools.
        match failed {
            Some(error) if read.iter().all(Option::is_none) => {
                Err(ReadError::Failed(Box::new(error)))
            }
            _ => Ok(read),
        }
    }
}
