//! Everything of a node that its thread and the test share, under one lock.
//!
//! # Invariants
//! - What is said on a connection is queued under the lock, so that what a test sees counted has been said before.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::answer::{Knowledge, Topic};
use crate::chain::Reorg;
use crate::filter::Filter;
use crate::script::Handler;
use crate::{Batches, Call, Door, FakeLog, Removed, Reply};

/// What a connection's writer is to do.
#[derive(Debug)]
pub(crate) enum Out {
    Text(String),
    Pong(Vec<u8>),
    Bytes(Vec<u8>),
    MidFrame(String),
    Fragments(String),
    Close(u16, String),
    Drop,
}

struct Subscription {
    topic: Topic,
    dead: bool,
}

pub(crate) struct Connection {
    out: UnboundedSender<Out>,
    subscriptions: BTreeMap<u64, Subscription>,
    said: u64,
    pub(crate) silent: bool,
}

pub(crate) struct State {
    pub(crate) knowledge: Knowledge,
    pub(crate) handlers: HashMap<String, Handler>,
    pub(crate) batches: Batches,
    pub(crate) door: Door,
    pub(crate) silent_after: Option<u64>,
    pub(crate) open: BTreeMap<usize, Connection>,
    pub(crate) accepted: usize,
    pub(crate) pings: u64,
    pub(crate) calls: HashMap<String, usize>,
    held: Vec<(usize, Value)>,
    next_subscription: u64,
    pub(crate) stopped: bool,
    /// Whether a socket listens.
    pub(crate) listening: bool,
    /// Connections that were accepted, with a handshake or without.
    pub(crate) knocked: usize,
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

impl State {
    pub(crate) fn new(knowledge: Knowledge, handlers: HashMap<String, Handler>) -> Self {
        Self {
            knowledge,
            handlers,
            batches: Batches::default(),
            door: Door::default(),
            silent_after: None,
            open: BTreeMap::new(),
            accepted: 0,
            pings: 0,
            calls: HashMap::new(),
            held: Vec::new(),
            next_subscription: 0,
            stopped: false,
            listening: false,
            knocked: 0,
        }
    }

    /// Takes a connection whose handshake is done.
    pub(crate) fn enter(&mut self, out: UnboundedSender<Out>) -> usize {
        let number = self.accepted;
        self.accepted += 1;
        let connection = Connection {
            out,
            subscriptions: BTreeMap::new(),
            said: 0,
            silent: false,
        };
        self.open.insert(number, connection);
        number
    }

    /// Says something on a connection, unless it is silent.
    pub(crate) fn say(&mut self, number: usize, out: Out) {
        let Some(connection) = self.open.get_mut(&number) else {
            return;
        };
        connection.silent |= self
            .silent_after
            .is_some_and(|after| connection.said >= after);
        if !connection.silent {
            connection.said += 1;
            // The connection may be gone already.
            let _ = connection.out.send(out);
        }
    }

    /// Drops every connection.
    pub(crate) fn drop_all(&mut self) {
        for connection in self.open.values() {
            let _ = connection.out.send(Out::Drop);
        }
    }

    /// A message came.
    pub(crate) fn hear(&mut self, number: usize, message: &Value) {
        match message {
            Value::Array(calls) => self.hear_batch(number, calls),
            call => {
                let id = call.get("id").cloned().unwrap_or_default();
                let reply = self.reply(number, call);
                self.say_reply(number, &id, reply);
            }
        }
    }

    fn reply(&mut self, number: usize, message: &Value) -> Reply {
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let params = message.get("params").cloned().unwrap_or_default();
        let count = self.calls.entry(method.clone()).or_default();
        let id = message.get("id").cloned().unwrap_or_default();
        let call = Call {
            connection: number,
            id,
            method,
            params,
            before: *count,
        };
        *count += 1;
        if let Some(refusal) = self.knowledge.refuse_state(&call) {
            return refusal;
        }
        match (self.handlers.get_mut(&call.method), call.method.as_str()) {
            (Some(handler), _) => handler(&call),
            (None, "eth_subscribe") => self.subscribe(&call),
            (None, "eth_unsubscribe") => {
                let name = call
                    .params
                    .get(0)
                    .and_then(crate::chain::number)
                    .unwrap_or_default();
                let gone = self
                    .open
                    .get_mut(&number)
                    .and_then(|open| open.subscriptions.remove(&name));
                Reply::Result(json!(gone.is_some()))
            }
            _ => self.knowledge.answer(&call),
        }
    }

    fn subscribe(&mut self, call: &Call) -> Reply {
        let topic = match call.params.get(0).and_then(Value::as_str) {
            Some("newHeads") => Some(Topic::Heads),
            Some("logs") => Filter::read(call.params.get(1).unwrap_or(&json!({}))).map(Topic::Logs),
            _ => None,
        };
        let (Some(topic), Some(connection)) = (topic, self.open.get_mut(&call.connection)) else {
            return Reply::error(-32602, "no such subscription");
        };
        self.next_subscription += 1;
        let dead = self.knowledge.faults.dead_subscriptions;
        connection
            .subscriptions
            .insert(self.next_subscription, Subscription { topic, dead });
        Reply::Result(json!(crate::chain::quantity(self.next_subscription)))
    }

    fn hear_batch(&mut self, number: usize, calls: &[Value]) {
        let mut answers = Vec::new();
        for call in calls {
            let id = call.get("id").cloned().unwrap_or_default();
            match self.reply(number, call) {
                Reply::Result(value) => answers.push(result(&id, &value)),
                Reply::Error {
                    code,
                    message,
                    data,
                } => answers.push(error(&id, code, &message, data)),
                Reply::Hold(value) => self.held.push((number, result(&id, &value))),
                instead => return self.say_reply(number, &id, instead),
            }
        }
        match self.batches {
            Batches::Reversed => answers.reverse(),
            Batches::Without(at) if at < answers.len() => drop(answers.remove(at)),
            Batches::Doubled(at) => answers.extend(answers.get(at).cloned()),
            Batches::InOrder | Batches::Without(_) => {}
            Batches::Apart => {
                for answer in answers {
                    self.say(number, Out::Text(answer.to_string()));
                }
                return;
            }
        }
        if !answers.is_empty() {
            self.say(number, Out::Text(Value::Array(answers).to_string()));
        }
    }

    fn say_reply(&mut self, number: usize, id: &Value, reply: Reply) {
        let long =
            |bytes: usize| result(id, &json!("0".repeat(bytes.saturating_sub(40)))).to_string();
        let out = match reply {
            Reply::Silence => return,
            Reply::Hold(value) => return self.held.push((number, result(id, &value))),
            Reply::Twice(value) => {
                let answer = result(id, &value).to_string();
                self.say(number, Out::Text(answer.clone()));
                Out::Text(answer)
            }
            Reply::Result(value) => Out::Text(result(id, &value).to_string()),
            Reply::Error {
                code,
                message,
                data,
            } => Out::Text(error(id, code, &message, data).to_string()),
            Reply::Unaddressed { code, message } => {
                Out::Text(error(&Value::Null, code, &message, None).to_string())
            }
            Reply::WrongId(value) => Out::Text(result(&json!(u64::MAX), &value).to_string()),
            Reply::Hollow => Out::Text(json!({"jsonrpc": "2.0", "id": id}).to_string()),
            Reply::Raw(text) => Out::Text(text),
            Reply::Bytes(bytes) => Out::Bytes(bytes),
            Reply::MidFrame(value) => Out::MidFrame(result(id, &value).to_string()),
            Reply::Huge(bytes) => Out::Text(long(bytes)),
            Reply::HugeInFragments(bytes) => Out::Fragments(long(bytes)),
            Reply::Close(code, reason) => Out::Close(code, reason),
            Reply::Drop => Out::Drop,
        };
        self.say(number, out);
    }

    /// Says what was held.
    pub(crate) fn release(&mut self) -> usize {
        let held = std::mem::take(&mut self.held);
        let count = held.len();
        for (number, answer) in held {
            self.say(number, Out::Text(answer.to_string()));
        }
        count
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// How many living subscriptions there are.
    pub(crate) fn subscriptions(&self) -> usize {
        self.open
            .values()
            .map(|connection| connection.subscriptions.len())
            .sum()
    }

    fn notify(&mut self, what: impl Fn(&Knowledge, &Topic) -> Vec<Value>) {
        let mut news = Vec::new();
        for (&number, connection) in &self.open {
            for (&name, subscription) in
                connection.subscriptions.iter().filter(|(_, one)| !one.dead)
            {
                let values = what(&self.knowledge, &subscription.topic);
                news.extend(
                    values
                        .into_iter()
                        .map(|value| (number, notification(name, &value))),
                );
            }
        }
        for (number, text) in news {
            self.say(number, Out::Text(text));
        }
    }

    /// Tells the subscriptions of a new block.
    fn announce(&mut self, hash: alloy_primitives::B256) {
        let heads = |knowledge: &Knowledge, topic: &Topic| match topic {
            Topic::Heads => knowledge.news(topic, hash),
            Topic::Logs(_) => Vec::new(),
        };
        let logs = |knowledge: &Knowledge, topic: &Topic| match topic {
            Topic::Heads => Vec::new(),
            Topic::Logs(_) => knowledge.news(topic, hash),
        };
        if self.knowledge.faults.logs_first {
            self.notify(logs);
            self.notify(heads);
        } else {
            self.notify(heads);
            self.notify(logs);
        }
    }

    pub(crate) fn extend(&mut self, logs: Vec<FakeLog>) -> alloy_primitives::B256 {
        let hash = self.knowledge.chain.extend(logs);
        self.announce(hash);
        hash
    }

    pub(crate) fn reorg(&mut self, depth: usize, branch: Vec<Vec<FakeLog>>) -> Reorg {
        let reorg = self.knowledge.chain.reorg(depth, branch);
        let kind = self.knowledge.faults.removed;
        if matches!(kind, Removed::FirstFirst | Removed::LastFirst) {
            self.take_back(&reorg.removed, kind);
        }
        for &hash in &reorg.added {
            self.announce(hash);
        }
        if kind == Removed::AfterTheNew {
            self.take_back(&reorg.removed, kind);
        }
        reorg
    }

    fn take_back(&mut self, removed: &[alloy_primitives::B256], kind: Removed) {
        self.notify(|knowledge, topic| {
            let mut logs: Vec<_> = removed
                .iter()
                .flat_map(|&hash| knowledge.taken_back(topic, hash))
                .collect();
            if kind == Removed::LastFirst {
                logs.reverse();
            }
            logs
        });
    }
}

fn error(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let (Some(data), Some(map)) = (data, error.as_object_mut()) {
        map.insert("data".to_owned(), data);
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn notification(name: u64, value: &Value) -> String {
    let params = json!({"subscription": crate::chain::quantity(name), "result": value});
    json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).to_string()
}
