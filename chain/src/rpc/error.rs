//! Why a call has no result.

use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use crate::transport::{Closed, shown};

/// What a node says instead of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeError {
    /// Its code. Nodes give different ones for one thing.
    pub code: i64,
    /// Its words, the first 1024 characters at most. Escape them where they are shown ([`shown`]).
    pub message: String,
    /// What it adds: for a call that reverted, mostly the bytes that it gave.
    pub data: Option<Value>,
}

/// Why a call has no result.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CallError {
    /// The node answered with an error.
    #[error("{method}: the node answered with error {code}: `{}`", shown(message))]
    Node {
        /// The method that was called.
        method: String,
        /// [`NodeError::code`].
        code: i64,
        /// [`NodeError::message`].
        message: String,
        /// [`NodeError::data`].
        data: Option<Value>,
    },
    /// No answer came. The node may have done what was asked, or still do it.
    #[error("{method}: no answer within {after:?}")]
    TimedOut {
        /// The method that was called; of a batch, its first.
        method: String,
        /// The deadline.
        after: Duration,
    },
    /// The connection ended before an answer came.
    #[error("{method}: {why}")]
    Closed {
        /// The method that was called; of a batch, its first.
        method: String,
        /// Why it ended.
        why: Closed,
    },
    /// What came as an answer is none to this call.
    #[error("{method}: the answer is malformed: {}", shown(what))]
    Malformed {
        /// The method that was called.
        method: String,
        /// What is wrong with it.
        what: String,
    },
    /// What was to be asked is over the limit.
    #[error(
        "{method}: asking takes {size} bytes, the limit is {limit}: split it, or raise the limit"
    )]
    TooLarge {
        /// The method; of a batch, its first.
        method: String,
        /// The limit of a message, in bytes.
        limit: usize,
        /// The size, in bytes.
        size: usize,
    },
    /// Too many calls wait for their answers.
    #[error(
        "{method}: {in_flight} calls wait for answers and {wanted} more would be over the limit of {limit}"
    )]
    Busy {
        /// The method; of a batch, its first.
        method: String,
        /// How many wait.
        in_flight: usize,
        /// How many were to be added.
        wanted: usize,
        /// The limit.
        limit: usize,
    },
}

impl CallError {
    /// Whether what was asked, or what was to be answered, is more than a message holds: less must be asked at once.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(
            self,
            Self::TooLarge { .. }
                | Self::Closed {
                    why: Closed::TooLarge { .. },
                    ..
                }
        )
    }

    /// Whether the connection is over, so that every further call on it fails the same way.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}
