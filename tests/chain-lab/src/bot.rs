//! The bot that follows the lab's node.
//!
//! # Invariants
//! - Its process ends with the value: told to if there is time, killed otherwise.
//! - It writes to the same streams as the lab.

use std::ffi::OsString;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use regatta_chain_lab::error::LabError;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long it may take to stop: what it allows itself unless told otherwise, and some more.
const STOP: Duration = Duration::from_secs(15);

/// Between two looks at something that only a look can tell.
const LOOK: Duration = Duration::from_millis(2);

/// Between two blocks while the executor is created.
const BLOCK: Duration = Duration::from_millis(200);

/// How long its probe may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// Why there is no bot, or none that did well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BotError {
    /// It could not be started or waited for.
    #[error("cannot {what} the bot {}: {source}", path.display())]
    Process {
        /// Start or wait for.
        what: &'static str,
        /// Its binary.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It ended before it was told to.
    #[error("the bot ended by itself: {0}")]
    Early(ExitStatus),
    /// It ended otherwise than well.
    #[error("the bot ended with {0}, expected exit code 0")]
    Failed(ExitStatus),
    /// It did not end.
    #[error("the bot did not stop within {STOP:?} and was killed")]
    Overdue,
    /// There is no port for its probes.
    #[error("cannot find a free port for the bot's probes: {0}")]
    Port(io::Error),
}

/// Has the bot create its executor, and returns where that is. `mine` makes blocks for it, until it is done.
pub(crate) fn deploy(
    binary: &Path,
    node: &str,
    key: &Path,
    mut mine: impl FnMut() -> Result<(), LabError>,
) -> Result<String, Failure> {
    let failed = |what, source| BotError::Process {
        what,
        path: binary.to_owned(),
        source,
    };
    let child = Command::new(binary)
        .args(["settle", "deploy", "--rpc", node, "--key"])
        .arg(key)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|source| failed("start", source))?;
    let status = loop {
        let ended = child
            .try_wait()
            .map_err(|source| failed("wait for", source))?;
        if let Some(status) = ended {
            break status;
        }
        if let Err(failed) = mine() {
            // It would wait for a block that does not come.
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed.into());
        }
        thread::park_timeout(BLOCK);
    };
    let mut executor = String::new();
    if let Some(mut said) = child.stdout.take() {
        let read = said.read_to_string(&mut executor);
        read.map_err(|source| failed("read", source))?;
    }
    if status.success() {
        Ok(executor.trim().to_owned())
    } else {
        Err(BotError::Failed(status).into())
    }
}

/// The running bot.
pub(crate) struct Bot {
    child: Child,
    path: PathBuf,
    probes: SocketAddr,
}

impl Drop for Bot {
    fn drop(&mut self) {
        // One that has ended is no process any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bot {
    pub(crate) fn start(binary: &Path, args: &[OsString]) -> Result<Self, BotError> {
        let probes = free_port().map_err(BotError::Port)?;
        let started = Command::new(binary)
            .args(args)
            .args(["--health", &probes.to_string()])
            .stdin(Stdio::null())
            .spawn();
        let path = binary.to_owned();
        match started {
            Ok(child) => Ok(Self {
                child,
                path,
                probes,
            }),
            Err(source) => Err(BotError::Process {
                what: "start",
                path,
                source,
            }),
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, BotError> {
        self.child.try_wait().map_err(|source| BotError::Process {
            what: "wait for",
            path: self.path.clone(),
            source,
        })
    }

    /// An error once it has ended.
    pub(crate) fn check(&mut self) -> Result<(), BotError> {
        match self.ended()? {
            Some(status) => Err(BotError::Early(status)),
            None => Ok(()),
        }
    }

    /// Whether it knows the pools: its probes are answered from then on. Ready it is only once a block has come.
    pub(crate) fn has_begun(&self) -> bool {
        TcpStream::connect_timeout(&self.probes, ANSWER).is_ok()
    }

    /// Tells it to stop and waits for that. It may have heard the terminal's interrupt already.
    pub(crate) fn stop(mut self) -> Result<(), BotError> {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // If it has ended and left, the wait says how.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let until = Instant::now() + STOP;
        loop {
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(BotError::Failed(status)),
                None if Instant::now() >= until => return Err(BotError::Overdue),
                None => thread::park_timeout(LOOK),
            }
        }
    }
}

/// A port that was free just now.
fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}
