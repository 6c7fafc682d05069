//! The best trades of a block, and which candidates can still be among them.
//!
//! # Invariants
//! - The order is total: larger profit first, ties by id. So the same trades are the best, whatever the
//!   order they come in.
//! - A candidate that [`Best::may_change`] turns down would not have been taken.

use super::merge::Candidate;
use super::simulate::Trade;
use crate::cycles::CycleId;
use std::cmp::Reverse;

/// A trade that is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Winner {
    /// The cycle.
    pub id: CycleId,
    /// The trade.
    pub trade: Trade,
}

/// The bound below which no profit of `amount` is possible: the conversion may round up, so one step
/// down.
#[expect(
    clippy::cast_precision_loss,
    reason = "the step down makes up for the rounding"
)]
pub(crate) fn least_interesting(amount: u128) -> f64 {
    (amount.max(1) as f64).next_down()
}

/// The best trades so far.
#[derive(Debug)]
pub(crate) struct Best {
    top: usize,
    min_profit: u128,
    winners: Vec<Winner>,
}

impl Best {
    /// None yet, of at most `top` with a profit of at least `min_profit`.
    pub(crate) fn new(top: usize, min_profit: u128) -> Self {
        Self {
            top,
            min_profit,
            winners: Vec::new(),
        }
    }

    /// Whether a profit up to the candidate's bound could still enter. Equal profits could: ties go to
    /// the lower id.
    pub(crate) fn may_change(&self, candidate: &Candidate) -> bool {
        let least = if self.winners.len() < self.top {
            self.min_profit
        } else {
            self.winners
                .last()
                .map_or(u128::MAX, |worst| worst.trade.optimum.profit)
        };
        candidate.bound >= least_interesting(least)
    }

    /// Takes a trade if it is one of the best.
    pub(crate) fn take(&mut self, winner: Winner) {
        if winner.trade.optimum.profit < self.min_profit {
            return;
        }
        let key = |w: &Winner| (Reverse(w.trade.optimum.profit), w.id);
        let place = self
            .winners
            .partition_point(|other| key(other) < key(&winner));
        self.winners.insert(place, winner);
        self.winners.truncate(self.top);
    }

    /// The best trades, in order.
    pub(crate) fn into_winners(self) -> Vec<Winner> {
        self.winners
    }
}
