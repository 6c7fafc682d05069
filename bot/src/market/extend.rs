//! A market that grows while it is followed.

use super::{BuildError, MAX_RESERVE, Market, Pool, PoolId, Token, TokenId};
use crate::source::NewPool;

impl Market {
    /// Adds a pool without reserves, and its tokens where they are not known yet. What a builder refuses is
    /// refused, and nothing is added then.
    ///
    /// Its number is the next; a source that numbers the pools it found does so by this.
    pub fn extend(&mut self, new: &NewPool) -> Result<PoolId, BuildError> {
        let address = new.address;
        let exchanges = self.exchanges.len();
        if new.exchange.index() >= exchanges {
            return Err(BuildError::UnknownExchange { address, exchanges });
        }
        if new.token0.address == new.token1.address {
            let token = new.token0.address;
            return Err(BuildError::SameToken { address, token });
        }
        let reserve = new.reserve0.max(new.reserve1);
        if reserve > MAX_RESERVE {
            return Err(BuildError::ReserveTooLarge { address, reserve });
        }
        if self.pool_ids.contains_key(&address) {
            return Err(BuildError::DuplicatePool { address });
        }
        // All that can be refused comes before the first change.
        let unknown = [&new.token0, &new.token1].map(|token| self.check_token(token));
        let unknown = u32::from(unknown[0].clone()?) + u32::from(unknown[1].clone()?);
        room(self.tokens.len(), unknown, "tokens")?;
        room(self.pools.len(), 1, "pools")?;
        let pool = Pool {
            address,
            exchange: new.exchange,
            token0: self.add_token(&new.token0)?,
            token1: self.add_token(&new.token1)?,
            reserve0: 0,
            reserve1: 0,
        };
        let id = super::builder::next_id(self.pools.len(), "pools").map(PoolId)?;
        self.pool_ids.insert(address, id);
        self.pools.push(pool);
        Ok(id)
    }

    /// Whether the token is not known; refused if it is known as another.
    fn check_token(&self, token: &Token) -> Result<bool, BuildError> {
        let (address, decimals) = (token.address, token.decimals);
        match self.token_ids.get(&address) {
            None => Ok(true),
            Some(id) if self.token(*id).decimals == decimals => Ok(false),
            Some(id) => Err(BuildError::Decimals {
                address,
                known: self.token(*id).decimals,
                decimals,
            }),
        }
    }

    fn add_token(&mut self, token: &Token) -> Result<TokenId, BuildError> {
        if let Some(known) = self.token_ids.get(&token.address) {
            return Ok(*known);
        }
        let id = super::builder::next_id(self.tokens.len(), "tokens").map(TokenId)?;
        self.token_ids.insert(token.address, id);
        self.tokens.push(token.clone());
        Ok(id)
    }
}

/// Whether there are ids for `more`.
fn room(count: usize, more: u32, what: &'static str) -> Result<(), BuildError> {
    match more.checked_sub(1) {
        None => Ok(()),
        Some(last) => super::builder::next_id(count.saturating_add(last as usize), what).map(drop),
    }
}
