//! A reader of the throttle counters that reads when it is told.
//!
//! Each line on stdin is the time of a reading in milliseconds, so that what depends on time does not
//! depend on the machine's speed. Each line on stdout is what came of it.

use super::failure::Failure;
use super::group::Group;
use super::job::{Job, Place};
use regatta_core::budget::MilliCpu;
use regatta_core::time::Instant;
use regatta_linux::{Change, Detection, Machine, ThrottleReader};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

/// The reader.
pub(crate) fn run() -> Result<(), Failure> {
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut reader = ThrottleReader::new(Machine::this(), at(0));
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(Failure::io("read", "stdin"))?;
        let ms = line
            .trim()
            .parse()
            .map_err(|error| Failure::Other(format!("{line:?}: {error}: it takes milliseconds")))?;
        let reading = reader.read(at(ms));
        let record = json!({
            "nr_throttled": reading.sample.nr_throttled,
            "change": reading.change.as_deref().map(change),
        });
        writeln!(out, "{record}").map_err(Failure::io("write", "stdout"))?;
    }
    Ok(())
}

fn change(change: &Change) -> Value {
    let milli = |detection: &Detection| detection.quota().bound.map(MilliCpu::milli);
    json!({
        "cause": format!("{:?}", change.cause),
        "before": milli(&change.before),
        "after": milli(&change.after),
    })
}

/// A reader that runs in a group.
#[derive(Debug)]
pub(crate) struct Probe {
    job: Job,
    readings: usize,
}

impl Probe {
    pub(crate) fn start(group: &Group) -> Result<Self, Failure> {
        let job = Place::group(group).agent(&["probe"])?;
        Ok(Self { job, readings: 0 })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.job.pid()
    }

    /// Reads at `ms`.
    pub(crate) fn read(&mut self, ms: u64) -> Result<Value, Failure> {
        self.job.tell(&ms.to_string())?;
        let wanted = self.readings;
        self.readings += 1;
        self.job.wait_for("a reading", |job| {
            Ok(job.records()?.into_iter().nth(wanted))
        })
    }
}
