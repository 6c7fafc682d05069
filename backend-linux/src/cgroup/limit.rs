//! A bandwidth limit: so much time in each period.

use super::number;
use regatta_core::budget::MilliCpu;

/// The period where none is stated, in microseconds: the kernel's default.
pub const DEFAULT_PERIOD_US: u64 = 100_000;

/// What the files of a level say about its limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// So much of the CPU, rounded down to a thousandth of a core.
    At(MilliCpu),
    /// None.
    Unlimited,
    /// Something else than a limit.
    Malformed,
}

impl Limit {
    /// Reads `cpu.max`: the time, or `max`, and the period, both in microseconds. The period may be
    /// missing.
    #[must_use]
    pub fn from_max(text: &[u8]) -> Self {
        let mut words = words(text);
        let (quota, period) = (words.next(), words.next());
        if words.next().is_some() {
            return Self::Malformed;
        }
        let period = match period.map(number) {
            None => DEFAULT_PERIOD_US,
            Some(Some(period)) if period > 0 => period,
            Some(_) => return Self::Malformed,
        };
        match quota {
            Some(b"max") => Self::Unlimited,
            Some(quota) => number(quota).map_or(Self::Malformed, |quota| ratio(quota, period)),
            None => Self::Malformed,
        }
    }

    /// Reads `cpu.cfs_quota_us`, where -1 is no limit, and `cpu.cfs_period_us`. A limit needs both.
    #[must_use]
    pub fn from_cfs(quota: &[u8], period: Option<&[u8]>) -> Self {
        match one_word(quota) {
            Some(b"-1") => Self::Unlimited,
            Some(quota) => {
                let period = period.and_then(one_word).and_then(number);
                match (number(quota), period) {
                    (Some(quota), Some(period)) => ratio(quota, period),
                    _ => Self::Malformed,
                }
            }
            None => Self::Malformed,
        }
    }
}

/// The kernel enforces no quota of zero and has no period of zero, so either is something else.
fn ratio(quota: u64, period: u64) -> Limit {
    if quota == 0 || period == 0 {
        return Limit::Malformed;
    }
    let milli = u128::from(quota) * 1000 / u128::from(period);
    Limit::At(MilliCpu::new(u32::try_from(milli).unwrap_or(u32::MAX)))
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

fn one_word(text: &[u8]) -> Option<&[u8]> {
    let mut words = words(text);
    words.next().filter(|_| words.next().is_none())
}
