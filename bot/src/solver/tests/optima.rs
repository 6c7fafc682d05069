//! The proved optimum: against every input at small reserves, and at the ends of the ranges.

use num_bigint::BigUint;
use proptest::prelude::*;

use super::reference::{self, RealMap, Verdict, big, brute_force};
use super::{cycles, hop, near_even_cycles, usual};
use crate::solver::{
    Cycle, Hop, NotProved, Optimum, RESERVE_MAX, optimum, optimum_least_input, optimum_within,
};

/// The optimum and its smallest input are those of trying every input.
fn same_as_brute_force(hops: &[Hop]) {
    // No profit is had beyond what the last reserve can give.
    same_as_trying(hops, hops.last().unwrap().reserve_out());
}

/// The same, where no input above `largest` can have a profit.
fn same_as_trying(hops: &[Hop], largest: u128) {
    let cycle = Cycle::new(hops).unwrap();
    let expected = brute_force(&big(hops), largest.try_into().unwrap());
    let found = optimum(&cycle).unwrap();
    assert_eq!(
        found.map(|best| best.profit),
        expected.map(|(profit, _)| profit),
        "{hops:?}"
    );
    if let Some(best) = found {
        is_consistent(&cycle, best);
    }
    let least = optimum_least_input(&cycle).unwrap();
    assert_eq!(
        least.map(|best| (best.profit, best.input)),
        expected,
        "{hops:?}"
    );
    if let Some(best) = least {
        is_consistent(&cycle, best);
    }
}

/// The input gives the output, no smaller one does, and the profit is the difference.
fn is_consistent(cycle: &Cycle<'_>, best: Optimum) {
    assert_eq!(cycle.forward(best.input), Some(best.output));
    assert!(cycle.forward(best.input - 1).unwrap() < best.output);
    assert_eq!(best.output - best.input, best.profit);
    assert!(best.profit > 0);
}

#[test]
fn every_cycle_of_two_hops_at_small_reserves() {
    for fee in [(997, 1000), (1, 1)] {
        for a in 1..=9 {
            for b in 1..=9 {
                for c in 1..=9 {
                    for d in (1..=9).chain([25, 60]) {
                        same_as_brute_force(&[hop(a, b, fee), hop(c, d, fee)]);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn cycles_of_small_reserves(
        reserves in proptest::collection::vec((1_u128..40, 1_u128..60), 2..=4),
        free in any::<bool>(),
    ) {
        let fee = if free { (1, 1) } else { (997, 1000) };
        let hops: Vec<Hop> = reserves.iter().map(|&(a, b)| hop(a, b, fee)).collect();
        same_as_brute_force(&hops);
    }

    /// Coarse tokens on the way, a fine base token: the case in which the neighbourhood of the real
    /// optimum says nothing.
    #[test]
    fn staircases(
        base in 500_u128..2_000,
        gain in 0_u128..2_000,
        middle in proptest::collection::vec((2_u128..40, 2_u128..40), 0..=2),
        ends in (2_u128..40, 2_u128..40),
    ) {
        let mut hops = vec![usual(base, ends.0)];
        hops.extend(middle.iter().map(|&(a, b)| usual(a, b)));
        hops.push(usual(ends.1, base + gain));
        same_as_brute_force(&hops);
    }
}

/// Whatever the reserves: proved results stand up to the reference, and bounds bracket the optimum.
fn stands(hops: &[Hop], limit: u32) -> Result<(), TestCaseError> {
    let (cycle, big_hops) = (Cycle::new(hops).unwrap(), big(hops));
    match optimum_within(&cycle, limit) {
        Ok(found) => {
            if let Some(best) = found {
                is_consistent(&cycle, best);
            }
            let profit = found.map_or(0, |best| best.profit);
            let verdict = reference::check(&big_hops, profit, 300);
            prop_assert!(!matches!(verdict, Verdict::Refuted(_)), "{:?}", verdict);
        }
        Err(NotProved {
            lower,
            upper,
            limit: reached,
        }) => {
            prop_assert_eq!(reached, limit);
            if let Some(best) = lower {
                is_consistent(&cycle, best);
            }
            prop_assert!(lower.map_or(0, |best| best.profit) < upper);
            prop_assert!(BigUint::from(upper) <= RealMap::of(&big_hops).best_real_profit());
            let verdict = reference::check(&big_hops, upper, 300);
            prop_assert!(!matches!(verdict, Verdict::Refuted(_)), "{:?}", verdict);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn cycles_of_any_reserves(hops in cycles()) {
        stands(&hops, 512)?;
    }

    #[test]
    fn cycles_of_almost_no_gain(hops in near_even_cycles(2_000)) {
        stands(&hops, 512)?;
    }

    #[test]
    fn cycles_of_some_gain(hops in near_even_cycles(u32::MAX >> 2)) {
        stands(&hops, 512)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// A reserve on the way that can take in little more cuts the inputs off left of the peak.
    #[test]
    fn cycles_that_a_reserve_cuts_off(
        base in (5_u128..200, 100_u128..4_000),
        room in (96_u32..111).prop_map(|bits| 1_u128 << bits),
        coarse in (3_u128..60, 3_u128..60),
    ) {
        same_as_brute_force(&[
            usual(base.0, 1 << 111),
            usual(RESERVE_MAX - room, coarse.0),
            usual(coarse.1, base.1),
        ]);
    }

    /// The same around the peak, where rounding decides which of the inputs up to the cut is best.
    #[test]
    fn cycles_cut_off_near_the_peak(
        first in (5_u128..40, 20_u128..120),
        room in 1_u128..40,
        price in 30_u128..100,
    ) {
        // The second hop gives `price` / 100 units a unit, so less than the first hop's reserve.
        let hops = [usual(first.0, first.1), usual(RESERVE_MAX - room, RESERVE_MAX / 100 * price)];
        same_as_trying(&hops, first.1);
    }
}

/// Left of a cut the profit rises steeply, and few amounts come into question, however deep the
/// pools are.
#[test]
fn a_cut_off_cycle_is_proved_at_once() {
    let deep = 1 << 90;
    for room in [1_u128 << 60, 1 << 70, 1 << 80] {
        let hops = [
            usual(deep, deep),
            usual(RESERVE_MAX - room, RESERVE_MAX),
            usual(deep, deep << 4),
        ];
        let cycle = Cycle::new(&hops).unwrap();
        let best = optimum_within(&cycle, 8).unwrap().unwrap();
        assert!(
            cycle.input_limit() - best.input < 16,
            "the best input is at the cut"
        );
        stands(&hops, 8).unwrap();
    }
}

#[test]
fn the_largest_reserves_never_wrap() {
    for fee in [
        (997, 1000),
        (1, 1),
        (10_000, 10_000),
        (9_999, 10_000),
        (1, 10_000),
    ] {
        for count in 2..=4 {
            // All at the maximum: even, no gain; nothing can be put in either.
            let full = [hop(RESERVE_MAX, RESERVE_MAX, fee); 4];
            let cycle = Cycle::new(&full[..count]).unwrap();
            assert_eq!((optimum(&cycle), cycle.input_limit()), (Ok(None), 0));
            // One unit of every token buys all but one of the next.
            let steep = [hop(1, RESERVE_MAX, fee); 4];
            stands(&steep[..count], 64).unwrap();
            // The closed form at its widest that still trades.
            let half = [hop(RESERVE_MAX / 2, RESERVE_MAX, fee); 4];
            stands(&half[..count], 64).unwrap();
        }
    }
}

#[test]
fn reserves_of_one_give_nothing() {
    for count in 2..=4 {
        let hops = [usual(1, 1); 4];
        assert_eq!(optimum(&Cycle::new(&hops[..count]).unwrap()), Ok(None));
    }
}

/// Two tokens on the way whose units are worth 10^12 base units each, in pools of 10^30: more
/// amounts come into question than any limit covers, and the result says so.
#[test]
fn a_search_that_is_too_long_ends_with_bounds() {
    let (base, coarse) = (10_u128.pow(30), 10_u128.pow(18));
    let hops = [
        usual(base, coarse + 12_345),
        usual(coarse + 999, coarse + 77_777_777),
        usual(coarse, base / 100 * 103),
    ];
    let result = optimum_within(&Cycle::new(&hops).unwrap(), 1_000);
    let NotProved { lower, upper, .. } = result.unwrap_err();
    let lower = lower.unwrap();
    is_consistent(&Cycle::new(&hops).unwrap(), lower);
    // At most what rounding at both tokens costs is open.
    assert!(lower.profit < upper && upper - lower.profit < 2 * 10_u128.pow(12) + 2);
    assert!(result.unwrap_err().to_string().contains("1000 amounts"));
}

/// A larger limit finds no less and bounds no worse.
#[test]
fn more_work_only_tightens() {
    let coarse = 10_u128.pow(9);
    let base = 10_u128.pow(18);
    let hops = [
        usual(base, coarse + 12_345),
        usual(coarse + 999, coarse + 77_777),
        usual(coarse, base / 100 * 103),
    ];
    let cycle = Cycle::new(&hops).unwrap();
    let best = optimum_within(&cycle, u32::MAX).unwrap().unwrap();
    let mut last = 0;
    for limit in [0, 1, 10, 100, 1_000, 10_000] {
        let (lower, upper) = match optimum_within(&cycle, limit) {
            Ok(found) => (found, best.profit),
            Err(open) => (open.lower, open.upper),
        };
        let lower = lower.map_or(0, |best| best.profit);
        assert!(last <= lower && lower <= best.profit && best.profit <= upper);
        last = lower;
    }
}
