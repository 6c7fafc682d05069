//! The questions to a node, one after the other.
//!
//! # Invariants
//! - A step that fails is a finding; the next one is asked all the same.
//! - Nothing that the node says is kept but as a number, a hash, or escaped text.

use super::line::{Failure, Line, size};
use super::record::{
    AnswerRecord, BatchRecord, FactoryRecord, FindingRecord, HeadRecord, LogsRecord, Quantiles,
    StateRecord, SyncRecord, UnknownRecord,
};
use crate::market::Address;
use crate::node::plain;
use alloy_primitives::{Address as Contract, B256, Bytes, U64, U256, keccak256};
use regatta_chain::abi::{Factory, SYNC};
use regatta_chain::read::Question;
use regatta_chain::rpc::{CallError, Request};
use regatta_chain::transport::shown;
use regatta_chain::types::{Header, Log};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How many headers' timestamps are read.
const HEADERS: u64 = 16;
/// The most blocks of a range that is asked for.
const RANGE: u64 = 10_000;
/// The batches that are tried.
const BATCHES: [usize; 3] = [10, 100, 1000];
/// How often the round trip is measured.
const ROUND_TRIPS: usize = 10;
/// How far back the old state is.
const OLD: u64 = 100;

/// Asks, and keeps what failed.
pub(super) struct Steps<'a> {
    pub(super) line: Line<'a>,
    pub(super) findings: Vec<FindingRecord>,
}

pub(super) fn finding(step: &'static str, failure: &Failure) -> FindingRecord {
    FindingRecord {
        step,
        kind: failure.kind(),
        text: failure.to_string(),
    }
}

fn answer(says: &'static str) -> AnswerRecord {
    AnswerRecord {
        says,
        code: None,
        message: None,
    }
}

fn read<T: DeserializeOwned>(method: &str, value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| {
        Failure::Call(CallError::Malformed {
            method: method.to_owned(),
            what: error.to_string(),
        })
    })
}

/// What the value of a question for a block is.
fn said(value: &Value) -> AnswerRecord {
    match value {
        Value::Null => answer("not_found"),
        Value::Array(items) if items.is_empty() => answer("empty"),
        Value::String(text) if text == "0x" => answer("empty"),
        _ => answer("data"),
    }
}

impl Steps<'_> {
    fn fails(&mut self, step: &'static str, failure: &Failure) {
        self.findings.push(finding(step, failure));
    }

    fn wrong(&mut self, step: &'static str, text: String) {
        self.findings.push(FindingRecord {
            step,
            kind: "wrong",
            text,
        });
    }

    async fn ask<T: DeserializeOwned>(
        &mut self,
        step: &'static str,
        method: &str,
        params: Value,
    ) -> Option<T> {
        let value = self.line.call(method, params).await;
        match value.and_then(|value| read(method, value)) {
            Ok(value) => Some(value),
            Err(failure) => {
                self.fails(step, &failure);
                None
            }
        }
    }

    pub(super) async fn chain_id(&mut self) -> Option<u64> {
        let id: U64 = self.ask("chain_id", "eth_chainId", json!([])).await?;
        Some(id.to())
    }

    pub(super) async fn client(&mut self) -> Option<String> {
        let name: String = self.ask("client", "web3_clientVersion", json!([])).await?;
        Some(shown(&name))
    }

    pub(super) async fn sync(&mut self) -> SyncRecord {
        let said: Option<Value> = self.ask("sync", "eth_syncing", json!([])).await;
        let number = |value: &Value, name: &str| -> Option<u64> {
            let number: U64 = serde_json::from_value(value.get(name)?.clone()).ok()?;
            Some(number.to())
        };
        match said {
            None => SyncRecord::default(),
            Some(Value::Bool(syncing)) => SyncRecord {
                syncing: Some(syncing),
                behind_blocks: None,
            },
            Some(value @ Value::Object(_)) => SyncRecord {
                syncing: Some(true),
                behind_blocks: number(&value, "highestBlock")
                    .zip(number(&value, "currentBlock"))
                    .map(|(highest, current)| highest.saturating_sub(current)),
            },
            Some(other) => {
                let text = shown(&other.to_string());
                self.wrong("sync", format!("eth_syncing answers with `{text}`"));
                SyncRecord::default()
            }
        }
    }

    pub(super) async fn round_trip(&mut self) -> Option<Quantiles> {
        let mut times = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let began = Instant::now();
            let _: Value = self.ask("round_trip", "eth_chainId", json!([])).await?;
            times.push(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        Quantiles::of(times)
    }

    async fn header(&mut self, step: &'static str, number: Value) -> Option<Header> {
        let header: Option<Header> = self
            .ask(step, "eth_getBlockByNumber", json!([number, false]))
            .await?;
        if header.is_none() {
            let number = number_text(&number);
            self.wrong(step, format!("the node has no block {number}"));
        }
        header
    }

    /// The latest header, and what it and those before it amount to.
    pub(super) async fn head(&mut self) -> (Option<Header>, HeadRecord) {
        let Some(latest) = self.header("head", json!("latest")).await else {
            return (None, HeadRecord::default());
        };
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let clock = clock.map_or(0, |since| since.as_secs());
        let height: u64 = latest.number.to();
        let mut times = vec![latest.timestamp.to::<u64>()];
        for back in 1..HEADERS.min(height.saturating_add(1)) {
            let number = json!(U64::from(height - back));
            match self.header("headers", number).await {
                Some(header) => times.push(header.timestamp.to()),
                None => break,
            }
        }
        let intervals: Vec<u64> = times
            .iter()
            .zip(times.iter().skip(1))
            .map(|(later, earlier)| later.saturating_sub(*earlier))
            .collect();
        let sum = intervals
            .iter()
            .fold(0, |sum: u64, n| sum.saturating_add(*n));
        let record = HeadRecord {
            number: Some(height),
            hash: Some(latest.hash.to_string()),
            age_s: i64::try_from(i128::from(clock) - i128::from(latest.timestamp.to::<u64>())).ok(),
            headers: times.len() as u64,
            interval_ms: sum.saturating_mul(1000).checked_div(intervals.len() as u64),
            interval_max_s: intervals.into_iter().max(),
        };
        (Some(latest), record)
    }

    /// Logs of the latest block, and of more and more blocks up to it.
    pub(super) async fn logs(&mut self, latest: &Header) -> LogsRecord {
        let mut record = LogsRecord::default();
        let params = json!([{ "blockHash": latest.hash, "topics": [[SYNC]] }]);
        match self.asked_logs(params).await {
            Ok(None) => record.by_hash = Some(answer("not_found")),
            Ok(Some(logs)) => {
                let others = logs.iter().filter(|log| log.block_hash != latest.hash);
                let others = others.count();
                if others > 0 {
                    self.wrong("logs_by_hash", format!("{others} logs are of other blocks"));
                }
                record.by_hash = Some(answer(if logs.is_empty() { "empty" } else { "data" }));
                record.by_hash_logs = Some(logs.len());
            }
            Err(failure) => {
                self.fails("logs_by_hash", &failure);
                record.by_hash = Some(failure.record());
            }
        }
        let height: u64 = latest.number.to();
        let mut blocks = 1;
        loop {
            let from = height.saturating_sub(blocks - 1);
            let params = json!([{
                "fromBlock": U64::from(from), "toBlock": latest.number, "topics": [[SYNC]],
            }]);
            match self.asked_logs(params).await {
                Ok(logs) => {
                    record.largest_range_blocks = Some(height - from + 1);
                    record.largest_range_logs = logs.map(|logs| logs.len());
                }
                Err(failure) => {
                    self.fails("log_range", &failure);
                    record.refused_range_blocks = Some(blocks);
                    record.range_refusal = Some(failure.record());
                    return record;
                }
            }
            if from == 0 || blocks == RANGE {
                return record;
            }
            blocks = (blocks * 2).min(RANGE);
        }
    }

    async fn asked_logs(&mut self, params: Value) -> Result<Option<Vec<Log>>, Failure> {
        read("eth_getLogs", self.line.call("eth_getLogs", params).await?)
    }

    pub(super) async fn batches(&mut self) -> BatchRecord {
        let mut record = BatchRecord::default();
        for size in BATCHES {
            let requests = vec![Request::new("eth_chainId", json!([])); size];
            match self.line.batch(requests).await {
                Ok(_) => record.largest = Some(size),
                Err(failure) => {
                    self.fails("batch", &failure);
                    record.refused = Some(size);
                    record.refusal = Some(failure.record());
                    break;
                }
            }
        }
        record
    }

    /// Asks for a block that there is not. An error or null is right; anything else is not.
    pub(super) async fn unknown(&mut self) -> UnknownRecord {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = clock.map_or(0, |since| since.as_nanos());
        let hash = keccak256(seed.to_be_bytes());
        let header = self
            .of_unknown("unknown_header", "eth_getBlockByHash", json!([hash, false]))
            .await;
        let filter = json!([{ "blockHash": hash, "topics": [[SYNC]] }]);
        let logs = self.of_unknown("unknown_logs", "eth_getLogs", filter).await;
        let call = self
            .of_unknown("unknown_call", "eth_call", nothing_at(hash))
            .await;
        UnknownRecord {
            header: Some(header),
            logs: Some(logs),
            call: Some(call),
        }
    }

    async fn of_unknown(
        &mut self,
        step: &'static str,
        method: &str,
        params: Value,
    ) -> AnswerRecord {
        match self.line.call(method, params).await {
            Ok(value) => {
                let said = said(&value);
                if said.says != "not_found" {
                    let what = if said.says == "empty" {
                        "as if the block were there and empty: that is not told apart from a block without logs or state"
                            .to_owned()
                    } else {
                        format!("with {} bytes", size(&value))
                    };
                    self.wrong(
                        step,
                        format!("{method} answers for a block that there is not {what}"),
                    );
                }
                said
            }
            Err(failure) => {
                // A refusal is as it must be. Anything else is no answer at all.
                if !matches!(failure, Failure::Call(CallError::Node { .. })) {
                    self.fails(step, &failure);
                }
                failure.record()
            }
        }
    }

    /// State by the hash of the latest block, and of an old one.
    pub(super) async fn state(&mut self, latest: &Header) -> StateRecord {
        let mut record = StateRecord {
            latest: Some(self.call_at("state", latest.hash).await),
            ..StateRecord::default()
        };
        let height: u64 = latest.number.to();
        let Some(number) = height.checked_sub(OLD) else {
            return record;
        };
        if let Some(old) = self.header("old_header", json!(U64::from(number))).await {
            record.old_blocks = Some(OLD);
            record.old = Some(self.call_at("old_state", old.hash).await);
        }
        record
    }

    async fn call_at(&mut self, step: &'static str, hash: B256) -> AnswerRecord {
        match self.line.call("eth_call", nothing_at(hash)).await {
            // A call of an address without code gives no byte, and that it gives this is the answer.
            Ok(Value::String(_)) => answer("data"),
            Ok(value) => {
                self.wrong(
                    step,
                    format!("eth_call answers with {} bytes of no data", size(&value)),
                );
                answer("malformed")
            }
            Err(failure) => {
                self.fails(step, &failure);
                failure.record()
            }
        }
    }

    pub(super) async fn factory(
        &mut self,
        latest: &Header,
        address: Address,
        most_pools: usize,
    ) -> FactoryRecord {
        let block = json!({ "blockHash": latest.hash });
        let contract: Contract = plain(address);
        let code: Option<Bytes> = self
            .ask("factory_code", "eth_getCode", json!([contract, block]))
            .await;
        let question = Question::new(contract, &Factory::allPairsLengthCall {});
        let call = json!([{ "to": contract, "data": question.data }, block]);
        let length: Option<Bytes> = self.ask("factory_pools", "eth_call", call).await;
        let pools: Option<U256> = length.and_then(|bytes| {
            let word = <[u8; 32]>::try_from(bytes.as_ref()).ok();
            let decoded = word.map(U256::from_be_bytes);
            if decoded.is_none() {
                let size = bytes.len();
                self.wrong(
                    "factory_pools",
                    format!("{address} answers allPairsLength with {size} bytes: it is no factory"),
                );
            }
            decoded
        });
        FactoryRecord {
            address: address.to_string(),
            code_bytes: code.map(|code| code.len()),
            pools: pools.map(|pools| pools.to_string()),
            most_pools,
            fits: pools.map(|pools| pools <= U256::from(most_pools)),
        }
    }
}

/// A call of nobody: it asks for nothing but the block's state.
fn nothing_at(hash: B256) -> Value {
    json!([{ "to": Contract::ZERO, "data": "0x" }, { "blockHash": hash }])
}

fn number_text(number: &Value) -> String {
    number.as_str().unwrap_or_default().to_owned()
}
