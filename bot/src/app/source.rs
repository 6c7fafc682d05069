//! The chain source as a component.

use super::stage::Stage;
use crate::dispatch::Clock;
use crate::pipeline::{Feed, LiveFeed, LiveSource};
use crate::run::RunError;
use crate::source::{BlockSource, Event, SourceError};
use crate::verify::Recomputed;
use regatta_core::component::{Probe, Remaining};
use regatta_portable::runtime::{Came, Component, Context, Failed, Vitals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(super) fn component(stage: &Arc<Stage>) -> Box<dyn Component> {
    Box::new(SourceComponent {
        stage: Arc::clone(stage),
        vitals: Arc::new(SourceVitals {
            stage: Arc::clone(stage),
            thread: AtomicBool::new(false),
        }),
        live: None,
    })
}

struct SourceComponent {
    stage: Arc<Stage>,
    vitals: Arc<SourceVitals>,
    live: Option<LiveSource>,
}

struct SourceVitals {
    stage: Arc<Stage>,
    thread: AtomicBool,
}

impl Vitals for SourceVitals {
    fn probe(&self) -> Probe {
        Probe::Ready
    }

    fn fence(&self) {
        self.stage.interrupt();
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            threads: u32::from(self.thread.load(Ordering::Acquire)),
            ..Remaining::NONE
        }
    }
}

impl Component for SourceComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<SourceVitals>::clone(&self.vitals)
    }

    fn start(&mut self, _: Context) -> Result<Came, Failed> {
        match self.feed() {
            Ok(feed) => {
                self.vitals
                    .thread
                    .store(self.live.is_some(), Ordering::Release);
                self.stage.set_feed(feed);
                Ok(Came::Up)
            }
            Err(error) => {
                let failed = Failed::new("no_source", error.to_string());
                self.stage.fail(error);
                Err(failed)
            }
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.stage.interrupt();
        Ok(())
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.stage.interrupt();
        // A replay's source has no thread; it goes with the feed that nobody took.
        drop(self.stage.take_feed());
        if let Some(live) = &mut self.live {
            if !live.stop(until) {
                return Err(Failed::new("thread_left", "the source does not end"));
            }
            self.vitals.thread.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl SourceComponent {
    fn feed(&mut self) -> Result<Feed, RunError> {
        let args = self.stage.args();
        let start = self.stage.take_start().ok_or(RunError::Cut)?;
        if args.verifies()
            && let Some(again) = start.again()?
        {
            self.stage.set_reader(Box::new(Recomputed::new(again)));
        }
        let source = start.source()?;
        let source: Box<dyn BlockSource + Send> = if self.stage.is_to_die("source") {
            Box::new(Mortal {
                source,
                stage: Arc::clone(&self.stage),
            })
        } else {
            source
        };
        let clock = Arc::clone(self.stage.dispatch().clock());
        Ok(match args.source.block_time {
            0 => Feed::Replay(Box::new(Ticking { source, clock })),
            ms => {
                let interval = Duration::from_millis(ms);
                let (feed, live) = LiveFeed::start(source, interval, clock, self.stage.census())?;
                self.live = Some(live);
                Feed::Live(feed)
            }
        })
    }
}

/// A source whose thread ends at work, as an injected fault.
struct Mortal {
    source: Box<dyn BlockSource + Send>,
    stage: Arc<Stage>,
}

impl BlockSource for Mortal {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        let event = self.source.next_event()?;
        if let Some(Event::Block(block)) = &event {
            self.stage.suffer("source", block.number);
        }
        Ok(event)
    }
}

/// A source whose blocks tick as they are taken.
struct Ticking {
    source: Box<dyn BlockSource + Send>,
    clock: Arc<Clock>,
}

impl BlockSource for Ticking {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        let event = self.source.next_event()?;
        self.clock.tick_of(event.as_ref());
        Ok(event)
    }
}
