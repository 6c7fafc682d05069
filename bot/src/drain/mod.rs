//! The drain: what leaves the process, in order, through one thread and a spool per sink.
//!
//! ```text
//! senders ─► queue ─► drainer ─► spool ─► thread of sink 0
//!            (bounded)        └► spool ─► thread of sink 1
//! ```
//!
//! # Invariants
//! - **Order.** Items are taken in the order in which [`Drain::send`] accepted them, and every sink sees
//!   records in that order. With several senders each one's items keep their order; how they mix is open.
//! - **Nothing is dropped silently.** An item that is not accepted is handed back. A record that was accepted
//!   is written by every sink that was open, or is in that sink's count of what is lost or still owed.
//! - **Bounds.** The queue and the spools hold a stated number of items. When a spool is full the drainer
//!   waits for it; when the queue is full `send` waits, for the configured patience at most.
//! - **Idle costs nothing.** With nothing to do no thread wakes.
//!
//! # Progress, and what is a stall
//! The drainer completes an item when it has run it, or handed it to the spool of every open sink: that, and
//! nothing else, is progress. While two items are owed (the one in hand counted) and none is completed
//! for the window of the [`StallRule`](regatta_core::dispatch::StallRule), the drainer is frozen and
//! [`DrainConfig::on_stall`] acts: by default it logs a dump and aborts. Waiting for room in a spool that is
//! full does not count: then the debt is the sink's, and the drain is not ready, with the reason, for as long
//! as it takes. Once there is room, the window begins anew. So a drainer that completes one item in each window is
//! never aborted, however long its backlog, and neither is one with a slow or a hung sink. A drainer
//! that is gone (a finalizer panicked) is acted on at once. The rule is looked at on `send`, by the drainer after
//! each item, and by a timekeeper that sleeps unless the rule is armed; a look credits at most twice the
//! rule's interval, so a process that was stopped has not stalled.
//!
//! # How a sink ends
//! A broken pipe says that whoever reads has had enough: an orderly end. Any other error is tried again, at the
//! byte where it stopped, a stated number of times; then the sink has failed. What it owed is counted as lost to it,
//! and the other sinks go on. When no sink is left, `send` refuses with the reason.
//!
//! # Closing
//! [`quiesce`](Drain::quiesce), then [`drain`](Drain::drain), then [`stop`](Drain::stop), with deadlines of the
//! caller. A thread that hangs in a writer or in a finalizer cannot be ended from outside: `stop` names it, the drain
//! keeps its handle, and a later `stop` looks again.
//! The timekeeper ends with the others: from `stop` on a hang is for the caller's deadline, not for the stall rule.
//! While a sink's spool is full, what is behind it in the queue reaches no other sink either, in `drain` as before.

mod config;
mod sink;
mod state;
mod threads;

pub use config::{DrainConfig, DrainError, OnStall, log_and_abort};
pub use sink::{Failure, Lines, Sink, SinkError};
pub use state::{SinkState, SinkStatus, Status};

use crate::report::Record;
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use state::{Role, State, until};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;
use threads::Shared;

/// Threads that a drain has beside those of its sinks: the drainer and the timekeeper.
pub const OWN_THREADS: u16 = 2;

/// How long a drain that is dropped waits for its threads.
const GRACE: Duration = Duration::from_millis(100);

/// What a finalizer does.
pub type Work = Box<dyn FnOnce() + Send>;

/// What goes through the drain.
pub enum Item {
    /// A record for every sink.
    Publish(Arc<Record>),
    /// Work for the drainer, after all earlier items were completed: earlier records are in every open sink's spool
    /// by then, not necessarily written. It must not block for long: it is what can freeze the drainer. A panic
    /// in it ends the drainer.
    Finalize(Work),
}

impl Item {
    /// A record.
    #[must_use]
    pub fn publish(record: Record) -> Self {
        Self::Publish(Arc::new(record))
    }

    /// Work for the drainer.
    #[must_use]
    pub fn finalize(work: impl FnOnce() + Send + 'static) -> Self {
        Self::Finalize(Box::new(work))
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Publish(_) => "record",
            Self::Finalize(_) => "finalizer",
        }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publish(record) => f.debug_tuple("Publish").field(record).finish(),
            Self::Finalize(_) => f.write_str("Finalize"),
        }
    }
}

/// Why an item was not accepted.
#[derive(Clone, Debug, Error)]
pub enum Refusal {
    /// The queue stayed full for as long as the sender was ready to wait: try again, or give up.
    #[error("the drain's queue of {capacity} items stayed full for {} ms: {because}", waited.as_millis())]
    Full {
        /// Items that the queue holds.
        capacity: usize,
        /// How long the sender waited.
        waited: Duration,
        /// What holds the drain up.
        because: String,
    },
    /// The drain takes no more items.
    #[error("the drain is closing and takes no more items")]
    Closing,
    /// The sender was cut off while it waited.
    #[error("the sender was cut off")]
    Withdrawn,
    /// The drainer has panicked.
    #[error("the drainer is gone: a finalizer panicked")]
    DrainerGone,
    /// Every sink has ended, in order.
    #[error("whoever read sink {sink} has had enough, and no other sink is left")]
    ReaderGone {
        /// The sink.
        sink: String,
    },
    /// Every sink has ended, and this one failed.
    #[error("no sink is left: {0}")]
    SinkFailed(Arc<SinkError>),
}

/// An item that was not accepted.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused {
    /// The item.
    pub item: Item,
    /// Why.
    pub why: Refusal,
}

/// What came of everything that was accepted, when the drain was to be over.
#[derive(Clone, Debug)]
pub struct Drained {
    /// Items accepted before the drain was quiesced: all there are.
    pub accepted: u64,
    /// Of these, items that left through every open sink after the drain was quiesced.
    pub completed_since: u64,
    /// Items refused since then, or for want of a sink.
    pub rejected: u64,
    /// Items that the drainer, or the slowest open sink, was not done with.
    pub remaining: u64,
    /// The sinks, with what each has written, lost, and still owes.
    pub sinks: Vec<SinkStatus>,
}

/// What was left when the drain was stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The full names of threads that have not ended. The drain keeps them.
    pub still_owned: Vec<String>,
    /// Items that the drainer, or the slowest open sink, was not done with.
    pub remaining: u64,
    /// The sinks, with what each has written, lost, and still owes.
    pub sinks: Vec<SinkStatus>,
}

/// A thread of the drain.
struct Thread {
    role: Role,
    name: String,
    handle: JoinHandle<()>,
}

/// The drain. See the [module](self).
pub struct Drain {
    shared: Arc<Shared>,
    threads: Mutex<Vec<Thread>>,
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drain").field(&self.status()).finish()
    }
}

impl Drain {
    /// Starts the drainer, the timekeeper, and a thread for each of the named sinks.
    pub fn start(
        sinks: Vec<(String, Box<dyn Sink>)>,
        config: DrainConfig,
        census: &Census,
    ) -> Result<Self, DrainError> {
        config::check(&config, &sinks)?;
        let names = sinks.iter().map(|(name, _)| name.clone()).collect();
        // From here on an early return drops the drain, which ends the threads that have started.
        let drain = Self {
            shared: Arc::new(Shared::new(config, names)),
            threads: Mutex::default(),
        };
        for (at, (name, sink)) in sinks.into_iter().enumerate() {
            let full = format!("regatta/bot/sink/{name}");
            let shared = Arc::clone(&drain.shared);
            let handle = census.spawn_numbered(
                "rg-sink-",
                |kernel_name, _| spec(kernel_name, full.clone(), "one per sink"),
                move || shared.deliver(at, sink),
            )?;
            drain.own(Role::Sink(at), full, handle);
        }
        for (role, kernel, full) in [
            (
                Role::Timekeeper,
                "rg-drain-watch",
                "regatta/bot/drain-watch",
            ),
            (Role::Drainer, "rg-drain", "regatta/bot/drain"),
        ] {
            let shared = Arc::clone(&drain.shared);
            let spec = spec(kernel.to_owned(), full.to_owned(), "one");
            let handle = census.spawn(spec, move || match role {
                Role::Timekeeper => shared.keep_time(),
                _ => shared.drain(),
            })?;
            drain.own(role, full.to_owned(), handle);
        }
        Ok(drain)
    }

    /// Sends an item, and waits for room in the queue for the configured patience at most. What is not accepted
    /// comes back in the error; after [`Refusal::Full`] it can be sent again.
    pub fn send(&self, item: Item) -> Result<(), Refused> {
        self.send_while(item, || true)
    }

    /// The same for a sender that may be cut off meanwhile: `wanted` is asked at the moment at which the item would
    /// be accepted. Once it says no and [`recheck`](Self::recheck) has returned, nothing of that sender follows.
    pub fn send_while(&self, item: Item, wanted: impl Fn() -> bool) -> Result<(), Refused> {
        let shared = &*self.shared;
        let began = shared.now();
        let until_when = began + shared.config.patience.into();
        let mut state = shared.lock();
        loop {
            if let Some(why) = state.refusal() {
                state.rejected += 1;
                return Err(Refused { item, why });
            }
            if !wanted() {
                state.rejected += 1;
                let why = Refusal::Withdrawn;
                return Err(Refused { item, why });
            }
            let now = shared.now();
            if state.has_room() {
                state.accept(item, now);
                shared.accepted(&mut state);
                return Ok(());
            }
            shared.look(&mut state);
            if now >= until_when {
                state.handed_back += 1;
                let because = state.not_ready();
                let why = Refusal::Full {
                    capacity: shared.config.queue,
                    waited: until(now, began),
                    because: because.unwrap_or_else(|| "the drainer is behind".to_owned()),
                };
                return Err(Refused { item, why });
            }
            state = Shared::wait_for(&shared.room, state, until(until_when, now));
        }
    }

    /// Has senders that wait for room look again whether they are wanted.
    pub fn recheck(&self) {
        drop(self.shared.lock());
        self.shared.room.notify_all();
    }

    /// Whether the drain is ready, or why not: a sink whose spool was full and is not half empty again, that failed
    /// or has ended; a stall; closing.
    pub fn probe(&self) -> Result<(), String> {
        self.shared.lock().not_ready().map_or(Ok(()), Err)
    }

    /// Items that the drainer, or the slowest open sink, is not done with.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.shared.lock().lag()
    }

    /// How long ago the oldest item was accepted that the drainer, or an open sink, is not done with.
    #[must_use]
    pub fn oldest_age(&self) -> Option<Duration> {
        let oldest = self.shared.lock().oldest()?;
        Some(until(self.shared.now(), oldest))
    }

    /// A picture of the drain.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.lock().status(self.shared.now())
    }

    /// Takes no more items. Senders that wait for room are refused.
    pub fn quiesce(&self) {
        let mut state = self.shared.lock();
        if state.quiesced.is_none() {
            state.quiesced = Some(state.left());
        }
        drop(state);
        self.shared.room.notify_all();
    }

    /// Quiesces, waits until everything has left through every open sink, at the latest until `until`, and
    /// accounts for it.
    pub fn drain(&self, until: Instant) -> Drained {
        self.quiesce();
        let state = self.settle(until, |state| state.lag() == 0 || state.drainer_lost);
        Drained {
            accepted: state.status(self.shared.now()).accepted,
            completed_since: state.left() - state.quiesced.unwrap_or(0),
            rejected: state.rejected,
            remaining: state.lag(),
            sinks: state.status(self.shared.now()).sinks,
        }
    }

    /// Ends the threads, each after the item or the attempt in its hand; waits for that at the latest until `until`, joins those
    /// that have ended, and names those that have not. What was not drained before stays undone and is counted.
    pub fn stop(&self, until: Instant) -> Stopped {
        self.quiesce();
        self.shared.lock().stopping = true;
        self.shared.wake_all();
        let mut threads = self.threads();
        let all = threads.iter().map(|thread| thread.role).collect::<Vec<_>>();
        let state = self.settle(until, |state| {
            all.iter().all(|role| state.ended.contains(role))
        });
        let (ended, running): (Vec<_>, Vec<_>) = threads
            .drain(..)
            .partition(|thread| state.ended.contains(&thread.role));
        let stopped = Stopped {
            still_owned: running.iter().map(|thread| thread.name.clone()).collect(),
            remaining: state.lag(),
            sinks: state.status(self.shared.now()).sinks,
        };
        drop(state);
        *threads = running;
        for thread in ended {
            // A panic was seen, and told, when the thread ended.
            let _ = thread.handle.join();
        }
        stopped
    }

    /// Waits until `done`, at the latest until `until`.
    fn settle(&self, until: Instant, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.shared.lock();
        while !done(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = Shared::wait_for(&self.shared.settled, state, left);
        }
        state
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self, role: Role, name: String, handle: JoinHandle<()>) {
        self.threads().push(Thread { role, name, handle });
    }
}

impl Drop for Drain {
    /// Stops, with a moment of grace, and says on the log what that leaves: items that have not left, threads that
    /// run on.
    fn drop(&mut self) {
        let left = self.stop(Instant::now() + GRACE);
        if left.remaining > 0 {
            tracing::error!(
                "the drain was dropped with {} items that have not left",
                left.remaining
            );
        }
        if !left.still_owned.is_empty() {
            tracing::error!(
                "the drain was dropped and these threads run on: {}",
                left.still_owned.join(", ")
            );
        }
    }
}

fn spec(kernel_name: String, name: String, sizing: &str) -> ThreadSpec {
    ThreadSpec {
        kernel_name,
        name,
        owner: "drain".to_owned(),
        role: "drain".to_owned(),
        sizing: sizing.to_owned(),
        binding: LaneBinding::Pinned,
    }
}
