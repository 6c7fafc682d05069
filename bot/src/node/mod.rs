//! An Ethereum node as a source: one thread that owns its sockets and follows the chain.
//!
//! ```text
//!  the runtime's attempts ──► connect ─┐           ┌─► clock    every header, at once
//!  news socket   heads, logs ──────────┼─ Follower ┼─► feed     pools, blocks, reverts, rereads, in order
//!  call socket   answers ──────────────┘           └─► calls
//!  Asker         questions of other components, answered on the call socket
//! ```
//!
//! # Invariants
//! - Sockets are touched on the node's thread alone. Others ask it, and wait no longer than they say.
//! - What a connection brings counts only after the runtime let it be installed, and never after the stop.
//! - The thread waits for nothing but its sockets, its questions and time: a pump that is behind makes it hold events
//!   back, and headers still reach the clock.
//! - Everything ends with the thread: a question that is open then fails, typed.

mod assemble;
mod bytes;
mod config;
mod link;
mod reader;
mod service;
mod status;
mod survey;
mod work;

pub use assemble::Passed;
pub(crate) use bytes::{address, hash, plain, plain_hash};
pub use config::{FactoryArg, NodeConfig};
pub use link::LinkError;
pub(crate) use reader::NodeReader;
pub use status::NodeStatus;
pub(crate) use status::name as not_ready_name;
pub use survey::{Found, SurveyError};

use crate::pipeline::Feeder;
use crate::source::Head;
use regatta_chain::pools::Listed;
use regatta_chain::rpc::{CallError, Request};
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use serde_json::Value;
use service::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

/// The component that owns the thread.
pub(crate) const OWNER: &str = "source";

/// What the node answered to each question.
pub(crate) type Answers = Result<Vec<Result<Value, CallError>>, AskError>;

/// Is given the answers on the node's thread. It must not block. It may be dropped uncalled, if the thread ends.
pub(crate) type Reply = Box<dyn FnOnce(Answers) + Send>;

/// Is told of every header. It must not block.
pub type OnHead = Box<dyn FnMut(Head) + Send>;

/// Is told that the connection was lost, once for each that was used. It must not block.
pub type OnLost = Box<dyn FnMut() + Send>;

/// Why the node's thread did not do what it was asked.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is no connection now.
    #[error("the node is not connected")]
    NotConnected,
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There is no link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no market.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// No answer came in time.
    #[error("the node gave no answer within {0:?}")]
    TimedOut(Duration),
    /// The thread has ended.
    #[error("the node's thread has ended")]
    Ended,
    /// Whoever waited was to stop.
    #[error("asked to stop")]
    Interrupted,
}

/// Asks the node's thread. Clones ask the same one.
#[derive(Clone)]
pub struct Asker {
    commands: UnboundedSender<Command>,
    status: Arc<Mutex<NodeStatus>>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}

impl Asker {
    fn send(&self, command: Command) -> Result<(), AskError> {
        self.commands.send(command).map_err(|_| AskError::Ended)
    }

    fn wait<T>(
        &self,
        wait: Duration,
        command: impl FnOnce(SyncSender<Result<T, AskError>>) -> Command,
    ) -> Result<T, AskError> {
        // Room for the answer: whoever gives it never waits for who may be gone.
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(command(reply))?;
        match answer.recv_timeout(wait) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(AskError::TimedOut(wait)),
            Err(RecvTimeoutError::Disconnected) => Err(AskError::Ended),
        }
    }

    /// Asks the node, and blocks until it has answered, at most for as long as `wait` says. Each question is asked up to
    /// `attempts` times while the node answers it with an error.
    pub fn ask(
        &self,
        requests: Vec<Request>,
        attempts: u32,
        wait: Duration,
    ) -> Result<Vec<Result<Value, CallError>>, AskError> {
        self.wait(wait, |reply| Command::Ask {
            requests,
            attempts,
            // Whoever does not wait any more has dropped its end.
            reply: Box::new(move |answers| drop(reply.send(answers))),
        })
    }

    /// Asks the node, once, and does not wait: `reply` is called with the answers, if they come.
    pub(crate) fn ask_then(
        &self,
        requests: Vec<Request>,
        reply: impl FnOnce(Answers) + Send + 'static,
    ) -> Result<(), AskError> {
        self.send(Command::Ask {
            requests,
            attempts: 1,
            reply: Box::new(reply),
        })
    }

    /// Asks the node, once, on a connection of its own that ends with the answers, and blocks until they are there.
    pub(crate) fn ask_apart(&self, requests: Vec<Request>, wait: Duration) -> Answers {
        self.wait(wait, |reply| Command::AskApart {
            requests,
            wait,
            reply: Box::new(move |answers| drop(reply.send(answers))),
        })
    }

    /// Connects both sockets. They are used once [`Self::commit`] names them, and closed if another attempt comes first.
    pub fn connect(&self, generation: u64, wait: Duration) -> Result<(), AskError> {
        self.wait(wait, |reply| Command::Connect { generation, reply })
    }

    /// Uses what was connected. It does not wait.
    pub fn commit(&self, generation: u64) {
        // A thread that has ended has closed it.
        let _ = self.send(Command::Commit { generation });
    }

    /// Closes what was connected.
    pub fn discard(&self, generation: u64) {
        let _ = self.send(Command::Discard { generation });
    }

    /// How things are.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        status::lock(&self.status).clone()
    }
}

/// Where the events go.
pub struct Following {
    /// The market from which it starts.
    pub found: Found,
    /// Who takes the events. They end with an error if the thread does not end by itself.
    pub feeder: Feeder,
    /// Who is told of headers.
    pub on_head: OnHead,
    /// The stream ends after so many blocks.
    pub blocks: Option<u64>,
    /// Who is told of a lost connection, and connects again.
    pub on_lost: OnLost,
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following")
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// The node's thread.
pub struct Node {
    asker: Asker,
    running: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Node {
    /// Starts the thread. It connects to nothing by itself.
    pub fn start(config: NodeConfig, census: &Census) -> Result<Self, CensusError> {
        let (commands, inbox) = tokio::sync::mpsc::unbounded_channel();
        let status = Arc::new(Mutex::new(NodeStatus::default()));
        let (runs, running) = mpsc::channel::<()>();
        let spec = ThreadSpec {
            kernel_name: "rg-node".to_owned(),
            name: "regatta/bot/node".to_owned(),
            owner: OWNER.to_owned(),
            role: "node".to_owned(),
            sizing: "one per node".to_owned(),
            binding: LaneBinding::Shared,
        };
        let of_thread = Arc::clone(&status);
        let thread = census.spawn(spec, move || {
            let _runs = runs;
            service::live(config, inbox, &of_thread);
        })?;
        Ok(Self {
            asker: Asker { commands, status },
            running,
            thread: Some(thread),
        })
    }

    /// To ask it.
    #[must_use]
    pub const fn asker(&self) -> &Asker {
        &self.asker
    }

    /// Reads the market, on a connection of its own. `interrupted` is asked now and then whether to give up.
    pub fn survey(
        &self,
        listed: Vec<Listed>,
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<Found, AskError> {
        /// How soon a wish to stop is heard.
        const LOOK: Duration = Duration::from_millis(100);
        let (reply, answer) = mpsc::sync_channel(1);
        self.asker.send(Command::Survey { listed, reply })?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(found) => return found,
                Err(RecvTimeoutError::Disconnected) => return Err(AskError::Ended),
                Err(RecvTimeoutError::Timeout) if interrupted() => {
                    return Err(AskError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Follows the chain from here on, over whatever is connected and installed.
    pub fn follow(&self, following: Following) -> Result<(), AskError> {
        self.asker.send(Command::Follow(Box::new(following)))
    }

    /// Ends the thread and with it every socket, and waits for that until the time given; whether it has ended.
    pub fn stop(&mut self, until: Instant) -> bool {
        let _ = self.asker.send(Command::Stop);
        let left = until.saturating_duration_since(Instant::now());
        if matches!(
            self.running.recv_timeout(left),
            Err(RecvTimeoutError::Timeout)
        ) {
            return false;
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the node's thread panicked");
        }
        true
    }

    /// Whether the thread has not been joined yet.
    #[must_use]
    pub const fn has_thread(&self) -> bool {
        self.thread.is_some()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        /// How long a node that is dropped may take to end.
        const LEAVE: Duration = Duration::from_secs(5);
        if self.thread.is_some() && !self.stop(Instant::now() + LEAVE) {
            tracing::error!("the node's thread does not end and is left behind");
        }
    }
}
