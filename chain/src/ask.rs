//! The follower's calls, put to a node.
//!
//! # Invariants
//! - Every call gets one answer, and a block is asked for by its hash alone.
//! - A refusal of a block's logs is met by asking for less: the contracts are halved until it is answered, or one contract
//!   alone is refused. No code and no words of a refusal are trusted, since nodes give different ones.

use alloy_primitives::{Address, B256};
use serde_json::{Value, json};

use crate::follow::{Answer, Call, Failure};
use crate::rpc::{CallError, Client};
use crate::types::{Header, Log};

/// Which logs matter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// First topics.
    pub topics: Vec<B256>,
    /// The contracts that are known to matter: what is asked for where a node refuses to answer for all.
    pub known: Vec<Address>,
    /// In how many parts the known contracts are asked for from the beginning; 0 asks for all contracts at once, also those
    /// that are not known. It is for a node whose answers are more than a message may have, so that they end the connection:
    /// after that nothing can be asked for again.
    pub parts: usize,
}

impl Filter {
    /// What `eth_subscribe` takes after `"logs"`.
    #[must_use]
    pub fn subscription(&self) -> Value {
        json!({ "topics": [self.topics] })
    }

    fn of_block(&self, hash: B256, addresses: Option<&[Address]>) -> Value {
        let mut filter = json!({ "blockHash": hash, "topics": [self.topics] });
        if let (Some(addresses), Some(fields)) = (addresses, filter.as_object_mut()) {
            fields.insert("address".to_owned(), json!(addresses));
        }
        filter
    }
}

/// Puts a call of the follower's to the node.
pub async fn ask(client: &Client, call: Call, filter: &Filter) -> Answer {
    let answer = match call {
        Call::LatestHeader => {
            header(client, "eth_getBlockByNumber", json!(["latest", false])).await
        }
        Call::HeaderByHash(hash) => {
            header(client, "eth_getBlockByHash", json!([hash, false])).await
        }
        Call::LogsByHash(hash) => logs(client, hash, filter).await,
    };
    answer.unwrap_or_else(|error| Answer::Failed(failure(&error)))
}

/// What an error of a call is to the follower.
const fn failure(error: &CallError) -> Failure {
    match error {
        CallError::Node { .. } | CallError::TooLarge { .. } => Failure::Refused,
        CallError::TimedOut { .. } => Failure::TimedOut,
        CallError::Closed { .. } | CallError::Busy { .. } => Failure::Transport,
        CallError::Malformed { .. } => Failure::Wrong,
    }
}

async fn header(client: &Client, method: &str, params: Value) -> Result<Answer, CallError> {
    let header: Option<Header> = client.call(method, params).await?;
    Ok(header.map_or(Answer::Failed(Failure::NotFound), Answer::Header))
}

async fn logs(client: &Client, hash: B256, filter: &Filter) -> Result<Answer, CallError> {
    if filter.parts > 0 && !filter.known.is_empty() {
        let size = filter.known.len().div_ceil(filter.parts);
        return in_parts(
            client,
            hash,
            filter,
            filter.known.chunks(size).rev().collect(),
        )
        .await;
    }
    match client
        .call("eth_getLogs", [filter.of_block(hash, None)])
        .await
    {
        Ok(logs) => Ok(answer(logs)),
        Err(CallError::Node { .. }) if !filter.known.is_empty() => {
            let (front, back) = filter.known.split_at(filter.known.len() / 2);
            in_parts(client, hash, filter, vec![back, front]).await
        }
        Err(error) => Err(error),
    }
}

/// The logs of the contracts of `parts`, of which the last is asked for first; those that are refused are halved.
async fn in_parts(
    client: &Client,
    hash: B256,
    filter: &Filter,
    mut parts: Vec<&[Address]>,
) -> Result<Answer, CallError> {
    let mut found: Vec<Log> = Vec::new();
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let params = [filter.of_block(hash, Some(part))];
        match client.call::<Option<Vec<Log>>>("eth_getLogs", params).await {
            Ok(Some(logs)) => found.extend(logs),
            Ok(None) => return Ok(Answer::Failed(Failure::NotFound)),
            Err(CallError::Node { .. } | CallError::TooLarge { .. }) if part.len() > 1 => {
                let (front, back) = part.split_at(part.len() / 2);
                parts.extend([back, front]);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Answer::Logs(found))
}

fn answer(logs: Option<Vec<Log>>) -> Answer {
    logs.map_or(Answer::Failed(Failure::NotFound), Answer::Logs)
}
