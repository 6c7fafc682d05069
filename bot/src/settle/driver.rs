//! The settler's thread: carries out what the engine wants, and tells it what came of it.
//!
//! # Invariants
//! - Entries are put on the disk in the order in which the engine made them, before anything after them is done.
//! - It waits for messages, the engine's deadline, the disk, and for the drain a moment.
//! - Every action gets an answer: the node's, the fleet's, or at its deadline none.
//! - An outcome is said after it is on the disk. What the drain has no room for is kept and said later, the oldest dropped
//!   beyond a bound: the ledger has it.

use super::calls::{self, answer};
use super::record::{self, SettlementTotals};
use super::{Intake, Message, Opened, SubmitJob};
use crate::drain::{Drain, Item, Refusal, Refused};
use crate::market::UntrustedText;
use crate::node::{Asker, plain_hash};
use crate::pipeline::{Arbitrage, Output, Unit};
use crate::report::Record;
use crate::source::Head;
use regatta_core::role::WorkerRole;
use regatta_portable::{Ended, Fleet, Receipt};
use regatta_settle::engine::{self, Action, Answer, CallId, Engine, Stop};
use regatta_settle::key::Key;
use regatta_settle::ledger::{Block, Entry, Ledger};
use regatta_settle::tx::Transaction;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Records that wait for the drain.
const KEPT: usize = 4096;

/// How soon what the drain had no room for is offered again.
const AGAIN: Duration = Duration::from_millis(500);

/// How long a unit that has run may take to be accounted for.
const RESOLVE: Duration = Duration::from_secs(1);

/// What the settler works with.
pub(crate) struct Surroundings {
    pub(crate) asker: Asker,
    pub(crate) fleet: Arc<Fleet<Arbitrage>>,
    pub(crate) chain: UntrustedText,
}

/// A settler before its thread runs.
pub(crate) struct Settler {
    intake: Intake,
    messages: Receiver<Message>,
    opened: Opened,
}

/// What the settler left when it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Left {
    /// Receipts whose outcome nobody collects.
    pub(crate) given_up: u64,
}

impl Settler {
    /// A settler over what was opened, and the way to it.
    pub(crate) fn new(opened: Opened) -> (Self, Intake) {
        let (sender, messages) = channel();
        let intake = Intake::new(sender);
        let settler = Self {
            intake: intake.clone(),
            messages,
            opened,
        };
        (settler, intake)
    }

    /// The life of the thread.
    pub(crate) fn live(self, surroundings: &Surroundings, drain: &Drain) -> Left {
        let Opened {
            config,
            key,
            ledger,
        } = self.opened;
        let mode = config.mode;
        let mut driver = Driver {
            engine: Engine::new(config, ledger.state().clone()),
            mode,
            ledger,
            key,
            surroundings,
            drain,
            intake: self.intake,
            began: Instant::now(),
            signing: Vec::new(),
            unsaid: VecDeque::new(),
            draining: false,
            height: None,
            dropped: 0,
            told: None,
        };
        driver.run(&self.messages);
        driver.leave()
    }
}

struct Driver<'a> {
    engine: Engine,
    mode: engine::Mode,
    ledger: Ledger,
    key: Option<Arc<Key>>,
    surroundings: &'a Surroundings,
    drain: &'a Drain,
    intake: Intake,
    began: Instant,
    signing: Vec<(CallId, Receipt<Arbitrage>)>,
    unsaid: VecDeque<Record>,
    draining: bool,
    /// The height of the last header.
    height: Option<u64>,
    /// Records that were dropped unsaid.
    dropped: u64,
    /// The stop that was logged.
    told: Option<Stop>,
}

impl Driver<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            self.act();
            self.say();
            self.tell();
            // What is open with transactions out is followed until whoever stops us has had enough.
            if self.draining && self.engine.is_drained() && self.engine.state().totals().open() == 0
            {
                return;
            }
            let message = match self.wait() {
                Some(wait) => messages.recv_timeout(wait),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.now();
            if self.engine.next_deadline().is_some_and(|due| due <= now) {
                self.engine.tick(now);
            }
        }
    }

    /// How long nothing is to be done.
    fn wait(&self) -> Option<Duration> {
        let due = self.engine.next_deadline();
        let due = due.map(|due| due.saturating_sub(self.now()));
        let again = (!self.unsaid.is_empty()).then_some(AGAIN);
        due.into_iter().chain(again).min()
    }

    fn take(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Found(found) => {
                self.intake.taken();
                if let Err(skip) = self.engine.opportunity(*found, now) {
                    self.intake.status().skipped.count(skip);
                }
            }
            Message::Head(head) => self.head(&head, now),
            // The pump may be behind the clock.
            Message::Applied(head) => {
                if self.height.is_none_or(|height| height < head.number) {
                    self.head(&head, now);
                }
            }
            Message::Reverted(hash) => self.engine.reverted(hash, now),
            Message::Answer(call, answer) => self.engine.answer(call, answer, now),
            Message::Ran => self.collect(RESOLVE),
            Message::Drain => {
                self.draining = true;
                self.engine.drain();
            }
            Message::Stop => {}
        }
    }

    fn head(&mut self, head: &Head, now: Duration) {
        self.height = Some(head.number);
        if let Some(head) = told(head) {
            self.engine.head(head, now);
        } else {
            tracing::warn!("block {} has no base fee: not settled", head.number);
        }
    }

    /// Carries out all that the engine wants.
    fn act(&mut self) {
        self.collect(Duration::ZERO);
        while let Some(action) = self.engine.poll_action() {
            match calls::requests(action) {
                Ok((call, asked, requests)) => {
                    let sender = self.intake.sender();
                    let reply = move |answers| {
                        // A settler that has ended needs none.
                        let _ = sender.send(Message::Answer(call, answer(asked, answers)));
                    };
                    if let Err(error) = self.surroundings.asker.ask_then(requests, reply) {
                        let failed = Answer::Failed(error.to_string());
                        let now = self.now();
                        self.engine.answer(call, failed, now);
                    }
                }
                Err(Action::Sign { call, transaction }) => self.sign(call, transaction),
                Err(Action::Record { sequence, entry }) => self.record(sequence, &entry),
                Err(_) => {}
            }
        }
    }

    fn sign(&mut self, call: CallId, transaction: Transaction) {
        let submitted = self.key.as_ref().map(|key| {
            let job = SubmitJob::new(transaction, Arc::clone(key), self.intake.sender());
            let unit = Unit::Submit(Box::new(job));
            self.surroundings
                .fleet
                .submit(WorkerRole::Submitter, 0, unit)
        });
        let why = match submitted {
            Some(Ok(receipt)) => return self.signing.push((call, receipt)),
            Some(Err(refused)) => refused.error.to_string(),
            None => "there is no key".to_owned(),
        };
        let now = self.now();
        self.engine.answer(call, Answer::Failed(why), now);
    }

    /// Takes what the Submitter has done, and waits for so long for what it is about to have done.
    fn collect(&mut self, wait: Duration) {
        for (call, receipt) in std::mem::take(&mut self.signing) {
            let ended = if wait.is_zero() {
                receipt.poll()
            } else {
                receipt
                    .wait_for(wait)
                    .map_err(regatta_portable::WaitError::into_receipt)
            };
            let answer = match ended {
                Err(receipt) => {
                    self.signing.push((call, receipt));
                    continue;
                }
                Ok(Ended::Done(Output::Submitted(job))) => match job.into_signed() {
                    Some(Ok(signed)) => Answer::Signed(signed),
                    Some(Err(error)) => Answer::Failed(error.to_string()),
                    None => Answer::Failed("nothing was signed".to_owned()),
                },
                Ok(Ended::Done(_)) => Answer::Failed("its unit answered as another".to_owned()),
                Ok(Ended::Failed(failure, _)) => Answer::Failed(failure.to_string()),
            };
            let now = self.now();
            self.engine.answer(call, answer, now);
        }
    }

    fn record(&mut self, sequence: u64, entry: &Entry) {
        if let Err(error) = self.ledger.append(entry) {
            self.engine.record_failed(&error.to_string());
            return;
        }
        let now = self.now();
        self.engine.recorded(sequence, now);
        let id = match entry {
            Entry::Planned { id, .. }
            | Entry::Sent { id, .. }
            | Entry::Outcome { id, .. }
            | Entry::Reversed { id, .. } => *id,
        };
        // The ledger's own state: the engine's may be ahead of this entry.
        let flight = self.ledger.state().flight(id);
        let chain = &self.surroundings.chain;
        if let Some(record) = record::of(chain, self.mode, entry, flight) {
            if self.unsaid.len() >= KEPT {
                self.unsaid.pop_front();
                self.dropped += 1;
                if self.dropped == 1 {
                    tracing::error!("records of settlements are dropped: the ledger has them");
                }
            }
            self.unsaid.push_back(Record::Settlement(record));
        }
    }

    /// Says what the drain has room for.
    fn say(&mut self) {
        while let Some(record) = self.unsaid.pop_front() {
            let Err(Refused { item, why }) = self.drain.send(Item::publish(record)) else {
                continue;
            };
            match (item, why) {
                (Item::Publish(record), Refusal::Full { .. }) => {
                    if let Some(record) = Arc::into_inner(record) {
                        self.unsaid.push_front(record);
                    }
                }
                // Nobody is there to be told any more.
                _ => self.unsaid.clear(),
            }
            return;
        }
    }

    /// Lets others know how things are.
    fn tell(&mut self) {
        let stopped = self.engine.stopped();
        if let Some(stop) = &stopped
            && self.told.as_ref() != Some(stop)
        {
            tracing::error!("settling has stopped: {stop}; everything else goes on");
        }
        let not_ready = match &stopped {
            Some(Stop::LossLimit { .. }) => Some("loss_limit"),
            Some(Stop::ProfitDiffers { .. }) => Some("profit_differs"),
            Some(Stop::Stuck { .. }) => Some("nonce_stuck"),
            Some(Stop::Behind(_)) => Some("ledger_behind"),
            Some(Stop::Ledger(_)) => Some("ledger_failed"),
            None => (!self.engine.is_ready()).then_some("not_reconciled"),
        };
        self.told = stopped;
        let totals = SettlementTotals::of(self.engine.state());
        let mut status = self.intake.status();
        status.not_ready = not_ready;
        status.open = totals.open;
        status.totals = Some(totals);
    }

    fn leave(mut self) -> Left {
        self.collect(RESOLVE);
        self.say();
        self.tell();
        Left {
            given_up: self.signing.len() as u64,
        }
    }
}

/// A header as the engine takes it.
fn told(head: &Head) -> Option<engine::Head> {
    Some(engine::Head {
        block: Block {
            number: head.number,
            hash: plain_hash(head.hash),
        },
        base_fee: head.base_fee?,
    })
}
