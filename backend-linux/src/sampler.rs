//! Feeds the counters of throttling to a fleet's posture, on a thread that exists anyway.
//!
//! The thread says when the fleet begins and ends to work, and calls [`Sampler::poll`] by
//! [`Sampler::due`] between. When to sample is the core's rule; while the fleet is idle and nominal
//! there is nothing to do, and `due` says so.

use crate::machine::Machine;
use crate::throttle::{Change, ThrottleReader};
use regatta_core::time::Instant;
use regatta_portable::PostureControl;

/// The sampler of a fleet.
#[derive(Debug)]
pub struct Sampler {
    reader: ThrottleReader,
    working: bool,
}

impl Sampler {
    /// A sampler of `machine`, idle. `now` is the posture's time.
    #[must_use]
    pub fn new(machine: Machine, now: Instant) -> Self {
        Self {
            reader: ThrottleReader::new(machine, now),
            working: false,
        }
    }

    /// What reads.
    #[must_use]
    pub const fn reader(&self) -> &ThrottleReader {
        &self.reader
    }

    /// Says whether the fleet works. A change of that is sampled.
    pub fn work(&mut self, posture: &PostureControl, working: bool) -> Option<Box<Change>> {
        if self.working == working {
            return None;
        }
        self.working = working;
        self.sample(posture)
    }

    /// When the next sample is due; `None` while there is nothing to watch.
    #[must_use]
    pub fn due(&self, posture: &PostureControl) -> Option<Instant> {
        posture.sample_due(self.working)
    }

    /// Takes a sample if one is due.
    pub fn poll(&mut self, posture: &PostureControl) -> Option<Box<Change>> {
        let due = self.due(posture)?;
        if posture.now() < due {
            return None;
        }
        self.sample(posture)
    }

    fn sample(&mut self, posture: &PostureControl) -> Option<Box<Change>> {
        let reading = self.reader.read(posture.now());
        if let Some(change) = &reading.change {
            tracing::warn!("{change}");
        }
        posture.sample(reading.sample);
        reading.change
    }
}
