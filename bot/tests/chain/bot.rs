//! The running binary: its records and its log as they come.
//!
//! # Invariants
//! - The process ends with the value, however the test ends.
//! - No wait is without a deadline.

use crate::said;
use regatta_chain_lab::rpc::Head;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Reaching it is a failure.
pub(crate) const FAR: Duration = Duration::from_mins(1);

/// A process that ends with the value.
pub(crate) struct Child(pub(crate) std::process::Child);

/// A running binary.
pub(crate) struct Bot {
    child: Child,
    out: Receiver<String>,
    log: Receiver<String>,
    lines: Vec<String>,
    logged: Vec<String>,
}

/// How it ended, and what it had said.
pub(crate) struct Ended {
    /// The exit code, or 128 and the signal that ended it.
    pub(crate) code: i32,
    /// The records, a line each.
    pub(crate) lines: Vec<String>,
    /// What it said on stderr.
    pub(crate) log: String,
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that has ended is no process any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bot {
    /// `regatta run --json` with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(["run", "--json", "--log", "debug"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            out: lines(child.stdout.take().unwrap(), "stdout"),
            log: lines(child.stderr.take().unwrap(), "stderr"),
            child: Child(child),
            lines: Vec::new(),
            logged: Vec::new(),
        }
    }

    /// Reads records until one is as wanted, and returns it.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + FAR;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.out.recv_timeout(left) else {
                self.logged.extend(self.log.try_iter());
                let last = self.lines.last();
                panic!(
                    "no {what}; last came {last:?}, logged was {:#?}",
                    self.logged
                );
            };
            let record = record(&line);
            self.lines.push(line);
            if wanted(&record) {
                return record;
            }
        }
    }

    /// The record that is as wanted: one that was read already, or the next that comes.
    pub(crate) fn has_said(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut before = self.lines.iter().map(|line| record(line));
        match before.find(&wanted) {
            Some(record) => record,
            None => self.until(what, wanted),
        }
    }

    /// Reads the log until a line has this in it, and returns that line.
    pub(crate) fn logs(&mut self, what: &str) -> &str {
        let end = Instant::now() + FAR;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.log.recv_timeout(left);
            assert!(line.is_ok(), "no {what:?} is logged: {:#?}", self.logged);
            self.logged.extend(line);
            if self.logged.last().unwrap().contains(what) {
                return self.logged.last().unwrap();
            }
        }
    }

    /// Reads on until it has published what came of this block and compared it with the node. A node like this one
    /// answers questions about its last block from the next one's state while it makes that, so it is left in peace.
    pub(crate) fn is_done_with(&mut self, head: Head) -> Value {
        let published = self.until("record of the head", |record| {
            record["type"] == "block" && said::hash(record, "hash") == head.hash
        });
        self.logs(&format!("block {} was verified", head.number));
        published
    }

    /// Where its probes are answered; it is ready to be asked.
    pub(crate) fn endpoint(&self) -> SocketAddr {
        let mut logged = self.logged.iter();
        let line = logged.find(|line| line.contains("probes are answered at"));
        let line = line.unwrap_or_else(|| panic!("no endpoint: {:#?}", self.logged));
        line.rsplit("http://")
            .next()
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.0.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success(), "it had ended by itself");
    }

    /// Tells it to end, and waits for that.
    pub(crate) fn terminate(mut self) -> Ended {
        self.signal("-TERM");
        let end = Instant::now() + FAR;
        // The ends of both streams are the end of the process.
        for (stream, kept) in [(&self.out, &mut self.lines), (&self.log, &mut self.logged)] {
            loop {
                let left = end.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "it does not end");
                match stream.recv_timeout(left) {
                    Ok(line) => kept.push(line),
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                }
            }
        }
        let status = self.child.0.wait().unwrap();
        Ended {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            lines: std::mem::take(&mut self.lines),
            log: self.logged.join("\n"),
        }
    }
}

impl Ended {
    /// The records.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.lines.iter().map(|line| record(line)).collect()
    }
}

fn record(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The status and the body of a probe's answer.
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

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static, name: &str) -> Receiver<String> {
    let (send, lines) = channel();
    let read = move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    };
    drop(
        Census::new()
            .spawn(ThreadSpec::one("test", name), read)
            .unwrap(),
    );
    lines
}
