//! The screen and the closed form err on the safe side only.

use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use super::reference::{RealMap, big};
use super::{cycles, near_even_cycles, usual};
use crate::solver::{Cycle, Hop, SCREEN_FLOOR, bound, may_profit, may_profit_each, rate};

fn rates(hops: &[Hop]) -> Vec<f64> {
    hops.iter().map(rate).collect()
}

/// The reference's verdict on a screen and a bound.
fn check(hops: &[Hop]) -> Result<(), TestCaseError> {
    let map = RealMap::of(&big(hops));
    let passes = may_profit(&rates(hops));
    if map.gains() {
        prop_assert!(passes, "a cycle of a marginal rate above 1 is rejected");
    }
    if let Some(bound) = bound(&Cycle::new(hops).unwrap()) {
        prop_assert!(bound.profit_at_most >= 1.0);
        prop_assert!(bound.input_near.is_finite() && bound.input_near >= 0.0);
        prop_assert!(!exceeds(&map, bound.profit_at_most));
    } else {
        prop_assert_eq!(map.best_real_profit(), BigUint::ZERO);
    }
    Ok(())
}

/// Whether some real input has a larger profit than `level`, exactly: the level's quadratic of
/// [`RealMap::inputs_of`], times the denominator of `level`, has two different positive roots.
fn exceeds(map: &RealMap, level: f64) -> bool {
    let bits = level.to_bits();
    let exponent = i64::try_from(bits >> 52).unwrap() - 1075;
    let mantissa = BigInt::from((bits & ((1 << 52) - 1)) | 1 << 52);
    let (up, down) = if exponent >= 0 {
        (mantissa << exponent.unsigned_abs(), BigInt::from(1))
    } else {
        (mantissa, BigInt::from(1) << exponent.unsigned_abs())
    };
    let middle = (&map.p - &map.r) * &down - &up * &map.q;
    middle > BigInt::ZERO && &middle * &middle > 4 * up * &map.r * &map.q * down
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn safe_for_all_reserves(hops in cycles()) {
        check(&hops)?;
    }

    #[test]
    fn safe_where_the_rates_cancel_almost(hops in near_even_cycles(3)) {
        check(&hops)?;
    }

    #[test]
    fn safe_where_the_rates_cancel_roughly(hops in near_even_cycles(u32::MAX >> 4)) {
        check(&hops)?;
    }
}

/// Rates that are 1 up to one unit of a large reserve: exact arithmetic tells them apart, `f64` cannot.
#[test]
fn safe_one_unit_around_even() {
    let fee = (1, 1);
    let mut gains = 0;
    for bits in [20, 52, 53, 54, 60, 80, 100, 111] {
        let base = (1_u128 << bits) + 12_345;
        for shift in 0..64 {
            let (a, b) = (base + 977 * shift, base + 31 * shift);
            for (more, less) in [(0, 0), (1, 0), (0, 1), (2, 1)] {
                let hops = [
                    super::hop(a, b, fee),
                    super::hop(b, a + more, fee),
                    super::hop(base, base, fee),
                    super::hop(base + less, base, fee),
                ];
                gains += usize::from(RealMap::of(&big(&hops)).gains());
                check(&hops).unwrap();
            }
        }
    }
    assert!(gains > 500, "the cases are on both sides of even: {gains}");
}

#[test]
fn the_screen_rejects_what_loses() {
    let even = usual(1_000_000, 1_000_000);
    assert!(!may_profit(&rates(&[even; 2])), "the fees alone are a loss");
    assert!(may_profit(&rates(&[usual(1_000_000, 1_007_000), even])));
    assert!(may_profit(&[SCREEN_FLOOR]) && !may_profit(&[SCREEN_FLOOR - f64::EPSILON]));
}

#[test]
fn many_are_screened_like_one() {
    let table: Vec<f64> = (0..100).map(|edge| 0.9 + 0.002 * f64::from(edge)).collect();
    let cycles: Vec<[u16; 3]> = (0..1_000_u16)
        .map(|i| [i % 100, i * 7 % 100, i * 31 % 100])
        .collect();
    let mut flags = vec![false; cycles.len()];
    may_profit_each(&table, &cycles, &mut flags);
    for (cycle, flag) in cycles.iter().zip(&flags) {
        assert_eq!(
            *flag,
            may_profit(&cycle.map(|edge| table[usize::from(edge)]))
        );
    }
    assert!(flags.contains(&true) && flags.contains(&false));
}

/// At ordinary sizes the bound is tight, not only true.
#[test]
fn the_bound_is_near_the_best_real_profit() {
    let one = 10_u128.pow(18);
    let hops = [
        usual(100 * one, 200_000 * one),
        usual(190_000 * one, 100 * one),
    ];
    let found = bound(&Cycle::new(&hops).unwrap()).unwrap();
    let exact: u128 = RealMap::of(&big(&hops))
        .best_real_profit()
        .try_into()
        .unwrap();
    #[expect(clippy::cast_precision_loss, reason = "compared to six digits")]
    let ratio = found.profit_at_most / exact as f64;
    assert!((1.0..1.000_001).contains(&ratio), "{ratio}");
}
