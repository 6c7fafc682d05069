//! A cycle in real numbers: without rounding it is one curve, and no integer input does better.
//!
//! A hop turns x into 997·b·x / (1000·a + 997·x), so a cycle turns it into B·x / (A + C·x). A profit of
//! L takes B·x − (A + C·x)·x ≥ L·(A + C·x), that is C·x² − M·x + L·A ≤ 0 with M = B − A − L·C: there is
//! such an x above zero if M > 0 and M² ≥ 4·L·A·C.

use super::staircase::{Hop, TRADED};
use num_bigint::BigUint;

/// The curve of a cycle that gains on its first unit: B > A.
#[derive(Clone, Debug)]
pub struct Curve {
    pub(super) a: BigUint,
    pub(super) b: BigUint,
    pub(super) c: BigUint,
}

impl Curve {
    /// The curve of a cycle; none if the cycle loses on every input.
    #[must_use]
    pub fn of(hops: &[&Hop]) -> Option<Self> {
        let product =
            |of: fn(&Hop) -> &BigUint| hops.iter().map(|hop| of(hop)).product::<BigUint>();
        let (a, b) = (
            product(|hop| &hop.scaled_in),
            product(|hop| &hop.scaled_out),
        );
        if b <= a {
            return None;
        }
        let (mut c, mut before) = (BigUint::ZERO, BigUint::from(1_u8));
        for hop in hops {
            c = c * &hop.scaled_in + &before * TRADED;
            before *= &hop.scaled_out;
        }
        Some(Self { a, b, c })
    }

    /// M and the discriminant M² − 4·L·A·C, if some real input has a profit of `level`.
    fn solve(&self, level: &BigUint) -> Option<(BigUint, BigUint)> {
        let share = level * &self.c;
        let spent = &self.a + &share;
        if self.b <= spent {
            return None;
        }
        let middle = &self.b - spent;
        let square = &middle * &middle;
        let product = share * &self.a * 4_u8;
        (square >= product).then(|| (middle, square - product))
    }

    /// Whether some real input has a profit of `level`.
    #[must_use]
    pub fn reaches(&self, level: &BigUint) -> bool {
        self.solve(level).is_some()
    }

    /// Integers around the real inputs that have a profit of `level`: none is below the first or above
    /// the second.
    #[must_use]
    pub fn inputs_reaching(&self, level: &BigUint) -> Option<(BigUint, BigUint)> {
        let (middle, discriminant) = self.solve(level)?;
        // The root is from here to less than one more.
        let root = discriminant.sqrt();
        let two_c = &self.c * 2_u8;
        let high = (&middle + &root + 1_u8) / &two_c;
        let low = if middle > root {
            (middle - root - 1_u8) / two_c
        } else {
            BigUint::ZERO
        };
        Some((low, high))
    }

    /// The largest whole profit that some real input has: an upper bound of every integer input's.
    #[must_use]
    pub fn most(&self) -> BigUint {
        let one = BigUint::from(1_u8);
        let (mut reached, mut missed) = (BigUint::ZERO, one.clone());
        while self.reaches(&missed) {
            reached.clone_from(&missed);
            missed *= 2_u8;
        }
        while &missed - &reached > one {
            let middle: BigUint = (&reached + &missed) >> 1_u8;
            if self.reaches(&middle) {
                reached = middle;
            } else {
                missed = middle;
            }
        }
        reached
    }
}
