//! The fixed-width integers against big ones.

use num_bigint::BigUint;
use proptest::prelude::*;

use crate::solver::mul_div::mul_div;
use crate::solver::wide::{Product, Wide};

/// Numbers of 128 bits of every length.
fn numbers() -> impl Strategy<Value = u128> {
    prop_oneof![
        8 => (0_u32..128, any::<u128>()).prop_map(|(bits, value)| value >> bits),
        1 => Just(0),
        1 => Just(u128::MAX),
        // Long runs of ones and zeros make digits that are estimated too large.
        2 => (0_u32..128, 0_u32..128).prop_map(|(a, b)| (u128::MAX << a) ^ (u128::MAX >> b)),
    ]
}

/// A wide number of up to four factors, with the same number in big integers.
fn wide<const N: usize>(factors: &[u128]) -> (Wide<N>, BigUint) {
    factors
        .iter()
        .fold((Wide::from_u128(1), 1_u8.into()), |(wide, big), &factor| {
            (wide.times(factor), big * factor)
        })
}

/// The value of a product, from the limbs that its debug form lists, the lowest first.
fn value<const N: usize>(product: &Product<N>) -> BigUint {
    let debug = format!("{product:?}");
    debug
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse::<u64>().ok())
        .rev()
        .fold(BigUint::ZERO, |value, limb| (value << 64) + limb)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn quotients_are_those_of_big_integers(a in numbers(), b in numbers(), divisor in numbers()) {
        let expected = (divisor != 0).then(|| {
            let product = BigUint::from(a) * b;
            (&product / divisor, &product % divisor != BigUint::ZERO)
        });
        let expected = expected
            .and_then(|(quotient, rest)| u128::try_from(quotient).ok().map(|q| (q, rest)));
        prop_assert_eq!(mul_div(a, b, divisor), expected);
    }

    /// Exact divisions, and those that leave a known rest.
    #[test]
    fn quotients_come_back_from_products(
        quotient in numbers(),
        divisor in numbers().prop_map(|divisor| divisor.max(1)),
        rest in numbers(),
    ) {
        prop_assert_eq!(mul_div(quotient, divisor, divisor), Some((quotient, false)));
        let rest = rest % divisor;
        if let Some(sum) = quotient.checked_mul(divisor).and_then(|p| p.checked_add(rest)) {
            prop_assert_eq!(mul_div(sum, 1, divisor), Some((quotient, rest > 0)));
        }
    }
}

fn four_factors() -> impl Strategy<Value = [u128; 4]> {
    // 4 · 126 bits, the largest products that the solver forms.
    let factor = || numbers().prop_map(|value| value >> 2);
    [factor(), factor(), factor(), factor()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn wide_arithmetic_is_that_of_big_integers(f in four_factors(), g in four_factors()) {
        let ((x, big_x), (y, big_y)) = (wide::<8>(&f), wide::<8>(&g));
        let full = |wide: Wide<8>| value(&wide.product(&Wide::from_u128(1)));
        prop_assert_eq!(full(x), big_x.clone());
        prop_assert_eq!(full(x.plus(&y)), &big_x + &big_y);
        prop_assert_eq!(x.cmp(&y), big_x.cmp(&big_y));
        prop_assert_eq!(x.minus(&y).is_some(), big_x >= big_y);
        if let Some(difference) = x.minus(&y) {
            prop_assert_eq!(full(difference), &big_x - &big_y);
        }
        let (square, product) = (x.product(&x), x.product(&y));
        let (big_square, big_product) = (&big_x * &big_x, &big_x * &big_y);
        prop_assert_eq!(value(&product), big_product.clone());
        prop_assert_eq!(value(&product.quadruple()), &big_product << 2);
        prop_assert_eq!(square.cmp(&product), big_square.cmp(&big_product));
        prop_assert_eq!(square.minus(&product).map(|d| value(&d)),
            (big_square >= big_product).then(|| big_square - &big_product));
        near(product.to_f64(), &big_product)?;
        near(x.to_f64(), &big_x)?;
    }

    #[test]
    fn the_narrower_widths_agree(f in four_factors(), g in four_factors()) {
        let ((x, big_x), (y, big_y)) = (wide::<4>(&f[..2]), wide::<4>(&g[..2]));
        prop_assert_eq!(value(&x.product(&y)), big_x * big_y);
        let ((x, big_x), (y, big_y)) = (wide::<6>(&f[..3]), wide::<6>(&g[..3]));
        prop_assert_eq!(value(&x.product(&y)), big_x * big_y);
    }
}

/// Within 2^−52 of the value.
fn near(float: f64, exact: &BigUint) -> Result<(), TestCaseError> {
    // The float as an exact fraction: mantissa · 2^exponent.
    let bits = float.to_bits();
    if bits == 0 {
        prop_assert_eq!(exact, &BigUint::ZERO);
        return Ok(());
    }
    let exponent = i64::try_from(bits >> 52).unwrap() - 1075;
    let mantissa = BigUint::from((bits & ((1 << 52) - 1)) | 1 << 52);
    // Both sides times 2^60, so that small exponents need no fraction.
    let float = mantissa << u64::try_from(exponent + 60).unwrap();
    let exact = exact << 60_u8;
    let difference = if float > exact {
        &float - &exact
    } else {
        &exact - &float
    };
    prop_assert!((difference << 52_u8) <= exact);
    Ok(())
}
