//! What a node's messages mean.
//!
//! # Invariants
//! - Every message is an answer, a notification, something else of JSON-RPC that nobody waits for, or garbage.

use std::fmt;

use serde_json::{Map, Value};

use super::NodeError;
use crate::transport::Closed;

/// The most characters of a node's error that are kept.
const MESSAGE_CHARACTERS: usize = 1024;

/// The most bytes of a subscription's name. Common nodes use 34 at most.
const SUBSCRIPTION_BYTES: usize = 128;

/// The name that a node gave to a subscription, on one connection.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SubscriptionId(String);

impl SubscriptionId {
    /// The name, if it is not too long to be one.
    pub(super) fn new(name: &str) -> Option<Self> {
        (name.len() <= SUBSCRIPTION_BYTES).then(|| Self(name.to_owned()))
    }

    /// The name as the node gave it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_debug())
    }
}

/// What a call brought.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Answer {
    Result(Value),
    Node(NodeError),
    Malformed(&'static str),
}

/// A message, or a part of one that is an array.
#[derive(PartialEq, Debug)]
pub(super) enum Incoming {
    Answer {
        id: u64,
        answer: Answer,
    },
    /// An error for nobody: a node gives it when it could not read to which call it answers.
    Unaddressed(NodeError),
    Notification {
        subscription: SubscriptionId,
        value: Value,
    },
    /// An answer whose id cannot be one of ours.
    Unknown,
    /// A request, or a notification of another kind.
    Other,
}

/// Reads a message. `true` means that it is an array: the answers to a batch.
pub(super) fn read(text: &str) -> Result<(bool, Vec<Incoming>), Closed> {
    let garbage = |what| Closed::garbage(what, text.as_bytes());
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok((false, vec![one(map).map_err(garbage)?])),
        Ok(Value::Array(parts)) => {
            let parts = parts.into_iter().map(|part| match part {
                Value::Object(map) => one(map),
                _ => Err("a part of a batch is no object"),
            });
            Ok((true, parts.collect::<Result<_, _>>().map_err(garbage)?))
        }
        Ok(_) => Err(garbage("a message is neither an object nor an array")),
        Err(_) => Err(garbage("a message is not JSON")),
    }
}

fn one(mut map: Map<String, Value>) -> Result<Incoming, &'static str> {
    match (map.get("method"), map.get("id")) {
        (Some(Value::String(method)), None) if method == "eth_subscription" => notification(map),
        (Some(Value::String(_)), _) => Ok(Incoming::Other),
        (Some(_), _) => Err("a method is no string"),
        (None, Some(Value::Null)) => match map.remove("error").map(error) {
            Some(Answer::Node(error)) => Ok(Incoming::Unaddressed(error)),
            _ => Err("an answer without an id is no error"),
        },
        (None, Some(id)) => {
            let id = id.as_u64();
            let answer = answer(map);
            Ok(id.map_or(Incoming::Unknown, |id| Incoming::Answer { id, answer }))
        }
        (None, None) => Err("a message has neither an id nor a method"),
    }
}

fn notification(mut map: Map<String, Value>) -> Result<Incoming, &'static str> {
    let Some(Value::Object(mut params)) = map.remove("params") else {
        return Err("a notification's params are no object");
    };
    let Some(value) = params.remove("result") else {
        return Err("a notification has no result");
    };
    let subscription = params
        .get("subscription")
        .and_then(Value::as_str)
        .and_then(SubscriptionId::new);
    let subscription =
        subscription.ok_or("a notification's subscription is no string of at most 128 bytes")?;
    Ok(Incoming::Notification {
        subscription,
        value,
    })
}

fn answer(mut map: Map<String, Value>) -> Answer {
    match (
        map.remove("error").filter(|error| !error.is_null()),
        map.remove("result"),
    ) {
        (Some(value), _) => error(value),
        (None, Some(result)) => Answer::Result(result),
        (None, None) => Answer::Malformed("it has neither a result nor an error"),
    }
}

fn error(value: Value) -> Answer {
    let Value::Object(mut map) = value else {
        return Answer::Malformed("its error is no object");
    };
    let Some(code) = map.get("code").and_then(Value::as_i64) else {
        return Answer::Malformed("its error's code is no integer");
    };
    let message = map
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let message = message.chars().take(MESSAGE_CHARACTERS).collect();
    Answer::Node(NodeError {
        code,
        message,
        data: map.remove("data"),
    })
}
