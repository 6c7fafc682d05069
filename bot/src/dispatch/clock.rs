//! The clock pipe: every header, one to one and in order, on the thread of the source.
//!
//! A subscriber has a bounded queue of its own, or is a call that must not block. What a header does to the market
//! takes other ways; the clock only says that it came.
//!
//! # Invariants
//! - **Every header.** A subscriber gets each header from its subscription on, once, in the order of the ticks,
//!   until it leaves or is cut off. Nothing is coalesced.
//! - **Nobody is waited for.** A tick takes the clock's own lock and, for a moment each, that of a queue, which is held
//!   for nothing but a push or a pop. No unit of work, no sink and no pump holds any of them.
//! - **Who falls behind is cut off**, and told so after what had been queued: typed, counted and logged. So
//!   is a call that panics. The others get the same header.

use crate::source::{Event, Head};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A header as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    /// Which it is, from 1 and without gaps.
    pub seq: u64,
    /// The header.
    pub head: Head,
    /// When the source said so.
    pub at: Instant,
}

/// Why a subscriber gets no more ticks although there are more.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CutOff {
    /// Its queue was full when the next header came.
    #[error(
        "clock subscriber {name} was cut off at block {number}: it had {bound} heads to take, and {bound} is its bound"
    )]
    Behind {
        /// The subscriber.
        name: &'static str,
        /// Ticks that its queue holds.
        bound: usize,
        /// The block that it did not get.
        number: u64,
    },
    /// Its call panicked.
    #[error("clock subscriber {name} was cut off at block {number}: its call panicked")]
    Panicked {
        /// The subscriber.
        name: &'static str,
        /// The block that it was called with.
        number: u64,
    },
}

/// Why there is no next tick.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TickError {
    /// There are more ticks, and they are not for this subscriber any more.
    #[error(transparent)]
    CutOff(#[from] CutOff),
    /// None came within the time given.
    #[error("no head came within the time given")]
    TimedOut,
    /// No more will come: the source has ended.
    #[error("the clock has stopped: its source has ended")]
    Over,
}

/// A queue was to be made that holds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("clock subscriber {name}: a bound of 0 heads; it takes at least 1")]
pub struct NoRoom {
    /// The subscriber.
    pub name: &'static str,
}

/// How a clock is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClockStatus {
    /// Ticks so far.
    pub ticks: u64,
    /// The last one.
    pub last: Option<Tick>,
    /// Subscribers that get ticks, by name.
    pub subscribers: Vec<&'static str>,
    /// Subscribers that were cut off, and why.
    pub cut_off: Vec<CutOff>,
}

/// How the stream of one subscriber ended.
#[derive(Clone)]
enum Ended {
    CutOff(CutOff),
    Over,
}

struct Waiting {
    ticks: VecDeque<Tick>,
    ended: Option<Ended>,
    /// The subscriber has gone.
    left: bool,
}

struct Queue {
    waiting: Mutex<Waiting>,
    bound: usize,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A push or a pop is whole or was not.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, ended: Ended) {
        self.lock().ended.get_or_insert(ended);
        self.changed.notify_all();
    }
}

/// A call for each tick.
type Call = Box<dyn FnMut(&Tick) + Send>;

enum To {
    Queue(Arc<Queue>),
    Call(Call),
}

struct Subscriber {
    name: &'static str,
    to: To,
}

/// What became of a tick for one subscriber.
enum Delivered {
    Yes,
    Left,
    CutOff(CutOff),
}

impl Subscriber {
    fn deliver(&mut self, tick: Tick) -> Delivered {
        let (name, number) = (self.name, tick.head.number);
        match &mut self.to {
            To::Queue(queue) => {
                let mut waiting = queue.lock();
                if waiting.left {
                    return Delivered::Left;
                }
                if waiting.ticks.len() >= queue.bound {
                    let bound = queue.bound;
                    return Delivered::CutOff(CutOff::Behind {
                        name,
                        bound,
                        number,
                    });
                }
                waiting.ticks.push_back(tick);
                drop(waiting);
                queue.changed.notify_all();
                Delivered::Yes
            }
            To::Call(call) => match catch_unwind(AssertUnwindSafe(|| call(&tick))) {
                Ok(()) => Delivered::Yes,
                Err(_) => Delivered::CutOff(CutOff::Panicked { name, number }),
            },
        }
    }

    fn end(&self, ended: Ended) {
        if let To::Queue(queue) = &self.to {
            queue.end(ended);
        }
    }
}

#[derive(Default)]
struct Beat {
    ticks: u64,
    last: Option<Tick>,
    over: bool,
    subscribers: Vec<Subscriber>,
    cut_off: Vec<CutOff>,
}

/// The clock. See the [module](self).
#[derive(Default)]
pub struct Clock(Mutex<Beat>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.status()).finish()
    }
}

impl Clock {
    /// A clock without subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn beat(&self) -> MutexGuard<'_, Beat> {
        // What may panic under it is caught, and changes nothing of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A header has come: tells every subscriber, on the caller's thread. For the source alone.
    pub fn tick(&self, head: Head) {
        let mut beat = self.beat();
        beat.ticks += 1;
        let tick = Tick {
            seq: beat.ticks,
            head,
            at: Instant::now(),
        };
        beat.last = Some(tick);
        let beat = &mut *beat;
        beat.subscribers
            .retain_mut(|subscriber| match subscriber.deliver(tick) {
                Delivered::Yes => true,
                Delivered::Left => false,
                Delivered::CutOff(why) => {
                    tracing::error!("{why}");
                    subscriber.end(Ended::CutOff(why.clone()));
                    beat.cut_off.push(why);
                    false
                }
            });
    }

    /// A source says this: a tick if it is about a new header, the stop if it is the end.
    pub fn tick_of(&self, event: Option<&Event>) {
        match event {
            Some(Event::Block(block)) => self.tick(block.head()),
            Some(Event::Reread { head, .. }) => self.tick(*head),
            Some(Event::Reverted { .. } | Event::Pools(_)) => {}
            None => self.stop(),
        }
    }

    /// No more headers will come.
    pub fn stop(&self) {
        let mut beat = self.beat();
        beat.over = true;
        for subscriber in beat.subscribers.drain(..) {
            subscriber.end(Ended::Over);
        }
    }

    /// Subscribes with a queue of `bound` ticks.
    pub fn subscribe(&self, name: &'static str, bound: usize) -> Result<Ticks, NoRoom> {
        if bound == 0 {
            return Err(NoRoom { name });
        }
        let mut beat = self.beat();
        let queue = Arc::new(Queue {
            waiting: Mutex::new(Waiting {
                ticks: VecDeque::with_capacity(bound),
                ended: beat.over.then_some(Ended::Over),
                left: false,
            }),
            bound,
            changed: Condvar::new(),
        });
        if !beat.over {
            let to = To::Queue(Arc::clone(&queue));
            beat.subscribers.push(Subscriber { name, to });
        }
        Ok(Ticks(queue))
    }

    /// Subscribes with a call, which is made on the source's thread: it must not block, and must not ask the clock
    /// for anything.
    pub fn call(&self, name: &'static str, call: impl FnMut(&Tick) + Send + 'static) {
        let mut beat = self.beat();
        if !beat.over {
            let to = To::Call(Box::new(call));
            beat.subscribers.push(Subscriber { name, to });
        }
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> ClockStatus {
        let beat = self.beat();
        ClockStatus {
            ticks: beat.ticks,
            last: beat.last,
            subscribers: beat.subscribers.iter().map(|s| s.name).collect(),
            cut_off: beat.cut_off.clone(),
        }
    }
}

/// A subscriber's end of its queue. Who drops it gets no more.
pub struct Ticks(Arc<Queue>);

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticks").finish_non_exhaustive()
    }
}

impl Ticks {
    /// Waits for the next tick, no longer than `timeout`. What was queued comes before the end of the stream.
    pub fn next(&self, timeout: Duration) -> Result<Tick, TickError> {
        let end = Instant::now() + timeout;
        let mut waiting = self.0.lock();
        loop {
            if let Some(tick) = waiting.ticks.pop_front() {
                return Ok(tick);
            }
            match &waiting.ended {
                Some(Ended::CutOff(why)) => return Err(why.clone().into()),
                Some(Ended::Over) => return Err(TickError::Over),
                None => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TickError::TimedOut);
            }
            let waited = self.0.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        self.0.lock().left = true;
    }
}
