//! The settlement engine: from an opportunity to its outcome.
//!
//! A state machine without sockets, clocks or threads. *Inputs*: [`Engine::opportunity`], [`Engine::head`],
//! [`Engine::reverted`], [`Engine::answer`], [`Engine::recorded`], [`Engine::tick`], [`Engine::drain`]. *Outputs*:
//! [`Engine::poll_action`] until it gives nothing, and [`Engine::next_deadline`], the only timer. `now` is the time
//! since any fixed moment. Its record is the ledger's [`State`]: what is open, which pairs are taken and what was lost
//! are read from it, so that a restart from the ledger knows the same.
//!
//! A settlement is dry-run at the newest head, signed, recorded, sent. On every head a *survey* asks for the receipts
//! and counts of all that is out, and its end decides: an outcome, sending the same again, or a replacement that does
//! nothing but free the nonce of what has expired.
//!
//! # Invariants
//! - Nothing is sent before its entry is on the disk. What is sent again is the same bytes; other bytes with its nonce
//!   are a recorded replacement, which offers at least an eighth more.
//! - Nonces have no gaps. Nothing new is signed while what is out is not reconciled with the node.
//! - A pair is in one open settlement at a time, except in one that a reversal opened again. What is open is a fact of
//!   the record: an outcome, or dropping the engine, releases it.
//! - A settlement ends once, unless its block is orphaned; then it is open again.
//! - Nothing that was predicted is believed: the executor's own report in the receipt is what was realised.

mod flight;
mod survey;
mod types;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use alloy_primitives::{Address, B256};

pub use self::types::{
    Action, Answer, CallId, Config, DryRun, Head, Mode, Opportunity, Receipt, ReceiptLog, Sent,
    Skip, Stop,
};
use crate::ledger::{Block, Entry, Flight, Id, Kind, Mined, Outcome, Plan, State};
use flight::{Phase, Signing, Target};
use survey::Survey;

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Dry(Id, Block),
    Why(Id, Mined),
    Sign,
    Send(Id),
    Receipt(Id, B256),
    Counts,
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    state: State,
    /// Of each open settlement.
    phases: BTreeMap<Id, Phase>,
    /// Ended ones whose block may be orphaned, and the height at which to look again.
    unconfirmed: BTreeMap<Id, u64>,
    /// The last blocks, by height.
    chain: BTreeMap<u64, B256>,
    head: Option<Head>,
    calls: BTreeMap<CallId, (Purpose, Duration)>,
    next_call: u64,
    actions: VecDeque<Action>,
    sequence: u64,
    /// Transactions to send when their entry is on the disk, by its sequence.
    unsent: BTreeMap<u64, Id>,
    /// The last entry that is on the disk.
    durable: u64,
    signing: Option<Signing>,
    /// Nonces to free, before anything new is signed.
    wanted: VecDeque<Target>,
    survey: Option<Survey>,
    survey_due: bool,
    /// Whether what is out agrees with the node, as far as is known.
    clean: bool,
    /// The next nonce, when it was reconciled.
    next_nonce: Option<u64>,
    /// How often a node did not simply take what was sent.
    refusals: u64,
    draining: bool,
    stop: Option<Stop>,
}

impl Engine {
    /// An engine that goes on from what the ledger says. What was planned and never signed is dropped; what may have
    /// been sent is reconciled with the node before anything new is.
    #[must_use]
    pub fn new(config: Config, state: State) -> Self {
        let mut engine = Self {
            config,
            state,
            phases: BTreeMap::new(),
            unconfirmed: BTreeMap::new(),
            chain: BTreeMap::new(),
            head: None,
            calls: BTreeMap::new(),
            next_call: 0,
            actions: VecDeque::new(),
            sequence: 0,
            unsent: BTreeMap::new(),
            durable: 0,
            signing: None,
            wanted: VecDeque::new(),
            survey: None,
            survey_due: true,
            clean: false,
            next_nonce: None,
            refusals: 0,
            draining: false,
            stop: None,
        };
        let highest = engine.state.highest_block().map_or(0, |block| block.number);
        let recent = highest.saturating_sub(engine.config.depth);
        let mut unsigned = Vec::new();
        for (id, flight) in engine.state.flights() {
            match &flight.outcome {
                None if flight.attempts.is_empty() => unsigned.push(id),
                None => {
                    engine.phases.insert(id, Phase::Out(flight::Out::default()));
                }
                // A reorg may have happened while nobody looked.
                Some(outcome) => {
                    if let Outcome::Replaced { .. } = outcome {
                        engine.unconfirmed.insert(id, u64::MAX);
                    }
                    let mined = outcome.mined();
                    if mined.is_some_and(|mined| mined.block.number >= recent) {
                        engine.unconfirmed.insert(id, 0);
                    }
                }
            }
        }
        for id in unsigned {
            engine.end(id, Outcome::Dropped { cancel: None });
        }
        engine
    }

    // Getters.

    /// What the record says: open settlements, totals.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Why settling has stopped, if it has.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        if self.stop.is_some() {
            return self.stop.clone();
        }
        let (loss, limit) = (self.state.totals().loss, self.config.loss_limit);
        if loss >= limit {
            return Some(Stop::LossLimit { loss, limit });
        }
        let most = self.config.max_replacements;
        self.state.open().find_map(|(_, flight)| {
            let tries = cancels(flight);
            let nonce = flight.nonce.filter(|_| tries >= most)?;
            Some(Stop::Stuck { nonce, tries })
        })
    }

    /// Whether opportunities are taken: reconciled with the node, and not stopped.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let clean = self.clean || self.config.mode == Mode::Shadow;
        clean && self.head.is_some() && !self.draining && self.stopped().is_none()
    }

    /// Whether nothing is under way that a stop would cut off: what is out is on the disk, and goes on without us.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let out = |phase: &Phase| matches!(phase, Phase::Out(_) | Phase::Why(_));
        let settled = self.signing.is_none() && self.durable == self.sequence;
        self.draining && settled && self.actions.is_empty() && self.phases.values().all(out)
    }

    /// The pairs of open settlements.
    pub fn reserved(&self) -> impl Iterator<Item = (Address, Id)> {
        self.state.open().flat_map(|(id, flight)| {
            let hops = flight.plan.iter().flat_map(|plan| &plan.cycle.hops);
            hops.map(move |hop| (hop.pool, id))
        })
    }

    // Inputs.

    /// Offers an opportunity.
    pub fn opportunity(&mut self, found: Opportunity, now: Duration) -> Result<Id, Skip> {
        let head = self.head.map(|head| head.block).ok_or(Skip::NotReady)?;
        if self.draining {
            return Err(Skip::Draining);
        }
        if self.stopped().is_some() {
            return Err(Skip::Stopped);
        }
        if !self.is_ready() {
            return Err(Skip::NotReady);
        }
        let mut pools: Vec<Address> = found.hops.iter().map(|hop| hop.pool).collect();
        pools.sort_unstable();
        pools.dedup();
        if pools.is_empty() || pools.len() < found.hops.len() {
            return Err(Skip::Malformed);
        }
        let expiry = found.found.number.saturating_add(self.config.expiry_blocks);
        if expiry <= head.number || !self.is_of_chain(found.found) {
            return Err(Skip::Late);
        }
        if found.profit < self.config.min_profit {
            return Err(Skip::TooSmall);
        }
        if let Some((pool, _)) = self.reserved().find(|(pool, _)| pools.contains(pool)) {
            return Err(Skip::PoolTaken(pool));
        }
        if self.phases.len() >= self.config.window {
            return Err(Skip::Full);
        }
        let id = self.state.next_id();
        let plan = Plan {
            found: found.found,
            cycle: found.cycle(expiry),
            min_profit: self.config.min_profit,
        };
        self.record(Entry::Planned { id, plan });
        self.ask_dry_run(id, head, now);
        Ok(id)
    }

    /// The chain has a new end. Tell every block that becomes part of it, in order.
    pub fn head(&mut self, head: Head, now: Duration) {
        let number = head.block.number;
        let later = number.saturating_add(self.config.depth);
        for due in self.unconfirmed.values_mut() {
            // Those that an earlier run ended, it is not known when.
            *due = (*due).min(later);
        }
        self.chain.split_off(&number);
        self.chain.insert(number, head.block.hash);
        let oldest = number.saturating_sub(self.config.depth.saturating_mul(2));
        self.chain = self.chain.split_off(&oldest);
        self.head = Some(head);
        self.survey_due = true;
        self.advance_unsent(head.block, now);
        self.pump(now);
    }

    /// A block is no longer of the chain: newest first, before the new ones.
    pub fn reverted(&mut self, block: B256, now: Duration) {
        self.chain.retain(|_, hash| *hash != block);
        self.survey_due = true;
        for phase in self.phases.values_mut() {
            if matches!(phase, Phase::Why(mined) if mined.block.hash == block) {
                *phase = Phase::Out(flight::Out::default());
            }
        }
        let ended = self.state.flights().filter_map(|(id, flight)| {
            let mined = flight.outcome.as_ref()?.mined()?;
            (mined.block.hash == block).then_some((id, mined.block))
        });
        for (id, block) in ended.collect::<Vec<_>>() {
            self.reopen(id, Some(block));
        }
        self.pump(now);
    }

    /// What came of an action. An answer that nobody waits for (any more) is ignored.
    pub fn answer(&mut self, call: CallId, answer: Answer, now: Duration) {
        if let Some((purpose, _)) = self.calls.remove(&call) {
            self.take(call, purpose, answer, now);
            self.pump(now);
        }
    }

    /// The entries up to this sequence are on the disk.
    pub fn recorded(&mut self, sequence: u64, now: Duration) {
        self.durable = self.durable.max(sequence);
        while let Some(entry) = self
            .unsent
            .first_entry()
            .filter(|entry| *entry.key() <= sequence)
        {
            let id = entry.remove();
            self.signing = None;
            // Past its expiry the executor would refuse it: its nonce is freed by a replacement.
            let wanted = self.state.flight(id).is_some_and(|flight| {
                let cancel = flight
                    .attempts
                    .last()
                    .is_some_and(|last| last.kind == Kind::Cancel);
                flight.outcome.is_none() && (cancel || !self.is_expired(flight))
            });
            if wanted {
                self.send_last(id, now);
            }
        }
        self.pump(now);
    }

    /// An entry could not be put on the disk: nothing is signed or sent any more.
    pub fn record_failed(&mut self, reason: &str) {
        self.unsent.clear();
        self.stop = Some(Stop::Ledger(crate::abi::bounded(reason)));
        self.actions
            .retain(|action| !matches!(action, Action::Send { .. } | Action::Sign { .. }));
    }

    /// The time has come to [`Engine::next_deadline`], or may have.
    pub fn tick(&mut self, now: Duration) {
        let late = self
            .calls
            .iter()
            .filter(|(_, (_, deadline))| *deadline <= now);
        for call in late.map(|(call, _)| *call).collect::<Vec<_>>() {
            self.answer(call, Answer::Failed("no answer in time".to_owned()), now);
        }
        self.pump(now);
    }

    /// Takes nothing more, and gives up what is not signed. What is out stays in the ledger, for the next start.
    pub fn drain(&mut self) {
        self.draining = true;
        let signing = self.signing.as_ref().and_then(Signing::recording);
        let unsigned = self.phases.iter().filter(|(id, phase)| {
            !matches!(phase, Phase::Out(_) | Phase::Why(_)) && signing != Some(**id)
        });
        for id in unsigned.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end(id, Outcome::Dropped { cancel: None });
        }
        self.wanted.clear();
        if self
            .signing
            .as_ref()
            .is_some_and(|signing| signing.recording().is_none())
        {
            self.signing = None;
        }
    }

    // Outputs.

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Engine::tick`] at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.calls.values().map(|(_, deadline)| *deadline).min()
    }

    // Within.

    /// Puts an entry into the record and asks for it to be put on the disk.
    fn record(&mut self, entry: Entry) -> u64 {
        if let Err(error) = self.state.apply(&entry) {
            // The engine and the ledger share one statement of what may follow; not to go on is all that is safe.
            self.record_failed(&error.to_string());
            return self.sequence;
        }
        self.sequence += 1;
        let sequence = self.sequence;
        self.actions.push_back(Action::Record { sequence, entry });
        sequence
    }

    /// Ends a settlement.
    fn end(&mut self, id: Id, outcome: Outcome) {
        self.phases.remove(&id);
        if let Some(mined) = outcome.mined() {
            let due = mined.block.number.saturating_add(self.config.depth);
            self.unconfirmed.insert(id, due);
        } else if matches!(outcome, Outcome::Replaced { .. }) {
            let head = self.head.map_or(0, |head| head.block.number);
            self.unconfirmed
                .insert(id, head.saturating_add(self.config.depth));
        }
        self.record(Entry::Outcome { id, outcome });
    }

    /// A settlement's end is taken back.
    fn reopen(&mut self, id: Id, block: Option<Block>) {
        self.record(Entry::Reversed { id, block });
        self.unconfirmed.remove(&id);
        self.phases.insert(id, Phase::Out(flight::Out::default()));
        self.clean = false;
        self.survey_due = true;
    }

    /// Asks something, with a deadline.
    fn call(
        &mut self,
        purpose: Purpose,
        now: Duration,
        action: impl FnOnce(CallId) -> Action,
    ) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        let deadline = now.saturating_add(self.config.call_timeout);
        self.calls.insert(call, (purpose, deadline));
        self.actions.push_back(action(call));
        call
    }

    /// Whether the block is of the chain, as far as is known.
    fn is_of_chain(&self, block: Block) -> bool {
        match self.chain.get(&block.number) {
            Some(hash) => *hash == block.hash,
            None => self
                .head
                .is_some_and(|head| block.number <= head.block.number),
        }
    }

    /// Whether no later block than the head may run it; a gap's filler always has.
    fn is_expired(&self, flight: &Flight) -> bool {
        let head = self.head.map_or(0, |head| head.block.number);
        flight
            .plan
            .as_ref()
            .is_none_or(|plan| plan.cycle.expiry <= head)
    }

    fn take(&mut self, call: CallId, purpose: Purpose, answer: Answer, now: Duration) {
        match purpose {
            Purpose::Dry(id, at) => self.dry_run_done(call, id, at, answer, now),
            Purpose::Why(id, mined) => self.why_told(id, mined, &answer),
            Purpose::Sign => self.sign_done(call, answer, now),
            Purpose::Send(id) => self.send_done(id, &answer),
            Purpose::Receipt(id, hash) => self.receipt_told(call, id, hash, answer),
            Purpose::Counts => self.counts_told(call, &answer),
        }
    }

    /// Starts what can be started.
    fn pump(&mut self, now: Duration) {
        self.finish_survey(now);
        self.start_survey(now);
        self.start_signing(now);
    }
}

/// How many transactions tried to free its nonce.
fn cancels(flight: &Flight) -> usize {
    let cancels = flight
        .attempts
        .iter()
        .filter(|attempt| attempt.kind == Kind::Cancel);
    cancels.count()
}
