//! A driver without a socket: it takes all outputs after each input and checks what must always hold.
//!
//! # Invariants
//! - What the follower says is folded into a chain; an event that does not fit it stops the test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use regatta_chain::follow::{
    Answer, Call, CallId, ChainEvent, FollowConfig, Follower, NotReady, ReconnectReason,
    RereadReason, Waits,
};
use regatta_chain::types::Log;

use crate::tree::{TOPIC, Tree};

/// Short limits, so that small trees reach them.
pub(crate) fn config() -> FollowConfig {
    FollowConfig {
        journal_blocks: 4,
        backfill_blocks: 5,
        calls_at_once: 2,
        call_attempts: 4,
        backoff_first: Duration::from_millis(10),
        backoff_cap: Duration::from_millis(100),
        topics: vec![TOPIC],
        ..FollowConfig::default()
    }
}

/// A follower and its fold.
#[derive(Clone, Debug)]
pub(crate) struct Rig {
    pub(crate) follower: Follower,
    pub(crate) now: Instant,
    pub(crate) tree: Tree,
    pub(crate) connection: Option<u64>,
    generation: u64,
    subscribed: bool,
    /// What is applied, from the last reading on.
    pub(crate) chain: Vec<B256>,
    pub(crate) calls: VecDeque<(CallId, Call)>,
    pub(crate) reread: Option<(B256, RereadReason)>,
    /// Events since they were last taken.
    pub(crate) said: Vec<String>,
    pub(crate) reconnect: Option<ReconnectReason>,
    told: BTreeSet<B256>,
    /// Whether a block may lack logs until they are shown.
    pub(crate) lenient: bool,
    /// The logs with which a block was said last.
    pub(crate) logs: BTreeMap<B256, Vec<Log>>,
}

impl Rig {
    pub(crate) fn new(config: FollowConfig) -> Self {
        let now = Instant::now();
        Self {
            follower: Follower::new(config, now).unwrap(),
            now,
            tree: Tree::default(),
            connection: None,
            generation: 0,
            subscribed: false,
            chain: Vec::new(),
            calls: VecDeque::new(),
            reread: None,
            said: Vec::new(),
            reconnect: None,
            told: BTreeSet::new(),
            lenient: false,
            logs: BTreeMap::new(),
        }
    }

    /// One that has read a block with this number, is live and ready there, and the block.
    pub(crate) fn live(config: FollowConfig, number: u64) -> (Self, B256) {
        let mut rig = Self::new(config);
        let root = rig.tree.add(None, number, 0, false);
        rig.connect();
        rig.subscribe();
        rig.header(root);
        assert!(rig.read(true));
        rig.settle(root);
        assert_eq!(rig.follower.readiness(), Ok(()));
        rig.said.clear();
        (rig, root)
    }

    pub(crate) fn connect(&mut self) {
        self.generation += 1;
        self.connection = Some(self.generation);
        self.subscribed = false;
        self.reconnect = None;
        self.calls.clear();
        self.reread = None;
        self.follower.connected(self.generation, self.now);
        self.drain();
    }

    pub(crate) fn subscribe(&mut self) {
        self.subscribed = true;
        self.follower.subscribed(self.generation, self.now);
        self.drain();
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        self.subscribed = false;
        self.calls.clear();
        self.reread = None;
        self.follower.disconnected(self.generation, self.now);
        self.drain();
    }

    pub(crate) fn header(&mut self, hash: B256) {
        self.follower.header(self.tree.header(hash), self.now);
        // At once, once.
        let passed = self.follower.poll_head().map(|head| head.hash);
        assert_eq!(
            passed,
            self.told.insert(hash).then_some(hash),
            "heads are passed on one to one"
        );
        self.drain();
    }

    pub(crate) fn log(&mut self, log: Log) {
        self.follower.log(log, self.now);
        self.drain();
    }

    pub(crate) fn removed(&mut self, mut log: Log) {
        log.removed = true;
        self.log(log);
    }

    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        self.follower.answer(id, answer, self.now);
        self.drain();
    }

    /// Takes the oldest call, which must be this one.
    pub(crate) fn call(&mut self, expected: Call) -> CallId {
        let (id, call) = self
            .calls
            .pop_front()
            .unwrap_or_else(|| panic!("no call, expected {expected:?}"));
        assert_eq!(call, expected);
        id
    }

    /// The answer of a node that knows all blocks, and says that this is its latest.
    pub(crate) fn honest(&self, call: Call, latest: B256) -> Answer {
        match call {
            Call::LatestHeader => Answer::Header(self.tree.header(latest)),
            Call::HeaderByHash(hash) => Answer::Header(self.tree.header(hash)),
            Call::LogsByHash(hash) => Answer::Logs(self.tree.logs(hash)),
        }
    }

    /// Answers the oldest call honestly.
    pub(crate) fn serve(&mut self, latest: B256) -> Option<Call> {
        let (id, call) = self.calls.pop_front()?;
        let answer = self.honest(call, latest);
        self.answer(id, answer);
        Some(call)
    }

    /// Answers all calls honestly and reads what is to be read, until there is nothing left.
    pub(crate) fn settle(&mut self, latest: B256) {
        for _ in 0..1_000 {
            if self.reread.is_some() {
                self.read(true);
            } else if self.serve(latest).is_none() {
                return;
            }
        }
        panic!("calls do not end: {:?}", self.follower);
    }

    /// Ends the reading that is asked for; whether that was accepted.
    pub(crate) fn read(&mut self, done: bool) -> bool {
        let (hash, why) = self
            .reread
            .take()
            .unwrap_or_else(|| panic!("no reading is asked for"));
        if !done {
            self.follower.reread_failed(hash, self.now);
            self.drain();
            return false;
        }
        assert!(
            why == RereadReason::Gap || self.follower.tip().is_none(),
            "the journal is reverted before: {why:?}"
        );
        let accepted = self.follower.reread_done(hash, self.now);
        if accepted {
            self.chain = vec![hash];
        }
        self.drain();
        accepted
    }

    /// Lets time pass, with a tick at each deadline.
    pub(crate) fn pass(&mut self, wait: Duration) {
        let end = self.now + wait;
        for _ in 0..10_000 {
            match self.follower.next_deadline() {
                Some(deadline) if deadline <= end => {
                    self.now = self.now.max(deadline);
                    self.follower.tick(self.now);
                    self.drain();
                    assert!(
                        self.follower
                            .next_deadline()
                            .is_none_or(|next| next > self.now),
                        "a tick does what is due: {:?}",
                        self.follower
                    );
                }
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("a timer spins: {:?}", self.follower);
    }

    pub(crate) fn not_ready(&self) -> Option<NotReady> {
        self.follower.readiness().err()
    }

    /// The events since the last time, as short text.
    pub(crate) fn took(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// Takes all outputs and checks them.
    pub(crate) fn drain(&mut self) {
        assert_eq!(
            self.follower.poll_head(),
            None,
            "only a header of the subscription is passed on"
        );
        while let Some(event) = self.follower.poll_event() {
            self.event(event);
        }
        while let Some(call) = self.follower.poll_call() {
            assert!(self.subscribed, "nothing is asked without a subscription");
            self.calls.push_back(call);
        }
        self.reconnect = self.follower.poll_reconnect().or(self.reconnect);
        // Without a tip the whole journal was reverted, and what is left is older than it.
        if let Some(tip) = self.follower.tip() {
            assert_eq!(Some(&tip.hash), self.chain.last());
        }
        let (waits, deadline) = (self.follower.waits(), self.follower.next_deadline());
        let down = self.not_ready() == Some(NotReady::Disconnected);
        assert!(
            down || deadline.is_some(),
            "it has a deadline: {:?}",
            self.follower
        );
        if self.follower.readiness().is_err() {
            assert_ne!(
                waits,
                Waits::Nothing,
                "not ready, and waits for nothing: {:?}",
                self.follower
            );
        }
    }

    fn event(&mut self, event: ChainEvent) {
        assert!(
            self.reread.is_none(),
            "nothing is said while the pools are read: {event:?}"
        );
        match event {
            ChainEvent::Block { header, logs } => {
                assert!(self.subscribed, "nothing is said without a subscription");
                assert_eq!(
                    Some(header.parent_hash),
                    self.chain.last().copied(),
                    "a block extends the last one"
                );
                let number = header.number.to::<u64>();
                assert_eq!(
                    number,
                    self.tree.header(header.parent_hash).number.to::<u64>() + 1
                );
                assert!(!self.chain.contains(&header.hash), "said twice");
                if !self.lenient {
                    assert_eq!(logs, self.tree.logs(header.hash), "all logs, in order");
                }
                self.said.push(format!("block {number} {}", logs.len()));
                self.logs.insert(header.hash, logs);
                self.chain.push(header.hash);
            }
            ChainEvent::Reverted { number, hash } => {
                assert_eq!(self.chain.pop(), Some(hash), "the last one is reverted");
                assert_eq!(self.tree.header(hash).number.to::<u64>(), number);
                self.said.push(format!("reverted {number}"));
            }
            ChainEvent::Reread { header, why } => {
                self.said.push(format!("reread {} {why:?}", header.number));
                self.reread = Some((header.hash, why));
            }
        }
    }
}
