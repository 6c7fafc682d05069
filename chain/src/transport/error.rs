//! Why there is no connection, and why one ended.
//!
//! # Invariants
//! - What a node said is shown bounded and escaped, and an endpoint is shown without its secrets.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio_tungstenite::tungstenite;
use tungstenite::error::{CapacityError, ProtocolError};

use crate::endpoint::Endpoint;

/// The most characters of what a node said that a message shows.
pub const SHOWN: usize = 200;

/// `text`, escaped, and cut after [`SHOWN`] characters.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Why a node could not be connected to.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// It took too long, from looking the name up to the last handshake.
    #[error("{endpoint}: not connected within {after:?}; is a node listening there?")]
    Deadline {
        /// Where.
        endpoint: Endpoint,
        /// The deadline.
        after: Duration,
    },
    /// The system refused.
    #[error("{endpoint}: cannot connect: {source}")]
    Unreachable {
        /// Where.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
    /// The machine has no root certificates.
    #[error(
        "no root certificates are installed: install the system's (ca-certificates), or name a file in SSL_CERT_FILE"
    )]
    NoRoots,
    /// The encrypted connection was not made: mostly, the certificate is not to be trusted.
    #[error("{endpoint}: no encrypted connection: {}", shown(&source.to_string()))]
    Tls {
        /// Where.
        endpoint: Endpoint,
        /// What is wrong.
        source: io::Error,
    },
    /// The server answered the handshake with an HTTP status.
    #[error(
        "{endpoint}: the server answered the WebSocket handshake with HTTP status {status}; 101 is right"
    )]
    Status {
        /// Where.
        endpoint: Endpoint,
        /// The status.
        status: u16,
    },
    /// What answered speaks no WebSocket.
    #[error("{endpoint}: the WebSocket handshake failed: {}", shown(what))]
    Handshake {
        /// Where.
        endpoint: Endpoint,
        /// What is wrong.
        what: String,
    },
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Closed {
    /// A [`Closer`](crate::rpc::Closer) asked for it.
    #[error("the connection was closed on our side")]
    Stopped,
    /// The last client, or the session, was dropped.
    #[error("the connection has no owner any more")]
    Dropped,
    /// The node closed it in due form.
    #[error("the node closed the connection with code {code}: `{}`", shown(reason))]
    ByNode {
        /// The WebSocket close code; 1005 if it gave none.
        code: u16,
        /// What it said.
        reason: String,
    },
    /// The connection ended without the close that the protocol wants, maybe inside a message.
    #[error("the connection ended without a close")]
    Ended,
    /// The system lost it.
    #[error("the connection was lost: {0}")]
    Lost(io::ErrorKind),
    /// Nothing came, and no answer to a ping either.
    #[error("the node was silent for {quiet:?} and did not answer a ping within {deadline:?}")]
    Silent {
        /// How long nothing had come when the ping was sent.
        quiet: Duration,
        /// How long the answer had.
        deadline: Duration,
    },
    /// A message is over the limit.
    #[error(
        "a message of the node has {size} bytes so far, the limit is {limit}: ask for less at once, or raise the limit"
    )]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
        /// The size so far, in bytes: what is announced, or what has come.
        size: usize,
    },
    /// The node broke the rules of its WebSocket.
    #[error("the node broke the WebSocket protocol: {}", shown(what))]
    Protocol {
        /// The rule.
        what: String,
    },
    /// What came is no JSON-RPC.
    #[error("the node sent garbage: {what}: `{}`", shown(start))]
    Garbage {
        /// What is wrong with it.
        what: &'static str,
        /// How it begins.
        start: String,
    },
    /// Nobody took the notifications.
    #[error(
        "{count} notifications of {bytes} bytes wait to be taken: the limits are {count_limit} and {bytes_limit}"
    )]
    Overflow {
        /// How many wait, with the one that was too many.
        count: usize,
        /// Their bytes.
        bytes: usize,
        /// The most that may wait.
        count_limit: usize,
        /// The most bytes that may wait.
        bytes_limit: usize,
    },
}

impl Closed {
    /// `what` is wrong with the message that begins with `start`.
    pub(crate) fn garbage(what: &'static str, start: &[u8]) -> Self {
        let start = start.get(..4 * SHOWN).unwrap_or(start);
        Self::Garbage {
            what,
            start: String::from_utf8_lossy(start).chars().take(SHOWN).collect(),
        }
    }

    /// How the connection ended by the word of the WebSocket.
    pub(crate) fn of(error: &tungstenite::Error) -> Self {
        use tungstenite::Error;
        match error {
            Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => Self::TooLarge {
                limit: *max_size,
                size: *size,
            },
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Ended,
            Error::Io(error) => Self::lost(error),
            Error::Utf8(_) => Self::Garbage {
                what: "a text message is not UTF-8",
                start: String::new(),
            },
            other => Self::Protocol {
                what: other.to_string(),
            },
        }
    }

    /// How the connection ended by the word of the system.
    pub(crate) fn lost(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Ended,
            kind => Self::Lost(kind),
        }
    }
}
