//! The node's thread as a run has it: something that connects again whenever it is lost, and something that takes
//! its events and checks that they are a chain.

use crate::made_up;
use alloy_primitives::B256;
use regatta_bot::market::{Address, Market, ReserveUpdate};
use regatta_bot::node::{FactoryArg, Following, Node, NodeConfig, NodeStatus};
use regatta_bot::pipeline::{Feed, FeedError, LiveFeed, Watch};
use regatta_bot::solver::Fee;
use regatta_bot::source::{BlockHash, Event, Head};
use regatta_fake_node::FakeNode;
use regatta_portable::Census;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Reaching it is a failure.
pub(crate) const FAR: Duration = Duration::from_secs(40);

/// Fails a test that waits for what does not come.
#[derive(Debug)]
struct Patience(Instant);

impl Watch for Patience {
    fn work(&self, _: bool) {}

    fn tend(&self) -> Option<Duration> {
        assert!(Instant::now() < self.0, "nothing comes any more");
        Some(Duration::from_millis(50))
    }
}

/// The chain as the events tell it.
pub(crate) struct Model {
    pub(crate) market: Market,
    /// The blocks since the last reading, the one that was read at first.
    pub(crate) blocks: Vec<(BlockHash, Vec<ReserveUpdate>)>,
    pub(crate) rereads: usize,
    pub(crate) reverts: usize,
    /// How often each block was said, less how often it was taken back.
    said: BTreeMap<BlockHash, i32>,
}

impl Model {
    fn new(market: Market) -> Self {
        Self {
            market,
            blocks: Vec::new(),
            rereads: 0,
            reverts: 0,
            said: BTreeMap::new(),
        }
    }

    fn apply(&mut self, updates: &[ReserveUpdate]) -> Vec<ReserveUpdate> {
        let undo = updates.iter().map(|update| self.market.apply(update));
        undo.map(Result::unwrap).collect()
    }

    /// Takes an event, which has to fit the ones before.
    fn take(&mut self, event: &Event) {
        match event {
            Event::Block(block) => {
                let (tip, _) = self.blocks.last().unwrap();
                assert_eq!(
                    block.parent, *tip,
                    "block {} has another parent",
                    block.number
                );
                let said = self.said.entry(block.hash).or_default();
                *said += 1;
                assert_eq!(*said, 1, "block {} is said twice", block.number);
                let undo = self.apply(&block.updates);
                self.blocks.push((block.hash, undo));
            }
            Event::Reverted { hash, .. } => {
                let (tip, mut undo) = self.blocks.pop().unwrap();
                assert_eq!(tip, *hash, "another block than the last is taken back");
                *self.said.entry(tip).or_default() -= 1;
                undo.reverse();
                drop(self.apply(&undo));
                self.reverts += 1;
            }
            Event::Pools(pools) => {
                for pool in pools {
                    self.market.extend(pool).unwrap();
                }
            }
            Event::Reread { head, reserves } => {
                self.rereads += 1;
                drop(self.apply(reserves));
                self.blocks = vec![(head.hash, Vec::new())];
            }
        }
    }

    pub(crate) fn tip(&self) -> Option<BlockHash> {
        self.blocks.last().map(|(hash, _)| *hash)
    }
}

pub(crate) struct Rig {
    // Before the node, so that the thread ends while there is somebody to talk to.
    pub(crate) thread: Node,
    pub(crate) node: FakeNode,
    pub(crate) feed: Feed,
    pub(crate) model: Model,
    pub(crate) lost: Receiver<()>,
    pub(crate) heads: Receiver<Head>,
    pub(crate) generation: u64,
    pub(crate) events: Vec<Event>,
}

/// Deadlines that no test reaches, and short pauses.
pub(crate) fn config(node: &FakeNode) -> NodeConfig {
    let mut config = NodeConfig::new(node.endpoint().parse().unwrap());
    config.factories = vec![FactoryArg {
        address: bot(made_up::FACTORY),
        fee: Fee::default(),
    }];
    config.reading.backoff = Duration::from_millis(1);
    config.follow.first_head = FAR;
    config.follow.backoff_first = Duration::from_millis(2);
    config.follow.backoff_cap = Duration::from_millis(20);
    config.follow.watchdog_floor = FAR;
    config.follow.watchdog_cap = FAR;
    config
}

pub(crate) fn bot(address: alloy_primitives::Address) -> Address {
    Address::new(address.into_array())
}

pub(crate) fn hash(hash: B256) -> BlockHash {
    BlockHash::new(hash.0)
}

impl Rig {
    /// Follows the triangle.
    pub(crate) fn start() -> Self {
        Self::with(made_up::node(), |_| ())
    }

    pub(crate) fn with(node: FakeNode, change: impl FnOnce(&mut NodeConfig)) -> Self {
        Self::limited(node, change, None)
    }

    pub(crate) fn limited(
        node: FakeNode,
        change: impl FnOnce(&mut NodeConfig),
        blocks: Option<u64>,
    ) -> Self {
        let mut config = config(&node);
        change(&mut config);
        let thread = Node::start(config, &Census::new()).unwrap();
        let found = thread.survey(Vec::new(), || false).unwrap();
        let model = Model::new(found.market.clone());
        let (feed, feeder) = LiveFeed::open();
        let (tell_lost, lost) = channel();
        let (tell_head, heads) = channel();
        thread
            .follow(Following {
                found,
                feeder,
                on_head: Box::new(move |head| tell_head.send(head).unwrap_or(())),
                blocks,
                on_lost: Box::new(move || tell_lost.send(()).unwrap_or(())),
            })
            .unwrap();
        let mut rig = Self {
            thread,
            node,
            feed: Feed::Live(feed),
            model,
            lost,
            heads,
            generation: 0,
            events: Vec::new(),
        };
        rig.connect();
        rig
    }

    /// Connects, however often it takes.
    pub(crate) fn connect(&mut self) {
        let end = Instant::now() + FAR;
        loop {
            self.generation += 1;
            let connected = self.thread.asker().connect(self.generation, FAR);
            match connected {
                Ok(()) => return self.thread.asker().commit(self.generation),
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
        }
    }

    /// Waits for the loss of the connection.
    pub(crate) fn is_lost(&self) {
        self.lost.recv_timeout(FAR).unwrap();
    }

    /// Waits for the loss of the connection and connects again.
    pub(crate) fn lose(&mut self) {
        self.is_lost();
        self.connect();
    }

    pub(crate) fn status(&self) -> NodeStatus {
        self.thread.asker().status()
    }

    /// Waits until the status is so.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&NodeStatus) -> bool) {
        let end = Instant::now() + FAR;
        while !holds(&self.status()) {
            assert!(Instant::now() < end, "{what}: {:?}", self.status());
            std::thread::yield_now();
        }
    }

    /// Takes the next events.
    pub(crate) fn batch(&mut self) -> Result<usize, FeedError> {
        let before = self.events.len();
        let watch = Patience(Instant::now() + FAR);
        self.feed.next_batch(&mut self.events, &watch)?;
        for event in self.events.get(before..).unwrap() {
            self.model.take(event);
        }
        Ok(self.events.len() - before)
    }

    /// Takes events until they have come to the node's head. A connection that is lost meanwhile is made again.
    pub(crate) fn catch_up(&mut self) {
        let head = self.node.chain(|chain| chain.head_hash());
        while self.model.tip() != Some(hash(head)) {
            assert!(self.batch().unwrap() > 0, "the stream has ended");
        }
        self.agrees();
    }

    /// The node tells of the next block, and it comes.
    pub(crate) fn step(&mut self, number: u64) {
        self.node.extend(made_up::step(number));
        self.catch_up();
    }

    /// What the events made of the market is what the chain has.
    pub(crate) fn agrees(&self) {
        for pool in self.model.market.pools() {
            let address = alloy_primitives::Address::new(*pool.address.as_bytes());
            let has = self.node.reserves(address).unwrap();
            assert_eq!([pool.reserve0, pool.reserve1], has, "pool {address}");
        }
    }
}
