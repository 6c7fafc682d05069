//! A run of the binary, watched from outside.

use serde_json::Value;
use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a loaded machine may add to a deadline: a process is started, scheduled and waited for.
pub(crate) const TOLERANCE: Duration = Duration::from_secs(3);

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

/// A running binary, whose records go to a file.
pub(crate) struct Process {
    child: Child,
    folder: TempDir,
    errors: Receiver<String>,
    said: Vec<String>,
}

/// How it ended.
pub(crate) struct Ended {
    /// The exit code, or 128 and the signal that ended it.
    pub(crate) code: i32,
    /// How long after the last signal.
    pub(crate) after: Duration,
    /// The records, byte for byte.
    pub(crate) out: String,
    /// What it said on stderr.
    pub(crate) err: String,
}

impl Drop for Process {
    /// A test that fails leaves no run behind.
    fn drop(&mut self) {
        // One that has ended is no process any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// A live run that does not end by itself, with more arguments.
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_with(more, &[])
    }

    /// The same with an environment.
    pub(crate) fn start_with(more: &[&str], environment: &[(&str, &str)]) -> Self {
        let first = ["run", "--json", "--blocks", "1000000", "--block-time", "2"];
        let all: Vec<&str> = first.iter().chain(more).copied().collect();
        Self::of(&all, environment)
    }

    /// Any run of the binary.
    pub(crate) fn of(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = File::create(folder.path().join("out")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_regatta"))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(out)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = lines(child.stderr.take().unwrap());
        Self {
            child,
            folder,
            errors,
            said: Vec::new(),
        }
    }

    /// What it has said so far.
    pub(crate) fn out(&self) -> String {
        read_to_string(self.path()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Returns once the run is in its blocks.
    pub(crate) fn in_blocks(&self) {
        self.in_block(1);
    }

    /// Returns once so many blocks have run.
    pub(crate) fn in_block(&self, count: usize) {
        let end = Instant::now() + FAR;
        while self.blocks() < count {
            assert!(Instant::now() < end, "no block");
            std::thread::yield_now();
        }
    }

    /// Blocks that have run.
    pub(crate) fn blocks(&self) -> usize {
        self.out().matches(r#""type":"block""#).count()
    }

    /// Returns once stderr has said this.
    pub(crate) fn says(&mut self, what: &str) {
        let end = Instant::now() + FAR;
        while !self.said.iter().any(|line| line.contains(what)) {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.errors.recv_timeout(left);
            assert!(line.is_ok(), "it did not say {what:?}: {:?}", self.said);
            self.said.extend(line);
        }
    }

    /// The line of stderr with this in it, which it has said.
    pub(crate) fn line(&self, what: &str) -> &str {
        self.said.iter().find(|line| line.contains(what)).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for it to end.
    pub(crate) fn ended(mut self) -> Ended {
        let began = Instant::now();
        // The end of stderr is the end of the process, unless that left a thread; both are waited for.
        loop {
            match self.errors.recv_timeout(FAR) {
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().unwrap();
                    panic!("it does not end: {:?}", self.said);
                }
            }
        }
        let status = self.child.wait().unwrap();
        Ended {
            code: status.code().unwrap_or_else(|| {
                use std::os::unix::process::ExitStatusExt;
                128 + status.signal().unwrap_or(0)
            }),
            after: began.elapsed(),
            out: read_to_string(self.path()).unwrap(),
            err: self.said.join("\n"),
        }
    }
}

impl Ended {
    /// The records: each line is whole.
    pub(crate) fn records(&self) -> Vec<Value> {
        assert!(
            self.out.is_empty() || self.out.ends_with('\n'),
            "half a line: {:?}",
            self.out.lines().last()
        );
        let parse =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// Every unit is accounted for: in the summary, or where none was said, on stderr.
    pub(crate) fn is_balanced(&self) -> bool {
        let records = self.records();
        match records.last() {
            Some(last) if last["type"] == "summary" => last["balanced"] == true,
            _ => self.err.contains("the ledger is balanced"),
        }
    }
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    let census = regatta_portable::Census::new();
    let spec = regatta_portable::census::ThreadSpec::one("test", "stderr");
    let read = move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    };
    drop(census.spawn(spec, read).unwrap());
    lines
}
