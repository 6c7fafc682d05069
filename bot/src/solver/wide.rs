//! Unsigned integers of a fixed number of 64-bit limbs, as many as the exact solver needs.
//!
//! An own type, because what is needed is little (sums, differences, comparisons, products by one
//! factor of 128 bits, and one full product) and its size follows the number of hops: 256, 384 or
//! 512 bits, with products of twice that, which no library of one fixed width gives.
//!
//! # Invariants
//! - No operation wraps: a difference below zero is `None`, and a sum or product fits by the bounds
//!   that its caller states. Debug builds check that too.

use core::cmp::Ordering;

/// An unsigned integer of `N` limbs, least significant first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wide<const N: usize>([u64; N]);

impl<const N: usize> Wide<N> {
    pub(super) const ZERO: Self = Self([0; N]);

    /// `value`, which two limbs hold.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves are what is stored"
    )]
    #[inline]
    pub(super) fn from_u128(value: u128) -> Self {
        const { assert!(N >= 2) };
        let mut limbs = [0; N];
        limbs[0] = value as u64;
        limbs[1] = (value >> 64) as u64;
        Self(limbs)
    }

    /// The sum, which must fit.
    #[inline]
    pub(super) fn plus(mut self, other: &Self) -> Self {
        let mut carry = false;
        for (limb, &more) in self.0.iter_mut().zip(&other.0) {
            (*limb, carry) = limb.carrying_add(more, carry);
        }
        debug_assert!(!carry, "a sum of {N} limbs overflows");
        self
    }

    /// The difference, unless it is below zero.
    #[inline]
    pub(super) fn minus(mut self, other: &Self) -> Option<Self> {
        let mut borrow = false;
        for (limb, &less) in self.0.iter_mut().zip(&other.0) {
            (*limb, borrow) = limb.borrowing_sub(less, borrow);
        }
        (!borrow).then_some(self)
    }

    /// The product by a factor of 128 bits, which must fit.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves are what is multiplied"
    )]
    #[inline]
    pub(super) fn times(&self, factor: u128) -> Self {
        let (low, high) = (factor as u64, (factor >> 64) as u64);
        let mut product = Self::ZERO;
        let (mut carry_low, mut carry_high, mut previous) = (0, 0, 0_u64);
        for (limb, &digit) in product.0.iter_mut().zip(&self.0) {
            // Digit i of the product: digit i by the low half and digit i − 1 by the high half.
            let (sum, carry) = digit.carrying_mul(low, carry_low);
            carry_low = carry;
            (*limb, carry_high) = previous.carrying_mul_add(high, sum, carry_high);
            previous = digit;
        }
        debug_assert!(
            carry_low == 0 && carry_high == 0 && u128::from(previous) * u128::from(high) == 0,
            "a product of {N} limbs overflows"
        );
        product
    }

    /// The full product, of twice as many limbs.
    #[inline]
    pub(super) fn product(&self, other: &Self) -> Product<N> {
        let mut product = Product([[0; N]; 2]);
        let limbs = product.0.as_flattened_mut();
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (limb, &b) in limbs[i..i + N].iter_mut().zip(&other.0) {
                (*limb, carry) = a.carrying_mul_add(b, *limb, carry);
            }
            limbs[i + N] = carry;
        }
        product
    }

    /// The value to within 2^−52 of itself.
    #[inline]
    pub(super) fn to_f64(self) -> f64 {
        leading(&self.0)
    }
}

impl<const N: usize> Ord for Wide<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl<const N: usize> PartialOrd for Wide<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The product of two [`Wide`]s, its lower half first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Product<const N: usize>([[u64; N]; 2]);

impl<const N: usize> Product<N> {
    /// The difference, unless it is below zero.
    #[inline]
    pub(super) fn minus(mut self, other: &Self) -> Option<Self> {
        let mut borrow = false;
        for (limb, &less) in self
            .0
            .as_flattened_mut()
            .iter_mut()
            .zip(other.0.as_flattened())
        {
            (*limb, borrow) = limb.borrowing_sub(less, borrow);
        }
        (!borrow).then_some(self)
    }

    /// Four times the value, which must fit.
    #[inline]
    pub(super) fn quadruple(mut self) -> Self {
        let mut carry = 0;
        for limb in self.0.as_flattened_mut() {
            let shifted = (*limb << 2) | carry;
            carry = *limb >> 62;
            *limb = shifted;
        }
        debug_assert!(carry == 0, "four times a product of {N} limbs overflows");
        self
    }

    /// The value to within 2^−52 of itself.
    #[inline]
    pub(super) fn to_f64(self) -> f64 {
        leading(self.0.as_flattened())
    }
}

impl<const N: usize> Ord for Product<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0
            .as_flattened()
            .iter()
            .rev()
            .cmp(other.0.as_flattened().iter().rev())
    }
}

impl<const N: usize> PartialOrd for Product<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The value of up to 16 limbs from their two topmost that matter: these hold 65 bits or more, or
/// all of the number. 1024 bits are in the range of `f64`.
#[expect(
    clippy::cast_precision_loss,
    reason = "the rounding is stated where this is used"
)]
fn leading(limbs: &[u64]) -> f64 {
    match limbs.iter().rposition(|&limb| limb != 0) {
        None => 0.0,
        Some(0) => limbs[0] as f64,
        Some(top) => {
            let leading = (u128::from(limbs[top]) << 64) | u128::from(limbs[top - 1]);
            // Powers of 2^64 are exact, so the scaling rounds nowhere.
            (1..top).fold(leading as f64, |value, _| value * LIMB)
        }
    }
}

/// 2^64, the base of the limbs.
const LIMB: f64 = 18_446_744_073_709_551_616.0;
