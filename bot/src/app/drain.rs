//! The drain and its sinks as a component: what leaves the process.

use super::stage::Stage;
use crate::drain::{Drain, DrainConfig, Lines, Sink, SinkState, SinkStatus};
use crate::report::Format;
use crate::run::RunError;
use regatta_core::component::{DrainCounts, Probe, Remaining};
use regatta_portable::runtime::{Came, Component, Context, Failed, Vitals};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the sink that a run writes its records to.
const OUT: &str = "out";

/// How long a record waits for room before whoever sends it looks up.
const PATIENCE: Duration = Duration::from_millis(250);

pub(super) fn component(stage: &Arc<Stage>) -> Box<dyn Component> {
    Box::new(DrainComponent(Arc::clone(stage)))
}

struct DrainComponent(Arc<Stage>);

struct DrainVitals(Arc<Stage>);

impl Vitals for DrainVitals {
    fn probe(&self) -> Probe {
        match self.0.drain().map(Drain::probe) {
            Some(Ok(())) => Probe::Ready,
            Some(Err(_)) => Probe::NotReady("sink_behind_or_gone"),
            None => Probe::NotReady("not_started"),
        }
    }

    fn fence(&self) {
        if let Some(drain) = self.0.drain() {
            drain.quiesce();
        }
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            receipts: self.0.drain().map_or(0, Drain::lag),
            threads: self.0.threads_of("drain"),
            handles: 0,
        }
    }
}

impl Component for DrainComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::new(DrainVitals(Arc::clone(&self.0)))
    }

    fn start(&mut self, _: Context) -> Result<Came, Failed> {
        let stage = &self.0;
        let out = stage
            .take_out()
            .ok_or_else(|| Failed::new("started_twice", "a drain starts once"))?;
        let format = if stage.args().json {
            Format::Json
        } else {
            Format::Text
        };
        let sink: Box<dyn Sink> = Box::new(Lines::new(out, format));
        let config = DrainConfig {
            patience: PATIENCE,
            ..DrainConfig::default()
        };
        match Drain::start(vec![(OUT.to_owned(), sink)], config, stage.census()) {
            Ok(drain) => {
                stage.set_drain(drain);
                Ok(Came::Up)
            }
            Err(error) => Err(Failed::new("no_drain", error)),
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        if let Some(drain) = self.0.drain() {
            drain.quiesce();
        }
        Ok(())
    }

    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        let Some(drain) = self.0.drain() else {
            return Ok(DrainCounts::default());
        };
        let drained = drain.drain(until);
        let counts = DrainCounts {
            accepted_before_quiesce: drained.completed_since + drained.remaining,
            completed_during_drain: drained.completed_since,
            remaining_at_deadline: drained.remaining,
            rejected_after_quiesce: drained.rejected,
            ..DrainCounts::default()
        };
        if let Some(error) = drained.sinks.iter().find_map(lost) {
            let failed = Failed::new("sink_failed", error.to_string());
            self.0.fail(error);
            return Err(failed);
        }
        Ok(counts)
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        let Some(drain) = self.0.drain() else {
            return Ok(());
        };
        let stopped = drain.stop(until);
        if stopped.still_owned.is_empty() {
            return Ok(());
        }
        let left = stopped.still_owned.join(", ");
        Err(Failed::new("thread_left", left))
    }
}

/// What was lost with a sink, as the error of the run.
fn lost(sink: &SinkStatus) -> Option<RunError> {
    match &sink.state {
        // A reader that has had enough is an orderly end; who still had something to say is told.
        SinkState::Open | SinkState::Retrying { .. } | SinkState::ReaderGone => None,
        SinkState::Failed(error) => Some(RunError::Output(io::Error::new(
            error.io().map_or(io::ErrorKind::Other, io::Error::kind),
            error.to_string(),
        ))),
    }
}
