//! How blocks reach the pump: one after the other, or as they come.
//!
//! # Invariants
//! - No event is lost, and an error of the source comes after all events before it.
//! - A live feed holds a bounded number of events: when the pump stops taking them, the source waits.

use super::queue::{Declined, Popped, Queue};
use super::watch::Watch;
use crate::dispatch::Clock;
use crate::source::{BlockSource, Event, SourceError};
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Events that a live feed holds at most: hours of blocks at a chain's pace, and about a megabyte.
const PENDING: usize = 1024;

/// How long a source that is dropped may take to end.
const LEAVE: Duration = Duration::from_secs(10);

/// Why a feed has no next event.
#[derive(Debug, Error)]
pub enum FeedError {
    /// The source has none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source's thread panicked.
    #[error("the thread of the block source panicked; what it was to deliver is not known")]
    Lost,
}

/// Where the pump takes its events from.
pub enum Feed {
    /// Every block is run, as fast as the pump takes them.
    Replay(Box<dyn BlockSource + Send>),
    /// Blocks come at their own pace, whether the pump is done with the last one or not.
    Live(LiveFeed),
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Replay(_) => "Replay",
            Self::Live(_) => "Live",
        })
    }
}

impl Feed {
    /// Whether events come one at a time and every block is run.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// Waits for the next event and adds to `events` those that have come, in replay that one only.
    /// Adds nothing at the end of the stream. `watch` is tended meanwhile, and told that the fleet does
    /// not work while there is nothing to wait for but the source.
    pub fn next_batch(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
    ) -> Result<(), FeedError> {
        while self.next(events, watch, false)? == FeedNext::Woken {}
        Ok(())
    }

    /// The same, but a wake ends the wait too. With `working` the fleet has work meanwhile.
    pub fn next(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
        working: bool,
    ) -> Result<FeedNext, FeedError> {
        let came = match self {
            Self::Replay(source) => {
                watch.tend();
                let event = source.next_event()?;
                let came = event.as_ref().map_or(FeedNext::End, |_| FeedNext::Events);
                events.extend(event);
                came
            }
            Self::Live(live) => live.next(events, watch, working)?,
        };
        watch.work(working || came != FeedNext::End);
        Ok(came)
    }

    /// What wakes who waits for the next event, where somebody does.
    #[must_use]
    pub fn waker(&self) -> Option<FeedWaker> {
        match self {
            Self::Replay(_) => None,
            Self::Live(live) => Some(FeedWaker(Arc::clone(&live.queue))),
        }
    }
}

/// Why a wait for events ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedNext {
    /// Events came.
    Events,
    /// Somebody has woken who waits.
    Woken,
    /// Nothing more will come.
    End,
}

/// Wakes who waits for the events of a live feed, once, now or when it waits next.
#[derive(Clone)]
pub struct FeedWaker(Arc<Queue<Delivery>>);

impl std::fmt::Debug for FeedWaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedWaker").finish_non_exhaustive()
    }
}

impl FeedWaker {
    /// Wakes it.
    pub fn wake(&self) {
        self.0.wake();
    }
}

/// What a source's thread says.
enum Delivery {
    Event(Event),
    /// The last it says: how the stream ended.
    Ended(Result<(), SourceError>),
}

/// The pump's end of a source that delivers an event per interval on a thread of its own.
pub struct LiveFeed {
    queue: Arc<Queue<Delivery>>,
    /// How the stream ended, once it has and was said.
    over: bool,
}

impl std::fmt::Debug for LiveFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveFeed").finish_non_exhaustive()
    }
}

/// An event was not taken. It is given back.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Untaken {
    /// The pump is behind.
    #[error("{PENDING} events wait for the pump, the most there can be")]
    Full(Event),
    /// The pump takes no more.
    #[error("the feed is closed")]
    Closed(Event),
}

/// The source's end of a live feed, for a source that must not wait. When it goes without a word, the feed is
/// lost.
pub struct Feeder(Leaving);

impl std::fmt::Debug for Feeder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feeder").finish_non_exhaustive()
    }
}

impl Feeder {
    /// Delivers an event if there is room.
    pub fn offer(&self, event: Event) -> Result<(), Untaken> {
        let queue = &self.0.0;
        match queue.offer(Delivery::Event(event)) {
            Err(Declined::Full(Delivery::Event(event))) => Err(Untaken::Full(event)),
            Err(Declined::Closed(Delivery::Event(event))) => Err(Untaken::Closed(event)),
            // What was offered is what is given back.
            Ok(()) | Err(Declined::Full(_) | Declined::Closed(_)) => Ok(()),
        }
    }

    /// Has `told` called when there is room after an event was not taken, or the feed was closed.
    pub fn on_room(&self, told: impl Fn() + Send + Sync + 'static) {
        self.0.0.on_room(told);
    }

    /// Says how the stream ended, as the last.
    pub fn end(self, ended: Result<(), SourceError>) {
        self.0.0.push_last(Delivery::Ended(ended));
    }
}

/// The thread of a live source.
pub struct LiveSource {
    queue: Arc<Queue<Delivery>>,
    /// Disconnected when the thread has nothing more to do.
    running: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for LiveSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSource").finish_non_exhaustive()
    }
}

/// Closes a feed from anywhere: the pump finds its end, and the source ends too.
#[derive(Clone)]
pub struct FeedCloser(Arc<Queue<Delivery>>);

impl std::fmt::Debug for FeedCloser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedCloser").finish_non_exhaustive()
    }
}

impl FeedCloser {
    /// Closes it. What was delivered and not taken is dropped.
    pub fn close(&self) {
        self.0.close();
    }
}

impl LiveFeed {
    /// Starts the source's thread, on which `clock` is told of each header when it is due, whether the pump takes it or
    /// not.
    pub fn start(
        source: Box<dyn BlockSource + Send>,
        interval: Duration,
        clock: Arc<Clock>,
        census: &Census,
    ) -> Result<(Self, LiveSource), CensusError> {
        let queue = Arc::new(Queue::new(PENDING));
        let (runs, running) = mpsc::channel::<()>();
        let spec = ThreadSpec {
            kernel_name: "rg-source".to_owned(),
            name: "regatta/bot/source".to_owned(),
            owner: "source".to_owned(),
            role: "source".to_owned(),
            sizing: "one per live source".to_owned(),
            binding: LaneBinding::Pinned,
        };
        let of_thread = Leaving(Arc::clone(&queue));
        let thread = census.spawn(spec, move || {
            let _runs = runs;
            let ended = deliver(source, interval, &clock, &of_thread.0);
            clock.stop();
            of_thread.0.push_last(Delivery::Ended(ended));
        })?;
        let feed = Self {
            queue: Arc::clone(&queue),
            over: false,
        };
        let source = LiveSource {
            queue,
            running,
            thread: Some(thread),
        };
        Ok((feed, source))
    }

    /// A feed without a thread of its own, and the end that a source delivers by.
    #[must_use]
    pub fn open() -> (Self, Feeder) {
        let queue = Arc::new(Queue::new(PENDING));
        let feed = Self {
            queue: Arc::clone(&queue),
            over: false,
        };
        (feed, Feeder(Leaving(queue)))
    }

    /// The way to close it from elsewhere.
    #[must_use]
    pub fn closer(&self) -> FeedCloser {
        FeedCloser(Arc::clone(&self.queue))
    }

    fn next(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
        working: bool,
    ) -> Result<FeedNext, FeedError> {
        if self.over {
            return Ok(FeedNext::End);
        }
        let mut popped = self.queue.pop(Some(Duration::ZERO));
        if matches!(popped, Popped::TimedOut) {
            watch.work(working);
        }
        while matches!(popped, Popped::TimedOut) {
            popped = self.queue.pop(watch.tend());
        }
        // One batch is what has come by now, and no more than there is room for.
        let before = events.len();
        for _ in 0..=PENDING {
            match popped {
                Popped::Item(Delivery::Event(event)) => events.push(event),
                Popped::Item(Delivery::Ended(ended)) if events.len() == before => {
                    self.over = true;
                    ended?;
                    return Ok(FeedNext::End);
                }
                Popped::Item(ended) => {
                    // What came before it is delivered first.
                    self.queue.push_last(ended);
                    break;
                }
                Popped::Gone if events.len() == before => return Err(FeedError::Lost),
                Popped::Closed => {
                    self.over = true;
                    // What came before is taken all the same.
                    break;
                }
                Popped::Woken if events.len() == before => return Ok(FeedNext::Woken),
                // Who takes events looks at what it was woken for, too.
                Popped::TimedOut | Popped::Woken | Popped::Gone => break,
            }
            if events.len() - before > PENDING {
                break;
            }
            popped = self.queue.pop(Some(Duration::ZERO));
        }
        Ok(if events.len() == before {
            FeedNext::End
        } else {
            FeedNext::Events
        })
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl LiveSource {
    /// Ends the thread, and waits for it until the time given; whether it has ended. A source that blocks
    /// for longer keeps its thread.
    pub fn stop(&mut self, until: Instant) -> bool {
        self.queue.close();
        let left = until.saturating_duration_since(Instant::now());
        let running = self.running.recv_timeout(left);
        if matches!(running, Err(RecvTimeoutError::Timeout)) {
            return false;
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("{}", FeedError::Lost);
        }
        true
    }

    /// Whether the thread has not been joined yet.
    #[must_use]
    pub const fn has_thread(&self) -> bool {
        self.thread.is_some()
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        if self.thread.is_some() && !self.stop(Instant::now() + LEAVE) {
            tracing::error!("the block source does not end; its thread is left behind");
        }
    }
}

/// Says that the source is gone, whether its thread returns or unwinds.
struct Leaving(Arc<Queue<Delivery>>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Delivers an event per interval, dated from the start so that delays do not add up, until the stream
/// is over or nobody takes its events.
fn deliver(
    mut source: Box<dyn BlockSource + Send>,
    interval: Duration,
    clock: &Clock,
    queue: &Queue<Delivery>,
) -> Result<(), SourceError> {
    let mut due = Instant::now();
    while let Some(event) = source.next_event()? {
        if !queue.wait_open(due) {
            break;
        }
        clock.tick_of(Some(&event));
        if queue.push(Delivery::Event(event)).is_err() {
            break;
        }
        due += interval;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
