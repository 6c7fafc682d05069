//! Why the lab could not do what was asked.
//!
//! # Invariants
//! - Text that a node or a command said is printed only escaped and cut to a stated length.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};

/// Characters of a foreign text that an error shows.
const SHOWN: usize = 600;

/// Text of somebody else's, escaped and cut when it is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign(String);

impl Foreign {
    /// Escapes `text` and keeps its first 600 characters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut shown: String = text.trim().escape_debug().take(SHOWN).collect();
        if text.trim().escape_debug().nth(SHOWN).is_some() {
            shown.push_str("..");
        }
        Self(shown)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no anvil for this machine.
    #[error("no anvil for {os} on {arch}: the lab runs on linux, x86_64 or aarch64")]
    Platform {
        /// The operating system.
        os: &'static str,
        /// The instruction set.
        arch: &'static str,
    },
    /// npm is not installed.
    #[error("`npm` is not on the path, and {package} is not fetched yet: install Node.js with npm")]
    NoNpm {
        /// The package, with its version.
        package: String,
    },
    /// npm did not deliver the package.
    #[error("`npm pack {package}` failed: {said}: it needs the network once, later runs do not")]
    Npm {
        /// The package, with its version.
        package: String,
        /// What npm wrote.
        said: Foreign,
    },
    /// A package is not the one whose digest is pinned.
    #[error("{package} has the SHA-512 {found}, but {expected} is pinned in the lab's `fetch`")]
    Digest {
        /// The package, with its version.
        package: String,
        /// Of the downloaded archive, hexadecimal.
        found: String,
        /// In the code, hexadecimal.
        expected: &'static str,
    },
    /// A file could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// Read, write, unpack and so on.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A compiled contract does not have the form that its compiler writes.
    #[error("{} is no compiled contract: {what}", path.display())]
    Artifact {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong.
        what: String,
    },
    /// The node did not come up.
    #[error("anvil was not ready within {deadline:?}; it said: {said}")]
    NotReady {
        /// How long it had.
        deadline: Duration,
        /// The end of what it wrote.
        said: Foreign,
    },
    /// The node did not do what a signal told it to.
    #[error("anvil (pid {pid}) did not {what} within {deadline:?}")]
    Overdue {
        /// Its process.
        pid: u32,
        /// End, or stand still.
        what: &'static str,
        /// How long it had.
        deadline: Duration,
    },
    /// The node's process is not there.
    #[error("anvil does not run: it was stopped or killed, or ended by itself")]
    NotRunning,
    /// A signal could not be sent.
    #[error("cannot send {signal} to anvil (pid {pid}): {reason}")]
    Signal {
        /// The signal's name.
        signal: &'static str,
        /// The process.
        pid: u32,
        /// The system's reason.
        reason: String,
    },
    /// The connection failed or the answer did not come in time.
    #[error("`{method}` on the node's socket: {source}")]
    Connection {
        /// The first method of the request.
        method: String,
        /// The system's reason; a timeout is one.
        source: std::io::Error,
    },
    /// The node answered with an error.
    #[error("the node refused `{method}`: {said}")]
    Refused {
        /// The method.
        method: String,
        /// The node's error object.
        said: Foreign,
    },
    /// The node's answer is not of the form that the method promises.
    #[error("the node's answer to `{method}` is not {expected}: {said}")]
    Answer {
        /// The method.
        method: String,
        /// What was expected.
        expected: &'static str,
        /// The answer.
        said: Foreign,
    },
    /// A row of a pool file cannot be read.
    #[error("{}: {source}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// Which row, and what is wrong.
        source: csv::Error,
    },
    /// A pool file has too few usable pools.
    #[error("{wanted} pools wanted, but only {usable} rows are usable")]
    TooFewPools {
        /// As many were asked for.
        wanted: usize,
        /// Rows with reserves whose address is not itself a token.
        usable: usize,
    },
    /// A transaction of the lab's own was not mined, or reverted.
    #[error("{done} of the lab's {sent} transactions succeeded in block {block}")]
    Transactions {
        /// Sent for this block.
        sent: usize,
        /// Mined and not reverted.
        done: usize,
        /// The block's hash.
        block: B256,
    },
    /// A pool is not on the chain as the lab laid it out.
    #[error("pool {pool}: {what} is {found}, expected {expected}")]
    Layout {
        /// The pool's address.
        pool: Address,
        /// Its address by the factory, or its reserves.
        what: &'static str,
        /// On the chain.
        found: String,
        /// In the market.
        expected: String,
    },
    /// A reorganisation deeper than what the mover remembers, or of no block at all.
    #[error("cannot reorganise {depth} blocks: between 1 and {known} are possible here")]
    Depth {
        /// As many were asked for.
        depth: u64,
        /// As many were moved since the layout.
        known: u64,
    },
    /// A token or pool that the market does not have.
    #[error("{0} is no {1} of this market")]
    Unknown(Address, &'static str),
}

impl LabError {
    /// A failure to `what` the file at `path`.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let path = path.into();
        Self::Io { what, path, source }
    }
}
