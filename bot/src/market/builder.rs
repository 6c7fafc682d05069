//! Puts a [`Market`] together and refuses what would break its invariants.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::solver::Fee;

use super::{
    Address, Exchange, ExchangeId, MAX_RESERVE, Market, Pool, PoolId, Token, TokenId, UntrustedText,
};

/// Why something was not added. The builder is as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Ids for this kind of thing have run out.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// Exchanges, tokens or pools.
        what: &'static str,
        /// The most there can be.
        limit: u32,
    },
    /// The token was added before with other decimals.
    #[error("token {address} has {known} decimals already and cannot have {decimals} too")]
    Decimals {
        /// The token.
        address: Address,
        /// What it was added with.
        known: u8,
        /// What it was to be added with.
        decimals: u8,
    },
    /// The pool was added before.
    #[error("pool {address} is in the market already")]
    DuplicatePool {
        /// The pool.
        address: Address,
    },
    /// Both sides are the same token.
    #[error("pool {address} trades token {token} for itself; its two tokens must differ")]
    SameToken {
        /// The pool.
        address: Address,
        /// The token.
        token: Address,
    },
    /// The exchange is not in the market.
    #[error("pool {address} is on an exchange that the market does not have; it has {exchanges}")]
    UnknownExchange {
        /// The pool.
        address: Address,
        /// How many exchanges the market has.
        exchanges: usize,
    },
    /// A reserve has more than 112 bits.
    #[error(
        "pool {address}: a reserve of {reserve} has more than 112 bits; pools cannot hold that"
    )]
    ReserveTooLarge {
        /// The pool.
        address: Address,
        /// The reserve.
        reserve: u128,
    },
}

/// A [`Market`] in the making.
#[derive(Clone, Debug)]
pub struct MarketBuilder {
    market: Market,
}

impl Default for MarketBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl MarketBuilder {
    /// A market without anything.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            market: Market {
                exchanges: Vec::new(),
                tokens: Vec::new(),
                pools: Vec::new(),
                token_ids: BTreeMap::new(),
                pool_ids: BTreeMap::new(),
            },
        }
    }

    /// Adds an exchange. Names are labels: two exchanges may share one.
    pub fn exchange(&mut self, name: UntrustedText, fee: Fee) -> Result<ExchangeId, BuildError> {
        let id = u16::try_from(self.market.exchanges.len()).map_err(|_| BuildError::TooMany {
            what: "exchanges",
            limit: 1 << 16,
        })?;
        self.market.exchanges.push(Exchange { name, fee });
        Ok(ExchangeId(id))
    }

    /// Adds a token, or finds it again. Its first symbol stays: symbols are labels that a contract may
    /// change, decimals are constants.
    pub fn token(
        &mut self,
        address: Address,
        decimals: u8,
        symbol: &UntrustedText,
    ) -> Result<TokenId, BuildError> {
        match self.market.token_ids.entry(address) {
            Entry::Occupied(known) => {
                let id = *known.get();
                let known = self.market.tokens[id.index()].decimals;
                if known == decimals {
                    Ok(id)
                } else {
                    Err(BuildError::Decimals {
                        address,
                        known,
                        decimals,
                    })
                }
            }
            Entry::Vacant(place) => {
                let id = next_id(self.market.tokens.len(), "tokens").map(TokenId)?;
                place.insert(id);
                self.market.tokens.push(Token {
                    address,
                    decimals,
                    symbol: symbol.clone(),
                });
                Ok(id)
            }
        }
    }

    /// Adds a pool.
    ///
    /// # Panics
    /// If a token's id did not come from this builder.
    pub fn pool(&mut self, pool: Pool) -> Result<PoolId, BuildError> {
        let address = pool.address;
        if pool.token0 == pool.token1 {
            let token = self.market.token(pool.token0).address;
            return Err(BuildError::SameToken { address, token });
        }
        let reserve = pool.reserve0.max(pool.reserve1);
        if reserve > MAX_RESERVE {
            return Err(BuildError::ReserveTooLarge { address, reserve });
        }
        let Entry::Vacant(place) = self.market.pool_ids.entry(address) else {
            return Err(BuildError::DuplicatePool { address });
        };
        let id = next_id(self.market.pools.len(), "pools").map(PoolId)?;
        place.insert(id);
        self.market.pools.push(pool);
        Ok(id)
    }

    /// The finished market.
    #[must_use]
    pub fn build(self) -> Market {
        self.market
    }
}

/// The id of the next thing when there are `count` already; the last number is never given out, so a
/// count fits too.
pub(super) fn next_id(count: usize, what: &'static str) -> Result<u32, BuildError> {
    u32::try_from(count)
        .ok()
        .filter(|&id| id != u32::MAX)
        .ok_or(BuildError::TooMany {
            what,
            limit: u32::MAX,
        })
}
