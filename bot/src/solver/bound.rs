//! The closed form in `f64`: the best real profit of a cycle, rounded to a true upper bound.
//!
//! In real numbers a cycle maps x to B·x / (A + C·x), where one hop has A = den·a, B = num·b and
//! C = num, and a further hop makes A·(den·a), B·(num·b) and C·(den·a) + B·num of them. The profit
//! B·x / (A + C·x) − x is largest at x* = (√(AB) − A) / C, where it is U* = (B − A)² / ((√A + √B)²·C).
//! Rounding down at each hop only takes from the profit, so U* bounds every integer profit.
//!
//! # Invariants
//! - [`Bound::profit_at_most`] is at least U*. With u = 2^−53 and n = 4 hops, counting roundings: A
//!   and B have 3n − 1 = 11 each (conversion and fee of each factor, n − 1 products), C has
//!   4(n − 1) = 12 on its longest path, all over positive terms, so each is right within a factor of
//!   1 ± 12.01u. Only B − A cancels: its computed value is below the true one by at most
//!   13.01u·(A + B) in computed A and B. Adding 32u·(A + B), itself computed, leaves 18.9u·(A + B) and
//!   so 18.9u·(B − A) to spare: a factor of 1 + 37.8u in its square. That covers the roundings that
//!   follow, 33 in all: the raised gap's own, twice; its square 1; the squared sum of roots
//!   2·(11/2 + 1 + 1) + 1 = 16; C 12; product and quotient 2.
//! - Nothing overflows or vanishes: A, B < 2^502, C < 2^392, all at least 1.

use super::cycle::Cycle;

/// 32u: what B − A is raised by, relative to A + B, to make up for all roundings.
const GAP_RAISE: f64 = 32.0 * (f64::EPSILON / 2.0);

/// What the closed form says of a cycle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    /// No input has a larger profit, in units of the base token.
    pub profit_at_most: f64,
    /// Near the input of the best real profit; a candidate, not a bound.
    pub input_near: f64,
}

/// The closed form of a cycle; `None` where no input has a profit of one unit or more.
#[expect(
    clippy::cast_precision_loss,
    reason = "the rounding is part of the stated error bound"
)]
#[inline]
#[must_use]
pub fn bound(cycle: &Cycle<'_>) -> Option<Bound> {
    let (mut a, mut b, mut c) = (1.0, 1.0, 0.0);
    for hop in cycle.hops() {
        let fee = hop.fee();
        let (num, den) = (f64::from(fee.num()), f64::from(fee.den()));
        let hop_in = den * hop.reserve_in() as f64;
        c = hop_in * c + num * b;
        a *= hop_in;
        b *= num * hop.reserve_out() as f64;
    }
    let gap = (b - a) + GAP_RAISE * (a + b);
    if gap <= 0.0 {
        return None;
    }
    let (root_a, root_b) = (a.sqrt(), b.sqrt());
    let roots = root_a + root_b;
    let profit_at_most = gap * gap / (roots * roots * c);
    // The integer profit is a whole number.
    (profit_at_most >= 1.0).then(|| Bound {
        profit_at_most,
        input_near: root_a * (gap / (roots * c)),
    })
}
