//! The closed form in fixed-width integers against the same questions in big ones.

use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use super::reference::{RealMap, big};
use super::{cycles, hop, near_even_cycles};
use crate::solver::closed_form::ClosedForm;
use crate::solver::{Cycle, Hop, RESERVE_MAX};

/// All that the closed form says of a cycle, where `limit` cuts the inputs off.
fn check(hops: &[Hop], limit: u128) -> Result<(), TestCaseError> {
    match hops.len() {
        2 => check_width::<4>(hops, limit),
        3 => check_width::<6>(hops, limit),
        _ => check_width::<8>(hops, limit),
    }
}

fn check_width<const N: usize>(hops: &[Hop], limit: u128) -> Result<(), TestCaseError> {
    let map = RealMap::of(&big(hops));
    let Some(form) = ClosedForm::<N>::compose(&Cycle::new(hops).unwrap()) else {
        prop_assert!(!map.gains());
        return Ok(());
    };
    prop_assert!(map.gains());

    // (q·x + r)² ≤ p·r: at or left of the peak.
    let left = |x: u128| (&map.q * x + &map.r).pow(2) <= &map.p * &map.r;
    let peak = form.peak_within(limit);
    prop_assert!(peak <= limit && left(peak));
    prop_assert!(peak == limit || !left(peak + 1));

    // p·x / (q·x + r) − x ≥ level.
    let reaches = |x: u128, level: u128| {
        let w: BigInt = &map.q * x + &map.r;
        &map.p * x - &w * x >= w * level
    };
    let top = u128::try_from(map.best_real_profit()).unwrap();
    prop_assert!(!form.attains(top + 1));
    for level in [1, top / 2, top.saturating_sub(1), top] {
        if level == 0 || level > top {
            continue;
        }
        prop_assert!(form.attains(level));
        for x in [
            0,
            1,
            peak / 2,
            peak,
            peak + 1,
            peak.saturating_mul(2),
            limit,
        ] {
            let x = x.min(RESERVE_MAX);
            prop_assert_eq!(form.reaches(x, level), reaches(x, level));
        }
        let window = form.window(level, peak, limit);
        let (low, high) = window.map_or((limit + 1, 0), |window| (window.low, window.high));
        prop_assert!(low <= high || window.is_none());
        prop_assert!(high <= limit);
        // Both neighbours of the window fail, each on its own side of the peak.
        prop_assert!(low > 0 && low - 1 <= peak && !reaches(low - 1, level));
        if window.is_some() && high < limit {
            prop_assert!(high >= peak && !reaches(high + 1, level));
        }
        // The exact inputs of the level, found the other way, are inside.
        let (from, to) = map.inputs_of(&level.into()).unwrap();
        for x in [from + 1_u8, to - 1_u8] {
            let x = u128::try_from(x).unwrap_or(u128::MAX);
            if x <= limit && reaches(x, level) {
                prop_assert!(low <= x && x <= high);
                let least = form.least_reaching(level, x);
                prop_assert!(reaches(least, level) && !reaches(least - 1, level));
            }
        }
    }
    prop_assert!(form.window(top + 1, peak, limit).is_none());
    Ok(())
}

/// Some limits are far out, some cut the inputs off anywhere.
fn limits() -> impl Strategy<Value = u128> {
    (0_u32..112, any::<u128>()).prop_map(|(bits, value)| (value & RESERVE_MAX) >> bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn exact_for_all_reserves(hops in cycles(), limit in limits()) {
        check(&hops, RESERVE_MAX - 1)?;
        check(&hops, limit)?;
    }

    #[test]
    fn exact_where_the_gain_is_small(hops in near_even_cycles(3), limit in limits()) {
        check(&hops, RESERVE_MAX - 1)?;
        check(&hops, limit)?;
    }

    #[test]
    fn exact_where_the_gain_is_large(hops in near_even_cycles(u32::MAX >> 2), limit in limits()) {
        check(&hops, RESERVE_MAX - 1)?;
        check(&hops, limit)?;
    }
}

/// The widest numbers there are: the largest reserves at the largest denominators, with the least
/// gain that makes a closed form.
#[test]
fn exact_at_the_widest() {
    for fee in [(10_000, 10_000), (9_999, 10_000), (1, 10_000)] {
        for count in 2..=4 {
            let mut hops = [hop(RESERVE_MAX, RESERVE_MAX, fee); 4];
            hops[0] = hop(RESERVE_MAX - 1, RESERVE_MAX, fee);
            check(&hops[..count], RESERVE_MAX - 1).unwrap();
            hops[0] = hop(1, RESERVE_MAX, fee);
            check(&hops[..count], RESERVE_MAX - 1).unwrap();
        }
    }
}

/// A peak at an exact integer is neither skipped nor run around.
#[test]
fn a_peak_on_an_integer_is_found() {
    // Without fees and with A = a², B = b² as the products of the reserves, √(AB) is an integer.
    for (a, b) in [
        (10_u128, 13_u128),
        (1_000, 2_000),
        (1 << 55, (1 << 55) + (1 << 30)),
    ] {
        let hops = [hop(a, b, (1, 1)), hop(a, b, (1, 1))];
        let form = ClosedForm::<4>::compose(&Cycle::new(&hops).unwrap()).unwrap();
        // x* = (ab − a²) / (a + b).
        let exact = BigUint::from(a) * (b - a) / (a + b);
        assert_eq!(BigUint::from(form.peak_within(RESERVE_MAX)), exact);
        check(&hops, RESERVE_MAX - 1).unwrap();
    }
}
