//! The engine with a model of the world around it: a node, a disk, a signer, and what goes wrong between them.

pub(crate) mod node;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use alloy_primitives::{Address, B256, U256};
use regatta_settle::abi::Hop;
use regatta_settle::engine::{Action, Answer, Config, Engine, Head, Mode, Opportunity, Sent, Skip};
use regatta_settle::key::Key;
use regatta_settle::ledger::{Attempt, Entry, Flight, Id, Kind, Outcome, State};
use regatta_settle::tx::{Signed, Transaction};

use node::Node;

pub(crate) const EXECUTOR: Address = Address::repeat_byte(0xee);
pub(crate) const BASE: Address = Address::repeat_byte(0xba);
pub(crate) const PROFIT: u64 = 4_000_000_000;

/// What the chain did, and the engine is not told yet.
#[derive(Clone, Copy)]
pub(crate) enum News {
    Head(Head),
    Reverted(B256),
}

/// How the world treats an action.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Fair,
    /// It is done, and the answer is lost.
    Lost,
    /// It is not done, and an error comes.
    Refused,
}

pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) key: Key,
    /// What is on the disk.
    pub(crate) disk: Vec<Entry>,
    pub(crate) record: State,
    pub(crate) news: VecDeque<News>,
    /// Blocks that the engine was told since it started.
    told: Vec<B256>,
    /// Taken from the engine, not done.
    pub(crate) todo: VecDeque<Action>,
    pub(crate) now: Duration,
    /// Everything that was ever sent, by nonce.
    pub(crate) sent: BTreeMap<u64, Vec<Signed>>,
    pub(crate) skips: Vec<Skip>,
    /// Nonces that somebody else used.
    foreign: Vec<u64>,
}

pub(crate) fn config(owner: Address) -> Config {
    Config {
        window: 3,
        max_fee_cap: 20_000,
        max_replacement_fee: 60_000,
        priority_fee: 10,
        depth: 8,
        loss_limit: U256::MAX,
        ..Config::new(Mode::Live, 31_337, EXECUTOR, owner)
    }
}

impl World {
    pub(crate) fn new(change: impl Fn(&mut Config)) -> Self {
        let key = Key::from_bytes(&[7; 32]).unwrap();
        let mut config = config(key.address());
        change(&mut config);
        let node = Node::new(EXECUTOR);
        let mut world = Self {
            engine: Engine::new(config.clone(), State::default()),
            news: VecDeque::from([News::Head(node.head())]),
            node,
            config,
            key,
            disk: Vec::new(),
            record: State::default(),
            told: Vec::new(),
            todo: VecDeque::new(),
            now: Duration::ZERO,
            sent: BTreeMap::new(),
            skips: Vec::new(),
            foreign: Vec::new(),
        };
        world.settle_down();
        world
    }

    /// An opportunity over these pools, found at the node's head.
    pub(crate) fn offer(&mut self, pools: &[u8], profit: u64) -> Result<Id, Skip> {
        let hop = |pool: &u8| Hop {
            pool: Address::repeat_byte(*pool),
            zero_for_one: true,
            amount_out: U256::from(7),
        };
        let found = Opportunity {
            found: self.node.head().block,
            base: BASE,
            amount_in: U256::from(self.record.totals().planned),
            hops: pools.iter().map(hop).collect(),
            profit: U256::from(profit),
        };
        let taken = self.engine.opportunity(found, self.now);
        self.skips.extend(taken.err());
        taken
    }

    /// Moves what the engine wants into `todo`.
    pub(crate) fn collect(&mut self) {
        while let Some(action) = self.engine.poll_action() {
            self.todo.push_back(action);
        }
    }

    /// Does the `pick`th thing that is to be done; entries stay in order. Whether there was one.
    pub(crate) fn act(&mut self, pick: usize, fate: Fate) -> bool {
        self.collect();
        let Some(most) = self.todo.len().checked_sub(1) else {
            return false;
        };
        let mut at = pick % (most + 1);
        if matches!(self.todo[at], Action::Record { .. }) {
            let first = |action: &Action| matches!(action, Action::Record { .. });
            at = self.todo.iter().position(first).unwrap();
        }
        let action = self.todo.remove(at).unwrap();
        let failed = Answer::Failed("lost".to_owned());
        let fair = fate == Fate::Fair;
        let (call, answer) = match action {
            Action::Record { sequence, entry } => {
                self.check_entry(&entry);
                self.record.apply(&entry).unwrap();
                self.disk.push(entry);
                self.engine.recorded(sequence, self.now);
                return true;
            }
            Action::DryRun { call, at, data, .. } => (call, self.node.dry_run(&data, at)),
            Action::Sign { call, transaction } => {
                (call, Answer::Signed(transaction.sign(&self.key).unwrap()))
            }
            Action::Receipt { call, hash } => (call, self.node.receipt(hash)),
            Action::Counts { call, account } => {
                assert_eq!(account, self.key.address());
                (call, Answer::Counts(self.node.counts()))
            }
            Action::Send { call, raw, hash } => {
                self.check_send(&raw, hash);
                let answer = if fate == Fate::Refused {
                    Sent::Refused
                } else {
                    self.node.send(&raw)
                };
                let lost = fate == Fate::Lost;
                (
                    call,
                    if lost {
                        failed.clone()
                    } else {
                        Answer::Sent(answer)
                    },
                )
            }
        };
        let refused = matches!(answer, Answer::Sent(Sent::Refused));
        let answer = if fair || refused { answer } else { failed };
        self.engine.answer(call, answer, self.now);
        true
    }

    /// One pool, one open settlement.
    fn check_entry(&self, entry: &Entry) {
        if let Entry::Planned { plan, .. } = entry {
            let taken: Vec<Address> = self
                .record
                .open()
                .flat_map(|(_, flight)| pools(flight))
                .collect();
            for hop in &plan.cycle.hops {
                assert!(!taken.contains(&hop.pool), "pool {} twice", hop.pool);
            }
        }
    }

    /// N17: recorded before, no nonce twice, no gap, and a replacement is one.
    fn check_send(&mut self, raw: &[u8], hash: B256) {
        let signed = Signed::decode(raw).unwrap();
        assert_eq!(signed.hash, hash);
        let nonce = signed.transaction.nonce;
        let has = |flight: &Flight| flight.attempts.iter().any(|attempt| attempt.hash == hash);
        let (_, flight) = self
            .record
            .flights()
            .find(|(_, flight)| has(flight))
            .expect("sent before its entry was on the disk");
        let known = |nonce| {
            let mut all = self.record.flights();
            all.any(|(_, flight)| flight.nonce == Some(nonce))
        };
        let held = self.node.held();
        // What the mempool held for somebody else, it may have dropped since.
        let lost = |nonce: &u64| self.foreign.contains(nonce);
        let gap = (0..nonce).find(|nonce| !held.contains(nonce) && !known(*nonce) && !lost(nonce));
        assert_eq!(gap, None, "a gap before {nonce}");
        let before = self.sent.entry(nonce).or_default();
        if before.iter().all(|old| old.hash != hash) {
            let settles = |signed: &Signed| signed.transaction.to == Some(EXECUTOR);
            assert!(
                !settles(&signed) || !before.iter().any(settles),
                "two settlements with nonce {nonce}"
            );
            // A driver may be slow to send what has been replaced meanwhile.
            let own = flight
                .attempts
                .iter()
                .take_while(|attempt| attempt.hash != hash);
            let earlier: Vec<B256> = own.map(|attempt| attempt.hash).collect();
            for old in before.iter().filter(|old| earlier.contains(&old.hash)) {
                let (new, old) = (&signed.transaction, &old.transaction);
                assert!(new.max_fee_per_gas * 8 >= old.max_fee_per_gas * 9);
                assert!(new.max_priority_fee_per_gas * 8 >= old.max_priority_fee_per_gas * 9);
            }
            before.push(signed);
        }
    }

    /// Tells the engine the next thing that the chain did. Whether there was one.
    pub(crate) fn tell(&mut self) -> bool {
        match self.news.pop_front() {
            Some(News::Head(head)) => {
                self.told.push(head.block.hash);
                self.engine.head(head, self.now);
            }
            Some(News::Reverted(hash)) => {
                // One that starts anew knows no earlier block.
                if self.told.contains(&hash) {
                    self.engine.reverted(hash, self.now);
                }
            }
            None => return false,
        }
        true
    }

    pub(crate) fn mine(&mut self, base_fee: u128, wanted: impl Fn(&Signed) -> bool) {
        let head = self.node.mine(base_fee, wanted);
        self.news.push_back(News::Head(head));
    }

    /// Takes `depth` blocks back and puts as many and one more in their place.
    pub(crate) fn reorg(&mut self, depth: usize, kept: bool, base_fee: u128, include: bool) {
        for _ in 0..depth {
            let block = self.node.pop(kept);
            self.news.push_back(News::Reverted(block.hash));
        }
        for _ in 0..=depth {
            self.mine(base_fee, |_| include);
        }
    }

    /// The process ends and starts again: all it had not on the disk is lost.
    pub(crate) fn crash(&mut self) {
        self.todo.clear();
        self.news.clear();
        self.told.clear();
        let mut record = State::default();
        for entry in &self.disk {
            record.apply(entry).unwrap();
        }
        assert_eq!(record, self.record);
        self.engine = Engine::new(self.config.clone(), record);
        self.news.push_back(News::Head(self.node.head()));
    }

    /// Somebody else sends from the account.
    pub(crate) fn foreign(&mut self, nonce: u64) {
        let fee = 100_000;
        let transaction = Transaction {
            chain_id: self.config.chain_id,
            nonce,
            max_priority_fee_per_gas: fee,
            max_fee_per_gas: fee,
            gas_limit: 21_000,
            to: Some(BASE),
            value: U256::ZERO,
            input: Vec::new().into(),
        };
        let signed = transaction.sign(&self.key).unwrap();
        self.node.pool.insert(nonce, signed);
        self.foreign.push(nonce);
    }

    /// Tells everything, and does everything fairly.
    pub(crate) fn settle_down(&mut self) {
        loop {
            while self.act(0, Fate::Fair) {}
            if !self.tell() {
                break;
            }
        }
    }

    /// Fair blocks until nothing is open, and then so many that everything has been looked at again.
    pub(crate) fn finish(&mut self) {
        for _ in 0..60 {
            self.settle_down();
            self.mine(500, |_| true);
        }
        self.settle_down();
        let open: Vec<Id> = self.record.open().map(|(id, _)| id).collect();
        assert!(open.is_empty(), "still open: {open:?}");
        assert_eq!(self.engine.reserved().count(), 0);
    }

    /// The attempt of ours with this hash, and whose it is.
    fn ours(&self, hash: B256) -> Option<(Id, &Attempt)> {
        self.record.flights().find_map(|(id, flight)| {
            let attempt = flight
                .attempts
                .iter()
                .find(|attempt| attempt.hash == hash)?;
            Some((id, attempt))
        })
    }

    /// The ledger says what the chain has, to the wei.
    pub(crate) fn check_totals(&self) {
        let (mut realised, mut gas, mut loss) = (U256::ZERO, U256::ZERO, U256::ZERO);
        let mut included = 0;
        for (signed, receipt) in self.node.mined() {
            let Some((id, attempt)) = self.ours(signed.hash) else {
                continue;
            };
            let cost = U256::from(receipt.gas_used) * receipt.gas_price;
            gas += cost;
            let outcome = self.record.flight(id).unwrap().outcome.as_ref().unwrap();
            let runs = attempt.kind == Kind::Settle && receipt.succeeded;
            assert_eq!(
                runs,
                matches!(outcome, Outcome::Included { .. }),
                "{id}: {outcome:?}"
            );
            let profit = receipt
                .logs
                .first()
                .map(|log| U256::from_be_slice(&log.data));
            let profit = profit.unwrap_or_default();
            realised += profit;
            loss += cost.saturating_sub(profit);
            included += u64::from(runs);
        }
        let totals = self.record.totals();
        assert_eq!((totals.realised, totals.gas_spent), (realised, gas));
        assert_eq!((totals.loss, totals.included), (loss, included));
        assert_eq!((totals.predicted, totals.open()), (realised, 0));
    }
}

/// The pools of a settlement.
fn pools(flight: &Flight) -> impl Iterator<Item = Address> {
    let hops = flight.plan.iter().flat_map(|plan| &plan.cycle.hops);
    hops.map(|hop| hop.pool)
}
