//! What the Linux kernel says.

use super::{Findings, Level, Limit, Throttle};
use crate::pipeline::Watch;
use regatta_linux::cgroup::{self, View};
use regatta_linux::detect::LevelSays;
use regatta_linux::{Counted, Machine, MachineError, Sampler};
use regatta_portable::PostureControl;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// A copy of a machine cannot be looked at.
pub type LookError = MachineError;

/// This process on this machine.
#[must_use]
pub fn this() -> Findings {
    look(&Machine::this())
}

/// A copy of a machine.
pub fn copy(root: &Path) -> Result<Findings, LookError> {
    Ok(look(&Machine::copy(root)?))
}

fn look(machine: &Machine) -> Findings {
    let found = machine.detect();
    let groups = &found.groups;
    let levels = groups.bandwidth.as_ref().map(|bandwidth| &bandwidth.levels);
    Findings {
        groups: groups.quota,
        quota: found.quota(),
        limit: groups.limiting().map(|(above, level)| Limit {
            level: cgroup::show(&level.path),
            above: u16::try_from(above).unwrap_or(u16::MAX),
            file: cgroup::show(&level.file),
        }),
        levels: levels.into_iter().flatten().map(level).collect(),
        hidden_above: groups
            .bandwidth
            .as_ref()
            .is_some_and(|bandwidth| hidden_above(&bandwidth.view, &bandwidth.levels)),
        skipped_lines: groups.skipped_lines,
        cpus: found.cpus.allowed.as_ref().map(ToString::to_string),
        allowed: found.cpus.allowed_cpus(),
        throttle: Counted::find(machine.files(), &found).map(|counted| Throttle {
            nr_periods: counted.counters.nr_periods,
            nr_throttled: counted.counters.nr_throttled,
            throttled_ns: counted.counters.throttled_ns,
            source: cgroup::show(&counted.file),
        }),
    }
}

/// A mount whose root is not the hierarchy's hides what is above. So does a namespace; there the root
/// has a file of limits, which the true root never has in the second hierarchy.
fn hidden_above(view: &View, levels: &[regatta_linux::detect::Level]) -> bool {
    let root = levels.last();
    let has_file = root.is_some_and(|root| {
        root.file.ends_with(b"/cpu.max") && !matches!(root.says, LevelSays::NotEnabled)
    });
    view.hidden_above() > 0 || has_file
}

fn level(level: &regatta_linux::detect::Level) -> Level {
    let (limit, says) = match level.says {
        LevelSays::Limit(milli) => (Some(milli), "a limit"),
        LevelSays::Unlimited => (None, "no limit"),
        LevelSays::NotEnabled => (None, "no limit file"),
        LevelSays::NoBandwidthControl => (None, "no bandwidth control in this kernel"),
        LevelSays::Malformed => (None, "something that is no limit"),
        LevelSays::Unreadable => (None, "could not be read"),
    };
    Level {
        path: cgroup::show(&level.path),
        file: cgroup::show(&level.file),
        limit,
        says,
    }
}

/// Samples the kernel's throttling for a fleet's posture while the pump waits.
#[derive(Debug)]
pub struct Sampling<'a> {
    posture: &'a PostureControl,
    sampler: RefCell<Sampler>,
}

impl<'a> Sampling<'a> {
    /// Samples this process, idle so far, for `posture`.
    #[must_use]
    pub fn new(posture: &'a PostureControl) -> Self {
        Self {
            posture,
            sampler: RefCell::new(Sampler::new(Machine::this(), posture.now())),
        }
    }
}

impl Watch for Sampling<'_> {
    fn work(&self, working: bool) {
        self.sampler.borrow_mut().work(self.posture, working);
    }

    fn tend(&self) -> Option<Duration> {
        let mut sampler = self.sampler.borrow_mut();
        sampler.poll(self.posture);
        let due = sampler.due(self.posture)?;
        Some(due.since(self.posture.now()).into())
    }
}
