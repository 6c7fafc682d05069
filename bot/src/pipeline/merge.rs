//! Merge: the outcome of every touched cycle, and the candidates in the order of their bounds.

use super::GROUP_WORDS;
use super::resolve::{Expected, GroupSet};
use super::solve::BinJob;
use crate::cycles::CycleId;
use crate::partition::BinId;
use regatta_core::outcome::{Fuse, FuseRow, FuseTrip, OutcomeKind, Tally};
use std::cmp::Ordering;

/// How many candidates are put in order at once. Exact solving follows the order and seldom needs more
/// than the first few.
const BATCH: usize = 64;

/// A cycle that may have a profit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// No input has a larger profit, in units of the base token.
    pub bound: f64,
    /// The cycle.
    pub id: CycleId,
}

impl Candidate {
    /// Larger bounds first, ties by id: a total order that does not depend on bins.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        other
            .bound
            .total_cmp(&self.bound)
            .then(self.id.cmp(&other.id))
    }
}

/// What a merge unit works on, and what it yields.
#[derive(Debug)]
pub struct MergeJob {
    fuse: Fuse<Box<[FuseRow]>>,
    words: usize,
    /// In: what was touched.
    pub(crate) expected: Vec<Expected>,
    /// In: the bins that came back.
    pub(crate) bins: Vec<BinJob>,
    /// In: the bins that were lost with their unit. Their cycles have failed.
    pub(crate) lost: Vec<u8>,
    /// Out: all candidates, the first [`ordered`](Self::ordered) of them in order and before the rest.
    pub(crate) candidates: Vec<Candidate>,
    /// Out: how many are in order.
    pub(crate) ordered: usize,
}

impl MergeJob {
    /// A job for `cycles` registered cycles.
    pub(crate) fn new(cycles: usize, bins: u8) -> Self {
        let words = cycles.div_ceil(64).next_multiple_of(GROUP_WORDS);
        Self {
            fuse: Fuse::new(vec![FuseRow::default(); words].into_boxed_slice()),
            words,
            expected: Vec::new(),
            bins: Vec::with_capacity(usize::from(bins)),
            lost: Vec::new(),
            candidates: Vec::new(),
            ordered: 0,
        }
    }

    /// Makes room for `cycles` registered cycles. Between two cycles of the pump no outcome is owed, so nothing is lost.
    pub(crate) fn grow(&mut self, cycles: usize) {
        let words = cycles.div_ceil(64).next_multiple_of(GROUP_WORDS);
        if words > self.words {
            self.fuse = Fuse::new(vec![FuseRow::default(); words].into_boxed_slice());
            self.words = words;
        }
    }

    /// Bytes on the heap for the registered cycles' outcomes.
    pub(crate) fn memory(&self) -> usize {
        self.words * size_of::<FuseRow>()
    }

    /// Closes the outcome ledger of the cycle.
    pub(crate) fn run(&mut self) -> Result<Tally, FuseTrip> {
        self.candidates.clear();
        self.ordered = 0;
        self.fuse.open()?;
        for Expected { cycles, .. } in &self.expected {
            self.fuse.expect(first_word(cycles), &cycles.set)?;
        }
        for bin in &self.bins {
            for (kind, groups) in [
                (OutcomeKind::Solved, &bin.solved),
                (OutcomeKind::Suppressed, &bin.suppressed),
            ] {
                for group in groups {
                    self.fuse.record(kind, first_word(group), &group.set)?;
                }
            }
            self.candidates.extend_from_slice(&bin.candidates);
        }
        for key in self.lost.drain(..) {
            // Its own cycles and no others: what another bin left out is still an omission.
            let bin = BinId(key.into());
            for Expected { cycles, .. } in self.expected.iter().filter(|e| e.bin == bin) {
                self.fuse
                    .record(OutcomeKind::Failed, first_word(cycles), &cycles.set)?;
            }
        }
        let tally = self.fuse.close()?;
        self.order_more();
        Ok(tally)
    }

    /// Puts the next batch of candidates in order.
    pub(crate) fn order_more(&mut self) {
        let rest = &mut self.candidates[self.ordered..];
        if rest.len() > BATCH {
            rest.select_nth_unstable_by(BATCH, Candidate::order);
        }
        let batch = rest.len().min(BATCH);
        rest[..batch].sort_unstable_by(Candidate::order);
        self.ordered += batch;
    }
}

fn first_word(group: &GroupSet) -> usize {
    group.group.0 as usize * GROUP_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever batches they come in, candidates are met in one order.
        #[test]
        fn batches_are_one_sort(bounds in prop::collection::vec(0_u8..40, 0..400)) {
            let candidates: Vec<_> = bounds
                .iter()
                .zip(0..)
                .map(|(bound, id)| Candidate { bound: f64::from(*bound), id: CycleId::new(id) })
                .collect();
            let mut job = MergeJob::new(1, 1);
            job.candidates.clone_from(&candidates);
            while job.ordered < job.candidates.len() {
                job.order_more();
            }
            let mut sorted = candidates;
            sorted.sort_by(Candidate::order);
            prop_assert_eq!(job.candidates, sorted);
        }
    }
}
