//! The counters of throttling.

use super::{Hierarchy, lines, number};

/// What `cpu.stat`, or `cpu.stat.local`, counts. `None` is "not counted here", which is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counters {
    /// Periods in which something of the group was runnable.
    pub nr_periods: Option<u64>,
    /// Periods in which the group was throttled.
    pub nr_throttled: Option<u64>,
    /// For how long its run queues were throttled, summed over CPUs, in nanoseconds.
    pub throttled_ns: Option<u64>,
}

impl Counters {
    /// Reads the file. Unknown keys are skipped: kernels add some.
    #[must_use]
    pub fn parse(hierarchy: Hierarchy, text: &[u8]) -> Self {
        let mut counters = Self::default();
        for line in lines(text) {
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            let (Some(key), Some(value), None) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let value = number(value);
            match (hierarchy, key) {
                (_, b"nr_periods") => counters.nr_periods = value,
                (_, b"nr_throttled") => counters.nr_throttled = value,
                (Hierarchy::V1, b"throttled_time") => counters.throttled_ns = value,
                (Hierarchy::V2, b"throttled_usec") => {
                    counters.throttled_ns = value.map(|us| us.saturating_mul(1000));
                }
                _ => {}
            }
        }
        counters
    }

    /// Whether throttling is counted at all.
    #[must_use]
    pub const fn measured(&self) -> bool {
        self.nr_throttled.is_some() || self.throttled_ns.is_some()
    }
}
