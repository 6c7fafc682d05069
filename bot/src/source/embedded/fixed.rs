//! The integer arithmetic of the made-up market: no floating point, so that every platform computes
//! the same.

/// One in the fixed-point logarithms here: 32 fractional bits.
pub(super) const ONE_Q32: i64 = 1 << 32;

/// log₂ of `x` with 32 fractional bits, rounded down; 0 for 0.
///
/// The fraction comes bit by bit from squaring the mantissa: a square of 2 or more is a one (D. Knuth,
/// *The Art of Computer Programming*, vol. 1, 1.2.2, exercise 25 ff.).
pub(super) fn log2_q32(x: u128) -> i64 {
    let Some(whole) = x.checked_ilog2() else {
        return 0;
    };
    // The mantissa in [1, 2) with 63 fractional bits; what is below them is cut off.
    let mut mantissa = if whole >= 63 {
        x >> (whole - 63)
    } else {
        x << (63 - whole)
    };
    let mut log = i64::from(whole) << 32;
    for bit in (0..32).rev() {
        mantissa = (mantissa * mantissa) >> 63;
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            log |= 1 << bit;
        }
    }
    log
}

/// About 2 to the power of `exponent` (16 fractional bits, at most 127), exact where it is whole and on a
/// straight line between: at most 6.2 % too large. Zero for negative exponents.
pub(super) fn pow2(exponent: i64) -> u128 {
    let Ok(exponent) = u128::try_from(exponent) else {
        return 0;
    };
    let (whole, fraction) = (exponent >> 16, exponent & 0xFFFF);
    let mantissa = 1 << 16 | fraction;
    if whole >= 16 {
        mantissa << (whole - 16)
    } else {
        mantissa >> (16 - whole)
    }
}

/// What a constant-product pool pays for `amount_in`: ⌊b·n·x / (a·d + n·x)⌋ for an input x, the
/// reserves a (in) and b (out), and the fee n/d.
///
/// `None` if the pool cannot hold the input (112 bits) or would pay nothing.
pub(super) fn amount_out(
    amount_in: u128,
    reserve_in: u128,
    reserve_out: u128,
    (fee_num, fee_den): (u16, u16),
) -> Option<u128> {
    let held = reserve_in.checked_add(amount_in)?;
    if held > crate::market::MAX_RESERVE || reserve_in == 0 {
        return None;
    }
    // 112 + 16 bits each: n ≤ d, so the denominator is at most (a + x)·d.
    let traded = amount_in * u128::from(fee_num);
    let denominator = reserve_in * u128::from(fee_den) + traded;
    let out = mul_div_below(reserve_out, traded, denominator);
    (out > 0).then_some(out)
}

/// ⌊a·b / d⌋ for b < d, by long multiplication and division at once: bit by bit of `a`, with the
/// quotient and the remainder doubled and corrected. No step leaves 128 bits.
fn mul_div_below(a: u128, b: u128, d: u128) -> u128 {
    let (mut quotient, mut remainder) = (0, 0);
    // The sum of two remainders, which are below `d`, and whether it went past `d`.
    let add = |x: u128, y: u128| {
        if x >= d - y {
            (x - (d - y), 1)
        } else {
            (x + y, 0)
        }
    };
    for bit in (0..u128::BITS - a.leading_zeros()).rev() {
        let (doubled, carry) = add(remainder, remainder);
        (quotient, remainder) = (quotient * 2 + carry, doubled);
        if a >> bit & 1 == 1 {
            let (sum, carry) = add(remainder, b);
            (quotient, remainder) = (quotient + carry, sum);
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;
    use crate::market::MAX_RESERVE;

    #[test]
    fn logarithms_of_powers_of_two_are_exact_and_others_close() {
        for bits in 0..128 {
            assert_eq!(log2_q32(1 << bits), i64::from(bits) << 32);
        }
        assert_eq!(log2_q32(0), 0);
        // log2(10) = 3.321928094887362…
        assert_eq!(log2_q32(10), 14_267_572_527);
        assert_eq!(log2_q32(u128::MAX) >> 32, 127);
    }

    #[test]
    fn powers_meet_whole_exponents_and_rise_between() {
        for bits in 0_i64..=126 {
            assert_eq!(pow2(bits << 16), 1 << bits);
            assert!(pow2((bits << 16) + 0x8000) >= pow2(bits << 16));
        }
        assert_eq!(pow2((40 << 16) + 0x8000), 3 << 39);
        assert_eq!(pow2(-1), 0);
    }

    fn reserve() -> impl Strategy<Value = u128> {
        (0_u32..112, 1..=MAX_RESERVE).prop_map(|(cut, x)| (x >> cut).max(1))
    }

    proptest! {
        #[test]
        fn a_logarithm_is_that_of_the_nearby_floats(x in 1_u128..) {
            #[expect(clippy::cast_precision_loss, reason = "the reference is approximate")]
            let (exact, ours) = ((x as f64).log2(), log2_q32(x) as f64 / ONE_Q32 as f64);
            prop_assert!((exact - ours).abs() < 1e-8);
        }

        #[test]
        fn a_swap_pays_what_big_integers_say_and_k_never_falls(
            amount in reserve(), r_in in reserve(), r_out in reserve(),
            fee in (1..=u16::MAX, 0..=u16::MAX).prop_map(|(a, b)| (a.min(b).max(1), a.max(b))),
        ) {
            let big = |x: u128| BigUint::from(x);
            let traded = big(amount) * fee.0;
            let exact = big(r_out) * &traded / (big(r_in) * fee.1 + traded);
            match amount_out(amount, r_in, r_out, fee) {
                None => prop_assert!(r_in + amount > MAX_RESERVE || exact == big(0)),
                Some(out) => {
                    prop_assert_eq!(big(out), exact);
                    prop_assert!(out < r_out);
                    prop_assert!(big(r_in + amount) * big(r_out - out) >= big(r_in) * big(r_out));
                }
            }
        }
    }
}
