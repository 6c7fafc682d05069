//! What the threads of a drain share, as plain data under one lock, and what can be read from it.
//!
//! # Invariants
//! - Items: accepted = completed + queued + the one in hand.
//! - Records of a sink: taken = written + lost + spooled + the one in its hand. Lost is not zero only
//!   for a sink that has ended.

use super::config::DrainConfig;
use super::sink::SinkError;
use super::{Item, Refusal};
use crate::report::Record;
use regatta_core::dispatch::{PipeProgress, StallWatch, Stalled};
use regatta_core::time::{Duration as Span, Instant};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A thread of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Drainer,
    Timekeeper,
    Sink(usize),
}

/// How a sink is.
#[derive(Clone, Debug)]
pub enum SinkState {
    /// It takes records.
    Open,
    /// Its last attempt failed, and it tries again.
    Retrying {
        /// Attempts in vain.
        attempts: u32,
        /// Why the last one failed.
        because: String,
    },
    /// Whoever read it has had enough.
    ReaderGone,
    /// It was given up.
    Failed(Arc<SinkError>),
}

impl SinkState {
    const fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Retrying { .. })
    }
}

impl fmt::Display for SinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Retrying { attempts, because } => {
                write!(f, "failed {attempts} times and tries again: {because}")
            }
            Self::ReaderGone => f.write_str("whoever read it is gone"),
            Self::Failed(error) => write!(f, "given up: {error}"),
        }
    }
}

/// A record on its way to a sink.
pub(super) struct Spooled {
    pub(super) record: Arc<Record>,
    accepted: Instant,
}

/// A sink's records, and what became of them.
pub(super) struct Spool {
    pub(super) name: String,
    capacity: usize,
    waiting: VecDeque<Spooled>,
    /// When the record in the sink's hand was accepted.
    in_hand: Option<Instant>,
    /// The drainer's item is a record that the sink has not had room for yet.
    owed: bool,
    /// The drainer's item is a record that came into this spool.
    handed: bool,
    /// It was full, and not half of it is free again.
    crowded: bool,
    pub(super) state: SinkState,
    taken: u64,
    written: u64,
    lost: u64,
}

impl Spool {
    pub(super) fn new(name: String, capacity: usize) -> Self {
        Self {
            name,
            capacity,
            waiting: VecDeque::new(),
            in_hand: None,
            owed: false,
            handed: false,
            crowded: false,
            state: SinkState::Open,
            taken: 0,
            written: 0,
            lost: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    /// Records taken and neither written nor lost.
    fn behind(&self) -> u64 {
        self.waiting.len() as u64 + u64::from(self.in_hand.is_some())
    }

    /// The number of the record in hand, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.written + 1
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Gives the sink its next record.
    pub(super) fn next(&mut self) -> Option<Arc<Record>> {
        let next = self.waiting.pop_front()?;
        self.in_hand = Some(next.accepted);
        self.crowded &= self.waiting.len() > self.capacity / 2;
        Some(next.record)
    }

    /// The record in hand is delivered.
    pub(super) fn delivered(&mut self) {
        self.in_hand = None;
        self.written += 1;
        self.state = SinkState::Open;
    }

    /// The sink ends: it owes nothing any more, and what it owed is lost to it.
    pub(super) fn end(&mut self, state: SinkState) {
        self.lost += self.behind();
        self.waiting = VecDeque::new();
        (self.in_hand, self.owed, self.crowded) = (None, false, false);
        self.state = state;
    }
}

pub(super) struct State {
    queue: VecDeque<(Item, Instant)>,
    capacity: usize,
    /// What the drainer has in hand, and when it was accepted.
    in_hand: Option<(&'static str, Instant)>,
    accepted: u64,
    completed: u64,
    pub(super) rejected: u64,
    pub(super) handed_back: u64,
    /// No more items are taken; how many had left through every sink by then.
    pub(super) quiesced: Option<u64>,
    /// The threads are to end.
    pub(super) stopping: bool,
    /// Threads that have ended.
    pub(super) ended: Vec<Role>,
    pub(super) drainer_lost: bool,
    pub(super) watch: StallWatch,
    pub(super) stalled: Option<Stalled>,
    /// The timekeeper waits without a deadline.
    pub(super) unarmed: bool,
    pub(super) spools: Vec<Spool>,
}

impl State {
    pub(super) fn new(config: &DrainConfig, names: impl Iterator<Item = String>) -> Self {
        Self {
            queue: VecDeque::with_capacity(config.queue),
            capacity: config.queue,
            in_hand: None,
            accepted: 0,
            completed: 0,
            rejected: 0,
            handed_back: 0,
            quiesced: None,
            stopping: false,
            ended: Vec::new(),
            drainer_lost: false,
            watch: StallWatch::new(config.rule),
            stalled: None,
            unarmed: false,
            spools: names.map(|name| Spool::new(name, config.spool)).collect(),
        }
    }

    /// Why an item is refused for good.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if self.quiesced.is_some() {
            return Some(Refusal::Closing);
        }
        if self.drainer_lost {
            return Some(Refusal::DrainerGone);
        }
        if self.spools.iter().any(|spool| spool.state.is_open()) {
            return None;
        }
        let failed = self.spools.iter().find_map(|spool| match &spool.state {
            SinkState::Failed(error) => Some(Refusal::SinkFailed(Arc::clone(error))),
            _ => None,
        });
        failed.or_else(|| {
            let sink = self.spools.last()?.name.clone();
            Some(Refusal::ReaderGone { sink })
        })
    }

    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.capacity
    }

    pub(super) fn accept(&mut self, item: Item, now: Instant) {
        self.queue.push_back((item, now));
        self.accepted += 1;
    }

    /// Gives the drainer its next item.
    pub(super) fn next(&mut self) -> Option<(Item, Instant)> {
        let (item, accepted) = self.queue.pop_front()?;
        self.in_hand = Some((item.kind(), accepted));
        if matches!(item, Item::Publish(_)) {
            for spool in &mut self.spools {
                spool.owed = spool.state.is_open();
            }
        }
        Some((item, accepted))
    }

    /// Hands the record to the sinks that are owed it and have room, calling `handed` with each. Says
    /// whether it is done.
    pub(super) fn hand_out(
        &mut self,
        record: &Arc<Record>,
        accepted: Instant,
        mut handed: impl FnMut(usize),
    ) -> bool {
        let mut done = true;
        for (at, spool) in self.spools.iter_mut().enumerate() {
            if spool.owed && !spool.is_full() {
                (spool.owed, spool.handed) = (false, true);
                spool.taken += 1;
                spool.waiting.push_back(Spooled {
                    record: Arc::clone(record),
                    accepted,
                });
                spool.crowded |= spool.is_full();
                handed(at);
            }
            done &= !spool.owed;
        }
        done
    }

    /// The item in hand is done.
    pub(super) fn complete(&mut self) {
        self.in_hand = None;
        self.completed += 1;
        for spool in &mut self.spools {
            spool.handed = false;
        }
    }

    /// Whether the drainer waits for a sink that has no room: what is owed then is the sink's debt.
    pub(super) fn waits_for_a_sink(&self) -> bool {
        self.spools.iter().any(|s| s.owed && s.is_full())
    }

    /// What the stall rule goes by.
    pub(super) fn progress(&self) -> PipeProgress {
        PipeProgress {
            accepted: if self.waits_for_a_sink() {
                self.completed
            } else {
                self.accepted
            },
            completed: self.completed,
            closed: self.drainer_lost,
        }
    }

    /// Items that the drainer, or the slowest open sink, is not done with.
    pub(super) fn lag(&self) -> u64 {
        // The item in the drainer's hand is counted once.
        let behind = |s: &Spool| s.behind().saturating_sub(u64::from(s.handed));
        let behind = self.spools.iter().map(behind).max();
        self.accepted - self.completed + behind.unwrap_or(0)
    }

    /// Items that have left through every sink that was open.
    pub(super) fn left(&self) -> u64 {
        self.accepted.saturating_sub(self.lag())
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        let of_sinks = self.spools.iter().filter_map(|spool| {
            spool
                .in_hand
                .or_else(|| spool.waiting.front().map(|first| first.accepted))
        });
        let in_hand = self.in_hand.map(|(_, accepted)| accepted);
        let queued = self.queue.front().map(|(_, accepted)| *accepted);
        of_sinks.chain(in_hand).chain(queued).min()
    }

    pub(super) fn not_ready(&self) -> Option<String> {
        if let Some(stalled) = self.stalled {
            return Some(format!("drain: {stalled}"));
        }
        if self.quiesced.is_some() {
            return Some("drain: closing".to_owned());
        }
        self.spools.iter().find_map(|spool| {
            let behind = spool.behind() + u64::from(spool.owed);
            match &spool.state {
                SinkState::Open if !spool.crowded => None,
                SinkState::Open => Some(format!(
                    "sink {}: spool full, {behind} records behind",
                    spool.name
                )),
                other => Some(format!("sink {}: {other}", spool.name)),
            }
        })
    }

    pub(super) fn status(&self, now: Instant) -> Status {
        let age = |accepted| Duration::from(now.since(accepted));
        Status {
            accepted: self.accepted,
            completed: self.completed,
            rejected: self.rejected,
            handed_back: self.handed_back,
            queued: self.queue.len() as u64,
            in_hand: self.in_hand.map(|(kind, accepted)| (kind, age(accepted))),
            waits_for_a_sink: self.waits_for_a_sink(),
            lag: self.lag(),
            oldest: self.oldest().map(age),
            sinks: self.spools.iter().map(SinkStatus::of).collect(),
        }
    }
}

/// A picture of a drain. As text it is what is dumped when the drain stalls.
#[derive(Clone, Debug)]
pub struct Status {
    /// Items accepted.
    pub accepted: u64,
    /// Items that the drainer is done with: run, or handed to every open sink's spool.
    pub completed: u64,
    /// Items refused because the drain was closing, or had nowhere left to drain to.
    pub rejected: u64,
    /// Times that an item was handed back because the queue stayed full.
    pub handed_back: u64,
    /// Items that wait for the drainer.
    pub queued: u64,
    /// The kind of the item in the drainer's hand, and how long ago it was accepted.
    pub in_hand: Option<(&'static str, Duration)>,
    /// Whether the drainer waits for room in a spool.
    pub waits_for_a_sink: bool,
    /// Items that the drainer, or the slowest open sink, is not done with.
    pub lag: u64,
    /// How long ago the oldest of these was accepted.
    pub oldest: Option<Duration>,
    /// The sinks.
    pub sinks: Vec<SinkStatus>,
}

/// A picture of a sink.
#[derive(Clone, Debug)]
pub struct SinkStatus {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: SinkState,
    /// Records that came into its spool.
    pub taken: u64,
    /// Of these, delivered.
    pub written: u64,
    /// Of these, lost because the sink ended. One of them may have gone out in part.
    pub lost: u64,
    /// Of these, still to be delivered.
    pub behind: u64,
    /// The most that its spool holds.
    pub spool: usize,
}

impl SinkStatus {
    fn of(spool: &Spool) -> Self {
        Self {
            name: spool.name.clone(),
            state: spool.state.clone(),
            taken: spool.taken,
            written: spool.written,
            lost: spool.lost,
            behind: spool.behind(),
            spool: spool.capacity,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "drain: {} accepted, {} completed, {} queued, {} rejected, {} handed back; drainer ",
            self.accepted, self.completed, self.queued, self.rejected, self.handed_back
        )?;
        match self.in_hand {
            None => f.write_str("has nothing in hand")?,
            Some((kind, age)) => {
                write!(
                    f,
                    "has a {kind} in hand, accepted {} ms ago",
                    age.as_millis()
                )?;
            }
        }
        if self.waits_for_a_sink {
            f.write_str(", and waits for room in a spool")?;
        }
        for sink in &self.sinks {
            write!(
                f,
                "\nsink {}: {} taken, {} written, {} lost, {} behind, spool of {}; {}",
                sink.name, sink.taken, sink.written, sink.lost, sink.behind, sink.spool, sink.state
            )?;
        }
        Ok(())
    }
}

/// The span from now until `at`, for a wait.
pub(super) fn until(at: Instant, now: Instant) -> Duration {
    Span::into(at.since(now))
}

#[cfg(test)]
mod tests {
    //! What cannot be held still from outside.

    use super::*;
    use crate::report::MissedRecord;
    use crate::source::BlockHash;

    #[test]
    fn an_item_that_some_sinks_have_and_one_has_no_room_for_is_owed_once() {
        let config = DrainConfig {
            spool: 1,
            ..DrainConfig::default()
        };
        let names = ["full", "free"].map(str::to_owned);
        let mut state = State::new(&config, names.into_iter());
        let step = |state: &mut State| {
            let record = Record::Missed(MissedRecord {
                chain: crate::market::UntrustedText::new("test"),
                number: 1,
                hash: BlockHash::new([7; 32]),
                covered_by: Some(1),
                orphaned: false,
            });
            state.accept(Item::publish(record), Instant::ORIGIN);
            let Some((Item::Publish(record), at)) = state.next() else {
                panic!("nothing to do");
            };
            state.hand_out(&record, at, |_| ())
        };
        assert!(step(&mut state));
        state.complete();
        state.spools[1].next().unwrap();
        assert!(!step(&mut state));
        assert!(state.waits_for_a_sink());
        assert_eq!((state.lag(), state.left()), (2, 0));
    }
}
