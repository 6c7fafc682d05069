//! A product of two 128-bit numbers divided by a third, exact: the arithmetic of one hop.
//!
//! The product has 256 bits and is never truncated; a quotient that does not fit 128 bits is
//! `None`. Nothing else is needed to evaluate a hop, so there is no 256-bit number type.

/// Low half of a 128-bit number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
const fn low(value: u128) -> u64 {
    value as u64
}

/// `a * b / divisor` rounded down, and whether a remainder was left.
///
/// `None` when the quotient does not fit 128 bits, which includes a zero divisor.
#[inline]
pub(super) fn mul_div(a: u128, b: u128, divisor: u128) -> Option<(u128, bool)> {
    let (product, high) = a.carrying_mul(b, 0);
    if high == 0 {
        let quotient = product.checked_div(divisor)?;
        return Some((quotient, quotient * divisor != product));
    }
    // high * 2^128 + product < divisor * 2^128 is the same as "the quotient is below 2^128".
    if high >= divisor {
        return None;
    }
    // Schoolbook long division in base 2^64 (Knuth, The Art of Computer Programming 2, 4.3.1), with
    // the divisor shifted until its top bit is set. high < divisor keeps the shifted high in range.
    let shift = divisor.leading_zeros();
    let divisor = divisor << shift;
    let high = (high << shift) | ((product >> 1) >> (127 - shift));
    let product = product << shift;
    let (upper, rest) = match without_upper_digit(high, product, divisor) {
        Some(rest) => (0, rest),
        None => digit(high, low(product >> 64), divisor),
    };
    let (lower, rest) = digit(rest, low(product), divisor);
    Some(((u128::from(upper) << 64) | u128::from(lower), rest != 0))
}

/// The upper 192 bits of the dividend, where they are below the divisor: then the upper digit of
/// the quotient is zero, as it is for most pools, and half of the work falls away.
#[inline]
fn without_upper_digit(high: u128, product: u128, divisor: u128) -> Option<u128> {
    let upper = (high << 64) | (product >> 64);
    (high >> 64 == 0 && upper < divisor).then_some(upper)
}

/// One digit of the long division: quotient and remainder of `high * 2^64 + next` by a divisor
/// with its top bit set, where `high < divisor`.
///
/// The digit is estimated from the divisor's upper half d1 alone, its lower half d0 taken as zero.
/// That is too large by less than high/d1 − high·2^64/divisor = high·d0/(d1·divisor) < d0/d1 < 2 before
/// rounding, and so by at most 2 after it.
#[inline]
fn digit(high: u128, next: u64, divisor: u128) -> (u64, u128) {
    let estimate = high / (divisor >> 64);
    // The estimate is below 2^64 + 2, its product below 2^193; the dividend is below 2^192.
    let (taken, taken_high) = estimate.carrying_mul(divisor, 0);
    let dividend = (high << 64) | u128::from(next);
    let (mut rest, borrow) = dividend.overflowing_sub(taken);
    // How often 2^128 the remainder is below zero: 0, -1 or -2, modulo 2^128.
    let mut overdraft = (high >> 64)
        .wrapping_sub(taken_high)
        .wrapping_sub(u128::from(borrow));
    let mut quotient = estimate;
    while overdraft != 0 {
        quotient -= 1;
        let (sum, carry) = rest.overflowing_add(divisor);
        rest = sum;
        overdraft = overdraft.wrapping_add(u128::from(carry));
    }
    (low(quotient), rest)
}
