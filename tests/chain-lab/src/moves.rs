//! What can happen to a pool in a block, and what it leaves.
//!
//! # Invariants
//! - A planned move leaves both reserves above zero and within the pair's 112 bits.
//! - The same generator state and reserves give the same move.

use alloy_primitives::{Address, U256};
use alloy_sol_types::SolCall;

use crate::abi;
use crate::chain::Send;
use crate::market::Pool;
use crate::rng::Rng;

/// The pair refuses reserves of more bits.
const RESERVE_BITS: u32 = 112;

const TRANSFER_GAS: u64 = 100_000;
const SYNC_GAS: u64 = 120_000;
const SWAP_GAS: u64 = 200_000;

/// One move of one pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Tokens are given to the pool, which takes them as its reserve: the price jumps.
    Gift {
        /// Which of the pool's tokens: 0 or 1.
        side: usize,
        /// In smallest units.
        amount: u128,
    },
    /// A swap at the pool's own price.
    Swap {
        /// Which of the pool's tokens goes in: 0 or 1.
        side: usize,
        /// What goes in, in smallest units.
        amount: u128,
        /// What comes out, in smallest units of the other token.
        out: u128,
    },
}

/// How much the pools are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Pools moved in a block.
    pub moves: usize,
    /// Of a hundred moves, so many are large: 3 to 15 % of the reserve instead of 0.01 to 1 %.
    pub gap_percent: u8,
    /// Of a hundred moves, so many are swaps.
    pub swap_percent: u8,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            moves: 5,
            gap_percent: 25,
            swap_percent: 30,
        }
    }
}

impl Move {
    /// A move of `pool`, if it can be moved at all. With `fees` its tokens keep a part of transfers, and it is not
    /// swapped.
    pub(crate) fn plan(rng: &mut Rng, style: Style, pool: &Pool, fees: bool) -> Option<Self> {
        let side = rng.below(2);
        let gap = rng.percent(style.gap_percent);
        let swap = rng.percent(style.swap_percent);
        let parts = if gap {
            300 + rng.below(1200)
        } else {
            1 + rng.below(100)
        };
        let [held, other] = if side == 0 {
            pool.reserves
        } else {
            let [a, b] = pool.reserves;
            [b, a]
        };
        if held == 0 || other == 0 {
            return None;
        }
        let amount = (U256::from(held) * U256::from(parts) / U256::from(10_000_u32)).to::<u128>();
        let amount = amount.max(1);
        if (held + amount) >> RESERVE_BITS != 0 {
            return None;
        }
        let out = amount_out(amount, held, other);
        Some(if swap && !fees && out > 0 && out < other {
            Self::Swap { side, amount, out }
        } else {
            Self::Gift { side, amount }
        })
    }

    /// The reserves of a pool after it.
    #[must_use]
    pub const fn after(self, [mut reserve0, mut reserve1]: [u128; 2]) -> [u128; 2] {
        let (side, amount, out) = match self {
            Self::Gift { side, amount } => (side, amount, 0),
            Self::Swap { side, amount, out } => (side, amount, out),
        };
        if side == 0 {
            reserve0 += amount;
            reserve1 -= out;
        } else {
            reserve1 += amount;
            reserve0 -= out;
        }
        [reserve0, reserve1]
    }

    /// The transactions that do it; what comes out goes to `lab`.
    pub(crate) fn sends(self, pool: &Pool, lab: Address) -> [Send; 2] {
        let (side, amount) = match self {
            Self::Gift { side, amount } | Self::Swap { side, amount, .. } => (side, amount),
        };
        let [token0, token1] = pool.tokens;
        let token = if side == 0 { token0 } else { token1 };
        let give = abi::transferCall {
            to: pool.address,
            value: U256::from(amount),
        };
        let then = match self {
            Self::Gift { .. } => Send::new(pool.address, abi::syncCall {}.abi_encode(), SYNC_GAS),
            Self::Swap { side, out, .. } => {
                let out = U256::from(out);
                let (out0, out1) = if side == 0 {
                    (U256::ZERO, out)
                } else {
                    (out, U256::ZERO)
                };
                let call = abi::swapCall {
                    amount0Out: out0,
                    amount1Out: out1,
                    to: lab,
                    data: Vec::new().into(),
                };
                Send::new(pool.address, call.abi_encode(), SWAP_GAS)
            }
        };
        [Send::new(token, give.abi_encode(), TRANSFER_GAS), then]
    }
}

/// What a pool gives for `amount`: `a * 997 * out / (in * 1000 + a * 997)`, rounded down (the exchange's own formula).
fn amount_out(amount: u128, reserve_in: u128, reserve_out: u128) -> u128 {
    let paid = U256::from(amount) * U256::from(997);
    let divisor = U256::from(reserve_in) * U256::from(1000) + paid;
    paid.saturating_mul(U256::from(reserve_out))
        .checked_div(divisor)
        .map_or(0, |out| out.to())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair's own rule: with 0.3 % of what comes in taken off, the product does not fall.
    fn keeps_the_product(before: [u128; 2], after: [u128; 2], side: usize, amount: u128) -> bool {
        let big = |n: u128| U256::from(n) * U256::from(1000);
        let mut left = [big(after[0]), big(after[1])];
        left[side] -= U256::from(amount) * U256::from(3);
        let wide = |a: U256, b: U256| a.widening_mul::<256, 4, 512, 8>(b);
        wide(left[0], left[1]) >= wide(big(before[0]), big(before[1]))
    }

    #[test]
    fn planned_moves_stay_within_what_the_pair_accepts() {
        let mut rng = Rng::new(7);
        let (mut swaps, mut gifts) = (0, 0);
        for bits in 1..=112 {
            for other in [1, 2, 10, 60, 111, 112] {
                let reserves = [(1_u128 << bits) - 1, (1_u128 << other) - 1];
                let pool = Pool {
                    address: Address::ZERO,
                    tokens: [Address::ZERO; 2],
                    reserves,
                };
                let style = Style::default();
                for fees in [false, false, true] {
                    let Some(planned) = Move::plan(&mut rng, style, &pool, fees) else {
                        continue;
                    };
                    let after = planned.after(reserves);
                    assert!(after.iter().all(|&r| r > 0 && r >> RESERVE_BITS == 0));
                    match planned {
                        Move::Gift { .. } => gifts += 1,
                        Move::Swap { side, amount, .. } => {
                            swaps += 1;
                            assert!(!fees, "a token that takes a fee is not swapped");
                            assert!(keeps_the_product(reserves, after, side, amount));
                        }
                    }
                }
            }
        }
        assert!(swaps > 100 && gifts > 100, "{swaps} {gifts}");
    }

    #[test]
    fn a_pool_with_an_empty_side_is_not_moved() {
        let pool = Pool {
            address: Address::ZERO,
            tokens: [Address::ZERO; 2],
            reserves: [0, 5],
        };
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            assert_eq!(Move::plan(&mut rng, Style::default(), &pool, false), None);
        }
    }
}
