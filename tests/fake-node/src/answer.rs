//! What the node knows of its chain, and how it says it.

use std::collections::HashMap;

use alloy_primitives::B256;
use serde_json::{Value, json};

use crate::chain::{Block, number, quantity};
use crate::contracts::Contracts;
use crate::faults::Glitch;
use crate::filter::Filter;
use crate::{Call, FakeChain, FakeLog, Faults, Reply};

/// What a subscription brings.
#[derive(Clone, Debug)]
pub(crate) enum Topic {
    Heads,
    Logs(Filter),
}

/// A chain, its faults, and how often was asked for what.
#[derive(Default, Debug)]
pub(crate) struct Knowledge {
    pub(crate) chain: FakeChain,
    pub(crate) faults: Faults,
    pub(crate) contracts: Option<Contracts>,
    asked_block: HashMap<B256, usize>,
    asked_logs: HashMap<B256, usize>,
    asked_state: HashMap<B256, usize>,
}

fn again(asked: &mut HashMap<B256, usize>, hash: B256) -> usize {
    let count = asked.entry(hash).or_default();
    *count += 1;
    *count - 1
}

fn bad_params() -> Reply {
    Reply::error(-32602, "invalid params")
}

impl Knowledge {
    pub(crate) fn new(chain: FakeChain, faults: Faults) -> Self {
        Self {
            chain,
            faults,
            ..Self::default()
        }
    }

    /// The height that the node admits to.
    fn height(&self) -> u64 {
        self.chain
            .height()
            .saturating_sub(self.faults.lag)
            .max(self.chain.first())
    }

    /// The answer to a call that nothing else handles; subscriptions are the connection's.
    pub(crate) fn answer(&mut self, call: &Call) -> Reply {
        let param = |at: usize| call.params.get(at).unwrap_or(&Value::Null);
        match call.method.as_str() {
            "eth_chainId" => Reply::Result(json!(quantity(self.chain.id()))),
            "net_version" => Reply::Result(json!(self.chain.id().to_string())),
            "web3_clientVersion" => Reply::Result(json!("fake-node/1")),
            "eth_blockNumber" => Reply::Result(json!(quantity(self.height()))),
            "eth_syncing" if self.faults.syncing => Reply::Result(json!({
                "startingBlock": quantity(self.chain.first()),
                "currentBlock": quantity(self.height()),
                "highestBlock": quantity(self.chain.height() + 1000),
            })),
            "eth_syncing" => Reply::Result(json!(false)),
            "eth_getBlockByHash" => match hash(param(0)) {
                Some(hash) => Reply::Result(self.by_hash(hash).map_or(Value::Null, whole)),
                None => bad_params(),
            },
            "eth_getBlockByNumber" => match self.tag(param(0)) {
                Some(number) if number > self.height() => Reply::Result(Value::Null),
                Some(number) => Reply::Result(self.chain.at(number).map_or(Value::Null, whole)),
                None => bad_params(),
            },
            "eth_getLogs" => self.logs(param(0)),
            "eth_call" if self.contracts.is_some() => {
                self.called(param(0), param(1)).unwrap_or_else(bad_params)
            }
            "eth_getCode" if self.contracts.is_some() => {
                self.code(param(0)).unwrap_or_else(bad_params)
            }
            _ => Reply::error(
                -32601,
                format!("the method {} does not exist/is not available", call.method),
            ),
        }
    }

    /// The refusal of a call pinned to a block whose state is said not to be there yet.
    pub(crate) fn refuse_state(&mut self, call: &Call) -> Option<Reply> {
        if call.method != "eth_call" {
            return None;
        }
        let hash = hash(call.params.get(1)?.get("blockHash")?)?;
        let missing = again(&mut self.asked_state, hash) < self.faults.stateless_for
            || self.chain.block(hash).is_none();
        missing.then(|| Reply::error(-32000, "header not found"))
    }

    fn called(&self, call: &Value, at: &Value) -> Option<Reply> {
        let to = call.get("to")?.as_str()?.parse().ok()?;
        let data = call.get("data")?.as_str()?.parse().ok()?;
        let at = hash(at.get("blockHash")?)?;
        Some(self.contracts.as_ref()?.call(&self.chain, to, &data, at))
    }

    fn code(&self, address: &Value) -> Option<Reply> {
        let address = address.as_str()?.parse().ok()?;
        Some(self.contracts.as_ref()?.code(address))
    }

    fn by_hash(&mut self, hash: B256) -> Option<&Block> {
        let height = self.height();
        if again(&mut self.asked_block, hash) < self.faults.unknown_for {
            return None;
        }
        let left = self.faults.forget_branches;
        let block = self
            .chain
            .block(hash)
            .filter(|block| block.number <= height)?;
        let stays = self
            .chain
            .at(block.number)
            .is_some_and(|present| present.hash == hash);
        (stays || !left).then_some(block)
    }

    fn tag(&self, value: &Value) -> Option<u64> {
        match value.as_str() {
            Some("latest" | "pending" | "safe" | "finalized") => Some(self.height()),
            Some("earliest") => Some(self.chain.first()),
            None if value.is_null() => Some(self.height()),
            _ => number(value),
        }
    }

    fn logs(&mut self, query: &Value) -> Reply {
        let Some(filter) = Filter::read(query) else {
            return bad_params();
        };
        match query.get("blockHash") {
            Some(value) => match hash(value) {
                Some(hash) => self.logs_of(hash, &filter),
                None => bad_params(),
            },
            None => self.logs_between(query, &filter),
        }
    }

    fn logs_of(&mut self, hash: B256, filter: &Filter) -> Reply {
        let Some(block) = self.by_hash(hash) else {
            return Reply::error(-32000, "unknown block");
        };
        let logs = matching(block, filter);
        let glitch = again(&mut self.asked_logs, hash);
        match self.faults.log_glitches.get(glitch) {
            Some(Glitch::Error) => Reply::error(-32000, "missing trie node"),
            Some(Glitch::Empty) => Reply::Result(json!([])),
            None if self
                .faults
                .block_limit
                .is_some_and(|limit| logs.len() > limit) =>
            {
                self.too_many()
            }
            None => self.in_order(logs),
        }
    }

    fn logs_between(&self, query: &Value, filter: &Filter) -> Reply {
        let end = |name| self.tag(query.get(name).unwrap_or(&Value::Null));
        let (Some(from), Some(to)) = (end("fromBlock"), end("toBlock")) else {
            return bad_params();
        };
        if to < from {
            return Reply::error(-32000, "invalid block range params");
        }
        let seen = from..=to.min(self.height());
        let logs: Vec<_> = seen
            .filter_map(|number| self.chain.at(number))
            .flat_map(|block| matching(block, filter))
            .collect();
        match &self.faults.range_limit {
            Some(limit) if logs.len() > limit.logs || to - from >= limit.blocks => self.too_many(),
            _ => self.in_order(logs),
        }
    }

    fn too_many(&self) -> Reply {
        match &self.faults.range_limit {
            Some(limit) => Reply::error(limit.code, limit.message.clone()),
            None => Reply::error(-32005, "query returned more than 10000 results"),
        }
    }

    fn in_order(&self, mut logs: Vec<Value>) -> Reply {
        if self.faults.logs_reversed {
            logs.reverse();
        }
        Reply::Result(Value::Array(logs))
    }

    /// What `topic` brings of a new block: its header, or its logs.
    pub(crate) fn news(&self, topic: &Topic, hash: B256) -> Vec<Value> {
        match (topic, self.chain.block(hash)) {
            (Topic::Heads, Some(block)) if !self.faults.heads_stopped => vec![block.header()],
            (Topic::Logs(filter), Some(block)) if !self.faults.logs_stopped => {
                let mut logs = matching(block, filter);
                if self.faults.logs_reversed {
                    logs.reverse();
                }
                logs
            }
            _ => Vec::new(),
        }
    }

    /// The logs of a block as taken back, in their order.
    pub(crate) fn taken_back(&self, topic: &Topic, hash: B256) -> Vec<Value> {
        match (topic, self.chain.block(hash)) {
            (Topic::Logs(filter), Some(block)) if !self.faults.logs_stopped => {
                rows(block, filter, true)
            }
            _ => Vec::new(),
        }
    }
}

fn matching(block: &Block, filter: &Filter) -> Vec<Value> {
    rows(block, filter, false)
}

fn rows(block: &Block, filter: &Filter, removed: bool) -> Vec<Value> {
    let wanted =
        |(at, log): (usize, &FakeLog)| filter.takes(log).then(|| block.log(at, removed))?;
    block.logs.iter().enumerate().filter_map(wanted).collect()
}

/// A block with the list of its transactions, which nobody here reads.
fn whole(block: &Block) -> Value {
    let mut value = block.header();
    if let Some(map) = value.as_object_mut() {
        map.insert("transactions".to_owned(), json!([]));
    }
    value
}

fn hash(value: &Value) -> Option<B256> {
    value.as_str()?.parse().ok()
}
