//! What the kernel's text files about control groups say. Text in, values out, no input or output.
//!
//! The CPU controller lives in one of two hierarchies. In the first each controller may be mounted on
//! its own, limits are two files and counters are in nanoseconds; in the second there is one tree,
//! the limit is one file and counters are in microseconds. A process reads where it is in
//! `/proc/self/cgroup` and where the trees are mounted in `/proc/self/mountinfo`; [`Mounts::views`]
//! brings the two together.
//!
//! # Invariants
//! - No function panics, on any bytes.
//! - A text that is not understood is never read as "no limit".
//! - Paths are bytes: the kernel allows any in a group's name but `/`, zero and the end of a line.

mod cpus;
mod limit;
mod membership;
mod mounts;
mod stat;
mod view;

pub use cpus::{CpuSet, CpuSetError};
pub use limit::{DEFAULT_PERIOD_US, Limit};
pub use membership::{Group, Membership};
pub use mounts::Mounts;
pub use stat::Counters;
pub use view::View;

use regatta_core::budget::BoundedBy;

/// One of the two designs of control groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hierarchy {
    /// The first, with a tree per controller or set of controllers.
    V1,
    /// The second, with one tree.
    V2,
}

impl Hierarchy {
    /// How the core calls a bound of this hierarchy.
    #[must_use]
    pub const fn bounded_by(self) -> BoundedBy {
        match self {
            Self::V1 => BoundedBy::Cgroup1,
            Self::V2 => BoundedBy::Cgroup2,
        }
    }
}

/// A controller that this crate asks about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Controller {
    /// Bandwidth.
    Cpu,
    /// On which CPUs.
    CpuSet,
}

impl Controller {
    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuSet => "cpuset",
        }
    }
}

/// A path of the kernel's as text for people: bytes that are no text, and control characters, escaped.
#[must_use]
pub fn show(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            text.extend(byte.escape_ascii().map(char::from));
        }
    }
    text
}

/// The lines of a file, without their ends. The last line may lack its own.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// A number that is digits alone. What exceeds 64 bits is the largest number.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    })
}

#[cfg(test)]
mod tests;
