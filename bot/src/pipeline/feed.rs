//! How blocks reach the pump: one after the other, or as they come.

use super::watch::Watch;
use crate::source::{BlockSource, Event, SourceError};
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    /// Waits for the next event and adds to `events` all that have come. Adds nothing at the end of
    /// the stream. `watch` is tended meanwhile, and told that the fleet does not work while there is
    /// nothing to wait for but the source.
    pub fn next_batch(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
    ) -> Result<(), SourceError> {
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

/// A source on a thread of its own that delivers a block per interval.
#[derive(Debug)]
pub struct LiveFeed {
    events: Receiver<Result<Event, SourceError>>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveFeed {
    /// Starts the source's thread.
    pub fn start(
        source: Box<dyn BlockSource + Send>,
        interval: Duration,
        census: &Census,
    ) -> Result<Self, CensusError> {
        let (to_pump, events) = mpsc::channel();
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
            events,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn next_batch(
        &mut self,
        events: &mut Vec<Event>,
        watch: &dyn Watch,
    ) -> Result<(), SourceError> {
        if !self.take(events)? {
            watch.work(false);
            let first = loop {
                match watch.tend() {
                    None => break self.events.recv().ok(),
                    Some(due) => match self.events.recv_timeout(due) {
                        Ok(event) => break Some(event),
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => break None,
                    },
                }
            };
            events.extend(first.transpose()?);
            self.take(events)?;
        }
        Ok(())
    }

    /// Adds what has come; whether something has.
    fn take(&self, events: &mut Vec<Event>) -> Result<bool, SourceError> {
        let before = events.len();
        loop {
            match self.events.try_recv() {
                Ok(event) => events.push(event?),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                    return Ok(events.len() > before);
                }
            }
        }
    }
}

impl Drop for LiveFeed {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the source's thread panicked");
        }
    }
}

/// Delivers an event per interval, dated from the start so that delays do not add up.
fn deliver(
    mut source: Box<dyn BlockSource + Send>,
    interval: Duration,
    to_pump: &Sender<Result<Event, SourceError>>,
    stopped: &Receiver<()>,
) {
    let mut due = Instant::now();
    loop {
        match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(event) = source.next_event().transpose() else {
            return;
        };
        let failed = event.is_err();
        if to_pump.send(event).is_err() || failed {
            return;
        }
        due += interval;
    }
}
