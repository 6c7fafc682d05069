//! The counters of throttling, read again and again.
//!
//! # Invariants
//! - Counters are read at the level that limits. Where that one has none, the process's own group may
//!   tell for how long it stood still, whatever level stopped it; how often is then unmeasured.
//! - What is given out counts from the first reading and never falls, over a change of the file too: a
//!   file's first reading is a baseline, so no other group's past is taken for this process's present.

use crate::cgroup::{Counters, Hierarchy};
use crate::detect::{Bandwidth, Detection};
use crate::files::{Content, Files};
use crate::machine::Machine;
use regatta_core::posture::ThrottleSample;
use regatta_core::time::{Duration, Instant};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// How long what bounds the process may have changed without being noticed, while it is sampled.
const RECHECK: Duration = Duration::from_secs(1);

/// A file that counts, and what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The group that it is of.
    pub path: Vec<u8>,
    /// The file.
    pub file: Vec<u8>,
    /// Its hierarchy, on which the unit of time depends.
    pub hierarchy: Hierarchy,
    /// What it says.
    pub counters: Counters,
}

impl Counted {
    /// The counters that say how `detection` is enforced; `None` if there are none, which is unmeasured.
    #[must_use]
    pub fn find(files: &impl Files, detection: &Detection) -> Option<Self> {
        let bandwidth = detection.groups.bandwidth.as_ref()?;
        let limiting = detection.groups.limiting().map(|(level, _)| level);
        let all = limiting.and_then(|level| read(files, bandwidth, level, "cpu.stat"));
        all.or_else(|| {
            (!bandwidth.view.is_outside())
                .then(|| read(files, bandwidth, 0, "cpu.stat.local"))
                .flatten()
        })
    }
}

fn read(
    files: &impl Files,
    bandwidth: &Bandwidth,
    level: usize,
    name: &'static str,
) -> Option<Counted> {
    let Bandwidth {
        hierarchy, view, ..
    } = bandwidth;
    let file = view.file(level, name);
    let Content::Text(text) = files.read(&file) else {
        return None;
    };
    let counters = Counters::parse(*hierarchy, &text);
    counters.measured().then(|| Counted {
        path: view.path(level).to_vec(),
        file,
        hierarchy: *hierarchy,
        counters,
    })
}

/// Why what bounds the process was found changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// The process is in another group.
    Moved,
    /// The group that was read is gone.
    GroupGone,
    /// A limit, or the set of CPUs, is another one.
    Changed,
}

/// What bounds the process has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Why.
    pub cause: Cause,
    /// What was found before.
    pub before: Detection,
    /// What is found now.
    pub after: Detection,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            Cause::Moved => "the process was moved to another group",
            Cause::GroupGone => "the group that bounds is gone",
            Cause::Changed => "a limit changed",
        })?;
        write!(f, ": {} -> {}", Bound(&self.before), Bound(&self.after))
    }
}

/// A detection in one line.
struct Bound<'a>(&'a Detection);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quota = self.0.quota();
        match quota.bound {
            Some(milli) => write!(f, "{milli} cores by {}", quota.evidence.bounded_by.name())?,
            None => f.write_str("nothing that was found")?,
        }
        if let Some((_, level)) = self.0.groups.limiting() {
            write!(f, " at {}", crate::cgroup::show(&level.path))?;
        }
        write!(f, " ({})", quota.evidence.confidence.name())
    }
}

/// A reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The counters.
    pub sample: ThrottleSample,
    /// What was noticed on the way.
    pub change: Option<Box<Change>>,
}

/// A counter that only grows, over readings of different files.
#[derive(Clone, Copy, Debug, Default)]
struct Growing {
    total: u64,
    last: Option<u64>,
}

impl Growing {
    fn take(&mut self, value: Option<u64>) -> Option<u64> {
        let value = value?;
        let last = self.last.replace(value).unwrap_or(value);
        self.total = self.total.saturating_add(value.saturating_sub(last));
        Some(self.total)
    }
}

/// The file that is read, kept open: a name may be given to another group.
#[derive(Debug)]
struct Kept {
    file: File,
    path: Vec<u8>,
    hierarchy: Hierarchy,
    text: Vec<u8>,
}

impl Kept {
    fn read(&mut self) -> std::io::Result<Counters> {
        self.text.clear();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut self.text)?;
        Ok(Counters::parse(self.hierarchy, &self.text))
    }
}

/// Reads the counters of throttling, and notices when what bounds the process changes.
#[derive(Debug)]
pub struct ThrottleReader {
    machine: Machine,
    detection: Detection,
    checked: Instant,
    kept: Option<Kept>,
    nr_throttled: Growing,
    throttled_ns: Growing,
}

impl ThrottleReader {
    /// A reader that has looked at `machine` at `now` and not read yet.
    #[must_use]
    pub fn new(machine: Machine, now: Instant) -> Self {
        let detection = machine.detect();
        let kept = open(&machine, &detection);
        Self {
            machine,
            detection,
            checked: now,
            kept,
            nr_throttled: Growing::default(),
            throttled_ns: Growing::default(),
        }
    }

    /// What bounds the process, as last looked at.
    #[must_use]
    pub const fn detection(&self) -> &Detection {
        &self.detection
    }

    /// Reads the counters; `now` is the time of the sample.
    pub fn read(&mut self, now: Instant) -> Reading {
        let mut counters = self.kept.as_mut().map(Kept::read);
        let gone = matches!(counters, Some(Err(_)));
        let mut change = None;
        if gone || now.since(self.checked) >= RECHECK {
            let (found, file_changed) = self.recheck(now, gone);
            change = found;
            if file_changed {
                counters = self.kept.as_mut().map(Kept::read);
            }
        }
        let counters = counters.and_then(Result::ok).unwrap_or_default();
        Reading {
            sample: ThrottleSample {
                at: now,
                nr_throttled: self.nr_throttled.take(counters.nr_throttled),
                throttled: self
                    .throttled_ns
                    .take(counters.throttled_ns)
                    .map(Duration::from_nanos),
            },
            change,
        }
    }

    /// Looks at the machine again; what changed, and whether another file is read from here on.
    fn recheck(&mut self, now: Instant, gone: bool) -> (Option<Box<Change>>, bool) {
        self.checked = now;
        let after = self.machine.detect();
        let file = Counted::find(self.machine.files(), &after).map(|counted| counted.file);
        let file_changed = gone || file.as_ref() != self.kept.as_ref().map(|kept| &kept.path);
        if file_changed {
            self.kept = open(&self.machine, &after);
            self.nr_throttled.last = None;
            self.throttled_ns.last = None;
        }
        if after == self.detection {
            return (None, file_changed);
        }
        let before = std::mem::replace(&mut self.detection, after.clone());
        let cause = if own_path(&before) != own_path(&after) {
            Cause::Moved
        } else if gone {
            Cause::GroupGone
        } else {
            Cause::Changed
        };
        let change = Box::new(Change {
            cause,
            before,
            after,
        });
        (Some(change), file_changed)
    }
}

fn own_path(detection: &Detection) -> Option<&[u8]> {
    let bandwidth = detection.groups.bandwidth.as_ref()?;
    Some(bandwidth.view.path(0))
}

fn open(machine: &Machine, detection: &Detection) -> Option<Kept> {
    let counted = Counted::find(machine.files(), detection)?;
    let file = File::open(machine.files().locate(&counted.file)).ok()?;
    Some(Kept {
        file,
        path: counted.file,
        hierarchy: counted.hierarchy,
        text: Vec::with_capacity(512),
    })
}

#[cfg(test)]
mod tests;
