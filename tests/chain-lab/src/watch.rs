//! What the node sends to a subscriber, in the order in which it comes.
//!
//! # Invariants
//! - Nothing is dropped, merged or put in order: this is for tests that say what a node does.
//! - No wait is without a deadline.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256};
use serde_json::{Value, json};

use crate::error::LabError;
use crate::rpc::{left, read_line};

/// Something that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A header.
    Head {
        /// Its height.
        number: u64,
        /// Its hash.
        hash: B256,
        /// Its parent's hash.
        parent: B256,
    },
    /// A log.
    Log {
        /// The hash of the block it is of.
        block: B256,
        /// The contract that wrote it.
        address: Address,
        /// Whether it is said to be no longer in the chain.
        removed: bool,
    },
}

/// A subscriber to headers and to all logs, on one connection.
#[derive(Debug)]
pub struct Watch(BufReader<UnixStream>);

impl Watch {
    /// Subscribes on the node's socket file.
    pub fn new(ipc: &Path, deadline: Duration) -> Result<Self, LabError> {
        let failed = |source| LabError::Connection {
            method: "eth_subscribe".to_owned(),
            source,
        };
        let until = Instant::now() + deadline;
        let subscribe = || {
            let mut stream = BufReader::new(UnixStream::connect(ipc)?);
            for params in [json!(["newHeads"]), json!(["logs", {}])] {
                let request =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params});
                stream.get_ref().set_write_timeout(Some(left(until)?))?;
                stream
                    .get_mut()
                    .write_all(format!("{request}\n").as_bytes())?;
                // The subscription's id; notices can only come after it.
                read_line(&mut stream, until)?;
            }
            Ok(Self(stream))
        };
        subscribe().map_err(failed)
    }

    /// The next `count` notices.
    pub fn next(&mut self, count: usize, deadline: Duration) -> Result<Vec<Notice>, LabError> {
        let failed = |source| LabError::Connection {
            method: "eth_subscription".to_owned(),
            source,
        };
        let until = Instant::now() + deadline;
        let mut notices = Vec::new();
        while notices.len() < count {
            let line = read_line(&mut self.0, until).map_err(failed)?;
            let message: Value =
                serde_json::from_slice(&line).map_err(|error| failed(error.into()))?;
            notices.extend(message.pointer("/params/result").and_then(notice));
        }
        Ok(notices)
    }
}

fn notice(result: &Value) -> Option<Notice> {
    let text = |key: &str| result.get(key)?.as_str();
    let hash = |key: &str| text(key)?.parse::<B256>().ok();
    if result.get("parentHash").is_some() {
        let number = text("number")?.strip_prefix("0x")?;
        return Some(Notice::Head {
            number: u64::from_str_radix(number, 16).ok()?,
            hash: hash("hash")?,
            parent: hash("parentHash")?,
        });
    }
    Some(Notice::Log {
        block: hash("blockHash")?,
        address: text("address")?.parse().ok()?,
        removed: result.get("removed")?.as_bool()?,
    })
}
