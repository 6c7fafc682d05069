//! The doctor on nodes: a scripted one with each fault that it is to find, and a real one.
#![cfg(all(test, unix))]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod announcements;
mod answers;
mod form;
mod real;

use regatta_fake_node::{Call, FakeChain, FakeLog, FakeNode, Reply, Script};
use serde_json::{Value, json};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A doctor that runs; it is killed if the test is over before.
struct Doctor(Child);

impl Drop for Doctor {
    fn drop(&mut self) {
        // It is gone already where all is well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How it ended.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Doctor {
    fn start(endpoint: &str, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.args(["doctor", "--rpc", endpoint]).args(more);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn end(mut self) -> Said {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let code = self.0.wait().unwrap().code();
        Said {
            code,
            stdout,
            stderr,
        }
    }
}

impl Said {
    /// The record of a measurement that was made.
    #[track_caller]
    fn record(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Only the questions: nothing is listened to.
#[track_caller]
fn questions(node: &FakeNode, more: &[&str]) -> Value {
    let more: Vec<&str> = ["--json", "--heads", "0", "--for", "60"]
        .iter()
        .chain(more)
        .copied()
        .collect();
    Doctor::start(node.endpoint(), &more).end().record()
}

fn topic() -> alloy_primitives::B256 {
    regatta_chain::abi::SYNC
}

/// A pool's log.
fn sync() -> FakeLog {
    FakeLog::new([7; 20].into(), vec![topic()], vec![1; 64])
}

/// 201 blocks, each but the first with a log.
fn chain() -> FakeChain {
    let mut chain = FakeChain::default();
    for _ in 0..200 {
        chain.extend(vec![sync()]);
    }
    chain
}

/// A node that has state.
fn healthy() -> Script {
    Script::new()
        .chain(chain())
        .on("eth_call", |_: &Call| Reply::Result(json!("0x")))
}

fn start(script: Script) -> FakeNode {
    FakeNode::start(script).unwrap()
}

#[track_caller]
fn verdict(record: &Value, requirement: &str) -> String {
    let all = record["verdicts"].as_array().unwrap();
    let found = all.iter().find(|v| v["requirement"] == requirement);
    found.unwrap()["verdict"].as_str().unwrap().to_owned()
}

fn has_finding(record: &Value, step: &str, kind: &str) -> bool {
    let all = record["findings"].as_array().unwrap();
    all.iter().any(|f| f["step"] == step && f["kind"] == kind)
}

fn hints(record: &Value) -> Vec<&str> {
    let all = record["hints"].as_array().unwrap();
    all.iter()
        .filter_map(|hint| hint["name"].as_str())
        .collect()
}
