//! The node's process.
//!
//! # Invariants
//! - The process is anvil itself, a child of this one, and is killed when its [`Anvil`] is dropped. If this process is
//!   killed outright the node stays; it is in the same process group, so what ends the group ends it too.
//! - It listens on the same port and socket file for as long as the [`Anvil`] lives, over restarts.
//! - The genesis block has a fixed timestamp, so equal transactions make equal hashes in every run.
//! - No wait is without a deadline.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, hex};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use crate::error::{Foreign, LabError};
use crate::fetch::Kit;
use crate::rpc::Rpc;

/// Seconds since 1970 of every lab's genesis block.
pub const GENESIS_TIME: u64 = 1_700_000_000;

/// Between two looks at something that only a look can tell.
const LOOK: Duration = Duration::from_millis(2);

/// How a node is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// What `eth_chainId` says. 1 by default, since the pools are mainnet's.
    pub chain_id: u64,
    /// The port, or 0 for a free one.
    pub port: u16,
    /// Whether the states of old blocks survive a restart. Without, calls pinned to a block before the restart are
    /// refused after it. Every state is written whole: 9 MB a block with 300 pools.
    pub history: bool,
    /// Gas of a block.
    pub gas_limit: u64,
    /// How long the node may take to come up, to end, and to answer a request.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chain_id: 1,
            port: 0,
            history: false,
            gas_limit: 30_000_000,
            deadline: Duration::from_mins(1),
        }
    }
}

/// An account of the node's with its key: a public one, worth nothing elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// Its address; it has 10,000 ether.
    pub address: Address,
    /// Its secret key.
    pub key: B256,
}

/// A running node. It mines only when it is told to.
#[derive(Debug)]
pub struct Anvil {
    kit: Kit,
    options: Options,
    folder: TempDir,
    child: Option<Child>,
    rpc: Rpc,
    accounts: Vec<Account>,
    floor: u64,
}

impl Anvil {
    /// Starts a node; its files are in a temporary folder that goes with it.
    pub fn start(kit: &Kit, options: Options) -> Result<Self, LabError> {
        let folder = tempfile::tempdir()
            .map_err(|source| LabError::io("make a folder in", std::env::temp_dir(), source))?;
        let mut node = Self {
            rpc: Rpc::new(folder.path().join("ipc"), options.deadline),
            kit: kit.clone(),
            options,
            folder,
            child: None,
            accounts: Vec::new(),
            floor: 0,
        };
        node.resurrect()?;
        Ok(node)
    }

    /// Where the node takes WebSocket connections.
    #[must_use]
    pub fn ws(&self) -> String {
        format!("ws://127.0.0.1:{}", self.options.port)
    }

    /// Where the node takes HTTP requests.
    #[must_use]
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.options.port)
    }

    /// The node's socket file.
    #[must_use]
    pub fn ipc(&self) -> PathBuf {
        self.folder.path().join("ipc")
    }

    /// The port it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.options.port
    }

    /// What it was started with, the port resolved.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The kit it was started from.
    #[must_use]
    pub const fn kit(&self) -> &Kit {
        &self.kit
    }

    /// The process, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The ten funded accounts. The first is for the bot's owner; the last is the lab's own.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// The height at which the process was last started. A reorganisation must not reach below it.
    #[must_use]
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// The lab's own client of this node.
    pub const fn rpc(&mut self) -> &mut Rpc {
        &mut self.rpc
    }

    /// Freezes the process: connections stay open, nothing answers. Each of its threads stands still on return.
    pub fn pause(&self) -> Result<(), LabError> {
        let pid = self.signal(Signal::SIGSTOP)?;
        let deadline = self.options.deadline;
        let until = Instant::now() + deadline;
        // The signal takes its time; the parent is told when the last thread has stopped.
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        while !matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::Stopped(..))) {
            if Instant::now() >= until {
                let (pid, what) = (pid.as_raw().unsigned_abs(), "stand still");
                return Err(LabError::Overdue {
                    pid,
                    what,
                    deadline,
                });
            }
            thread::park_timeout(LOOK);
        }
        Ok(())
    }

    /// Lets a frozen process go on.
    pub fn resume(&self) -> Result<(), LabError> {
        self.signal(Signal::SIGCONT).map(drop)
    }

    /// Kills the process; what it had in memory is lost.
    pub fn kill(&mut self) -> Result<(), LabError> {
        let mut child = self.child.take().ok_or(LabError::NotRunning)?;
        let pid = child.id();
        child.kill().and_then(|()| child.wait()).map_or_else(
            |error| {
                Err(LabError::Signal {
                    signal: "SIGKILL",
                    pid,
                    reason: error.to_string(),
                })
            },
            |_| Ok(()),
        )
    }

    /// Ends the process in an orderly way: it writes its state first.
    pub fn stop(&mut self) -> Result<ExitStatus, LabError> {
        self.signal(Signal::SIGTERM)?;
        // A frozen one would not hear it.
        self.signal(Signal::SIGCONT)?;
        let deadline = self.options.deadline;
        let until = Instant::now() + deadline;
        let child = self.child.as_mut().ok_or(LabError::NotRunning)?;
        let pid = child.id();
        loop {
            let ended = child
                .try_wait()
                .map_err(|source| LabError::io("wait for", &self.kit.anvil, source))?;
            if let Some(status) = ended {
                self.child = None;
                return Ok(status);
            }
            if Instant::now() >= until {
                let what = "end";
                return Err(LabError::Overdue {
                    pid,
                    what,
                    deadline,
                });
            }
            thread::park_timeout(LOOK);
        }
    }

    /// Starts the process again, on the same port, with the state that [`stop`](Self::stop) wrote; after
    /// [`kill`](Self::kill) that is the state of the last stop, or an empty chain.
    pub fn resurrect(&mut self) -> Result<(), LabError> {
        if self.child.is_some() {
            return Ok(());
        }
        let said = self.folder.path().join("said");
        let log = File::create(&said).map_err(|source| LabError::io("create", &said, source))?;
        let copy = log
            .try_clone()
            .map_err(|source| LabError::io("share", &said, source))?;
        let mut command = Command::new(&self.kit.anvil);
        command.args(["--no-mining", "--color", "never"]);
        command.args(["--port", &self.options.port.to_string()]);
        command.args(["--chain-id", &self.options.chain_id.to_string()]);
        command.args(["--gas-limit", &self.options.gas_limit.to_string()]);
        command.args(["--timestamp", &GENESIS_TIME.to_string()]);
        command.arg("--ipc").arg(self.ipc());
        command.arg("--state").arg(self.folder.path().join("state"));
        if self.options.history {
            command.arg("--preserve-historical-states");
        }
        command.stdin(Stdio::null()).stdout(log).stderr(copy);
        let child = command
            .spawn()
            .map_err(|source| LabError::io("start", &self.kit.anvil, source))?;
        self.child = Some(child);
        self.rpc = Rpc::new(self.ipc(), self.options.deadline);
        let text = self.await_ready(&said)?;
        self.accounts = accounts(&text);
        // Its log would grow with every request.
        self.rpc.call("anvil_setLoggingEnabled", json!([false]))?;
        self.floor = self.rpc.head()?.number;
        Ok(())
    }

    /// Stops and starts the node: same port, same blocks.
    pub fn restart(&mut self) -> Result<(), LabError> {
        self.stop()?;
        self.resurrect()
    }

    /// Waits until the node says where it listens, and returns what it said.
    fn await_ready(&mut self, said: &PathBuf) -> Result<String, LabError> {
        let deadline = self.options.deadline;
        let until = Instant::now() + deadline;
        loop {
            let text =
                fs::read_to_string(said).map_err(|source| LabError::io("read", said, source))?;
            if let Some(port) = listening(&text) {
                self.options.port = port;
                return Ok(text);
            }
            let ended = self.child.as_mut().map(Child::try_wait);
            let ended = !matches!(ended, Some(Ok(None)));
            if ended || Instant::now() >= until {
                // Dropped or not, nothing of it stays.
                let _ = self.kill();
                let said = Foreign::new(tail(&text));
                return Err(LabError::NotReady { deadline, said });
            }
            thread::park_timeout(LOOK);
        }
    }

    fn signal(&self, signal: Signal) -> Result<Pid, LabError> {
        let pid = self.pid().ok_or(LabError::NotRunning)?;
        let failed = |reason: String| LabError::Signal {
            signal: signal.as_str(),
            pid,
            reason,
        };
        let number = i32::try_from(pid).map_err(|error| failed(error.to_string()))?;
        let pid = Pid::from_raw(number);
        kill(pid, signal).map_err(|error| failed(error.to_string()))?;
        Ok(pid)
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        if self.child.is_some() {
            // It may have ended by itself; then there is nothing to kill.
            let _ = self.kill();
        }
    }
}

/// The port in the node's line that it listens, once that line is whole.
fn listening(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("Listening on ")?;
    let (address, _) = rest.split_once('\n')?;
    address.trim().rsplit_once(':')?.1.parse().ok()
}

/// The accounts in the node's two lists, `(0) 0x...`: addresses, then keys.
fn accounts(text: &str) -> Vec<Account> {
    let entries = || {
        text.lines().filter_map(|line| {
            let (number, rest) = line.trim().strip_prefix('(')?.split_once(')')?;
            number.parse::<usize>().ok()?;
            hex::decode(rest.split_whitespace().next()?).ok()
        })
    };
    let addresses = entries().filter_map(|bytes| Address::try_from(&*bytes).ok());
    let keys = entries().filter_map(|bytes| B256::try_from(&*bytes).ok());
    addresses
        .zip(keys)
        .map(|(address, key)| Account { address, key })
        .collect()
}

/// The end of a text, where the reason stands.
fn tail(text: &str) -> &str {
    let from = text.len().saturating_sub(500);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at));
    from.and_then(|at| text.get(at..)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_only_from_a_whole_line() {
        assert_eq!(listening("Listening on 127.0.0.1:39"), None);
        assert_eq!(listening("a\nListening on 127.0.0.1:3941\n"), Some(3941));
        assert_eq!(listening("Listening on 127.0.0.1:70000\n"), None);
    }

    #[test]
    fn accounts_are_paired_with_their_keys_by_position() {
        let address = ["11".repeat(20), "22".repeat(20)];
        let key = ["33".repeat(32), "44".repeat(32)];
        let text = format!(
            "(0) 0x{} (10000 ETH)\n(1) 0x{} (10000 ETH)\nPrivate Keys\n(0) 0x{}\n(1) 0x{}\n(x) 0x00\n",
            address[0], address[1], key[0], key[1]
        );
        let found = accounts(&text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].address, Address::repeat_byte(0x22));
        assert_eq!(found[1].key, B256::repeat_byte(0x44));
    }
}
