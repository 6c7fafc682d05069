//! What a fake node is told to do.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use serde_json::Value;

use crate::contracts::Contracts;
use crate::{FakeChain, Faults};

/// A call that came.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// On which connection: the first is 0.
    pub connection: usize,
    /// Its id.
    pub id: Value,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// How many calls of the method came before, on all connections.
    pub before: usize,
}

/// What is said to a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// This result.
    Result(Value),
    /// An error.
    Error {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
        /// What it adds.
        data: Option<Value>,
    },
    /// Nothing.
    Silence,
    /// This result, when [`release`](crate::FakeNode::release) says so.
    Hold(Value),
    /// This result, to an id that nobody asked with.
    WrongId(Value),
    /// This result, two times.
    Twice(Value),
    /// An answer with neither a result nor an error.
    Hollow,
    /// This text in place of an answer.
    Raw(String),
    /// These bytes on the socket, outside of any frame.
    Bytes(Vec<u8>),
    /// An error with the id `null`.
    Unaddressed {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The beginning of a frame that holds this result; then the connection is dropped.
    MidFrame(Value),
    /// A frame with an answer of this many bytes, really sent.
    Huge(usize),
    /// The same in a hundred fragments, none of which is large.
    HugeInFragments(usize),
    /// A close with a code and words (on IPC, just a drop).
    Close(u16, String),
    /// The connection is dropped without a word.
    Drop,
}

impl Reply {
    /// An error without data.
    #[must_use]
    pub fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// How a batch is answered. Only results, errors and held results are for a part of a batch; every other reply to
/// one of its calls takes the place of the whole answer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Batches {
    /// In the order of the calls.
    #[default]
    InOrder,
    /// The other way round.
    Reversed,
    /// Without the answer to this call.
    Without(usize),
    /// With the answer to this call two times.
    Doubled(usize),
    /// Each answer in a message of its own.
    Apart,
}

/// Whom the node lets in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Door {
    /// Everybody.
    #[default]
    Open,
    /// Nobody: nothing listens at the address.
    Shut,
    /// Connections are accepted, and nothing is said on them, not even the handshake's answer.
    Mute,
    /// The handshake is answered with this HTTP status.
    Status(u16),
    /// The handshake is answered with bytes of no protocol.
    Garbage,
}

pub(crate) type Handler = Box<dyn FnMut(&Call) -> Reply + Send>;

/// How a node is reached.
#[derive(Clone, Default)]
pub(crate) enum Listen {
    #[default]
    Ws,
    Wss(Arc<ServerConfig>),
    Ipc,
}

/// What a node is to do from its start; most of it can be changed while it runs.
#[derive(Default)]
pub struct Script {
    pub(crate) listen: Listen,
    pub(crate) handlers: HashMap<String, Handler>,
    pub(crate) chain: FakeChain,
    pub(crate) faults: Faults,
    pub(crate) contracts: Option<Contracts>,
    pub(crate) batches: Batches,
    pub(crate) door: Door,
    pub(crate) silent_after: Option<u64>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("door", &self.door)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Script {
    /// A healthy node with a chain of one block, on a WebSocket.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens on a Unix socket.
    #[must_use]
    pub fn ipc(mut self) -> Self {
        self.listen = Listen::Ipc;
        self
    }

    /// Listens on an encrypted WebSocket.
    #[must_use]
    pub fn tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.listen = Listen::Wss(config);
        self
    }

    /// Answers `method` by `handler` and not from the chain. It runs under the node's lock: it must not use the node.
    #[must_use]
    pub fn on(
        mut self,
        method: &str,
        handler: impl FnMut(&Call) -> Reply + Send + 'static,
    ) -> Self {
        self.handlers.insert(method.to_owned(), Box::new(handler));
        self
    }

    /// Serves `chain`.
    #[must_use]
    pub fn chain(mut self, chain: FakeChain) -> Self {
        self.chain = chain;
        self
    }

    /// Has `faults` from the start.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Answers `eth_call` and `eth_getCode` from `contracts`.
    #[must_use]
    pub fn contracts(mut self, contracts: Contracts) -> Self {
        self.contracts = Some(contracts);
        self
    }

    /// Answers batches so.
    #[must_use]
    pub fn batches(mut self, batches: Batches) -> Self {
        self.batches = batches;
        self
    }

    /// Lets in whom `door` says.
    #[must_use]
    pub fn door(mut self, door: Door) -> Self {
        self.door = door;
        self
    }

    /// Goes silent on each connection after this many messages: nothing is said from then on, not even a pong.
    #[must_use]
    pub fn silent_after(mut self, messages: u64) -> Self {
        self.silent_after = Some(messages);
        self
    }
}
