//! A capture from a node: what it says goes to a file, with the connections of a run and without its fleet.
//!
//! ```text
//! source ◄── recorder ──► file        (what each needs points to it)
//! signals: the control plane, up from first to last
//! ```
//!
//! # Invariants
//! - An event is in the file, in the order in which it came, before the next is looked at. None is left out before one
//!   that is there.
//! - The file has its end record if the stream ended or a stop was asked for, and not if an event could not be
//!   written.
//! - What waits for the file is the recorder's thread alone: the node's goes on, and holds events back while there is
//!   no room.

use super::node::{self, Host};
use super::{Signals, audit, judge, registered, signals, source_at, tell, threads};
use crate::capture::{WriteError, Writer};
use crate::node::{Asker, Found, Node, NodeReader, OnHead};
use crate::pipeline::{Feed, FeedCloser, FeedNext, LiveFeed, Unwatched};
use crate::run::RunError;
use crate::source::Event;
use regatta_core::component::{ComponentId, Plane, Probe, Remaining, StopReason, SupervisorConfig};
use regatta_core::plan::LaneBinding;
use regatta_core::time;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{Came, Component, Context, Failed, Handle, Runtime, Vitals};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How long stopping may take; a file system that hangs is left behind then.
const STOP_BUDGET: time::Duration = time::Duration::from_secs(10);

/// Why a recording ended early. What was written can be read.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// The file takes no more.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The source or the components did not go well.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// How much was written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) blocks: u64,
}

impl Counts {
    /// Counts an event that was written.
    pub(crate) const fn add(&mut self, event: &Event) {
        self.events += 1;
        if matches!(event, Event::Block(_)) {
            self.blocks += 1;
        }
    }
}

/// What the components of a capture share.
struct Recording {
    census: Census,
    node: Mutex<Option<(Node, Found)>>,
    blocks: Option<u64>,
    feed: Mutex<Option<LiveFeed>>,
    closer: OnceLock<FeedCloser>,
    closed: AtomicBool,
    writer: Mutex<Option<Writer<File>>>,
    running: Mutex<bool>,
    /// The recorder's thread ended.
    changed: Condvar,
    counts: Mutex<Counts>,
    /// The first failure.
    failure: Mutex<Option<RecordError>>,
}

/// A lock whose holder changes the value whole or not at all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what `node` says until it has said so many blocks, or a stop is asked for; how much that was.
pub(crate) fn record(
    node: (Node, Found),
    writer: Writer<File>,
    blocks: Option<u64>,
    census: Census,
    caught: Option<Signals>,
) -> Result<Counts, RecordError> {
    let asker: Asker = node.0.asker().clone();
    let recording = Arc::new(Recording {
        census,
        node: Mutex::new(Some(node)),
        blocks,
        feed: Mutex::new(None),
        closer: OnceLock::new(),
        closed: AtomicBool::new(false),
        writer: Mutex::new(Some(writer)),
        running: Mutex::new(false),
        changed: Condvar::new(),
        counts: Mutex::new(Counts::default()),
        failure: Mutex::new(None),
    });
    let mut components = Vec::new();
    if let Some(caught) = caught {
        let reload = Arc::new(signals::nothing_to_read);
        let component = signals::component(&recording.census, caught, reload);
        components.push(registered("signals", &[], Plane::Control, component));
    }
    let recorder = Box::new(Recorder {
        recording: Arc::clone(&recording),
        thread: None,
    });
    components.extend([
        source_at(node::component(&recording, &asker)),
        registered("recorder", &["source"], Plane::Data, recorder),
    ]);
    let names: Vec<_> = components.iter().map(|c| c.spec.name).collect();
    let runtime = Runtime::new(
        components,
        &threads::claims_of_capture(&names),
        SupervisorConfig {
            stop_budget: STOP_BUDGET,
            ..SupervisorConfig::new(u64::from(std::process::id()))
        },
        &recording.census,
        audit(),
    )
    .map_err(RunError::from)?;
    let report = runtime.run(|_| {});
    tell(&report);
    if let Some(error) = lock(&recording.failure).take() {
        return Err(error);
    }
    judge(&report)?;
    let counts = *lock(&recording.counts);
    Ok(counts)
}

impl Recording {
    /// Waits for the recorder's thread to end; whether it has.
    fn ended(&self, until: Instant) -> bool {
        let mut running = lock(&self.running);
        while *running {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            let waited = self.changed.wait_timeout(running, left);
            running = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The work of the recorder's thread.
    fn write(&self) -> Result<(), RecordError> {
        let mut writer = lock(&self.writer).take().ok_or(RunError::Cut)?;
        let mut feed = Feed::Live(lock(&self.feed).take().ok_or(RunError::Cut)?);
        let mut events = Vec::new();
        while !self.closed.load(Ordering::Acquire) {
            let next = feed
                .next(&mut events, &Unwatched, false)
                .map_err(RunError::from)?;
            if next == FeedNext::End {
                break;
            }
            for event in events.drain(..) {
                let event = writer.event(event)?;
                lock(&self.counts).add(&event);
            }
        }
        writer.finish()?;
        Ok(())
    }

    /// The life of the recorder's thread.
    fn live(&self, runtime: &Handle, id: ComponentId) {
        // Said before the thread counts as ended, so that whoever waits for that finds the failure.
        let error = match catch_unwind(AssertUnwindSafe(|| self.write())) {
            Ok(ended) => ended.err(),
            Err(_) => Some(
                RunError::ComponentFailed {
                    component: "recorder",
                }
                .into(),
            ),
        };
        match error {
            None => runtime.stop(StopReason::Requested),
            Some(error) => {
                *lock(&self.failure) = Some(error);
                runtime.failed(id);
            }
        }
        *lock(&self.running) = false;
        self.changed.notify_all();
    }
}

impl Host for Recording {
    fn node(&self) -> Option<(Node, Found)> {
        lock(&self.node).take()
    }

    /// Nothing is verified here.
    fn take_reader(&self, _: NodeReader) {}

    /// Headers are of no interest before their blocks.
    fn head(&self) -> OnHead {
        Box::new(|_| ())
    }

    fn blocks(&self) -> Option<u64> {
        self.blocks
    }

    fn take_events(&self, feed: LiveFeed) {
        self.closer.get_or_init(|| feed.closer());
        *lock(&self.feed) = Some(feed);
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if let Some(closer) = self.closer.get() {
            closer.close();
        }
    }

    fn drop_events(&self) {
        drop(lock(&self.feed).take());
    }
}

/// The thread that writes, as a component.
struct Recorder {
    recording: Arc<Recording>,
    thread: Option<JoinHandle<()>>,
}

impl Vitals for Recording {
    fn probe(&self) -> Probe {
        if *lock(&self.running) {
            Probe::Ready
        } else {
            Probe::NotReady("ended")
        }
    }

    fn fence(&self) {
        self.close();
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            threads: u32::from(*lock(&self.running)),
            ..Remaining::NONE
        }
    }
}

impl Component for Recorder {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<Recording>::clone(&self.recording)
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let recording = Arc::clone(&self.recording);
        *lock(&recording.running) = true;
        let spec = ThreadSpec {
            kernel_name: "rg-recorder".to_owned(),
            name: "regatta/bot/recorder".to_owned(),
            owner: "recorder".to_owned(),
            role: "recorder".to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Shared,
        };
        let spawned = self.recording.census.spawn(spec, move || {
            recording.live(&context.runtime, context.id);
        });
        match spawned {
            Ok(thread) => {
                self.thread = Some(thread);
                Ok(Came::Up)
            }
            Err(error) => {
                *lock(&self.recording.running) = false;
                Err(Failed::new("no_thread", error))
            }
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.recording.close();
        Ok(())
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.recording.close();
        if !self.recording.ended(until) {
            return Err(Failed::new("thread_left", "the file takes too long"));
        }
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Failed::new("panicked", "the recorder's thread unwound")),
        }
    }
}
