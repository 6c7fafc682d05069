//! Merge: the outcome of every touched cycle, and the candidates in the order of their bounds.

use super::GROUP_WORDS;
use super::resolve::{GroupSet, ResolveJob};
use super::solve::BinJob;
use crate::cycles::CycleId;
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
    /// In: what was touched.
    pub(crate) resolved: Box<ResolveJob>,
    /// In: the bins that came back.
    pub(crate) bins: Vec<BinJob>,
    /// In: how many bins were lost with their unit. Their cycles have failed.
    pub(crate) failed: usize,
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
            resolved: Box::new(ResolveJob {
                bins: (0..bins).map(BinJob::new).collect(),
                ..ResolveJob::default()
            }),
            bins: Vec::with_capacity(usize::from(bins)),
            failed: 0,
            candidates: Vec::new(),
            ordered: 0,
        }
    }

    /// Closes the outcome ledger of the cycle.
    pub(crate) fn run(&mut self) -> Result<Tally, FuseTrip> {
        self.candidates.clear();
        self.ordered = 0;
        self.fuse.open()?;
        for touched in &self.resolved.groups {
            self.fuse.expect(first_word(touched), &touched.set)?;
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
        if std::mem::take(&mut self.failed) > 0 {
            for touched in &self.resolved.groups {
                self.fuse
                    .record_owed(OutcomeKind::Failed, first_word(touched), &touched.set)?;
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
