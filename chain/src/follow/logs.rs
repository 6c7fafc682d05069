//! Logs by block hash: what the subscription showed, what was answered, and when an answer is all of it.
//!
//! # Invariants
//! - A block's logs are complete only by an answer to a question by its hash, or by a bloom that excludes them all.
//!   An answer that lacks a log of the subscription is never complete.
//! - What a block contains does not depend on whether it is on the chain: what was shown for a hash stays true when the node
//!   takes the log back.
//! - Logs of the subscription that wait are at most as many as there is room for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use alloy_primitives::{Address, B256, Bloom, BloomInput};

use super::config::FollowConfig;
use crate::types::{Header, Log};

/// Which logs matter.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    topics: BTreeSet<B256>,
    addresses: BTreeSet<Address>,
    topic_blooms: Vec<Bloom>,
    address_blooms: Vec<Bloom>,
    trust: bool,
    most: usize,
}

impl Filter {
    pub(super) fn new(config: &FollowConfig) -> Self {
        let bloom = |bytes: &[u8]| Bloom::from(BloomInput::Raw(bytes));
        Self {
            topics: config.topics.iter().copied().collect(),
            addresses: config.addresses.iter().copied().collect(),
            topic_blooms: config
                .topics
                .iter()
                .map(|topic| bloom(topic.as_slice()))
                .collect(),
            address_blooms: config
                .addresses
                .iter()
                .map(|address| bloom(address.as_slice()))
                .collect(),
            trust: config.trust_bloom,
            most: config.block_logs,
        }
    }

    pub(super) fn matches(&self, log: &Log) -> bool {
        let topic = self.topics.is_empty()
            || log
                .topics
                .first()
                .is_some_and(|topic| self.topics.contains(topic));
        topic && (self.addresses.is_empty() || self.addresses.contains(&log.address))
    }

    /// Whether the block of this header can have logs that matter.
    pub(super) fn admits(&self, header: &Header) -> bool {
        let any = |blooms: &[Bloom]| {
            if blooms.is_empty() {
                header.logs_bloom != Bloom::ZERO
            } else {
                blooms.iter().any(|one| header.logs_bloom.contains(one))
            }
        };
        !self.trust || (any(&self.topic_blooms) && any(&self.address_blooms))
    }
}

/// What is known of a block's logs.
#[derive(Clone, Default, Debug)]
struct Known {
    seen: BTreeMap<u64, Log>,
    complete: Option<Vec<Log>>,
    empties: u32,
}

/// What a log of the subscription was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Saw {
    /// The first of its place.
    New,
    /// It had come before.
    Repeated,
    /// Another log had come for its place.
    Contradiction,
    /// There is no room for it.
    NoRoom,
}

/// What an answer was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// All of the block's logs.
    Complete,
    /// No logs, and this was the last asking.
    Believed,
    /// No logs where there may be some.
    Empty,
    /// It lacks a log of the subscription.
    Short,
    /// It contradicts the question, or itself.
    Wrong,
}

/// The logs of blocks that are not applied.
#[derive(Clone, Default, Debug)]
pub(super) struct Logs {
    blocks: BTreeMap<B256, Known>,
    /// Hashes in the order in which they were first heard of.
    order: VecDeque<B256>,
    waiting: usize,
}

/// Whether two logs of one place say the same.
pub(super) fn same(one: &Log, other: &Log) -> bool {
    one.address == other.address
        && one.topics == other.topics
        && one.data == other.data
        && one.log_index == other.log_index
}

impl Logs {
    fn block(&mut self, hash: B256) -> &mut Known {
        if !self.blocks.contains_key(&hash) {
            self.order.push_back(hash);
        }
        self.blocks.entry(hash).or_default()
    }

    /// A log of the subscription. Where there is no room the oldest block that is not among `keep` gives way.
    pub(super) fn saw(&mut self, log: Log, room: usize, keep: &[B256]) -> Saw {
        let index: u64 = log.log_index.to();
        if let Some(known) = self
            .blocks
            .get(&log.block_hash)
            .and_then(|block| block.seen.get(&index))
        {
            return if same(known, &log) {
                Saw::Repeated
            } else {
                Saw::Contradiction
            };
        }
        while self.waiting >= room {
            let own = log.block_hash;
            let Some(place) = self
                .order
                .iter()
                .position(|hash| *hash != own && !keep.contains(hash))
            else {
                return Saw::NoRoom;
            };
            let Some(oldest) = self.order.get(place).copied() else {
                return Saw::NoRoom;
            };
            self.forget(&oldest);
        }
        self.waiting += 1;
        let block = self.block(log.block_hash);
        let lacks = |complete: &Vec<Log>| !complete.iter().any(|one| same(one, &log));
        if block.complete.as_ref().is_some_and(lacks) {
            block.complete = None;
        }
        block.seen.insert(index, log);
        Saw::New
    }

    /// Judges an answer, and keeps it where it is complete.
    pub(super) fn judge(
        &mut self,
        header: &Header,
        answer: Vec<Log>,
        filter: &Filter,
        empty_asks: u32,
    ) -> (Verdict, usize) {
        let told = answer.len();
        let mut logs: Vec<Log> = answer
            .into_iter()
            .filter(|log| filter.matches(log))
            .collect();
        let foreign = told - logs.len();
        let strange = |log: &Log| {
            log.block_hash != header.hash || log.block_number != header.number || log.removed
        };
        if logs.len() > filter.most || logs.iter().any(strange) {
            return (Verdict::Wrong, foreign);
        }
        logs.sort_by_key(|log| log.log_index);
        if logs
            .windows(2)
            .any(|two| matches!(two, [one, other] if one.log_index == other.log_index))
        {
            return (Verdict::Wrong, foreign);
        }
        let admits = filter.admits(header);
        let block = self.block(header.hash);
        let there = |seen: &Log| logs.iter().any(|log| same(log, seen));
        if !block.seen.values().all(there) {
            return (Verdict::Short, foreign);
        }
        if !logs.is_empty() || !admits {
            block.complete = Some(logs);
            return (Verdict::Complete, foreign);
        }
        block.empties = block.empties.saturating_add(1);
        if block.empties < empty_asks {
            return (Verdict::Empty, foreign);
        }
        block.complete = Some(logs);
        (Verdict::Believed, foreign)
    }

    /// Whether all logs of a block are known. A bloom that excludes what matters says so without a call.
    pub(super) fn is_complete(&mut self, header: &Header, filter: &Filter) -> bool {
        if let Some(block) = self.blocks.get(&header.hash) {
            if block.complete.is_some() {
                return true;
            }
            if !block.seen.is_empty() {
                return false;
            }
        }
        if filter.admits(header) {
            return false;
        }
        self.block(header.hash).complete = Some(Vec::new());
        true
    }

    /// Takes a block's complete logs.
    pub(super) fn take(&mut self, hash: &B256) -> Option<Vec<Log>> {
        self.blocks.get(hash)?.complete.as_ref()?;
        self.forget(hash)?.complete
    }

    /// Keeps the logs of a block that was taken back: it may return.
    pub(super) fn restore(&mut self, hash: B256, logs: Vec<Log>) {
        self.block(hash).complete = Some(logs);
    }

    fn forget(&mut self, hash: &B256) -> Option<Known> {
        let known = self.blocks.remove(hash)?;
        self.waiting -= known.seen.len().min(self.waiting);
        self.order.retain(|own| own != hash);
        Some(known)
    }

    /// Keeps at most so many blocks: those among `keep`, then the newest.
    pub(super) fn prune(&mut self, most: usize, keep: &[B256]) {
        while self.blocks.len() > most {
            let Some(oldest) = self.order.iter().find(|hash| !keep.contains(hash)).copied() else {
                return;
            };
            self.forget(&oldest);
        }
    }

    /// Forgets what the subscription showed: it may have been a node that lies.
    pub(super) fn forget_seen(&mut self) {
        for block in self.blocks.values_mut() {
            block.seen.clear();
            block.empties = 0;
        }
        self.waiting = 0;
    }
}
