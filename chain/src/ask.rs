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
    match client
        .call("eth_getLogs", [filter.of_block(hash, None)])
        .await
    {
        Ok(logs) => Ok(answer(logs)),
        Err(error @ CallError::Node { .. }) if !filter.known.is_empty() => {
            narrowed(client, hash, filter, error).await
        }
        Err(error) => Err(error),
    }
}

/// The logs of the known contracts, asked for in parts.
async fn narrowed(
    client: &Client,
    hash: B256,
    filter: &Filter,
    refusal: CallError,
) -> Result<Answer, CallError> {
    let (front, back) = filter.known.split_at(filter.known.len() / 2);
    let mut parts = vec![back, front];
    let mut found: Vec<Log> = Vec::new();
    let mut answered = false;
    while let Some(part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let params = [filter.of_block(hash, Some(part))];
        match client.call::<Option<Vec<Log>>>("eth_getLogs", params).await {
            Ok(Some(logs)) => {
                answered = true;
                found.extend(logs);
            }
            Ok(None) => return Ok(Answer::Failed(Failure::NotFound)),
            Err(CallError::Node { .. }) if part.len() > 1 => {
                let (front, back) = part.split_at(part.len() / 2);
                parts.extend([back, front]);
            }
            Err(error) => return Err(error),
        }
    }
    if answered {
        Ok(Answer::Logs(found))
    } else {
        Err(refusal)
    }
}

fn answer(logs: Option<Vec<Log>>) -> Answer {
    logs.map_or(Answer::Failed(Failure::NotFound), Answer::Logs)
}
