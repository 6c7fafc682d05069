//! A set of CPUs, as the kernel lists it: `0-3,8`.

use super::number;
use std::fmt;
use thiserror::Error;

/// Sets end here: far above what the kernel supports, low enough that a wrong list costs no memory.
const MAX_CPUS: u64 = 1 << 20;

/// A set of CPU numbers.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct CpuSet {
    /// The last word is not zero, so that equal sets are equal.
    words: Vec<u64>,
}

/// A text is no list of CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{text:?} is no list of CPUs: it takes numbers below {MAX_CPUS} and ranges, such as 0-3,8")]
pub struct CpuSetError {
    /// The entry that is none.
    pub text: String,
}

impl CpuSet {
    /// A set from a bit mask in words of 64, the lowest first.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Self {
        let mut set = Self {
            words: words.to_vec(),
        };
        set.trim();
        set
    }

    /// The set of one CPU. Numbers beyond what any kernel supports are in no set.
    #[must_use]
    pub fn of(cpu: usize) -> Self {
        let mut set = Self::default();
        if (cpu as u64) < MAX_CPUS {
            set.insert(cpu as u64);
        }
        set
    }

    /// Reads a list. An empty text is the empty set.
    pub fn parse(text: &[u8]) -> Result<Self, CpuSetError> {
        let mut set = Self::default();
        let text = text.trim_ascii();
        if text.is_empty() {
            return Ok(set);
        }
        for entry in text.split(|byte| *byte == b',') {
            let entry = entry.trim_ascii();
            let mut ends = entry.splitn(2, |byte| *byte == b'-');
            let first = ends.next().and_then(number);
            let last = ends.next().map_or(first, number);
            match (first, last) {
                (Some(first), Some(last)) if first <= last && last < MAX_CPUS => {
                    for cpu in first..=last {
                        set.insert(cpu);
                    }
                }
                _ => {
                    return Err(CpuSetError {
                        text: super::show(entry.get(..64).unwrap_or(entry)),
                    });
                }
            }
        }
        Ok(set)
    }

    fn insert(&mut self, cpu: u64) {
        let place = usize::try_from(cpu / 64).unwrap_or(usize::MAX);
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        if let Some(word) = self.words.get_mut(place) {
            *word |= 1 << (cpu % 64);
        }
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// What is in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        Self::from_words(&both.collect::<Vec<_>>())
    }

    /// The CPU numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words
            .iter()
            .zip((0..).step_by(64))
            .flat_map(|(word, base)| {
                (0..64)
                    .filter(move |bit| word >> bit & 1 == 1)
                    .map(move |bit| base + bit)
            })
    }
}

/// The kernel's form: ranges, separated by commas.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| *next == last + 1) {
                last = next;
            }
            f.write_str(separator)?;
            if first == last {
                write!(f, "{first}")?;
            } else {
                write!(f, "{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}
