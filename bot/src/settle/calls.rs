//! What the engine asks of the node, as calls, and what came as its answers.
//!
//! # Invariants
//! - State is asked for by a block's hash. Nothing of an answer is believed beyond its form: what does not have it is a
//!   failure, and a failure never reads as "no" or "not there".

use crate::node::Answers;
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use regatta_chain::rpc::{CallError, Request};
use regatta_settle::engine::{Action, Answer, CallId, DryRun, Receipt, ReceiptLog, Sent};
use regatta_settle::ledger::Block;
use regatta_settle::nonce::Counts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What was asked, as far as the answer is read by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    DryRun { estimate: bool },
    Send { hash: B256 },
    Receipt { hash: B256 },
    Counts,
}

/// The calls of an action that is one of the node's; the action itself otherwise.
pub(super) fn requests(action: Action) -> Result<(CallId, Asked, Vec<Request>), Action> {
    Ok(match action {
        Action::DryRun {
            call,
            at,
            from,
            to,
            data,
            estimate,
        } => {
            let params = json!([
                { "from": from, "to": to, "data": data },
                { "blockHash": at.hash }
            ]);
            let mut requests = vec![Request::new("eth_call", params.clone())];
            if estimate {
                requests.push(Request::new("eth_estimateGas", params));
            }
            (call, Asked::DryRun { estimate }, requests)
        }
        Action::Send { call, hash, raw } => {
            let request = Request::new("eth_sendRawTransaction", json!([raw]));
            (call, Asked::Send { hash }, vec![request])
        }
        Action::Receipt { call, hash } => {
            let request = Request::new("eth_getTransactionReceipt", json!([hash]));
            (call, Asked::Receipt { hash }, vec![request])
        }
        Action::Counts { call, account } => {
            let count = |of| Request::new("eth_getTransactionCount", json!([account, of]));
            (call, Asked::Counts, vec![count("latest"), count("pending")])
        }
        other @ (Action::Sign { .. } | Action::Record { .. }) => return Err(other),
    })
}

/// What the node's answers say to what was asked.
pub(super) fn answer(asked: Asked, answers: Answers) -> Answer {
    match answers {
        Ok(answers) => {
            read(asked, &mut answers.into_iter()).unwrap_or_else(|error| Answer::Failed(error))
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}

type Given = Result<Value, CallError>;

fn read(asked: Asked, answers: &mut dyn Iterator<Item = Given>) -> Result<Answer, String> {
    let mut next = || {
        answers
            .next()
            .ok_or_else(|| "fewer answers than questions".to_owned())
    };
    Ok(match asked {
        Asked::DryRun { estimate } => {
            let output: Bytes = match next()? {
                Ok(value) => parsed("eth_call", value)?,
                Err(error) => return reverted(error).map(Answer::DryRun),
            };
            let gas = if estimate {
                match next()? {
                    Ok(value) => parsed::<U64>("eth_estimateGas", value)?.to(),
                    // It ran a moment ago: what it lacks is gas or funds.
                    Err(error) => return Err(error.to_string()),
                }
            } else {
                0
            };
            Answer::DryRun(DryRun::Done { output, gas })
        }
        Asked::Send { hash } => match next()? {
            Ok(value) => {
                let said: B256 = parsed("eth_sendRawTransaction", value)?;
                if said != hash {
                    return Err(format!("the node took {said}, and {hash} was sent"));
                }
                Answer::Sent(Sent::Accepted)
            }
            Err(CallError::Node { message, .. }) => Answer::Sent(Sent::of_error(&message)),
            Err(error) => return Err(error.to_string()),
        },
        Asked::Receipt { hash } => {
            let value = next()?.map_err(|error| error.to_string())?;
            Answer::Receipt(receipt(hash, value)?)
        }
        Asked::Counts => {
            let mut count = || {
                let value = next()?.map_err(|error| error.to_string())?;
                parsed::<U64>("eth_getTransactionCount", value).map(|count| count.to::<u64>())
            };
            Answer::Counts(Counts {
                latest: count()?,
                pending: count()?,
            })
        }
    })
}

pub(super) fn parsed<T: DeserializeOwned>(method: &str, value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("{method}: {error}"))
}

/// Whether an error says that the call was undone, or that the node failed.
fn reverted(error: CallError) -> Result<DryRun, String> {
    /// The code of an undone call, where the node follows the others.
    const REVERTED: i64 = 3;
    if let CallError::Node {
        code,
        message,
        data,
        ..
    } = &error
    {
        let data = data
            .as_ref()
            .and_then(|data| serde_json::from_value::<Bytes>(data.clone()).ok());
        if *code == REVERTED || data.is_some() || message.to_ascii_lowercase().contains("revert") {
            return Ok(DryRun::Reverted(data.unwrap_or_default()));
        }
    }
    Err(error.to_string())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawReceipt {
    transaction_hash: B256,
    block_hash: Option<B256>,
    block_number: Option<U64>,
    status: U64,
    gas_used: U64,
    effective_gas_price: U256,
    logs: Vec<RawLog>,
}

#[derive(Deserialize)]
struct RawLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
}

/// A receipt of the transaction `hash`; nothing if no block has it.
pub(super) fn receipt(hash: B256, value: Value) -> Result<Option<Receipt>, String> {
    let method = "eth_getTransactionReceipt";
    let Some(raw) = parsed::<Option<RawReceipt>>(method, value)? else {
        return Ok(None);
    };
    if raw.transaction_hash != hash {
        let other = raw.transaction_hash;
        return Err(format!(
            "{method}: the receipt is of {other}, not of {hash}"
        ));
    }
    let (Some(block), Some(number)) = (raw.block_hash, raw.block_number) else {
        return Ok(None);
    };
    Ok(Some(Receipt {
        block: Block {
            number: number.to(),
            hash: block,
        },
        succeeded: raw.status == U64::from(1),
        gas_used: raw.gas_used.to(),
        gas_price: raw.effective_gas_price,
        logs: raw
            .logs
            .into_iter()
            .map(|log| ReceiptLog {
                address: log.address,
                topics: log.topics,
                data: log.data,
            })
            .collect(),
    }))
}
