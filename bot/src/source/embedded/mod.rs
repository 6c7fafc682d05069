//! Blocks made up from a seed, over a made-up market or over real pools.
//!
//! In each block traders move some pools by a random amount in a random direction, and an arbitrageur
//! moves pools that traders moved in earlier blocks back to their fair price. So gaps open, last for a
//! block or more, and close again, and the market stays near where it started.
//!
//! Fair prices are those of the market as it was given: the price of a token is taken from the deepest
//! pool that leads towards the base token. Where a market's pools disagree at the start, they go on to
//! do so until a trader has moved them.
//!
//! # Invariants
//! - The same market, base, and [`Config`] give the same blocks, on every platform: there is no
//!   floating point and no order but that of ids.
//! - Every move is an exact constant-product swap with the exchange's fee: the product of a pool's
//!   reserves never falls, and reserves stay from 1 to 2¹¹² - 1.

mod fixed;
mod generate;
mod prices;

pub use generate::{GenerateError, Generated, MarketConfig, generate};
use prices::Prices;

use super::rng::{SplitMix64, mix};
use super::{Block, BlockHash, BlockSource, Event, SourceError};
use crate::market::{Direction, Market, PoolId, ReserveUpdate, TokenId};

/// Seconds between the timestamps of two blocks, as on the main chain.
const BLOCK_SECONDS: u64 = 12;

/// What blocks to make up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// All follows from it.
    pub seed: u64,
    /// How many blocks; `None` for no end.
    pub blocks: Option<u64>,
    /// How many pools a block moves on average, from half to one and a half times as many; fewer
    /// where the market has few.
    pub moves: u32,
    /// How many of the moves are the arbitrageur's if it finds enough to do, in percent: from 0 to 100.
    pub arbitrage_percent: u8,
}

impl Config {
    /// Twenty moves a block, half of them the arbitrageur's, without end.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            blocks: None,
            moves: 20,
            arbitrage_percent: 50,
        }
    }
}

/// Why no blocks can be made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No pool can be moved.
    #[error("none of the market's {pools} pools has both reserves, so no block can move any")]
    NoUsablePool {
        /// How many pools the market has.
        pools: usize,
    },
    /// The share of arbitrage is no percentage.
    #[error("{percent} % of the moves cannot be arbitrage; the share is from 0 to 100")]
    ArbitragePercent {
        /// The share.
        percent: u8,
    },
}

/// Trades are from 2⁻¹² to 2⁻⁵ of the reserve (0.02 % to 6 %), each power of two as likely: the larger
/// half opens gaps wider than two fees of 0.3 %.
const TRADE_SHIFT: (u64, u64) = (5, 12);

/// How often a pool is chosen for each move that a block is to have, at most: a market may be too small
/// for so many.
const TRIES_PER_MOVE: u64 = 4;

/// A source of made-up blocks.
#[derive(Clone, Debug)]
pub struct EmbeddedSource {
    config: Config,
    market: Market,
    prices: Prices,
    rng: SplitMix64,
    number: u64,
    parent: BlockHash,
    gaps: Gaps,
}

impl EmbeddedSource {
    /// Blocks over `market` from its current reserves on, with prices in `base`. The first block is
    /// number 1.
    pub fn new(market: Market, base: TokenId, config: Config) -> Result<Self, ConfigError> {
        if config.arbitrage_percent > 100 {
            return Err(ConfigError::ArbitragePercent {
                percent: config.arbitrage_percent,
            });
        }
        let pools = market.pools().len();
        let prices = Prices::new(&market, base);
        if prices.ranked().is_empty() {
            return Err(ConfigError::NoUsablePool {
                pools: market.pools().len(),
            });
        }
        Ok(Self {
            config,
            market,
            prices,
            rng: SplitMix64::new(config.seed),
            number: 0,
            parent: hash([config.seed]),
            gaps: Gaps::new(pools),
        })
    }

    /// The market as the last block left it.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    fn updates(&mut self) -> Result<Vec<ReserveUpdate>, SourceError> {
        let moves = u64::from(self.config.moves);
        let wanted = self.rng.between(moves.div_ceil(2), moves + moves / 2);
        let (mut updates, mut pools) = (Vec::new(), Vec::new());
        // A choice may fall on a pool that has moved in this block, or on one that cannot move.
        for _ in 0..wanted * TRIES_PER_MOVE {
            if updates.len() as u64 == wanted {
                break;
            }
            let arbitrage = self.rng.percent(self.config.arbitrage_percent);
            let choice = if arbitrage {
                self.correction(&pools)
            } else {
                Some(self.trade())
            };
            let Some((pool, direction, amount)) = choice.filter(|c| !pools.contains(&c.0)) else {
                continue;
            };
            let Some(update) = self.swap(pool, direction, amount) else {
                continue;
            };
            let number = self.number;
            self.market
                .apply(&update)
                .map_err(|problem| SourceError::Update { number, problem })?;
            if !arbitrage {
                self.gaps.open(pool);
            }
            pools.push(pool);
            updates.push(update);
        }
        Ok(updates)
    }

    /// A trader's choice: any pool, the larger the likelier.
    fn trade(&mut self) -> (PoolId, Direction, u128) {
        // Each power of two of ranks is as likely, so a pool's chance falls with its rank.
        let ranked = self.prices.ranked();
        let magnitude = self.rng.between(0, u64::from(ranked.len().ilog2()));
        let low = (1_usize << magnitude) - 1;
        let high = (2 * low).min(ranked.len() - 1);
        let rank = self.rng.between(low as u64, high as u64);
        let pool = ranked[usize::try_from(rank).unwrap_or(low)];
        let direction = if self.rng.percent(50) {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        };
        let reserve = self.market.hop(pool, direction).reserve_in;
        // An eighth of the power of two at a time, from one to nearly two.
        let eighths = u128::from(self.rng.between(8, 15));
        let shift = self.rng.between(TRADE_SHIFT.0, TRADE_SHIFT.1);
        (pool, direction, ((reserve * eighths) >> (shift + 3)) + 1)
    }

    /// The arbitrageur's choice: a pool that traders have moved off its fair price, in another block
    /// than this, which has moved `pools` so far.
    fn correction(&mut self, pools: &[PoolId]) -> Option<(PoolId, Direction, u128)> {
        let pool = self
            .gaps
            .choose(&mut self.rng)
            .filter(|pool| !pools.contains(pool))?;
        self.gaps.close(pool);
        let (direction, amount) = self.prices.correction(&self.market, pool)?;
        Some((pool, direction, amount))
    }

    /// The pool after a swap, if it can be made.
    fn swap(&self, pool: PoolId, direction: Direction, amount: u128) -> Option<ReserveUpdate> {
        let hop = self.market.hop(pool, direction).hop()?;
        let out = hop.forward(amount).filter(|out| *out > 0)?;
        let (reserve_in, reserve_out) = (hop.reserve_in() + amount, hop.reserve_out() - out);
        let (reserve0, reserve1) = match direction {
            Direction::ZeroForOne => (reserve_in, reserve_out),
            Direction::OneForZero => (reserve_out, reserve_in),
        };
        Some(ReserveUpdate {
            pool,
            reserve0,
            reserve1,
        })
    }
}

impl BlockSource for EmbeddedSource {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        if self
            .config
            .blocks
            .is_some_and(|blocks| self.number >= blocks)
            || self.number == u64::MAX
        {
            return Ok(None);
        }
        self.number += 1;
        let updates = self.updates()?;
        let (number, parent) = (self.number, self.parent);
        let hash = block_hash(number, parent, &updates);
        self.parent = hash;
        Ok(Some(Event::Block(Block {
            number,
            hash,
            parent,
            timestamp: number.saturating_mul(BLOCK_SECONDS),
            base_fee: None,
            updates,
        })))
    }
}

/// The pools that traders have moved and the arbitrageur has not looked at since.
#[derive(Clone, Debug)]
struct Gaps {
    pools: Vec<PoolId>,
    /// Where each pool of the market is in `pools`.
    places: Vec<Option<usize>>,
}

impl Gaps {
    fn new(pools: usize) -> Self {
        Self {
            pools: Vec::new(),
            places: vec![None; pools],
        }
    }

    fn open(&mut self, pool: PoolId) {
        let place = &mut self.places[pool.index()];
        if place.is_none() {
            *place = Some(self.pools.len());
            self.pools.push(pool);
        }
    }

    fn close(&mut self, pool: PoolId) {
        if let Some(place) = self.places[pool.index()].take() {
            self.pools.swap_remove(place);
            if let Some(last) = self.pools.get(place) {
                self.places[last.index()] = Some(place);
            }
        }
    }

    fn choose(&self, rng: &mut SplitMix64) -> Option<PoolId> {
        let place = rng.below(self.pools.len() as u64);
        self.pools.get(usize::try_from(place).ok()?).copied()
    }
}

/// The hash of a made-up block: of its parent's hash, its number and its updates, so that two chains
/// that part never share a hash again.
#[expect(
    clippy::cast_possible_truncation,
    reason = "halves of 128 bits have 64"
)]
fn block_hash(number: u64, parent: BlockHash, updates: &[ReserveUpdate]) -> BlockHash {
    let halves = |x: u128| [x >> 64, x & u128::from(u64::MAX)].map(|half| half as u64);
    let words = parent
        .0
        .chunks_exact(8)
        .map(|bytes| bytes.iter().fold(0, |w, &b| w << 8 | u64::from(b)));
    hash(
        words
            .chain([number])
            .chain(updates.iter().flat_map(|update| {
                let ([a, b], [c, d]) = (halves(update.reserve0), halves(update.reserve1));
                [update.pool.number().into(), a, b, c, d]
            })),
    )
}

/// 256 bits that follow from `words`: four chains of the generator's finaliser that start apart. It is
/// no cryptographic hash: it keeps accidents apart, not adversaries.
fn hash(words: impl IntoIterator<Item = u64>) -> BlockHash {
    let mut lanes = [1, 2, 3, 4].map(mix);
    for word in words {
        lanes = lanes.map(|lane| mix(lane.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word));
    }
    let mut bytes = [0; 32];
    for (chunk, lane) in bytes.chunks_exact_mut(8).zip(lanes) {
        chunk.copy_from_slice(&lane.to_be_bytes());
    }
    BlockHash(bytes)
}

#[cfg(test)]
mod tests;
