//! The best of a block, and which candidates can still be among them.
//!
//! # Invariants
//! - The order is total: larger profit first, ties by id. So the same are the best, whatever the order
//!   they come in.
//! - A candidate that [`Best::may_change`] turns down would not have been kept.

use super::merge::Candidate;
use crate::cycles::CycleId;
use std::cmp::Reverse;

/// The bound below which no profit of `amount` is possible: the conversion may round up, so one step
/// down.
#[expect(
    clippy::cast_precision_loss,
    reason = "the step down makes up for the rounding"
)]
pub(crate) fn least_interesting(amount: u128) -> f64 {
    (amount.max(1) as f64).next_down()
}

/// The best so far.
#[derive(Debug)]
pub(crate) struct Best<T> {
    top: usize,
    min_profit: u128,
    kept: Vec<(Reverse<u128>, CycleId, T)>,
}

impl<T> Best<T> {
    /// None yet, of at most `top` with a profit of at least `min_profit`.
    pub(crate) const fn new(top: usize, min_profit: u128) -> Self {
        Self {
            top,
            min_profit,
            kept: Vec::new(),
        }
    }

    /// Whether a profit up to the candidate's bound could still enter. Equal profits could: ties go to
    /// the lower id.
    pub(crate) fn may_change(&self, candidate: &Candidate) -> bool {
        let least = if self.kept.len() < self.top {
            self.min_profit
        } else {
            let worst = self.kept.last();
            worst.map_or(u128::MAX, |(Reverse(profit), ..)| *profit)
        };
        candidate.bound >= least_interesting(least)
    }

    /// Keeps `what` if it is one of the best.
    pub(crate) fn take(&mut self, id: CycleId, profit: u128, what: T) {
        if profit < self.min_profit {
            return;
        }
        let key = (Reverse(profit), id);
        let place = self
            .kept
            .partition_point(|(profit, id, _)| (*profit, *id) < key);
        if place < self.top {
            self.kept.truncate(self.top - 1);
            self.kept.insert(place, (Reverse(profit), id, what));
        }
    }

    /// The best, in order.
    pub(crate) fn into_kept(self) -> impl Iterator<Item = T> {
        self.kept.into_iter().map(|(.., what)| what)
    }
}
