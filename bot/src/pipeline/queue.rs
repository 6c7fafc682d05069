//! The queue between a block source's thread and the pump: bounded, ordered, and closed from either side.
//!
//! # Invariants
//! - What went in comes out, in order, unless the queue is closed by who takes.
//! - Nobody waits on a closed queue: a push says so, a pop says that nothing more will come.
//! - A wake is not lost, and does not come before an item that is there.
//! - The end is said by the source: a queue whose source went without a word is lost, not ended.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What a pop found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Popped<T> {
    /// The next one.
    Item(T),
    /// None within the time given.
    TimedOut,
    /// None, but who takes is wanted elsewhere.
    Woken,
    /// Who takes has closed it.
    Closed,
    /// The source is gone.
    Gone,
}

/// Why an item was not taken. It is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Declined<T> {
    /// There is no room now; whoever registered for it is told when there is.
    Full(T),
    /// Nobody takes any more.
    Closed(T),
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a message that is there or not, and any of them may be"
)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    gone: bool,
    /// An offer was declined, and nobody has been told of room since.
    declined: bool,
    /// Who takes is to be woken, or woken at once when it waits next.
    woken: bool,
}

/// Called when there is room, or will be no more.
type OnRoom = Box<dyn Fn() + Send + Sync>;

/// The queue.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    room: usize,
    changed: Condvar,
    /// Who offers, and does not wait.
    on_room: OnceLock<OnRoom>,
}

impl<T> Queue<T> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::with_capacity(room),
                closed: false,
                gone: false,
                declined: false,
                woken: false,
            }),
            room,
            changed: Condvar::new(),
            on_room: OnceLock::new(),
        }
    }

    /// Has `told` called after an offer was declined and there is room again, or the queue was closed. The first that
    /// registers stays.
    pub(super) fn on_room(&self, told: impl Fn() + Send + Sync + 'static) {
        self.on_room.get_or_init(|| Box::new(told));
    }

    /// Adds an item if there is room, and does not wait for it.
    pub(super) fn offer(&self, item: T) -> Result<(), Declined<T>> {
        let mut state = self.lock();
        if state.closed {
            return Err(Declined::Closed(item));
        }
        if state.items.len() >= self.room {
            state.declined = true;
            return Err(Declined::Full(item));
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Wakes who waits for room, on either side.
    fn room_made(&self, declined: bool) {
        self.changed.notify_all();
        if declined && let Some(told) = self.on_room.get() {
            told();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A push or a pop is whole or was not.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room. `Err` gives the item back: nobody takes any more.
    pub(super) fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        while state.items.len() >= self.room && !state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Adds what the source says last, room or not.
    pub(super) fn push_last(&self, item: T) {
        self.lock().items.push_back(item);
        self.changed.notify_all();
    }

    /// Waits for an item, no longer than `timeout`.
    pub(super) fn pop(&self, timeout: Option<Duration>) -> Popped<T> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Popped::Closed;
            }
            if let Some(item) = state.items.pop_front() {
                let declined = std::mem::take(&mut state.declined);
                drop(state);
                self.room_made(declined);
                return Popped::Item(item);
            }
            if state.gone {
                return Popped::Gone;
            }
            if std::mem::take(&mut state.woken) {
                return Popped::Woken;
            }
            match timeout {
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Some(timeout) => {
                    let waited = self.changed.wait_timeout(state, timeout);
                    let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = guard;
                    let nothing = state.items.is_empty() && !state.closed && !state.gone;
                    if result.timed_out() && nothing && !state.woken {
                        return Popped::TimedOut;
                    }
                }
            }
        }
    }

    /// Wakes who takes, once, now or when it waits next.
    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    /// Nobody takes any more: wakes everybody who waits.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let declined = std::mem::take(&mut state.declined);
        drop(state);
        self.room_made(declined);
    }

    /// The source is gone.
    pub(super) fn leave(&self) {
        self.lock().gone = true;
        self.changed.notify_all();
    }

    /// Waits while the queue is open, until the time has passed; `false` if it was closed.
    pub(super) fn wait_open(&self, until: std::time::Instant) -> bool {
        let mut state = self.lock();
        while !state.closed {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}
