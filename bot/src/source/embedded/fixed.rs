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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    proptest! {
        #[test]
        fn a_logarithm_is_that_of_the_nearby_floats(x in 1_u128..) {
            #[expect(clippy::cast_precision_loss, reason = "the reference is approximate")]
            let (exact, ours) = ((x as f64).log2(), log2_q32(x) as f64 / ONE_Q32 as f64);
            prop_assert!((exact - ours).abs() < 1e-8);
        }
    }
}
