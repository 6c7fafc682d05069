//! What a follower says: events, why it is not ready, why it wants a new connection, and what it counted.
//!
//! # Invariants
//! - The lists of reasons are closed: who reads them can match them all.

use core::time::Duration;

use alloy_primitives::B256;

use super::call::{Call, Failure};
use crate::types::{Header, Log};

/// What the chain did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChainEvent {
    /// A block was added. Its parent is the last block that was added and not reverted.
    Block {
        /// Its header.
        header: Header,
        /// All its logs that matter, by log index.
        logs: Vec<Log>,
    },
    /// The last block was taken off.
    Reverted {
        /// Its height.
        number: u64,
        /// Its identity.
        hash: B256,
    },
    /// Blocks cannot be followed one by one: the driver reads the pools at exactly this block and says
    /// [`super::Follower::reread_done`] or [`super::Follower::reread_failed`]. Once that is accepted this is the last block.
    Reread {
        /// The block.
        header: Header,
        /// Why.
        why: RereadReason,
    },
}

/// Why the pools have to be read anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum RereadReason {
    /// Nothing is applied yet.
    #[error("nothing is applied yet")]
    Start,
    /// The gap is longer than what is filled in block by block. Which of the blocks before it still belong to the chain
    /// is not known; those of which it is known that they do not were reverted.
    #[error("the gap is too long to fill in")]
    Gap,
    /// No block of the journal belongs to the chain. All were reverted; blocks that were older than the journal may be
    /// orphaned too, and which is not known.
    #[error("the reorganisation is deeper than the journal")]
    Deep,
}

/// Why the driver should connect anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReconnectReason {
    /// No confirmation of the subscriptions came in time.
    #[error("the subscriptions were not confirmed within {0:?}")]
    NotSubscribed(Duration),
    /// The subscriptions were confirmed and no head came in time.
    #[error("the subscription brought no head within {0:?}")]
    NoFirstHead(Duration),
    /// Heads stopped.
    #[error("no head for {limit:?}")]
    HeadAge {
        /// The age at which the watchdog fired.
        limit: Duration,
    },
    /// Calls keep failing.
    #[error("calls keep failing")]
    CallsFail,
    /// Answers and headers keep contradicting each other.
    #[error("the node keeps contradicting itself")]
    Contradictions,
}

/// Why what was said last may not be the chain's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotReady {
    /// There is no connection.
    #[error("not connected")]
    Disconnected,
    /// The subscriptions are not confirmed.
    #[error("not subscribed")]
    Subscribing,
    /// The subscriptions brought no head yet.
    #[error("no head came since the subscription")]
    AwaitingFirstHead,
    /// A new connection was asked for.
    #[error("the connection is given up: {0}")]
    GivenUp(ReconnectReason),
    /// No head is known.
    #[error("the latest head is not known")]
    NoHead,
    /// The driver reads the pools anew.
    #[error("the pools are read at block {number} ({hash})")]
    Rereading {
        /// The block's height.
        number: u64,
        /// The block's identity.
        hash: B256,
    },
    /// The last reading of the pools failed and the next one waits.
    #[error("the pools could not be read anew")]
    RereadFailed,
    /// A call failed and is tried again.
    #[error("{call:?} failed {attempts} times: {failure}")]
    Call {
        /// The call.
        call: Call,
        /// What came of the last try.
        failure: Failure,
        /// Tries since the last rest.
        attempts: u32,
    },
    /// Headers between the head and what is applied are missing.
    #[error("the way from block {number} ({hash}) to what is applied is not known")]
    Linking {
        /// The head's height.
        number: u64,
        /// The head's identity.
        hash: B256,
    },
    /// Blocks are filled in.
    #[error("{blocks} blocks are to be filled in, from block {number} ({hash})")]
    BackFilling {
        /// How many.
        blocks: usize,
        /// The height of the next one.
        number: u64,
        /// The identity of the next one.
        hash: B256,
    },
    /// A block that is applied is said to be taken back.
    #[error("block {0} is said to be orphaned")]
    Suspect(B256),
    /// The node contradicted itself about this block.
    #[error("the node contradicts itself about block {number} ({hash})")]
    Contradiction {
        /// The height that its header has.
        number: u64,
        /// Its identity.
        hash: B256,
    },
}

/// What happened since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Headers of the subscription, each once.
    pub heads: u64,
    /// Headers that had come before.
    pub repeated_heads: u64,
    /// Latest headers that were older than what is followed, and ignored.
    pub older_heads: u64,
    /// Heads that did not build on the one before, further up.
    pub gaps: u64,
    /// Blocks that were said.
    pub blocks: u64,
    /// Blocks that were taken back.
    pub reverted: u64,
    /// Times at which blocks were taken back.
    pub reorgs: u64,
    /// The most blocks that were taken back at once.
    pub deepest_reorg: u64,
    /// Readings of the pools that were asked for.
    pub rereads: u64,
    /// Logs that the node took back.
    pub removed_logs: u64,
    /// Logs of the subscription that had come before.
    pub repeated_logs: u64,
    /// Logs of addresses or topics that do not matter.
    pub foreign_logs: u64,
    /// Logs for which there was no room. The block's logs are asked for in any case.
    pub dropped_logs: u64,
    /// Blocks that were taken back since a log of theirs came that had not been said.
    pub late_logs: u64,
    /// Answers without logs that were not believed and asked again.
    pub empties: u64,
    /// Answers without logs that were believed after the last asking.
    pub empties_believed: u64,
    /// Answers that lacked a log of the subscription.
    pub short_answers: u64,
    /// Headers, logs and answers that contradict what was asked or said.
    pub contradictions: u64,
    /// Calls that failed in any way.
    pub failed_calls: u64,
    /// Answers to calls that are not out.
    pub late_answers: u64,
    /// Inputs of connections that are over.
    pub stale_inputs: u64,
    /// New connections that were asked for.
    pub reconnects: u64,
}
