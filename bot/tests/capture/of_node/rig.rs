//! A node with four pools to be, and `regatta capture` at it.

use crate::{Read, read, regatta};
use alloy_primitives::Address;
use regatta_bot::capture::{Recorded, open};
use regatta_bot::source::{BlockHash, Event};
use regatta_fake_node::contracts::{Contracts, sync};
use regatta_fake_node::{FakeLog, FakeNode, Script};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

pub(super) const FACTORY: Address = Address::repeat_byte(0xfa);

/// The tokens are numbered from 0; the first one is the base.
pub(super) fn token(number: u8) -> Address {
    Address::left_padding_from(&[0x70, number])
}

/// The pools are numbered from 0.
pub(super) fn pool(number: u8) -> Address {
    Address::left_padding_from(&[0xbb, number])
}

/// Whole tokens.
pub(super) const fn units(count: u128) -> u128 {
    count * 1_000_000_000_000_000_000
}

/// A move of one of the first three pools, by far more than the fees of a cycle.
pub(super) fn step(number: u64) -> Vec<FakeLog> {
    let which = u8::try_from(number % 3).unwrap();
    let more = units(20 * u128::from(number % 97 + 1));
    vec![sync(pool(which), units(1000) + more, units(1000))]
}

/// A node, and where its capture goes.
pub(super) struct Rig {
    pub(super) node: FakeNode,
    folder: TempDir,
}

impl Rig {
    /// Three tokens, each traded for each other in one pool.
    pub(super) fn new() -> Self {
        let mut contracts = Contracts::default();
        contracts.factory(FACTORY);
        for number in 0..3 {
            contracts.token(token(number), 18, &format!("T{number}"));
        }
        for (number, [a, b]) in (0..).zip([[0, 1], [1, 2], [0, 2]]) {
            let tokens = [token(a), token(b)];
            contracts.pool(FACTORY, pool(number), tokens, [units(1000); 2]);
        }
        Self {
            node: FakeNode::start(Script::new().contracts(contracts)).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("node.capture")
    }

    /// The file, as an argument.
    pub(super) fn file(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    /// The arguments of a capture.
    pub(super) fn args(&self, more: &[&str]) -> Vec<String> {
        let (file, factory, base) = (self.file(), FACTORY.to_string(), token(0).to_string());
        let args = [
            "capture",
            "--rpc",
            self.node.endpoint(),
            "--factory",
            &factory,
            "--base",
            &base,
            "--out",
            &file,
        ];
        let all = args.iter().chain(more);
        all.map(|arg| (*arg).to_owned()).collect()
    }

    /// Starts a capture.
    pub(super) fn start(&self, more: &[&str]) -> Capture {
        let args = self.args(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Capture::start(regatta(&args))
    }

    /// Adds blocks, each once the one before has been written.
    pub(super) fn follow(&self, capture: &mut Capture, steps: std::ops::Range<u64>) {
        for number in steps {
            self.until_caught_up(capture);
            self.node.extend(step(number));
        }
        self.until_caught_up(capture);
    }

    /// Returns once the file ends with the node's last block.
    pub(super) fn until_caught_up(&self, capture: &mut Capture) {
        let head = self.node.chain(|chain| chain.head_hash());
        capture.until(|| {
            let bytes = std::fs::read(self.path()).ok();
            let last = bytes.and_then(|bytes| read(&bytes).ok()?.events.pop());
            last.is_some_and(|recorded| match recorded.event {
                Event::Block(block) => *block.hash.as_bytes() == head.0,
                Event::Reread { head: at, .. } => *at.hash.as_bytes() == head.0,
                _ => false,
            })
        });
    }

    /// Adds blocks of these steps at once.
    pub(super) fn burst(&self, steps: std::ops::Range<u64>) {
        for number in steps {
            self.node.extend(step(number));
        }
    }

    pub(super) fn read(&self) -> Read {
        read(&std::fs::read(self.path()).unwrap()).unwrap()
    }

    /// The events, one after the other, come to the node's chain and its pools' reserves.
    pub(super) fn folds_to_the_chain(&self, events: &[Recorded]) {
        let folded = self.fold(events);
        let (canonical, blocks) = self.node.chain(|chain| {
            let canonical = chain.canonical().to_vec();
            let blocks: Vec<_> = canonical
                .iter()
                .map(|hash| chain.block(*hash).unwrap().clone())
                .collect();
            (canonical, blocks)
        });
        let canonical: Vec<BlockHash> = canonical
            .iter()
            .map(|hash| BlockHash::new(hash.0))
            .collect();
        assert_eq!(folded.chain.last(), canonical.last());
        assert!(folded.chain.iter().all(|hash| canonical.contains(hash)));
        // A model of the pools: what each said last, on the branch that is left.
        let mut expected: BTreeMap<Address, Vec<u8>> = BTreeMap::new();
        for log in blocks.iter().flat_map(|block| &block.logs) {
            if log.topics.len() == 1 {
                expected.insert(log.address, log.data.to_vec());
            }
        }
        let word = |value: u128| [[0; 16], value.to_be_bytes()].concat();
        for (address, said) in expected {
            let (reserve0, reserve1) = folded.reserves[&address];
            assert_eq!([word(reserve0), word(reserve1)].concat(), said, "{address}");
        }
    }

    /// Applies events as anybody would who knows nothing but what the format says.
    fn fold(&self, events: &[Recorded]) -> Folded {
        let market = open(&self.path()).unwrap().header().market.clone();
        let plain = |address: regatta_bot::market::Address| Address::new(*address.as_bytes());
        let mut pools: Vec<Address> = market.pools().iter().map(|p| plain(p.address)).collect();
        let mut folded = Folded::default();
        for (address, pool) in pools.iter().zip(market.pools()) {
            folded
                .reserves
                .insert(*address, (pool.reserve0, pool.reserve1));
        }
        let mut before = Vec::new();
        for Recorded { event, .. } in events {
            match event {
                Event::Block(block) => {
                    if let Some(last) = folded.chain.last() {
                        assert_eq!(block.parent, *last);
                    }
                    before.push(folded.reserves.clone());
                    folded.chain.push(block.hash);
                    for update in &block.updates {
                        let at = pools[update.pool.index()];
                        folded
                            .reserves
                            .insert(at, (update.reserve0, update.reserve1));
                    }
                }
                Event::Reverted { hash, .. } => {
                    assert_eq!(folded.chain.pop(), Some(*hash));
                    folded.reserves = before.pop().unwrap();
                }
                Event::Pools(new) => {
                    for pool in new {
                        let at = plain(pool.address);
                        pools.push(at);
                        folded.reserves.insert(at, (pool.reserve0, pool.reserve1));
                    }
                }
                Event::Reread { head, reserves } => {
                    before.push(folded.reserves.clone());
                    folded.chain.push(head.hash);
                    for update in reserves {
                        let at = pools[update.pool.index()];
                        folded
                            .reserves
                            .insert(at, (update.reserve0, update.reserve1));
                    }
                }
            }
        }
        folded
    }
}

/// What events come to.
#[derive(Default)]
struct Folded {
    chain: Vec<BlockHash>,
    reserves: BTreeMap<Address, (u128, u128)>,
}

/// A process that does not outlive its test.
pub(super) struct Capture(pub(super) Child);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Capture {
    pub(super) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Returns once that is so; the process must not end before.
    pub(super) fn until(&mut self, is_so: impl Fn() -> bool) {
        let end = Instant::now() + FAR;
        while !is_so() {
            if let Some(status) = self.0.try_wait().unwrap() {
                panic!("{status}: {}", self.stderr());
            }
            assert!(Instant::now() < end, "the capture does not get on");
            std::thread::yield_now();
        }
    }

    /// What it says after its end.
    pub(super) fn stderr(&mut self) -> String {
        let mut said = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        said
    }

    /// Its exit code, once it has ended by itself.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + FAR;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "the capture does not end");
            std::thread::yield_now();
        }
    }

    /// Has it end by a signal, in order; what it says on stdout.
    pub(super) fn stop(mut self, signal: &str) -> String {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
        let code = self.ended();
        assert_eq!(code, Some(0), "{}", self.stderr());
        let mut said = String::new();
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        said
    }
}
