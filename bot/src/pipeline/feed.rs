//! How blocks reach the pump: one after the other, or as they come.
//!
//! # Invariants
//! - No event is lost, and an error of the source comes after all events before it.
//! - A live feed holds a bounded number of events: when the pump stops taking them, the source waits.

use super::watch::Watch;
use crate::source::{BlockSource, Event, SourceError};
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Events that a live feed holds at most: hours of blocks at a chain's pace, and about a megabyte.
const PENDING: usize = 1024;

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
    /// Waits for the next event and adds to `events` those that have come, in replay that one only.
    /// Adds nothing at the end of the stream. `watch` is tended meanwhile, and told that the fleet does
    /// not work while there is nothing to wait for but the source.
    pub fn next_batch(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
    ) -> Result<(), FeedError> {
        match self {
            Self::Replay(source) => {
                watch.tend();
                events.extend(source.next_event()?);
            }
            Self::Live(live) => live.next_batch(events, watch)?,
        }
        watch.work(!events.is_empty());
        Ok(())
    }
}

/// A source on a thread of its own that delivers an event per interval.
#[derive(Debug)]
pub struct LiveFeed {
    /// Dropped to end a delivery that waits for room.
    events: Option<Receiver<Event>>,
    /// Dropped to end the wait for the next event's time.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), SourceError>>>,
}

impl LiveFeed {
    /// Starts the source's thread.
    pub fn start(
        source: Box<dyn BlockSource + Send>,
        interval: Duration,
        census: &Census,
    ) -> Result<Self, CensusError> {
        let (to_pump, events) = mpsc::sync_channel(PENDING);
        let (stop, stopped) = mpsc::channel();
        let spec = ThreadSpec {
            kernel_name: "rg-source".to_owned(),
            name: "regatta/bot/source".to_owned(),
            owner: "source".to_owned(),
            role: "source".to_owned(),
            sizing: "one per live source".to_owned(),
            binding: LaneBinding::Pinned,
        };
        let thread = census.spawn(spec, move || deliver(source, interval, &to_pump, &stopped))?;
        Ok(Self {
            events: Some(events),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn next_batch(&mut self, events: &mut Vec<Event>, watch: &dyn Watch) -> Result<(), FeedError> {
        let first = self.events.as_ref().and_then(|events| first(events, watch));
        let Some(first) = first else {
            return self.ended();
        };
        events.push(first);
        let more = self.events.iter().flat_map(Receiver::try_iter);
        events.extend(more.take(PENDING));
        Ok(())
    }

    /// How the stream ended.
    fn ended(&mut self) -> Result<(), FeedError> {
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => Err(FeedError::Lost),
        }
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        (self.events, self.stop) = (None, None);
        if let Err(error) = self.ended() {
            tracing::error!("{error}");
        }
    }
}

/// The next event, with `watch` tended while there is none; `None` at the end of the stream.
fn first(events: &Receiver<Event>, watch: &dyn Watch) -> Option<Event> {
    match events.try_recv() {
        Ok(event) => return Some(event),
        Err(TryRecvError::Disconnected) => return None,
        Err(TryRecvError::Empty) => watch.work(false),
    }
    loop {
        match watch.tend() {
            None => return events.recv().ok(),
            Some(due) => match events.recv_timeout(due) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            },
        }
    }
}

/// Delivers an event per interval, dated from the start so that delays do not add up, until the stream
/// is over or nobody takes its events.
fn deliver(
    mut source: Box<dyn BlockSource + Send>,
    interval: Duration,
    to_pump: &SyncSender<Event>,
    stopped: &Receiver<()>,
) -> Result<(), SourceError> {
    let mut due = Instant::now();
    while let Some(event) = source.next_event()? {
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if to_pump.send(event).is_err() {
            break;
        }
        due += interval;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
