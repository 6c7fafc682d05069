//! A run on a scripted node, and what its records come to.

use crate::made_up::{FACTORY, script, token};
use crate::process::{Ended, Process};
use alloy_primitives::B256;
use regatta_fake_node::{FakeLog, FakeNode, Script};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

pub(crate) struct Run {
    // Before the node, so that it ends first.
    pub(crate) process: Process,
    pub(crate) node: FakeNode,
}

/// The binary on a node, with more arguments.
pub(crate) fn binary(node: &FakeNode, more: &[&str]) -> Process {
    let (factory, base) = (FACTORY.to_string(), token(0).to_string());
    let first = ["run", "--json", "--rpc", node.endpoint()];
    let market = ["--factory", &factory, "--base", &base];
    let all: Vec<&str> = first.iter().chain(&market).chain(more).copied().collect();
    Process::of(&all, &[])
}

impl Run {
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::on(script(), more)
    }

    /// Starts the binary, and the first block once it is subscribed: the market is read there.
    pub(crate) fn on(script: Script, more: &[&str]) -> Self {
        let node = FakeNode::start(script).unwrap();
        let process = binary(&node, more);
        let run = Self { process, node };
        run.subscribed();
        run.block(Vec::new());
        run
    }

    /// Waits until it listens.
    pub(crate) fn subscribed(&self) {
        let subscribed = |seen: &regatta_fake_node::Seen| seen.subscriptions == 2;
        self.node.block_until("it to listen", subscribed).unwrap();
    }

    /// A block, and waits until there is a record of it.
    pub(crate) fn block(&self, logs: Vec<FakeLog>) -> B256 {
        let hash = self.node.extend(logs);
        self.says(&hash.to_string());
        hash
    }

    /// Waits until there is a record with this in it.
    pub(crate) fn says(&self, what: &str) {
        let end = Instant::now() + FAR;
        while !self.process.out().contains(what) {
            assert!(Instant::now() < end, "no record of {what}");
            std::thread::yield_now();
        }
    }

    /// Drops its connections, and waits until it listens again.
    pub(crate) fn drop_connections(&self) {
        let before = self.node.seen().accepted;
        self.node.drop_connections();
        let again = |seen: &regatta_fake_node::Seen| {
            seen.accepted >= before + 2 && seen.subscriptions == 2 && seen.open == 2
        };
        self.node.block_until("it to come back", again).unwrap();
    }

    pub(crate) fn stop(self) -> (Ended, FakeNode) {
        self.process.signal("-TERM");
        (self.process.ended(), self.node)
    }

    /// Where the probes are answered.
    pub(crate) fn probes(&mut self) -> SocketAddr {
        self.process.says("probes are answered at");
        let line = self.process.line("probes are answered at");
        let addr = line.rsplit("http://").next().unwrap();
        addr.trim().parse().unwrap()
    }
}

pub(crate) fn ask(addr: SocketAddr, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(FAR)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    (status, serde_json::from_str(body).unwrap())
}

/// Whatever happened, what was published and not taken back is of the chain: each of its blocks from the first that was read
/// has one record, of a block that is not part of it no winner stands, and nothing is said twice.
pub(crate) fn exactly_once(ended: &Ended, node: &FakeNode) {
    let records = ended.records();
    let canonical: Vec<String> = node.chain(|chain| {
        let hashes = chain.canonical().iter();
        hashes.map(ToString::to_string).collect()
    });
    let mut said: BTreeMap<String, u32> = BTreeMap::new();
    let mut stands: BTreeMap<(String, String), i32> = BTreeMap::new();
    for record in &records {
        let hash = record["hash"].as_str().unwrap_or_default().to_owned();
        match record["type"].as_str().unwrap() {
            "block" => {
                assert_eq!(record["chain"], "eip155:1");
                *said.entry(hash.clone()).or_default() += 1;
                for winner in record["winners"].as_array().unwrap() {
                    let key = (hash.clone(), winner["path"].as_str().unwrap().to_owned());
                    let count = stands.entry(key).or_default();
                    *count += 1;
                    assert_eq!(*count, 1, "{winner}");
                }
            }
            "missed" => *said.entry(hash).or_default() += 1,
            "retract" => {
                let key = (hash, record["path"].as_str().unwrap().to_owned());
                let count = stands.entry(key).or_default();
                *count -= 1;
                assert_eq!(*count, 0, "{record}");
            }
            _ => {}
        }
    }
    assert!(said.values().all(|count| *count == 1), "{said:?}");
    let from = canonical.iter().position(|hash| said.contains_key(hash));
    assert!(from.is_some_and(|from| from <= 1), "{from:?}");
    for hash in canonical.iter().skip(from.unwrap()) {
        assert!(said.contains_key(hash), "nothing is said of {hash}");
    }
    for ((hash, path), count) in stands {
        let is_canonical = canonical.contains(&hash);
        assert_eq!(count == 1, is_canonical, "{hash} {path}");
    }
}
