//! The screen: which cycles cannot have a profit at all, told in one multiplication a hop.
//!
//! A hop gives less than its marginal rate num·b / (den·a) times its input, so a cycle whose rates
//! multiply to 1 or less returns less than it takes. The product is taken in `f64`.
//!
//! # Invariants
//! - No cycle with a profit is rejected. A rate has five roundings (two conversions, two products, a
//!   quotient), a product of n of them n − 1 more: 6n − 1 = 23 for four hops. Each makes the result
//!   smaller by at most u = 2^−53 of it, so a product that is truly above 1 is computed as more than
//!   (1 − u)^23 > 1 − 2.56e-15, which is above [`SCREEN_FLOOR`].

use super::hop::Hop;

/// The computed product of marginal rates below which a cycle certainly has no profit.
pub const SCREEN_FLOOR: f64 = 1.0 - 3e-15;

/// The marginal rate of a hop, num·b / (den·a): units out per unit in for a vanishing input.
#[expect(
    clippy::cast_precision_loss,
    reason = "the rounding is part of the stated error bound"
)]
#[inline]
#[must_use]
pub fn rate(hop: &Hop) -> f64 {
    let fee = hop.fee();
    (f64::from(fee.num()) * hop.reserve_out() as f64)
        / (f64::from(fee.den()) * hop.reserve_in() as f64)
}

/// Whether a cycle of these marginal rates may have a profit.
#[inline]
#[must_use]
pub fn may_profit(rates: &[f64]) -> bool {
    passes(rates.iter().product())
}

/// Which of many cycles may have a profit: one flag for each, in their order.
///
/// A cycle is the edges it takes, and an edge (one direction of one pool) an index into `rates`.
/// The result takes the shorter of the two lengths.
///
/// # Panics
/// If an edge has no rate.
pub fn may_profit_each<const HOPS: usize, E>(
    rates: &[f64],
    cycles: &[[E; HOPS]],
    flags: &mut [bool],
) where
    E: Copy + Into<u32>,
{
    for (cycle, flag) in cycles.iter().zip(flags) {
        *flag = passes(
            cycle
                .iter()
                .map(|&edge| rates[edge.into() as usize])
                .product(),
        );
    }
}

#[inline]
fn passes(product: f64) -> bool {
    product >= SCREEN_FLOOR
}
