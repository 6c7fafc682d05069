//! The market: exchanges, tokens and pools under dense ids, and the pools' current reserves.
//!
//! A market is put together once ([`MarketBuilder`], or [`csv`] from files). After that pools may come
//! ([`Market::extend`]), none goes, and reserves change, one [`ReserveUpdate`] at a time; [`Market::apply`] returns the update that takes it back,
//! so a journal of what it returned rolls back any number of blocks.
//!
//! # Invariants
//! - Ids are dense and follow the order in which things were added: exchange, token and pool `i` are
//!   the `i`-th. Two markets that were built alike have the same ids.
//! - Addresses are unique among tokens and among pools; the two tokens of a pool differ.
//! - A reserve is below 2¹¹². It may be zero, and then the pool is not [usable](Pool::is_usable).
//! - Decimals and symbols are for people to read. No computation uses them.

mod address;
mod builder;
pub mod csv;
mod extend;
mod text;

use crate::solver::{Fee, Hop};
use std::collections::BTreeMap;

pub use address::{Address, AddressError};
pub use builder::{BuildError, MarketBuilder};
pub use text::UntrustedText;

/// The largest reserve a pool can have: pools keep reserves in 112 bits.
pub const MAX_RESERVE: u128 = (1 << 112) - 1;

/// A pool by its place in the market.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolId(u32);

/// A token by its place in the market.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TokenId(u32);

/// An exchange by its place in the market.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(u16);

impl PoolId {
    /// The id with this number. Whether a market has such a pool is for the market to say.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number, for output.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The place in a table with one row per pool.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TokenId {
    /// The number, for output.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The place in a table with one row per token.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ExchangeId {
    /// The id with this number. Whether a market has such an exchange is for the market to say.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The place in a table with one row per exchange.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of pools that share one fee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// What it is called in output.
    pub name: UntrustedText,
    /// What part of the input it trades.
    pub fee: Fee,
}

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// The token contract.
    pub address: Address,
    /// Decimal places for display. Any value is possible, sensible ones end at 18 or so.
    pub decimals: u8,
    /// The name for display; it may be empty, and many tokens may share it.
    pub symbol: UntrustedText,
}

/// A constant-product pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The pool contract.
    pub address: Address,
    /// Where it trades, which determines its fee.
    pub exchange: ExchangeId,
    /// The first token.
    pub token0: TokenId,
    /// The second token.
    pub token1: TokenId,
    /// Reserve of the first token in its smallest unit.
    pub reserve0: u128,
    /// Reserve of the second token in its smallest unit.
    pub reserve1: u128,
}

impl Pool {
    /// Whether the pool can trade: neither reserve is zero.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.reserve0 != 0 && self.reserve1 != 0
    }
}

/// Which way a pool is traded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// The first token goes in, the second comes out.
    ZeroForOne,
    /// The second token goes in, the first comes out.
    OneForZero,
}

/// All that a trade through one pool in one direction depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopState {
    /// Reserve of the token that goes in, in its smallest unit.
    pub reserve_in: u128,
    /// Reserve of the token that comes out, in its smallest unit.
    pub reserve_out: u128,
    /// What part of the input is traded.
    pub fee: Fee,
}

impl HopState {
    /// The hop that the solver computes with, or `None` where a reserve is zero.
    #[must_use]
    pub fn hop(&self) -> Option<Hop> {
        Hop::new(self.reserve_in, self.reserve_out, self.fee).ok()
    }
}

/// The reserves of one pool after something moved it: what a `Sync` event says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReserveUpdate {
    /// The pool.
    pub pool: PoolId,
    /// Its reserve of the first token.
    pub reserve0: u128,
    /// Its reserve of the second token.
    pub reserve1: u128,
}

/// Why an update was refused. The market is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The market has no such pool.
    #[error("pool number {} is not in the market, which has {pools} pools", pool.number())]
    UnknownPool {
        /// The pool of the update.
        pool: PoolId,
        /// How many the market has.
        pools: usize,
    },
    /// A reserve has more than 112 bits.
    #[error(
        "pool {address}: a reserve of {reserve} has more than 112 bits; pools cannot hold that"
    )]
    ReserveTooLarge {
        /// The pool's address.
        address: Address,
        /// The reserve.
        reserve: u128,
    },
}

/// Exchanges, tokens, pools and their reserves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Market {
    exchanges: Vec<Exchange>,
    tokens: Vec<Token>,
    pools: Vec<Pool>,
    token_ids: BTreeMap<Address, TokenId>,
    pool_ids: BTreeMap<Address, PoolId>,
}

impl Market {
    /// All exchanges, by id.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// All tokens, by id.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// All pools, by id.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// All pool ids, ascending.
    pub fn pool_ids(&self) -> impl ExactSizeIterator<Item = PoolId> + use<> {
        // The builder hands out ids as `u32`, so the count fits.
        (0..u32::try_from(self.pools.len()).unwrap_or(u32::MAX)).map(PoolId)
    }

    /// The exchange of that id.
    ///
    /// # Panics
    /// If the id comes from another, larger market; so do [`Market::token`], [`Market::pool`],
    /// [`Market::hop`] and [`Market::set_fee`].
    #[must_use]
    pub fn exchange(&self, id: ExchangeId) -> &Exchange {
        &self.exchanges[id.index()]
    }

    /// The token of that id.
    #[must_use]
    pub fn token(&self, id: TokenId) -> &Token {
        &self.tokens[id.index()]
    }

    /// The pool of that id.
    #[must_use]
    pub fn pool(&self, id: PoolId) -> &Pool {
        &self.pools[id.index()]
    }

    /// The token with that address, if any pool has it.
    #[must_use]
    pub fn token_by_address(&self, address: Address) -> Option<TokenId> {
        self.token_ids.get(&address).copied()
    }

    /// The pool with that address.
    #[must_use]
    pub fn pool_by_address(&self, address: Address) -> Option<PoolId> {
        self.pool_ids.get(&address).copied()
    }

    /// Whether the pool's own address is also one of the market's tokens: shares of that pool are
    /// traded in another pool.
    #[must_use]
    pub fn is_pool_a_token(&self, id: PoolId) -> bool {
        self.token_ids.contains_key(&self.pool(id).address)
    }

    /// What a trade through `pool` in `direction` depends on.
    #[must_use]
    pub fn hop(&self, pool: PoolId, direction: Direction) -> HopState {
        let pool = self.pool(pool);
        let exchange = self.exchange(pool.exchange);
        let (reserve_in, reserve_out) = match direction {
            Direction::ZeroForOne => (pool.reserve0, pool.reserve1),
            Direction::OneForZero => (pool.reserve1, pool.reserve0),
        };
        HopState {
            reserve_in,
            reserve_out,
            fee: exchange.fee,
        }
    }

    /// Sets the fee of an exchange.
    pub fn set_fee(&mut self, id: ExchangeId, fee: Fee) {
        self.exchanges[id.index()].fee = fee;
    }

    /// Sets a pool's reserves and returns the update that sets them back.
    ///
    /// Zero reserves are accepted: a token that shrinks by itself can bring a real pool there.
    pub fn apply(&mut self, update: &ReserveUpdate) -> Result<ReserveUpdate, ApplyError> {
        let pools = self.pools.len();
        let pool = self
            .pools
            .get_mut(update.pool.index())
            .ok_or(ApplyError::UnknownPool {
                pool: update.pool,
                pools,
            })?;
        let reserve = update.reserve0.max(update.reserve1);
        if reserve > MAX_RESERVE {
            return Err(ApplyError::ReserveTooLarge {
                address: pool.address,
                reserve,
            });
        }
        Ok(ReserveUpdate {
            pool: update.pool,
            reserve0: core::mem::replace(&mut pool.reserve0, update.reserve0),
            reserve1: core::mem::replace(&mut pool.reserve1, update.reserve1),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
