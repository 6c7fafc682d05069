//! Hops and cycles, forward and backward.

use num_bigint::BigUint;
use proptest::prelude::*;

use super::reference::{self, big};
use super::{cycles, hop, hops, usual};
use crate::solver::{
    Cycle, CycleError, Fee, FeeError, HOPS_MAX, Hop, RESERVE_MAX, ReserveError, Side,
};

#[test]
fn only_fees_that_pools_can_have_exist() {
    assert_eq!(Fee::default(), Fee::new(997, 1000).unwrap());
    for (num, den) in [(1, 1), (1, 10_000), (10_000, 10_000), (9_975, 10_000)] {
        assert_eq!(
            Fee::new(num, den).map(|fee| (fee.num(), fee.den())),
            Ok((num, den))
        );
    }
    for (num, den) in [(0, 0), (0, 1), (2, 1), (1, 10_001), (10_001, 10_001)] {
        assert_eq!(Fee::new(num, den), Err(FeeError { num, den }));
    }
    assert_eq!(
        FeeError { num: 3, den: 2 }.to_string(),
        "fee 3/2: the part of the input that is traded must be 0 < num <= den <= 10000"
    );
}

#[test]
fn only_reserves_that_pairs_can_hold_exist() {
    let fee = Fee::default();
    for value in [0, RESERVE_MAX + 1, u128::MAX] {
        assert_eq!(
            Hop::new(value, 1, fee),
            Err(ReserveError {
                side: Side::In,
                value
            })
        );
        assert_eq!(
            Hop::new(1, value, fee),
            Err(ReserveError {
                side: Side::Out,
                value
            })
        );
    }
    assert_eq!(
        Hop::new(5, 0, fee).unwrap_err().to_string(),
        "output reserve 0: must be 1 to 2^112 - 1 (5192296858534827628530496329220095)"
    );
    assert!(Hop::new(1, RESERVE_MAX, fee).is_ok() && Hop::new(RESERVE_MAX, 1, fee).is_ok());
}

#[test]
fn only_two_to_four_hops_make_a_cycle() {
    let hops = [usual(1, 1); HOPS_MAX + 1];
    for count in [0, 1, 5] {
        assert_eq!(Cycle::new(&hops[..count]), Err(CycleError { hops: count }));
    }
    for count in 2..=4 {
        assert_eq!(
            Cycle::new(&hops[..count]).map(|cycle| cycle.hops().len()),
            Ok(count)
        );
    }
}

#[test]
fn a_hop_gives_what_the_pair_contract_pays() {
    let one = 10_u128.pow(18);
    // Rows of the swap tests of the Uniswap V2 pair.
    assert_eq!(
        usual(5 * one, 10 * one).forward(one),
        Some(1_662_497_915_624_478_906)
    );
    assert_eq!(
        usual(10 * one, 5 * one).forward(one),
        Some(453_305_446_940_074_565)
    );
    assert_eq!(
        usual(1000 * one, 1000 * one).forward(one),
        Some(996_006_981_039_903_216)
    );
    assert_eq!(usual(1, 1).forward(RESERVE_MAX), None);
    assert_eq!(usual(RESERVE_MAX, 1).forward(1), None);
    assert_eq!(usual(RESERVE_MAX, 1).forward(0), Some(0));
}

#[test]
fn backward_is_the_least_input_at_every_small_size() {
    for fee in [(997, 1000), (1, 1), (1, 3), (9_999, 10_000)] {
        for a in 1..=12 {
            for b in 1..=12 {
                let hop = hop(a, b, fee);
                // Outputs grow with inputs, so the least inputs are met one after the other.
                let mut least = 0;
                for y in 0..b {
                    while hop.forward(least).unwrap() < y {
                        least += 1;
                    }
                    assert_eq!(hop.backward(y), Some(least), "{a} | {b} at {fee:?} for {y}");
                }
                assert_eq!((hop.backward(b), hop.backward(b + 1)), (None, None));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn hops_match_big_integers(hop in hops(), part in any::<u128>(), bits in 0_u32..128) {
        let big_hop = &big(&[hop])[0];
        let amount = (part >> bits) & (RESERVE_MAX * 2 + 1);
        let exact = big_hop.output(&amount.into()).map(|y| u128::try_from(y).unwrap());
        prop_assert_eq!(hop.forward(amount), exact);
        let output = amount % (hop.reserve_out() + 2);
        let exact = big_hop.input(&output.into()).map(|x| u128::try_from(x).unwrap());
        prop_assert_eq!(hop.backward(output), exact);
    }

    /// F(x) >= y exactly where x >= G(y).
    #[test]
    fn backward_is_the_threshold_of_forward(hop in hops(), part in any::<u128>()) {
        let output = part % hop.reserve_out();
        match hop.backward(output) {
            Some(0) => prop_assert_eq!(output, 0),
            Some(least) => {
                prop_assert!(hop.forward(least).unwrap() >= output);
                prop_assert!(hop.forward(least - 1).unwrap() < output);
            }
            None => prop_assert!(hop.forward(hop.input_limit()).unwrap() < output),
        }
    }

    #[test]
    fn cycles_are_their_hops_in_order(hops in cycles(), part in any::<u128>(), bits in 0_u32..128) {
        let (cycle, big_hops) = (Cycle::new(&hops).unwrap(), big(&hops));
        let narrow = |value: BigUint| u128::try_from(value).unwrap();
        let amount = (part >> bits) & RESERVE_MAX;
        prop_assert_eq!(
            cycle.forward(amount),
            reference::output(&big_hops, amount.into()).map(narrow)
        );
        prop_assert_eq!(
            cycle.backward(amount),
            reference::input(&big_hops, amount.into()).map(narrow)
        );
        for token in 0..=hops.len() {
            let (before, onward) = big_hops.split_at(token);
            prop_assert_eq!(
                cycle.forward_to(token, amount),
                reference::output(before, amount.into()).map(narrow)
            );
            prop_assert_eq!(
                cycle.forward_from(token, amount),
                reference::output(onward, amount.into()).map(narrow)
            );
            prop_assert_eq!(
                cycle.backward_from(token, amount),
                reference::input(before, amount.into()).map(narrow)
            );
        }
        prop_assert_eq!(cycle.forward_from(hops.len() + 1, amount), None);
    }

    #[test]
    fn the_input_limit_is_the_last_input_that_is_taken(hops in cycles()) {
        let cycle = Cycle::new(&hops).unwrap();
        let limit = cycle.input_limit();
        prop_assert!(cycle.forward(limit).is_some());
        prop_assert_eq!(cycle.forward(limit + 1), None);
    }
}
