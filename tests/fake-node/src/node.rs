//! The handle by which a test holds a node.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256};
use regatta_portable::census::{Census, ThreadSpec};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answer::Knowledge;
use crate::contracts::Contracts;
use crate::serve::{Address as Place, Shared, serve};
use crate::state::{Out, State};
use crate::{Batches, Call, Door, FakeChain, FakeLog, Faults, Listen, Reorg, Reply, Script};

/// How long a test waits for what must come. It is never reached by a test that passes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a node has seen so far.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Connections accepted, with a handshake or without.
    pub knocked: usize,
    /// Connections whose handshake was done.
    pub accepted: usize,
    /// Of these, the ones that are open.
    pub open: usize,
    /// Calls by method, those in batches included.
    pub calls: HashMap<String, usize>,
    /// Pings.
    pub pings: u64,
    /// Answers that [`Reply::Hold`] holds.
    pub held: usize,
    /// Subscriptions on open connections.
    pub subscriptions: usize,
    /// Whether a socket listens.
    pub listening: bool,
}

impl Seen {
    fn of(state: &State) -> Self {
        Self {
            knocked: state.knocked,
            accepted: state.accepted,
            open: state.open.len(),
            calls: state.calls.clone(),
            pings: state.pings,
            held: state.held(),
            subscriptions: state.subscriptions(),
            listening: state.listening,
        }
    }

    /// How many calls of `method` came.
    #[must_use]
    pub fn calls(&self, method: &str) -> usize {
        self.calls.get(method).copied().unwrap_or(0)
    }
}

/// A running node.
pub struct FakeNode {
    shared: Arc<Shared>,
    endpoint: String,
    thread: Option<JoinHandle<io::Result<()>>>,
    _dir: Option<TempDir>,
}

impl std::fmt::Debug for FakeNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeNode")
            .field("endpoint", &self.endpoint)
            .field("seen", &self.seen())
            .finish_non_exhaustive()
    }
}

impl FakeNode {
    /// Starts a node. When this returns, it listens, unless its door is shut.
    pub fn start(script: Script) -> io::Result<Self> {
        let Script {
            listen,
            handlers,
            chain,
            faults,
            contracts,
            batches,
            door,
            silent_after,
        } = script;
        let mut state = State::new(Knowledge::new(chain, faults), handlers);
        state.knowledge.contracts = contracts;
        state.batches = batches;
        state.door = door;
        state.silent_after = silent_after;
        let shared = Arc::new(Shared::new(state));
        let mut dir = None;
        let (address, endpoint, bound) = if let Listen::Ipc = listen {
            let made = tempfile::tempdir()?;
            let path = made.path().join("node.ipc");
            dir = Some(made);
            (Place::Unix(path.clone()), path.display().to_string(), None)
        } else {
            let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = bound.local_addr()?;
            let endpoint = match listen {
                // A certificate is for a name.
                Listen::Wss(_) => format!("wss://localhost:{}", address.port()),
                _ => format!("ws://{address}"),
            };
            (Place::Tcp(address), endpoint, Some(bound))
        };
        // The socket listens before the thread looks at the door.
        shared.with(|state| state.listening = bound.is_some());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let theirs = Arc::clone(&shared);
        let thread = Census::new()
            .spawn(ThreadSpec::one("fake-node", "fake-node"), move || {
                runtime.block_on(serve(theirs, address, listen, bound))
            })
            .map_err(io::Error::other)?;
        let node = Self {
            shared,
            endpoint,
            thread: Some(thread),
            _dir: dir,
        };
        node.block_until("the node to listen", |seen| {
            seen.listening == (door != Door::Shut)
        })?;
        Ok(node)
    }

    /// Where it listens: `ws://127.0.0.1:PORT`, `wss://localhost:PORT`, or a path.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What it has seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen::of(&self.shared.lock())
    }

    /// Waits until `holds`, for a test on a tokio runtime. It fails after half a minute; `what` says then what did not come.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Seen) -> bool) -> io::Result<()> {
        let mut versions = self.shared.versions();
        let waited = tokio::time::timeout(PATIENCE, async {
            while !holds(&self.seen()) {
                versions.changed().await.map_err(io::Error::other)?;
            }
            Ok(())
        });
        waited.await.unwrap_or_else(|_| Err(self.in_vain(what)))
    }

    /// [`until`](Self::until) for a test that has no runtime, or blocks it on purpose.
    pub fn block_until(&self, what: &str, mut holds: impl FnMut(&Seen) -> bool) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut state = self.shared.lock();
        while !holds(&Seen::of(&state)) {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                drop(state);
                return Err(self.in_vain(what));
            };
            let waited = self.shared.changed().wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn in_vain(&self, what: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("waited in vain for {what}; seen: {:?}", self.seen()),
        )
    }

    /// Answers `method` by `handler` from now on. It runs under the node's lock: it must not use the node.
    pub fn on(&self, method: &str, handler: impl FnMut(&Call) -> Reply + Send + 'static) {
        self.shared
            .with(|state| state.handlers.insert(method.to_owned(), Box::new(handler)));
    }

    /// Answers `method` from the chain again.
    pub fn off(&self, method: &str) {
        self.shared.with(|state| state.handlers.remove(method));
    }

    /// Changes the faults of its chain.
    pub fn faults(&self, change: impl FnOnce(&mut Faults)) {
        self.shared
            .with(|state| change(&mut state.knowledge.faults));
    }

    /// Reads its chain, or changes it without a word to the subscriptions.
    pub fn chain<R>(&self, look: impl FnOnce(&mut FakeChain) -> R) -> R {
        self.shared.with(|state| look(&mut state.knowledge.chain))
    }

    /// Changes its contracts.
    pub fn contracts(&self, change: impl FnOnce(&mut Contracts)) {
        self.shared
            .with(|state| change(state.knowledge.contracts.get_or_insert_default()));
    }

    /// What a pool of its contracts has at the last block.
    #[must_use]
    pub fn reserves(&self, pool: Address) -> Option<[u128; 2]> {
        let state = self.shared.lock();
        let knowledge = &state.knowledge;
        let contracts = knowledge.contracts.as_ref()?;
        contracts.reserves(&knowledge.chain, pool)
    }

    /// Adds a block with `logs`, announces it, and returns its hash.
    #[expect(
        clippy::must_use_candidate,
        reason = "it is called for what it does to the chain"
    )]
    pub fn extend(&self, logs: Vec<FakeLog>) -> B256 {
        self.shared.with(|state| state.extend(logs))
    }

    /// Takes the last `depth` blocks back and adds one for each part of `branch`, and announces what the faults let pass.
    #[expect(
        clippy::must_use_candidate,
        reason = "it is called for what it does to the chain"
    )]
    pub fn reorg(&self, depth: usize, branch: Vec<Vec<FakeLog>>) -> Reorg {
        self.shared.with(|state| state.reorg(depth, branch))
    }

    /// Says `text` on every connection.
    pub fn say(&self, text: &str) {
        self.shared.with(|state| {
            for number in state.open.keys().copied().collect::<Vec<_>>() {
                state.say(number, Out::Text(text.to_owned()));
            }
        });
    }

    /// Sends a notification of the subscription `name` on every connection, whether it has it or not.
    pub fn notify(&self, name: &str, value: &Value) {
        let params = json!({"subscription": name, "result": value});
        self.say(
            &json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).to_string(),
        );
    }

    /// Says what [`Reply::Hold`] held, in the order in which it was asked. How many answers that were.
    pub fn release(&self) -> usize {
        self.shared.with(State::release)
    }

    /// Answers batches so from now on.
    pub fn batches(&self, batches: Batches) {
        self.shared.with(|state| state.batches = batches);
    }

    /// Lets in whom `door` says. Open connections stay. Its thread sees to it: wait for [`Seen::listening`] to follow.
    pub fn door(&self, door: Door) {
        self.shared.with(|state| state.door = door);
        self.shared.knock();
    }

    /// Says nothing any more on the connections that are open, not even a pong. They stay open.
    pub fn go_silent(&self) {
        self.shared.with(|state| {
            for connection in state.open.values_mut() {
                connection.silent = true;
            }
        });
    }

    /// Speaks again on the connections that are open.
    pub fn speak(&self) {
        self.shared.with(|state| {
            state.silent_after = None;
            for connection in state.open.values_mut() {
                connection.silent = false;
            }
        });
    }

    /// Drops every connection without a word.
    pub fn drop_connections(&self) {
        self.shared.with(State::drop_all);
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.shared.with(|state| state.stopped = true);
        self.shared.knock();
        if let Some(thread) = self.thread.take() {
            // Its error, if it has one, has shown itself on the connections.
            let _ = thread.join();
        }
    }
}
