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
        Ok(answers) => read(asked, &mut answers.into_iter()).unwrap_or_else(Answer::Failed),
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
                Err(error) => return reverted(&error).map(Answer::DryRun),
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
fn reverted(error: &CallError) -> Result<DryRun, String> {
    /// The code of an undone call, where the node follows the others.
    const REVERTED: i64 = 3;
    if let CallError::Node {
        code,
        message,
        data,
        ..
    } = error
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::AskError;
    use std::time::Duration;

    fn refused(code: i64, message: &str, data: Option<Value>) -> Given {
        Err(CallError::Node {
            method: "m".to_owned(),
            code,
            message: message.to_owned(),
            data,
        })
    }

    const HASH: B256 = B256::repeat_byte(7);

    fn told(asked: Asked, answers: Vec<Given>) -> Answer {
        answer(asked, Ok(answers))
    }

    fn failed(answer: &Answer) -> bool {
        matches!(answer, Answer::Failed(_))
    }

    #[test]
    fn what_a_node_lacks_is_no_revert_and_a_revert_keeps_its_data() {
        let asked = Asked::DryRun { estimate: true };
        let data = Bytes::from_static(&[1, 2, 3]);
        for (given, reverted) in [
            (
                refused(3, "execution reverted", Some(json!(data))),
                Some(data.clone()),
            ),
            (
                refused(-32000, "VM execution error", Some(json!(data))),
                Some(data),
            ),
            (
                refused(-32000, "execution reverted", None),
                Some(Bytes::new()),
            ),
            (refused(-32000, "header not found", None), None),
            (refused(-32005, "limit exceeded", None), None),
        ] {
            let expected = reverted.map(|data| Answer::DryRun(DryRun::Reverted(data)));
            let answer = told(asked, vec![given]);
            assert!(
                expected.map_or_else(|| failed(&answer), |it| it == answer),
                "{answer:?}"
            );
        }
        let output = Bytes::from_static(&[9; 32]);
        let done = told(asked, vec![Ok(json!(output)), Ok(json!("0x5208"))]);
        assert_eq!(
            done,
            Answer::DryRun(DryRun::Done {
                output: output.clone(),
                gas: 21_000
            })
        );
        // It runs, and its gas is not known.
        let half = vec![Ok(json!(output)), refused(3, "execution reverted", None)];
        assert!(failed(&told(asked, half)));
        assert!(failed(&told(asked, vec![Ok(json!(output))])));
    }

    #[test]
    fn a_transaction_is_taken_only_where_the_node_says_so_of_this_one() {
        let asked = Asked::Send { hash: HASH };
        let sent = |given| told(asked, vec![given]);
        assert_eq!(sent(Ok(json!(HASH))), Answer::Sent(Sent::Accepted));
        assert!(failed(&sent(Ok(json!(B256::ZERO)))));
        assert!(failed(&sent(Ok(Value::Null))));
        for (message, expected) in [
            ("already known", Sent::Accepted),
            ("nonce too low: next 4", Sent::NonceTooLow),
            ("replacement transaction underpriced", Sent::Underpriced),
            ("insufficient funds", Sent::Refused),
        ] {
            assert_eq!(sent(refused(-32000, message, None)), Answer::Sent(expected));
        }
        // Whether it arrived is not known.
        assert!(failed(&answer(
            asked,
            Err(AskError::TimedOut(Duration::ZERO))
        )));
        assert!(failed(&answer(asked, Err(AskError::NotConnected))));
        let lost = CallError::TimedOut {
            method: "m".to_owned(),
            after: Duration::ZERO,
        };
        assert!(failed(&sent(Err(lost))));
    }

    #[test]
    fn only_a_whole_receipt_of_the_transaction_in_a_block_is_one() {
        let asked = Asked::Receipt { hash: HASH };
        let whole = json!({
            "transactionHash": HASH, "blockHash": B256::ZERO, "blockNumber": "0x10", "status": "0x0",
            "gasUsed": "0x5208", "effectiveGasPrice": "0x3", "logs": [],
        });
        let told = |value: &Value| told(asked, vec![Ok(value.clone())]);
        match told(&whole) {
            Answer::Receipt(Some(receipt)) => {
                assert_eq!((receipt.block.number, receipt.succeeded), (16, false));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(told(&Value::Null), Answer::Receipt(None));
        let with = |key: &str, value: Value| {
            let mut changed = whole.clone();
            changed[key] = value;
            changed
        };
        assert_eq!(told(&with("blockHash", Value::Null)), Answer::Receipt(None));
        assert!(failed(&told(&with("transactionHash", json!(B256::ZERO)))));
        assert!(failed(&told(&with("status", Value::Null))));
        assert!(failed(&told(&with(
            "gasUsed",
            json!("0x10000000000000000")
        ))));
        assert!(failed(&answer(asked, Ok(Vec::new()))));
    }
}
