//! The threads of a drain: the drainer, one per sink, and the timekeeper.
//!
//! # Invariants
//! - No lock is held while a record is written, a finalizer runs, a stall is acted on, or the log is written.
//! - Each thread says that it has ended after it has dropped what it owned.
//! - With nothing to do, every one of them is blocked without a deadline; the timekeeper, from at most one
//!   interval of the stall rule after the backlog has gone.

use super::Item;
use super::config::DrainConfig;
use super::sink::{Sink, SinkError};
use super::state::{Role, SinkState, State, until};
use crate::report::Record;
use regatta_core::port::Clock;
use regatta_core::time::Instant;
use regatta_portable::clock::MonotonicClock;
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) config: DrainConfig,
    clock: MonotonicClock,
    /// The drainer waits: for an item, or for room in a spool.
    work: Condvar,
    /// Senders wait for room in the queue.
    pub(super) room: Condvar,
    /// The timekeeper waits.
    timer: Condvar,
    /// Each sink waits for a record, or for its next attempt.
    more: Vec<Condvar>,
    /// Whoever closes the drain waits for it to be empty, or for threads to end.
    pub(super) settled: Condvar,
}

/// Says that a thread has ended, whether it returned or unwound.
struct Ending<'a> {
    shared: &'a Shared,
    role: Role,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let shared = self.shared;
        let mut state = shared.lock();
        state.ended.push(self.role);
        let mut lost = None;
        if std::thread::panicking() {
            match self.role {
                Role::Drainer => {
                    state.drainer_lost = true;
                    shared.look(&mut state);
                }
                Role::Sink(at) => lost = shared.sink_lost(&mut state, at),
                Role::Timekeeper => {}
            }
        }
        drop(state);
        shared.room.notify_all();
        shared.settled.notify_all();
        if let Some(error) = lost {
            tracing::error!("{error}");
        }
    }
}

impl Shared {
    pub(super) fn new(config: DrainConfig, names: Vec<String>) -> Self {
        Self {
            clock: MonotonicClock::new(),
            work: Condvar::new(),
            room: Condvar::new(),
            timer: Condvar::new(),
            more: names.iter().map(|_| Condvar::new()).collect(),
            settled: Condvar::new(),
            state: Mutex::new(State::new(&config, names.into_iter())),
            config,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete before the lock is given back, and no code of others runs
        // under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(
        condvar: &Condvar,
        state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        condvar.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait_for<'a>(
        condvar: &Condvar,
        state: MutexGuard<'a, State>,
        at_most: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = condvar.wait_timeout(state, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Looks at the drainer under the stall rule. A stall is left to the timekeeper to act on.
    pub(super) fn look(&self, state: &mut State) {
        if state.stalled.is_some() {
            return;
        }
        let pipe = state.progress();
        state.stalled = state.watch.look(self.now(), pipe).err();
        let armed = state.watch.next_deadline().is_some() && std::mem::take(&mut state.unarmed);
        if armed || state.stalled.is_some() {
            self.timer.notify_one();
        }
    }

    /// An item was accepted.
    pub(super) fn accepted(&self, state: &mut State) {
        self.work.notify_one();
        self.look(state);
    }

    /// A sink has ended: the drainer does not wait for it any longer.
    fn sink_ended(&self, state: &mut State) {
        self.work.notify_one();
        self.room.notify_all();
        self.settled.notify_all();
        self.look(state);
    }

    /// The thread of a sink unwinds.
    fn sink_lost(&self, state: &mut State, at: usize) -> Option<Arc<SinkError>> {
        let spool = state.spools.get_mut(at)?;
        let error = Arc::new(SinkError::Panicked {
            sink: spool.name.clone(),
            record: spool.number(),
            behind: spool.waiting(),
        });
        spool.end(SinkState::Failed(Arc::clone(&error)));
        self.sink_ended(state);
        Some(error)
    }

    /// Something has left. Nobody waits for that but whoever closes the drain.
    fn moved(&self, state: &State) {
        if state.quiesced.is_some() {
            self.settled.notify_all();
        }
    }

    /// Wakes every thread, because the drain closes.
    pub(super) fn wake_all(&self) {
        self.work.notify_all();
        self.room.notify_all();
        self.timer.notify_all();
        self.more.iter().for_each(Condvar::notify_all);
    }

    /// Takes the items one after the other.
    pub(super) fn drain(&self) {
        let _ending = Ending {
            shared: self,
            role: Role::Drainer,
        };
        let mut state = self.lock();
        while !state.stopping {
            let Some((item, accepted)) = state.next() else {
                state = Self::wait(&self.work, state);
                continue;
            };
            self.room.notify_one();
            match item {
                Item::Finalize(work) => {
                    drop(state);
                    work();
                    state = self.lock();
                }
                Item::Publish(record) => {
                    state = self.publish(state, &record, accepted);
                    if state.waits_for_a_sink() {
                        // Stopped: the item stays in hand, and is accounted for as owed.
                        return;
                    }
                }
            }
            state.complete();
            self.look(&mut state);
            self.moved(&state);
        }
    }

    /// Hands a record to every open sink, and waits for those without room unless the drain is stopped.
    fn publish<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        record: &Arc<Record>,
        accepted: Instant,
    ) -> MutexGuard<'a, State> {
        loop {
            let handed = |at: usize| {
                self.more.get(at).map(Condvar::notify_one);
            };
            if state.hand_out(record, accepted, handed) || state.stopping {
                return state;
            }
            self.look(&mut state);
            state = Self::wait(&self.work, state);
        }
    }

    /// Delivers the records of a sink.
    pub(super) fn deliver(&self, at: usize, sink: Box<dyn Sink>) {
        let _ending = Ending {
            shared: self,
            role: Role::Sink(at),
        };
        // Dropped before the end is told.
        let mut sink = sink;
        let Some(more) = self.more.get(at) else {
            return;
        };
        while let Some(record) = self.next_record(at, more) {
            if !self.deliver_one(at, more, &mut *sink, &record) {
                return;
            }
        }
    }

    /// Waits for a record; none when the sink is to stop.
    fn next_record(&self, at: usize, more: &Condvar) -> Option<Arc<Record>> {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return None;
            }
            let waited = state.waits_for_a_sink();
            if let Some(record) = state.spools.get_mut(at)?.next() {
                if waited {
                    self.work.notify_one();
                    // From here on the item in hand is the drainer's again.
                    self.look(&mut state);
                }
                return Some(record);
            }
            state = Self::wait(more, state);
        }
    }

    /// Delivers a record, in several attempts if need be. Says whether the sink goes on.
    fn deliver_one(&self, at: usize, more: &Condvar, sink: &mut dyn Sink, record: &Record) -> bool {
        let (mut attempts, mut written) = (0, 0);
        loop {
            let delivered = sink.deliver(record);
            let mut state = self.lock();
            let Some(spool) = state.spools.get_mut(at) else {
                return false;
            };
            let Err(failure) = delivered else {
                spool.delivered();
                self.moved(&state);
                return true;
            };
            if failure.source.kind() == ErrorKind::BrokenPipe {
                let name = spool.name.clone();
                spool.end(SinkState::ReaderGone);
                self.sink_ended(&mut state);
                drop(state);
                tracing::info!("sink {name}: whoever read it is gone");
                return false;
            }
            attempts = if failure.written > written {
                1
            } else {
                attempts + 1
            };
            written = failure.written;
            if attempts >= self.config.attempts {
                let error = Arc::new(SinkError::Failed {
                    sink: spool.name.clone(),
                    record: spool.number(),
                    written,
                    of: failure.of,
                    attempts,
                    behind: spool.waiting(),
                    source: failure.source,
                });
                spool.end(SinkState::Failed(Arc::clone(&error)));
                self.sink_ended(&mut state);
                drop(state);
                tracing::error!("{error}");
                return false;
            }
            spool.state = SinkState::Retrying {
                attempts,
                because: failure.to_string(),
            };
            let again = self.now() + self.config.pause.into();
            while self.now() < again {
                if state.stopping {
                    // What is left of the record is accounted for as owed.
                    return false;
                }
                state = Self::wait_for(more, state, until(again, self.now()));
            }
        }
    }

    /// Keeps the time for the stall rule, and acts on a stall.
    pub(super) fn keep_time(&self) {
        let _ending = Ending {
            shared: self,
            role: Role::Timekeeper,
        };
        let mut acted = false;
        let mut state = self.lock();
        loop {
            self.look(&mut state);
            if let Some(stalled) = state.stalled.filter(|_| !acted) {
                let status = state.status(self.now());
                drop(state);
                (self.config.on_stall)(&stalled, &status);
                acted = true;
                state = self.lock();
            } else if state.stopping {
                return;
            } else if let Some(at) = state.watch.next_deadline().filter(|_| !acted) {
                let at_most = until(at, self.now());
                state = Self::wait_for(&self.timer, state, at_most);
            } else {
                state.unarmed = true;
                state = Self::wait(&self.timer, state);
            }
        }
    }
}
