//! Fair prices: what the pools of a market are worth and how far each is off.

use core::cmp::Reverse;

use super::fixed::{ONE_Q32, log2_q32};
use crate::market::{Direction, Market, PoolId, TokenId};

/// ln 2 with 16 fractional bits.
const LN2_Q16: i64 = 45_426;

/// Fair prices of all tokens, and the pools by size at those prices.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// log₂ of the value of each token's smallest unit, with 32 fractional bits. In the base's smallest
    /// unit where pools lead to the base, else in that of the first token of those they lead to.
    prices: Vec<i64>,
    /// Usable pools, those that lead to the base first, the largest first.
    ranked: Vec<PoolId>,
}

impl Prices {
    /// The prices at which `market` trades now.
    pub(super) fn new(market: &Market, base: TokenId) -> Self {
        let mut around = vec![Vec::new(); market.tokens().len()];
        for id in market.pool_ids().filter(|&id| market.pool(id).is_usable()) {
            let pool = market.pool(id);
            around[pool.token0.index()].push((id, Direction::ZeroForOne, pool.token1));
            around[pool.token1.index()].push((id, Direction::OneForZero, pool.token0));
        }
        let mut prices: Vec<Option<i64>> = vec![None; market.tokens().len()];
        let mut of_base = Vec::new();
        let tokens = market
            .pools()
            .iter()
            .flat_map(|pool| [pool.token0, pool.token1]);
        for root in core::iter::once(base).chain(tokens) {
            if prices[root.index()].is_some() {
                continue;
            }
            prices[root.index()] = Some(0);
            let mut layer = vec![root];
            while !layer.is_empty() {
                // The best offer for each token next to the layer: the deepest pool's, the first of
                // equals.
                let mut offers = Vec::new();
                for token in layer.drain(..) {
                    let price = prices[token.index()].unwrap_or(0);
                    for &(id, direction, next) in &around[token.index()] {
                        if prices[next.index()].is_none() {
                            let hop = market.hop(id, direction);
                            let value = price + log2_q32(hop.reserve_in);
                            offers.push((
                                next,
                                Reverse(value),
                                id,
                                value - log2_q32(hop.reserve_out),
                            ));
                        }
                    }
                }
                offers.sort_unstable();
                offers.dedup_by_key(|offer| offer.0);
                for (token, _, _, price) in offers {
                    prices[token.index()] = Some(price);
                    layer.push(token);
                }
            }
            if root == base {
                of_base = prices.iter().map(Option::is_some).collect();
            }
        }
        let prices = prices.into_iter().map(|price| price.unwrap_or(0)).collect();
        let mut this = Self {
            prices,
            ranked: Vec::new(),
        };
        let mut ranked: Vec<_> = market
            .pool_ids()
            .filter(|&id| market.pool(id).is_usable())
            .collect();
        // The poorer side counts: a heap of a worthless token does not make a pool large.
        ranked.sort_by_cached_key(|&id| {
            let (value0, value1) = this.values(market, id);
            let foreign = !of_base[market.pool(id).token0.index()];
            (foreign, Reverse(value0.min(value1)), id)
        });
        this.ranked = ranked;
        this
    }

    /// Usable pools, the largest first.
    pub(super) fn ranked(&self) -> &[PoolId] {
        &self.ranked
    }

    /// log₂ of what the two sides of a pool are worth.
    fn values(&self, market: &Market, id: PoolId) -> (i64, i64) {
        let pool = market.pool(id);
        (
            log2_q32(pool.reserve0) + self.prices[pool.token0.index()],
            log2_q32(pool.reserve1) + self.prices[pool.token1.index()],
        )
    }

    /// By what factor the first side of a pool is worth more than the second, as log₂ with 32
    /// fractional bits.
    pub(super) fn gap(&self, market: &Market, id: PoolId) -> i64 {
        let (value0, value1) = self.values(market, id);
        value0 - value1
    }

    /// The swap that takes a pool to its fair price but for the fee, if that is worth the fee.
    ///
    /// Growing one reserve by the factor √g and shrinking the other by it closes a gap of g. The input
    /// is computed as ln √g of the reserve, which is less than √g - 1, and at most ln 2 of it: a wide
    /// gap is closed in several steps, and none goes too far.
    pub(super) fn correction(&self, market: &Market, id: PoolId) -> Option<(Direction, u128)> {
        let gap = self.gap(market, id);
        let direction = if gap < 0 {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        };
        let hop = market.hop(id, direction);
        let fee = log2_q32(hop.fee.den().into()) - log2_q32(hop.fee.num().into());
        let excess = i64::try_from(gap.unsigned_abs()).ok()?.checked_sub(fee)?;
        let share_q16 = (((excess / 2).min(ONE_Q32) >> 16) * LN2_Q16) >> 16;
        let share_q16 = u128::try_from(share_q16).ok()?;
        // 112 bits of reserve and 16 of share.
        let amount = (hop.reserve_in * share_q16) >> 16;
        (amount > 0).then_some((direction, amount))
    }
}
