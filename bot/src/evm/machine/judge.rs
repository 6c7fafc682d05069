//! Who makes the bytecode and the integers differ, and which fee an exchange takes.
//!
//! # Invariants
//! - What a pool's own reserves explain is put down to the pool, before any token is blamed.
//! - A question that could not be asked marks nothing.

use super::{Case, CaseHop, Machine, Run};
use crate::evm::job::{Ask, EvmAnswer};
use crate::evm::marks::{Reason, What};
use crate::market::{Address, ExchangeId, Market, PoolId};
use crate::node::plain;
use crate::pipeline::PumpError;
use crate::solver;
use alloy_primitives::U256;
use regatta_evm::{Cause, DEFAULT_GAS, FeeAnswer, FeeQuery, pair};

/// The most pools of an exchange that are tried for its fee.
const FEE_POOLS: usize = 3;

const MILLION: u64 = 1_000_000;

impl Machine {
    /// Finds who makes a case differ, and marks it.
    pub(super) fn judge(
        &mut self,
        market: &Market,
        case: &Case,
        run: &mut Run<'_>,
    ) -> Result<(), PumpError> {
        for hop in &case.hops {
            let slot = self.state.slot(plain(hop.address), pair::RESERVES);
            let Some(of) = slot.map(pair::Reserves::unpack) else {
                continue;
            };
            let [reserve0, reserve1] = hop.reserves.map(U256::from);
            if U256::from(of.reserve0) != reserve0 || U256::from(of.reserve1) != reserve1 {
                self.mark(market, What::Pool(hop.pool), Reason::ReservesDiffer, hop);
                return Ok(());
            }
        }
        let Ok(EvmAnswer::Blamed(Some(blame))) =
            self.answer(&Ask::Blame(case.call.clone()), run)?
        else {
            tracing::error!("nobody is found to blame for cycle {}", case.cycle.number());
            return Ok(());
        };
        let Some(hop) = case.hops.get(blame.hop) else {
            return Ok(());
        };
        let base = case.call.base;
        let token = blame
            .token
            .filter(|token| *token != base)
            .and_then(|token| {
                let mut tokens = hop.tokens.into_iter();
                tokens.find(|id| plain(market.token(*id).address) == token)
            });
        match (token, blame.cause) {
            (Some(token), _) => self.mark(market, What::Token(token), Reason::TokenLies, hop),
            (None, Cause::Fee) => {
                let found = self.fee(market, hop.pool, run)?;
                if let Some((configured, FeeAnswer::Takes(fee))) = found
                    && !configured.iter().any(|ppm| fee.fits(*ppm))
                {
                    self.mark_fee(market, hop.exchange, configured, fee, hop.address);
                } else {
                    self.mark(market, What::Pool(hop.pool), Reason::PoolFails, hop);
                }
            }
            (None, _) => self.mark(market, What::Pool(hop.pool), Reason::PoolFails, hop),
        }
        Ok(())
    }

    fn mark(&mut self, market: &Market, what: What, reason: Reason, hop: &CaseHop) {
        self.marks.add(market, what, reason, hop.address);
    }

    fn mark_fee(
        &mut self,
        market: &Market,
        exchange: ExchangeId,
        configured: [u32; 2],
        found: regatta_evm::Fee,
        at: Address,
    ) {
        let reason = Reason::FeeDiffers {
            configured: configured[0],
            least: found.least_ppm,
            most: found.most_ppm,
        };
        self.marks.add(market, What::Exchange(exchange), reason, at);
    }

    /// Compares the fee of each exchange that was not compared yet with what one of its pools takes.
    pub(crate) fn compare_fees(
        &mut self,
        market: &Market,
        run: &mut Run<'_>,
    ) -> Result<(), PumpError> {
        let number = u16::try_from(market.exchanges().len()).unwrap_or(u16::MAX);
        for exchange in (0..number).map(ExchangeId::new) {
            if self.over || self.compared.contains(&exchange) {
                continue;
            }
            let mut pools: Vec<_> = market
                .pool_ids()
                .map(|id| (id, market.pool(id)))
                .filter(|(id, pool)| {
                    pool.exchange == exchange && pool.is_usable() && !self.marks.covers(*id, pool)
                })
                .map(|(id, pool)| (pool.reserve0.min(pool.reserve1), id))
                .collect();
            pools.sort_unstable_by_key(|(depth, id)| (std::cmp::Reverse(*depth), *id));
            let mut tried = 0;
            for (_, pool) in pools.into_iter().take(FEE_POOLS) {
                tried += 1;
                let Some((configured, answer)) = self.fee(market, pool, run)? else {
                    break;
                };
                let FeeAnswer::Takes(fee) = answer else {
                    continue;
                };
                self.compared.insert(exchange);
                if !configured.iter().any(|ppm| fee.fits(*ppm)) {
                    let at = market.pool(pool).address;
                    self.mark_fee(market, exchange, configured, fee, at);
                }
                break;
            }
            if tried > 0 && !self.over && self.compared.insert(exchange) {
                let name = &market.exchange(exchange).name;
                tracing::warn!("exchange {name}: no pool tells which fee it takes");
            }
        }
        Ok(())
    }

    /// The fee that is configured for a pool, rounded down and up to parts per million, and what its code says; `None` if it
    /// could not be asked.
    fn fee(
        &mut self,
        market: &Market,
        pool: PoolId,
        run: &mut Run<'_>,
    ) -> Result<Option<([u32; 2], FeeAnswer)>, PumpError> {
        let Some(block) = self.next_block() else {
            return Ok(None);
        };
        let pool = market.pool(pool);
        let configured = ppm(market.exchange(pool.exchange).fee);
        let query = FeeQuery {
            block,
            gas: DEFAULT_GAS,
            pool: plain(pool.address),
            zero_for_one: true,
            amount_in: U256::from(pool.reserve0 / 10).max(U256::ONE),
            configured_ppm: configured[0],
        };
        Ok(match self.answer(&Ask::Fee(query), run)? {
            Ok(EvmAnswer::Fee(answer)) => Some((configured, answer)),
            Ok(_) => None,
            Err(why) => {
                let at = pool.address;
                tracing::warn!("pool {at}: its fee could not be compared: {why}");
                None
            }
        })
    }
}

/// A fee in parts per million of the input, rounded down and up.
fn ppm(fee: solver::Fee) -> [u32; 2] {
    let (kept, whole) = (u64::from(fee.num()), u64::from(fee.den()));
    let taken = whole.saturating_sub(kept) * MILLION;
    let whole = whole.max(1);
    [taken / whole, taken.div_ceil(whole)].map(|ppm| u32::try_from(ppm).unwrap_or(u32::MAX))
}
