//! The exact arbitrage solver of constant-product cycles of two to four hops.
//!
//! From cheap to exact: [`may_profit`] rejects most cycles in a multiplication a hop, [`bound()`]
//! gives an upper bound of the profit to order the rest by, and [`optimum()`] the proved largest
//! integer profit. All amounts are in the smallest units of their tokens.
//!
//! # Invariants
//! - No floating-point result decides an amount or a proof. The screen and the bound err on the side of
//!   keeping a cycle, each by a stated bound.
//! - No arithmetic wraps: each module states the bits it needs and has.
//! - Nothing allocates.

mod bound;
mod closed_form;
mod cycle;
mod hop;
mod mul_div;
mod optimum;
mod screen;
#[cfg(test)]
mod tests;
mod wide;

pub use bound::{Bound, bound};
pub use cycle::{Cycle, CycleError, HOPS_MAX, HOPS_MIN};
pub use hop::{FEE_DEN_MAX, Fee, FeeError, Hop, RESERVE_MAX, ReserveError, Side};
pub use optimum::{NotProved, Optimum, SWEEP_LIMIT, optimum, optimum_least_input, optimum_within};
pub use screen::{SCREEN_FLOOR, may_profit, may_profit_each, rate};
