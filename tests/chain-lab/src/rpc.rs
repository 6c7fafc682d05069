//! JSON-RPC over the node's socket file, blocking, for the lab's own use.
//!
//! It shares no code with the product's client, so a fault in that one cannot hide itself in a test.
//!
//! # Invariants
//! - Every request ends by its deadline: with an answer, a refusal or a typed failure.
//! - After a failure on the connection the next request uses a new one: no answer is ever taken for another's.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Foreign, LabError};

/// Calls that go in one request; anvil answers a request when all of its calls are done.
const BATCH: usize = 1000;

/// Bytes of a request or an answer at most; anvil's own limit for a frame is larger.
const FRAME: u64 = 256 << 20;

/// One call: a method and its parameters.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method's name.
    pub method: &'static str,
    /// A JSON array.
    pub params: Value,
}

impl Call {
    /// A call of `method` with `params`.
    #[must_use]
    pub const fn new(method: &'static str, params: Value) -> Self {
        Self { method, params }
    }

    /// `eth_call` at the head: what `to` returns for `data`.
    #[must_use]
    pub fn view(to: Address, data: &[u8]) -> Self {
        let data = Bytes::copy_from_slice(data);
        Self::new("eth_call", json!([{"to": to, "data": data}, "latest"]))
    }

    /// Writes one slot of an account, outside of any block.
    #[must_use]
    pub fn set_slot(account: Address, slot: U256, value: U256) -> Self {
        let slot = format!("{slot:#x}");
        let value = B256::from(value);
        Self::new("anvil_setStorageAt", json!([account, slot, value]))
    }
}

/// A block's place in the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its height.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// The hash of the block before it.
    pub parent: B256,
    /// Seconds since 1970.
    pub timestamp: u64,
}

/// A client of one socket file.
#[derive(Debug)]
pub struct Rpc {
    path: PathBuf,
    deadline: Duration,
    stream: Option<BufReader<UnixStream>>,
    next: u64,
}

impl Rpc {
    /// A client of the socket at `path`; each request may take as long as `deadline`. Connects with the first.
    #[must_use]
    pub const fn new(path: PathBuf, deadline: Duration) -> Self {
        Self {
            path,
            deadline,
            stream: None,
            next: 1,
        }
    }

    /// How long a request may take from now on.
    pub const fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// The result of one call.
    pub fn call(&mut self, method: &'static str, params: Value) -> Result<Value, LabError> {
        let mut results = self.batch(&[Call::new(method, params)])?;
        results.pop().ok_or_else(|| no_answer(method))
    }

    /// The result of one call as a `T`.
    pub fn ask<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> Result<T, LabError> {
        let value = self.call(method, params)?;
        read(method, &value)
    }

    /// The results of the calls, in their order; the first refusal is the error. The node may do them in any order.
    pub fn batch(&mut self, calls: &[Call]) -> Result<Vec<Value>, LabError> {
        let mut results = Vec::with_capacity(calls.len());
        for calls in calls.chunks(BATCH) {
            let first = calls.first().map_or("", |call| call.method);
            let answered = self.exchange(calls);
            if answered.is_err() {
                self.stream = None;
            }
            let answers = answered.map_err(|source| LabError::Connection {
                method: first.to_owned(),
                source,
            })?;
            for (call, answer) in calls.iter().zip(answers) {
                results.push(result(call.method, answer)?);
            }
        }
        Ok(results)
    }

    /// Sends the calls as one request and returns the answers in the calls' order.
    fn exchange(&mut self, calls: &[Call]) -> io::Result<Vec<Value>> {
        let until = Instant::now() + self.deadline;
        let base = self.next;
        self.next = base.saturating_add(calls.len() as u64);
        let requests: Vec<Value> = (base..)
            .zip(calls)
            .map(|(id, Call { method, params })| {
                json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            })
            .collect();
        let mut request = serde_json::to_vec(&requests)?;
        request.push(b'\n');
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(BufReader::new(UnixStream::connect(&self.path)?)),
        };
        stream.get_ref().set_write_timeout(Some(left(until)?))?;
        stream.get_mut().write_all(&request)?;
        let line = read_line(stream, until)?;
        let answers: Vec<Value> = serde_json::from_slice(&line)?;
        let by_id = answers.into_iter().filter_map(|answer| {
            let id = answer.get("id").and_then(Value::as_u64)?;
            Some((id, answer))
        });
        let mut by_id: BTreeMap<u64, Value> = by_id.collect();
        let answers: Option<Vec<Value>> = (base..)
            .take(calls.len())
            .map(|id| by_id.remove(&id))
            .collect();
        answers.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "an answer is missing"))
    }

    /// The block at the head.
    pub fn head(&mut self) -> Result<Head, LabError> {
        self.block(&json!("latest"))
    }

    /// The block at a height; the node refuses one that is not there.
    pub fn block_at(&mut self, number: u64) -> Result<Head, LabError> {
        self.block(&json!(format!("{number:#x}")))
    }

    fn block(&mut self, which: &Value) -> Result<Head, LabError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let block = self.call(METHOD, json!([which, false]))?;
        head(&block).ok_or_else(|| LabError::Answer {
            method: METHOD.to_owned(),
            expected: "a block",
            said: Foreign::new(&block.to_string()),
        })
    }
}

/// `value` as a `T`.
pub(crate) fn read<T: DeserializeOwned>(method: &str, value: &Value) -> Result<T, LabError> {
    T::deserialize(value).map_err(|_| LabError::Answer {
        method: method.to_owned(),
        expected: std::any::type_name::<T>(),
        said: Foreign::new(&value.to_string()),
    })
}

fn head(block: &Value) -> Option<Head> {
    let number = |key: &str| {
        let text = block.get(key)?.as_str()?.strip_prefix("0x")?;
        u64::from_str_radix(text, 16).ok()
    };
    let hash = |key: &str| block.get(key)?.as_str()?.parse().ok();
    Some(Head {
        number: number("number")?,
        hash: hash("hash")?,
        parent: hash("parentHash")?,
        timestamp: number("timestamp")?,
    })
}

/// The result in an answer, or its error.
fn result(method: &str, mut answer: Value) -> Result<Value, LabError> {
    if let Some(error) = answer.get("error") {
        return Err(LabError::Refused {
            method: method.to_owned(),
            said: Foreign::new(&error.to_string()),
        });
    }
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(no_answer(method)),
    }
}

fn no_answer(method: &str) -> LabError {
    LabError::Answer {
        method: method.to_owned(),
        expected: "a result or an error",
        said: Foreign::new(""),
    }
}

/// What is left of the time, never nothing: the system takes a zero for no limit.
pub(crate) fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(ErrorKind::TimedOut.into())
    } else {
        Ok(left)
    }
}

/// One line, without its end.
pub(crate) fn read_line(stream: &mut BufReader<UnixStream>, until: Instant) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        stream.get_ref().set_read_timeout(Some(left(until)?))?;
        let piece = match stream.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // What a timeout on a socket is called here.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (taken, whole) = match piece.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end, true),
            None => (piece.len(), false),
        };
        line.extend(piece.iter().take(taken));
        stream.consume(taken + usize::from(whole));
        if whole {
            return Ok(line);
        }
        if line.len() as u64 > FRAME {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "an answer without end",
            ));
        }
    }
}
