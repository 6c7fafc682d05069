//! One step: what is due by now, the way from the head to the journal, what can be said, and what has to be asked.
//!
//! # Invariants
//! - The way is found anew in every step from what is known, so a head that switches while a branch is filled in leaves
//!   nothing half done.
//! - Reverts come before the blocks that replace them, and both before the calls of the same step.

use std::time::Instant;

use super::call::{Call, Failure};
use super::event::{ChainEvent, NotReady, ReconnectReason, RereadReason};
use super::journal::{Applied, Way};
use super::watch::Link;
use super::{Follower, Reread, after};

impl Follower {
    /// Time does not go back.
    pub(super) fn clock(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Does what is due, then what follows from what is known.
    pub(super) fn turn(&mut self, now: Instant) {
        if let Some(reason) = self.watch.verdict(now, &self.config) {
            self.give_up(reason, now);
        }
        for call in self.asks.overdue(now) {
            self.fail(call, Failure::TimedOut, now);
        }
        if self.asks.wake(now) {
            self.doubt = true;
        }
        match self.reread {
            Reread::Out { deadline, .. } if deadline <= now => self.reread_rests(now),
            Reread::Resting { until } if until <= now => self.reread = Reread::Idle,
            _ => {}
        }
        if self.trouble.is_some_and(|(_, until)| until <= now) {
            self.trouble = None;
            self.doubt = true;
        }
        self.advance(now);
    }

    /// Forgets what was going on; not what is known.
    pub(super) fn stand_still(&mut self) {
        self.asks.clear();
        self.reread = Reread::Idle;
        self.trouble = None;
        self.head = None;
        self.rests = 0;
        self.path.clear();
        self.missing = None;
    }

    fn give_up(&mut self, reason: ReconnectReason, now: Instant) {
        self.stand_still();
        if matches!(
            reason,
            ReconnectReason::CallsFail | ReconnectReason::Contradictions
        ) {
            self.logs.forget_seen();
            self.known.clear();
        }
        self.counters.reconnects += 1;
        self.reconnect = Some(reason);
        self.watch.link = Link::GivenUp {
            reason,
            again: after(now, self.config.first_head),
        };
    }

    /// A try of a call failed.
    pub(super) fn fail(&mut self, call: Call, failure: Failure, now: Instant) {
        self.counters.failed_calls += 1;
        if self.asks.failed(call, failure, now, &self.config) {
            self.rested(ReconnectReason::CallsFail, now);
        }
    }

    /// The last reading of the pools came to nothing.
    pub(super) fn reread_rests(&mut self, now: Instant) {
        self.reread = Reread::Resting {
            until: after(now, self.config.backoff_cap),
        };
        self.doubt = true;
        self.rested(ReconnectReason::CallsFail, now);
    }

    fn rested(&mut self, reason: ReconnectReason, now: Instant) {
        self.rests = self.rests.saturating_add(1);
        if self.rests >= self.config.rests_to_reconnect {
            self.give_up(reason, now);
        }
    }

    fn advance(&mut self, now: Instant) {
        self.path.clear();
        self.missing = None;
        if !self.watch.follows() {
            self.asks.clear();
            return;
        }
        let mut wanted = Vec::new();
        if self.trouble.is_none() && !matches!(self.reread, Reread::Out { .. }) {
            self.follow(&mut wanted, now);
        }
        // What followed may have ended the following.
        if !self.watch.follows() {
            return;
        }
        if self.doubt {
            wanted.push(Call::LatestHeader);
        }
        self.asks
            .want(&wanted, self.counters.heads, now, &self.config);
        self.prune();
    }

    fn follow(&mut self, wanted: &mut Vec<Call>, now: Instant) {
        let Some(head) = self.head.clone() else {
            self.doubt = true;
            return;
        };
        match self
            .journal
            .way(&head, &self.known, self.config.backfill_blocks)
        {
            Way::Linked { ancestor, path } => {
                let above = self
                    .journal
                    .len()
                    .saturating_sub(ancestor.saturating_add(1));
                self.revert(above);
                self.path = path;
                self.say(wanted);
            }
            Way::Missing { hash, number, path } => {
                self.path = path;
                self.path.reverse();
                self.missing = Some((hash, number));
                wanted.push(Call::HeaderByHash(hash));
            }
            Way::Anew { orphaned, deep } => {
                if matches!(self.reread, Reread::Idle) {
                    let why = match self.journal.tip() {
                        None if !self.anchored => RereadReason::Start,
                        None => RereadReason::Deep,
                        _ if deep => RereadReason::Deep,
                        _ => RereadReason::Gap,
                    };
                    self.revert(orphaned);
                    self.counters.rereads += 1;
                    let deadline = after(now, self.config.reread_deadline);
                    self.events.push_back(ChainEvent::Reread {
                        header: head.clone(),
                        why,
                    });
                    self.reread = Reread::Out {
                        header: Box::new(head),
                        deadline,
                    };
                }
            }
            Way::Lie(hash, number) => {
                self.counters.contradictions += 1;
                let until = after(now, self.config.backoff_cap);
                self.trouble = Some((NotReady::Contradiction { number, hash }, until));
                self.head = None;
                self.known.clear();
                self.rested(ReconnectReason::Contradictions, now);
            }
        }
    }

    /// Says the blocks of the way whose logs are complete, and asks for those of the next ones.
    fn say(&mut self, wanted: &mut Vec<Call>) {
        let mut said = 0;
        for hash in &self.path {
            let Some(header) = self.known.get(hash) else {
                break;
            };
            if !self.logs.is_complete(header, &self.filter) {
                break;
            }
            let (Some(header), Some(logs)) = (self.known.remove(hash), self.logs.take(hash)) else {
                break;
            };
            self.events.push_back(ChainEvent::Block {
                header: header.clone(),
                logs: logs.clone(),
            });
            self.journal.push(
                Applied {
                    header,
                    logs: Some(logs),
                },
                self.config.journal_blocks,
            );
            self.counters.blocks += 1;
            self.rests = 0;
            said += 1;
        }
        self.path.drain(..said);
        for hash in &self.path {
            if wanted.len() >= self.config.calls_at_once {
                break;
            }
            if let Some(header) = self.known.get(hash)
                && !self.logs.is_complete(header, &self.filter)
            {
                wanted.push(Call::LogsByHash(*hash));
            }
        }
    }

    /// Takes back the newest blocks. They are kept, with their logs, since they may return.
    pub(super) fn revert(&mut self, blocks: usize) {
        let mut depth = 0;
        for _ in 0..blocks {
            let Some(block) = self.journal.pop() else {
                break;
            };
            let (number, hash) = (block.header.number.to(), block.header.hash);
            self.events.push_back(ChainEvent::Reverted { number, hash });
            self.suspects.remove(&hash);
            self.known.insert(hash, block.header);
            if let Some(logs) = block.logs {
                self.logs.restore(hash, logs);
            }
            depth += 1;
        }
        if depth > 0 {
            self.counters.reverted += depth;
            self.counters.reorgs += 1;
            self.counters.deepest_reorg = self.counters.deepest_reorg.max(depth);
        }
    }

    /// Bounds what is kept.
    fn prune(&mut self) {
        let most = self
            .config
            .journal_blocks
            .saturating_add(self.config.backfill_blocks)
            .saturating_mul(2);
        if self.known.len() > most {
            let head = self.head.as_ref().map(|head| head.hash);
            let path = &self.path;
            self.known
                .retain(|hash, _| path.contains(hash) || Some(*hash) == head);
        }
        self.logs.prune(most, &self.path);
        let journal = &self.journal;
        self.suspects.retain(|hash| journal.place(hash).is_some());
    }
}
