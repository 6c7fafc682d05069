//! What a follower is told.
//!
//! # Invariants
//! - Every input ends in one step of the machine at the time that it names; no input does more than a step.
//! - Hints (a header that comes again, a log that is taken back) ask a question and change no block.

use std::time::Instant;

use alloy_primitives::B256;

use super::call::{Answer, Ask, Call, CallId, Failure};
use super::journal::Way;
use super::logs::{Saw, Verdict, same};
use super::watch::Link;
use super::{Follower, Reread};
use crate::types::{Header, Log};

impl Follower {
    /// The driver connected. `generation` tells this connection from all others.
    pub fn connected(&mut self, generation: u64, now: Instant) {
        let now = self.clock(now);
        self.stand_still();
        self.generation = Some(generation);
        self.reconnect = None;
        self.watch.link = Link::Connected { since: now };
        self.turn(now);
    }

    /// The node confirmed the subscriptions to heads and to logs of this connection.
    pub fn subscribed(&mut self, generation: u64, now: Instant) {
        let now = self.clock(now);
        if self.generation == Some(generation) && matches!(self.watch.link, Link::Connected { .. })
        {
            // No head is known since the connection: the step asks for the latest one.
            self.watch.link = Link::Subscribed { since: now };
        } else {
            self.counters.stale_inputs += 1;
        }
        self.turn(now);
    }

    /// The connection is over, and every call that is out with it.
    pub fn disconnected(&mut self, generation: u64, now: Instant) {
        let now = self.clock(now);
        if self.generation == Some(generation) {
            self.generation = None;
            self.watch.link = Link::Down;
            self.stand_still();
        } else {
            self.counters.stale_inputs += 1;
        }
        self.turn(now);
    }

    /// The subscription brought a header.
    pub fn header(&mut self, header: Header, now: Instant) {
        let now = self.clock(now);
        let fresh = self.heard.insert(header.hash);
        self.watch.head(fresh, now);
        if fresh {
            self.counters.heads += 1;
            self.heads.push_back(header.clone());
        } else {
            self.counters.repeated_heads += 1;
        }
        self.told(header, fresh);
        self.turn(now);
    }

    fn told(&mut self, header: Header, fresh: bool) {
        if self.contradicts(&header) {
            self.counters.contradictions += 1;
            self.doubt = true;
            return;
        }
        if self
            .head
            .as_ref()
            .is_some_and(|head| head.hash == header.hash)
        {
            return;
        }
        let wanted = self.missing.is_some_and(|(hash, _)| hash == header.hash);
        if wanted || self.path.contains(&header.hash) || self.journal.place(&header.hash).is_some()
        {
            self.doubt |= !fresh || (self.missing.is_some() && !wanted);
            if wanted {
                self.known.insert(header.hash, header);
            }
            return;
        }
        let number: u64 = header.number.to();
        if !fresh || self.journal.bottom().is_some_and(|bottom| number < bottom) {
            self.doubt = true;
            return;
        }
        if let Some(head) = &self.head
            && head.hash != header.parent_hash
        {
            let before: u64 = head.number.to();
            if number <= before {
                self.doubt = true;
            } else {
                self.counters.gaps += 1;
            }
        }
        self.switch(header);
    }

    /// Whether something else was said about this hash.
    fn contradicts(&self, header: &Header) -> bool {
        let applied = self
            .journal
            .place(&header.hash)
            .and_then(|place| self.journal.get(place));
        applied.is_some_and(|block| block.header != *header)
            || self
                .known
                .get(&header.hash)
                .is_some_and(|known| known != header)
    }

    /// Makes a header the head.
    fn switch(&mut self, header: Header) {
        self.trouble = None;
        if matches!(self.reread, Reread::Resting { .. }) {
            self.reread = Reread::Idle;
        }
        if self.journal.place(&header.hash).is_none() {
            self.known.insert(header.hash, header.clone());
        }
        self.head = Some(header);
    }

    /// The subscription brought a log, or took one back.
    pub fn log(&mut self, log: Log, now: Instant) {
        let now = self.clock(now);
        if !self.filter.matches(&log) {
            self.counters.foreign_logs += 1;
        } else if log.removed {
            self.counters.removed_logs += 1;
            if self.journal.place(&log.block_hash).is_some() {
                self.suspects.insert(log.block_hash);
                self.doubt = true;
            } else if self.path.contains(&log.block_hash) {
                self.doubt = true;
            }
        } else {
            self.shown(log);
        }
        self.turn(now);
    }

    fn shown(&mut self, log: Log) {
        let place = self.journal.place(&log.block_hash);
        let applied = place.and_then(|place| self.journal.get(place));
        let header = applied
            .map(|block| &block.header)
            .or_else(|| self.known.get(&log.block_hash));
        if header.is_some_and(|header| header.number != log.block_number) {
            self.counters.contradictions += 1;
            return;
        }
        if let (Some(place), Some(block)) = (place, applied) {
            // What was read at a block contains what its logs did.
            if block
                .logs
                .as_ref()
                .is_none_or(|logs| logs.iter().any(|one| same(one, &log)))
            {
                self.counters.repeated_logs += 1;
                return;
            }
            self.counters.late_logs += 1;
            self.revert(self.journal.len().saturating_sub(place));
        }
        match self.logs.saw(log, self.config.waiting_logs, &self.path) {
            Saw::New => {}
            Saw::Repeated => self.counters.repeated_logs += 1,
            Saw::Contradiction => self.counters.contradictions += 1,
            Saw::NoRoom => self.counters.dropped_logs += 1,
        }
    }

    /// What came of a call.
    pub fn answer(&mut self, id: CallId, answer: Answer, now: Instant) {
        let now = self.clock(now);
        match self.asks.out(id) {
            None => self.counters.late_answers += 1,
            Some(ask) => match (ask.call, answer) {
                (Call::LatestHeader, Answer::Header(header)) => self.latest(header, &ask, now),
                (Call::HeaderByHash(_), Answer::Header(header)) => self.parent(header, &ask, now),
                (Call::LogsByHash(_), Answer::Logs(logs)) => self.whole(logs, &ask, now),
                (call, Answer::Failed(failure)) => self.fail(call, failure, now),
                (call, _) => self.contradicted(call, now),
            },
        }
        self.turn(now);
    }

    fn contradicted(&mut self, call: Call, now: Instant) {
        self.counters.contradictions += 1;
        self.fail(call, Failure::Wrong, now);
    }

    fn parent(&mut self, header: Header, ask: &Ask, now: Instant) {
        let wanted = self.missing.is_some_and(|(hash, number)| {
            hash == header.hash
                && header.number.to::<u64>() == number
                && ask.call == Call::HeaderByHash(hash)
        });
        if wanted {
            self.asks.answered(ask.call);
            self.known.insert(header.hash, header);
        } else {
            self.contradicted(ask.call, now);
        }
    }

    fn whole(&mut self, logs: Vec<Log>, ask: &Ask, now: Instant) {
        let Call::LogsByHash(hash) = ask.call else {
            return;
        };
        let Some(header) = self.known.get(&hash) else {
            return;
        };
        let (verdict, foreign) =
            self.logs
                .judge(header, logs, &self.filter, self.config.empty_asks);
        self.counters.foreign_logs = self
            .counters
            .foreign_logs
            .saturating_add(u64::try_from(foreign).unwrap_or(u64::MAX));
        match verdict {
            Verdict::Complete => self.asks.answered(ask.call),
            Verdict::Believed => {
                self.counters.empties_believed += 1;
                self.asks.answered(ask.call);
            }
            Verdict::Empty => {
                self.counters.empties += 1;
                self.fail(ask.call, Failure::Empty, now);
            }
            Verdict::Short => {
                self.counters.short_answers += 1;
                self.fail(ask.call, Failure::Short, now);
            }
            Verdict::Wrong => self.contradicted(ask.call, now),
        }
    }

    /// The node said what its latest header is.
    fn latest(&mut self, header: Header, ask: &Ask, now: Instant) {
        if self.contradicts(&header) {
            self.contradicted(ask.call, now);
            return;
        }
        let is_head = self
            .head
            .as_ref()
            .is_some_and(|head| head.hash == header.hash);
        if !is_head && ask.heads != self.counters.heads {
            // It may be older than the header that came meanwhile.
            self.asks.again(ask.call, now);
            return;
        }
        let place = self.journal.place(&header.hash);
        let below = self
            .journal
            .bottom()
            .is_some_and(|bottom| header.number.to::<u64>() < bottom);
        let way = self.head.as_ref().map(|head| {
            self.journal
                .way(head, &self.known, self.config.backfill_blocks)
        });
        let follow = if is_head {
            false
        } else if let Some(place) = place {
            let suspect = self
                .journal
                .above(place)
                .any(|block| self.suspects.contains(&block.header.hash));
            match way {
                _ if suspect => true,
                // It is an ancestor, or the last block that was said.
                Some(Way::Linked { .. }) | None => {
                    self.counters.older_heads += 1;
                    if self.head.is_none() {
                        self.head = self.journal.tip().map(|block| block.header.clone());
                    }
                    false
                }
                Some(_) => {
                    self.fail(ask.call, Failure::Behind, now);
                    return;
                }
            }
        } else if self.path.contains(&header.hash) {
            self.counters.older_heads += 1;
            false
        } else if below && ask.attempts.saturating_add(1) < self.config.call_attempts {
            self.counters.older_heads += 1;
            self.fail(ask.call, Failure::Behind, now);
            return;
        } else {
            true
        };
        self.asks.answered(ask.call);
        self.doubt = false;
        self.suspects.clear();
        if follow {
            self.switch(header);
        }
    }

    /// The driver read the pools at this block. If it is accepted, that block is the last one from here on, and the
    /// driver publishes what it read; else it throws it away.
    #[must_use]
    pub fn reread_done(&mut self, hash: B256, now: Instant) -> bool {
        let now = self.clock(now);
        let accepted = match &self.reread {
            Reread::Out { header, .. } if header.hash == hash => Some(Header::clone(header)),
            _ => None,
        };
        let done = accepted.is_some();
        if let Some(header) = accepted {
            self.known.remove(&header.hash);
            self.journal.anchor(header);
            self.anchored = true;
            self.suspects.clear();
            self.reread = Reread::Idle;
            self.rests = 0;
        } else {
            self.counters.late_answers += 1;
        }
        self.turn(now);
        done
    }

    /// The driver could not read the pools at this block.
    pub fn reread_failed(&mut self, hash: B256, now: Instant) {
        let now = self.clock(now);
        if matches!(&self.reread, Reread::Out { header, .. } if header.hash == hash) {
            self.reread_rests(now);
        } else {
            self.counters.late_answers += 1;
        }
        self.turn(now);
    }

    /// Time passed.
    pub fn tick(&mut self, now: Instant) {
        let now = self.clock(now);
        self.turn(now);
    }
}
