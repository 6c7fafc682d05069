//! The choice of the best trades against a naive sort.

use super::super::best::{Best, least_interesting};
use super::super::merge::Candidate;
use crate::cycles::CycleId;
use proptest::prelude::*;
use std::cmp::Reverse;

/// Plainly: the largest profits, ties by id.
fn sorted(mut offers: Vec<(u128, CycleId)>, top: usize, min_profit: u128) -> Vec<(u128, CycleId)> {
    offers.retain(|(profit, _)| *profit >= min_profit);
    offers.sort_by_key(|(profit, id)| (Reverse(*profit), *id));
    offers.truncate(top);
    offers
}

proptest! {
    #[test]
    fn the_best_are_the_beginning_of_a_sort(
        offers in prop::collection::vec(0_u128..12, 0..60)
            .prop_map(|profits| profits.into_iter().zip((0..).map(CycleId::new)).collect::<Vec<_>>())
            .prop_shuffle(),
        top in 0_usize..8,
        min_profit in 0_u128..8,
    ) {
        let mut best = Best::new(top, min_profit);
        for (profit, id) in &offers {
            best.take(*id, *profit, (*profit, *id));
        }
        prop_assert_eq!(best.into_kept().collect::<Vec<_>>(), sorted(offers, top, min_profit));
    }

    /// Stopping where no bound can change the best finds the same as looking at everything; and where
    /// bounds are exact, nothing is looked at but what is no worse than the best.
    #[test]
    fn stopping_skips_no_better_candidate(
        offers in prop::collection::vec((0_u32..40, 0_u32..15), 0..80),
        exact in any::<bool>(),
        top in 1_usize..6,
        min_profit in 0_u128..20,
    ) {
        let offers = offers.iter().zip((0..).map(CycleId::new));
        let mut candidates: Vec<(Candidate, u128)> = offers
            .map(|(&(profit, above), id)| {
                let bound = f64::from(profit) + if exact { 0.0 } else { f64::from(above) / 2.0 };
                (Candidate { bound, id }, profit.into())
            })
            .collect();
        candidates.sort_by(|(a, _), (b, _)| a.order(b));
        let mut best = Best::new(top, min_profit);
        let mut looked_at = 0;
        for (candidate, profit) in &candidates {
            if !best.may_change(candidate) {
                break;
            }
            looked_at += 1;
            // Without a profit there is no trade.
            if *profit > 0 {
                best.take(candidate.id, *profit, (*profit, candidate.id));
            }
        }
        let all = candidates.iter().map(|(candidate, profit)| (*profit, candidate.id)).collect();
        let expected = sorted(all, top, min_profit.max(1));
        let least = expected.get(top - 1).map_or(min_profit.max(1), |(profit, _)| *profit);
        prop_assert_eq!(best.into_kept().collect::<Vec<_>>(), expected);
        if exact {
            let no_worse = candidates.iter().filter(|(_, profit)| *profit >= least).count();
            prop_assert_eq!(looked_at, no_worse);
        }
    }

    /// A bound of `amount` or more is never below the threshold, and the threshold is not far off.
    #[test]
    fn the_threshold_is_just_below_the_amount(
        amount in prop_oneof![any::<u128>(), 0_u128..5, (0_u32..127).prop_map(|n| (1 << n) + 1)],
    ) {
        let (threshold, least) = (least_interesting(amount), amount.max(1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to 2^128 - 1"
        )]
        let whole = threshold.floor() as u128;
        prop_assert!(whole < least || (whole == least && threshold.fract() == 0.0));
        prop_assert!(whole >= least - 1 - (least >> 51));
    }
}
