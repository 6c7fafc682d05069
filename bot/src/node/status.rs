//! How a node does, for those who ask from other threads.

use super::Passed;
use crate::source::Head;
use regatta_chain::follow::{Counters, NotReady};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How a node does.
#[derive(Clone, Debug, Default)]
pub struct NodeStatus {
    /// Connections that were installed.
    pub connections: u64,
    /// The newest header that came, and when.
    pub head: Option<(Head, Instant)>,
    /// Why what was said last may not be the chain's head, if it may not.
    pub not_ready: Option<NotReady>,
    /// The stream has ended, after as many blocks as were wanted.
    pub ended: bool,
    /// Events that the pump has no room for yet.
    pub held_back: usize,
    /// What the follower counted.
    pub counters: Counters,
    /// What was passed over.
    pub passed: Passed,
}

pub(super) fn lock(status: &Mutex<NodeStatus>) -> MutexGuard<'_, NodeStatus> {
    // Each change is an assignment.
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reason in one word, for probes.
pub(crate) const fn name(reason: &NotReady) -> &'static str {
    match reason {
        NotReady::Disconnected => "disconnected",
        NotReady::Subscribing => "subscribing",
        NotReady::AwaitingFirstHead => "awaiting_first_head",
        NotReady::GivenUp(_) => "connection_given_up",
        NotReady::NoHead => "no_head",
        NotReady::Rereading { .. } => "reading_pools",
        NotReady::RereadFailed => "pools_not_read",
        NotReady::Call { .. } => "call_fails",
        NotReady::Linking { .. } => "headers_missing",
        NotReady::BackFilling { .. } => "back_filling",
        NotReady::Suspect(_) => "block_suspect",
        NotReady::Contradiction { .. } => "node_contradicts_itself",
    }
}
