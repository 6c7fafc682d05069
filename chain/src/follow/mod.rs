//! Follows a chain from a node's headers, logs and answers: what was added, in order and complete, and what was taken back.
//!
//! A [`Follower`] has no socket, clock or thread. Its driver tells it what came and what time it is, and then takes from
//! it, until there is none left, each kind of output:
//!
//! ```text
//!  connected, subscribed, disconnected ─┐                  ┌─► poll_head       every header of the subscription, at once
//!  header, log  (subscription socket)  ─┤     Follower     ├─► poll_event      Block, Reverted, Reread
//!  answer       (call socket)          ─┼─► head ── way ───┼─► poll_call       by hash, with retries
//!  reread_done, reread_failed          ─┤   journal  logs  ├─► poll_reconnect  why to connect anew
//!  tick                                ─┘                  └─► next_deadline, readiness, waits
//!
//!  head           the block that the node says is the latest; never chosen by height
//!   │ way         parent by parent, by hash, down to a block of the journal; missing headers are asked by hash
//!   ▼
//!  journal        the last blocks that were said; what is above the common ancestor is reverted, newest first,
//!                 then the blocks of the way are said, lowest first, each once its logs are complete
//! ```
//!
//! The first head, a gap that is too long and a reorganisation that is deeper than the journal lead to
//! [`ChainEvent::Reread`]: the driver reads the pools at that block's hash and says so; nothing is said before it did.
//!
//! # Which head
//! A header that comes for the first time is the head, whatever its height. If it is not higher than the head before, it
//! may also be a late one: the node is then asked for its latest header, and the answer holds unless a header came
//! meanwhile. A header that comes again, and a log that is taken back, are hints: they lead to the same question and
//! change nothing by themselves. A latest header that is an ancestor of what is followed is ignored, since
//! a balanced endpoint may have answered from a node that is behind; unless a block above it is suspect, when two
//! witnesses agree. A head below the whole journal has to be answered as often as a call is tried before it is followed.
//!
//! # What cannot be known
//! - After a gap: whether the journal's blocks still belong to the chain. Only those are reverted that are seen not to. What was
//!   said before the gap is forgotten: it is not reverted later, and should the chain fall back behind it, may be said again.
//! - An answer that lacks a log which the subscription did not show either, while it has others, looks complete. If
//!   the subscription shows the log later, the block is taken back and asked anew.
//! - Whether a hash is the hash of its header: the fields for that are not read. A node is believed that far.
//!
//! # Invariants
//! - A block is applied by hash, and a header is never "logs complete": completeness comes from an answer by hash, or from
//!   a bloom that excludes what matters.
//! - The parent of a [`ChainEvent::Block`] is the last block that was said and not reverted, or the one that was read
//!   anew; a [`ChainEvent::Reverted`] is about that block. No block is said twice without a revert between.
//! - Each header hash of the subscription is passed on once, in order, whatever else is waited for. (The
//!   last 1,024 hashes are remembered.)
//! - Nothing is said unless the subscription is confirmed. What is said after a reconnect builds on what was said before.
//! - Whenever it is not ready it waits for the driver, an answer or a time, and says for which ([`Waits`]). In every state but
//!   "not connected", where the driver reconnects, it has a deadline.
//! - Everything that a node can make it keep is bounded by the configuration. The driver takes the outputs after each input.

mod call;
mod config;
mod event;
mod input;
mod journal;
mod logs;
mod step;
mod watch;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use alloy_primitives::B256;

pub use call::{Answer, Call, CallId, Failure};
pub use config::{ConfigError, FollowConfig};
pub use event::{ChainEvent, Counters, NotReady, ReconnectReason, RereadReason};

use crate::types::Header;
use call::Asks;
use journal::Journal;
use logs::{Filter, Logs};
use watch::{Link, Watch};

/// Header hashes that are remembered, to tell one that comes again: hours of any chain, and 64 KiB.
const HEARD: usize = 1_024;

/// A time after another; the same where the clock cannot say it.
fn after(at: Instant, wait: Duration) -> Instant {
    at.checked_add(wait).unwrap_or(at)
}

/// What a follower waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Nothing but the next head.
    Nothing,
    /// The driver: a connection, or a reading of the pools.
    Driver,
    /// The first head of a subscription, or its confirmation.
    Subscription,
    /// An answer to a call that is out.
    Answer,
    /// The next try.
    Time,
}

/// The reading of the pools.
#[derive(Clone, Debug)]
enum Reread {
    Idle,
    Out {
        header: Box<Header>,
        deadline: Instant,
    },
    Resting {
        until: Instant,
    },
}

/// Header hashes that came, the newest remembered.
#[derive(Clone, Default, Debug)]
struct Heard {
    hashes: BTreeSet<B256>,
    order: VecDeque<B256>,
}

impl Heard {
    /// Whether it comes for the first time.
    fn insert(&mut self, hash: B256) -> bool {
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > HEARD
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }
}

/// Follows one chain of one node.
#[derive(Clone, Debug)]
pub struct Follower {
    config: FollowConfig,
    filter: Filter,
    now: Instant,
    generation: Option<u64>,
    watch: Watch,
    heard: Heard,
    /// What the node says is its latest block.
    head: Option<Header>,
    /// Headers that are not in the journal.
    known: BTreeMap<B256, Header>,
    journal: Journal,
    /// Whether the pools were ever read.
    anchored: bool,
    logs: Logs,
    asks: Asks,
    /// Whether the node is to be asked for its latest header.
    doubt: bool,
    /// Blocks of the journal of which logs were taken back.
    suspects: BTreeSet<B256>,
    reread: Reread,
    /// A contradiction, and until when the follower rests after it.
    trouble: Option<(NotReady, Instant)>,
    /// Rests without a block in between.
    rests: u32,
    /// The blocks to fill in, lowest first, as of the last step.
    path: Vec<B256>,
    /// The header that is needed, as of the last step.
    missing: Option<(B256, u64)>,
    heads: VecDeque<Header>,
    events: VecDeque<ChainEvent>,
    reconnect: Option<ReconnectReason>,
    counters: Counters,
}

/// Making one, and outputs.
impl Follower {
    /// A follower that is not connected. `now` is the first time; a later input with an earlier one counts as the
    /// latest.
    pub fn new(config: FollowConfig, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            filter: Filter::new(&config),
            config,
            now,
            generation: None,
            watch: Watch::new(),
            heard: Heard::default(),
            head: None,
            known: BTreeMap::new(),
            journal: Journal::default(),
            anchored: false,
            logs: Logs::default(),
            asks: Asks::default(),
            doubt: false,
            suspects: BTreeSet::new(),
            reread: Reread::Idle,
            trouble: None,
            rests: 0,
            path: Vec::new(),
            missing: None,
            heads: VecDeque::new(),
            events: VecDeque::new(),
            reconnect: None,
            counters: Counters::default(),
        })
    }

    /// The next header for who wants them all at once.
    pub fn poll_head(&mut self) -> Option<Header> {
        self.heads.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ChainEvent> {
        self.events.pop_front()
    }

    /// The next call to make. Its answer is to be told, a failure too; one that does not come counts as failed at the
    /// deadline. Calls that are out when the follower is told of a disconnection are over.
    pub fn poll_call(&mut self) -> Option<(CallId, Call)> {
        self.asks.poll()
    }

    /// Why to connect anew, once per wish. Until the driver says that it connected, the follower stands still and repeats
    /// the wish from time to time.
    pub fn poll_reconnect(&mut self) -> Option<ReconnectReason> {
        self.reconnect.take()
    }

    /// When to call [`Self::tick`] at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let reread = match self.reread {
            Reread::Idle => None,
            Reread::Out { deadline, .. } => Some(deadline),
            Reread::Resting { until } => Some(until),
        };
        let trouble = self.trouble.map(|(_, until)| until);
        [
            self.watch.deadline(&self.config),
            self.asks.next_deadline(),
            reread,
            trouble,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// Getters.
impl Follower {
    /// Whether what was said last is the chain's head, or else why that is not known. A single new block whose logs are
    /// asked for the first time does not make it unready: that is following.
    pub fn readiness(&self) -> Result<(), NotReady> {
        if let Some(reason) = self.watch.not_ready() {
            return Err(reason);
        }
        if let Some((reason, _)) = self.trouble {
            return Err(reason);
        }
        match &self.reread {
            Reread::Idle => {}
            Reread::Out { header, .. } => {
                return Err(NotReady::Rereading {
                    number: header.number.to(),
                    hash: header.hash,
                });
            }
            Reread::Resting { .. } => return Err(NotReady::RereadFailed),
        }
        let Some(head) = &self.head else {
            return Err(NotReady::NoHead);
        };
        if let Some(ask) = self.asks.trouble()
            && let Some(failure) = ask.failure
        {
            return Err(NotReady::Call {
                call: ask.call,
                failure,
                attempts: ask.attempts,
            });
        }
        if let Some(&suspect) = self.suspects.first() {
            return Err(NotReady::Suspect(suspect));
        }
        if self.missing.is_some() {
            return Err(NotReady::Linking {
                number: head.number.to(),
                hash: head.hash,
            });
        }
        match self.path.first().and_then(|hash| self.known.get(hash)) {
            Some(next) if self.path.len() > 1 => {
                let number = next.number.to();
                Err(NotReady::BackFilling {
                    blocks: self.path.len(),
                    number,
                    hash: next.hash,
                })
            }
            _ => Ok(()),
        }
    }

    /// What it waits for.
    #[must_use]
    pub fn waits(&self) -> Waits {
        match self.watch.link {
            Link::Down | Link::GivenUp { .. } => return Waits::Driver,
            Link::Connected { .. } => return Waits::Subscription,
            Link::Subscribed { .. } | Link::Live { .. } => {}
        }
        if matches!(self.reread, Reread::Out { .. }) {
            Waits::Driver
        } else if self.asks.outstanding() > 0 {
            Waits::Answer
        } else if self.asks.next_deadline().is_some()
            || self.trouble.is_some()
            || matches!(self.reread, Reread::Resting { .. })
        {
            Waits::Time
        } else if matches!(self.watch.link, Link::Subscribed { .. }) {
            Waits::Subscription
        } else {
            Waits::Nothing
        }
    }

    /// The last block that was said and not reverted, or at which the pools were read.
    #[must_use]
    pub fn tip(&self) -> Option<&Header> {
        self.journal.tip().map(|block| &block.header)
    }

    /// What the node says is its latest block, as far as it is known.
    #[must_use]
    pub const fn head(&self) -> Option<&Header> {
        self.head.as_ref()
    }

    /// The age of a head at which the watchdog fires, from the intervals that were measured.
    #[must_use]
    pub fn head_age_limit(&self) -> Duration {
        self.watch.limit(&self.config)
    }

    /// What happened since the start.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
