//! The calls that are out, due or resting.
//!
//! What is wanted is said anew after every input; a call that is no longer wanted is forgotten, and its answer is then
//! late.
//!
//! # Invariants
//! - A call that is in the table is out with a deadline, waits for its next try, or rests: it always has a time.
//! - At most one call of a kind and hash is out. An identifier is used once.

use std::collections::VecDeque;
use std::time::Instant;

use alloy_primitives::B256;

use super::config::FollowConfig;
use crate::types::{Header, Log};

/// Tells one try of a call from all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(u64);

/// What the follower wants to know. A block is named by its hash, never by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Call {
    /// The header that the node calls its latest.
    LatestHeader,
    /// The header of this hash.
    HeaderByHash(B256),
    /// The logs of the block of this hash, of the addresses and first topics of the configuration.
    LogsByHash(B256),
}

/// What came of a call.
#[expect(
    clippy::large_enum_variant,
    reason = "it is handed over once and kept nowhere"
)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A header.
    Header(Header),
    /// The logs of a block; possibly none.
    Logs(Vec<Log>),
    /// Nothing of use.
    Failed(Failure),
}

/// Why a call has no answer of use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
pub enum Failure {
    /// The node does not know the block.
    #[error("the node does not know the block")]
    NotFound,
    /// The node refused the question, as for too large an answer.
    #[error("the node refused")]
    Refused,
    /// The connection failed.
    #[error("the connection failed")]
    Transport,
    /// No answer came in time.
    #[error("no answer came in time")]
    TimedOut,
    /// The node says that there are no logs, and the header's bloom lets there be some.
    #[error("no logs, though the header's bloom admits some")]
    Empty,
    /// A log that the subscription showed is missing.
    #[error("a log that the subscription showed is missing")]
    Short,
    /// The answer is not about what was asked, or contradicts itself.
    #[error("the answer is not about what was asked or contradicts itself")]
    Wrong,
    /// The latest header is below all that is remembered.
    #[error("the node is behind what was followed already")]
    Behind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Due(Instant),
    Out { id: CallId, deadline: Instant },
    Resting(Instant),
}

/// A call that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) call: Call,
    /// Heads that had come when it went out.
    pub(super) heads: u64,
    pub(super) attempts: u32,
    pub(super) failure: Option<Failure>,
    state: State,
}

impl Ask {
    pub(super) const fn rests(&self) -> bool {
        matches!(self.state, State::Resting(_))
    }
}

/// The calls that are wanted.
#[derive(Clone, Default, Debug)]
pub(super) struct Asks {
    list: Vec<Ask>,
    queue: VecDeque<(CallId, Call)>,
    next: u64,
}

impl Asks {
    /// Makes exactly these the wanted calls and sends what is due.
    pub(super) fn want(
        &mut self,
        wanted: &[Call],
        heads: u64,
        now: Instant,
        config: &FollowConfig,
    ) {
        self.list.retain(|ask| wanted.contains(&ask.call));
        self.queue.retain(|(_, call)| wanted.contains(call));
        for &call in wanted {
            if !self.list.iter().any(|ask| ask.call == call) {
                self.list.push(Ask {
                    call,
                    heads,
                    attempts: 0,
                    failure: None,
                    state: State::Due(now),
                });
            }
        }
        for ask in &mut self.list {
            if matches!(ask.state, State::Due(at) if at <= now) {
                let id = CallId(self.next);
                self.next = self.next.wrapping_add(1);
                ask.heads = heads;
                ask.state = State::Out {
                    id,
                    deadline: super::after(now, config.call_deadline),
                };
                self.queue.push_back((id, ask.call));
            }
        }
    }

    pub(super) fn poll(&mut self) -> Option<(CallId, Call)> {
        self.queue.pop_front()
    }

    /// The call that is out under this identifier.
    pub(super) fn out(&self, id: CallId) -> Option<Ask> {
        self.list
            .iter()
            .find(|ask| matches!(ask.state, State::Out { id: own, .. } if own == id))
            .cloned()
    }

    /// It is answered.
    pub(super) fn answered(&mut self, call: Call) {
        self.list.retain(|ask| ask.call != call);
        self.queue.retain(|(_, queued)| *queued != call);
    }

    /// It is to be asked once more, without a wait and without it counting as a try.
    pub(super) fn again(&mut self, call: Call, now: Instant) {
        self.queue.retain(|(_, queued)| *queued != call);
        for ask in self.list.iter_mut().filter(|ask| ask.call == call) {
            ask.state = State::Due(now);
        }
    }

    /// It failed; whether that was the last try for now.
    pub(super) fn failed(
        &mut self,
        call: Call,
        failure: Failure,
        now: Instant,
        config: &FollowConfig,
    ) -> bool {
        self.queue.retain(|(_, queued)| *queued != call);
        let Some(ask) = self.list.iter_mut().find(|ask| ask.call == call) else {
            return false;
        };
        ask.attempts = ask.attempts.saturating_add(1);
        ask.failure = Some(failure);
        let last = ask.attempts >= config.call_attempts;
        ask.state = if last {
            State::Resting(super::after(now, config.backoff_cap))
        } else {
            State::Due(super::after(now, config.backoff(ask.attempts)))
        };
        last
    }

    /// The calls whose answer did not come in time.
    pub(super) fn overdue(&self, now: Instant) -> Vec<Call> {
        let late = |ask: &&Ask| matches!(ask.state, State::Out { deadline, .. } if deadline <= now);
        self.list.iter().filter(late).map(|ask| ask.call).collect()
    }

    /// Ends the rests that are over; whether there was one.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let mut woke = false;
        for ask in &mut self.list {
            if matches!(ask.state, State::Resting(until) if until <= now) {
                ask.state = State::Due(now);
                ask.attempts = 0;
                woke = true;
            }
        }
        woke
    }

    /// The worst of the calls that failed: one that rests before one that is tried again. To ask again after an answer
    /// without logs is no trouble yet: blooms have false positives.
    pub(super) fn trouble(&self) -> Option<&Ask> {
        let failed = |ask: &&Ask| {
            ask.failure
                .is_some_and(|failure| failure != Failure::Empty || ask.rests())
        };
        self.list
            .iter()
            .filter(failed)
            .max_by_key(|ask| (ask.rests(), ask.attempts))
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.queue.clear();
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.list
            .iter()
            .map(|ask| match ask.state {
                State::Due(at) | State::Resting(at) | State::Out { deadline: at, .. } => at,
            })
            .min()
    }

    /// Calls that are out.
    pub(super) fn outstanding(&self) -> usize {
        self.list
            .iter()
            .filter(|ask| matches!(ask.state, State::Out { .. }))
            .count()
    }
}
