//! Pools from text, and their reserves from block to block.

use super::staircase::{Hop, RESERVE_MAX};
use num_bigint::BigUint;
use std::collections::BTreeMap;
use thiserror::Error;

/// A pool and the way it is traded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The pool's place in the market.
    pub pool: usize,
    /// Whether the first token goes in.
    pub first_in: bool,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its address, in lower case.
    pub address: String,
    /// Its two tokens by their places in the market.
    pub tokens: [usize; 2],
    /// Trading the first token in, and the second one.
    hops: [Hop; 2],
}

/// Pools and tokens by number.
#[derive(Clone, Debug, Default)]
pub struct Market {
    /// The addresses of the tokens, in lower case.
    tokens: Vec<String>,
    pools: Vec<Pool>,
    token_places: BTreeMap<String, usize>,
    pool_places: BTreeMap<String, usize>,
}

/// Why a text is no list of pools.
#[derive(Debug, Error)]
pub enum TextError {
    /// A column is missing.
    #[error("no column {0}")]
    Column(&'static str),
    /// A row is short or holds no number where it must.
    #[error("line {line}: {text:?} is no row of pools")]
    Row {
        /// From 1.
        line: usize,
        /// The row.
        text: String,
    },
}

/// A reserve that no pool can trade with.
#[derive(Debug, Error)]
#[error("pool {pool} is said to hold {reserve}, which is not from 1 to 2^112 - 1")]
pub struct ReserveError {
    /// Its address.
    pub pool: String,
    /// The reserve.
    pub reserve: BigUint,
}

impl Market {
    /// Adds the pools of a text whose first line names the columns. A pool with an empty reserve, or
    /// one that trades its own shares, can be in no trade and is left out.
    pub fn read(&mut self, text: &str) -> Result<(), TextError> {
        let mut lines = text.lines().enumerate();
        let names: Vec<&str> = lines
            .next()
            .map_or("", |(_, names)| names)
            .split(',')
            .collect();
        let column = |name| {
            let place = names.iter().position(|given| *given == name);
            place.ok_or(TextError::Column(name))
        };
        let columns = [
            column("pair")?,
            column("token0")?,
            column("token1")?,
            column("reserve0")?,
            column("reserve1")?,
        ];
        for (place, text) in lines.filter(|(_, text)| !text.is_empty()) {
            let row = || {
                let cells: Vec<&str> = text.split(',').collect();
                let [pair, one, two, have_one, have_two] =
                    columns.map(|column| cells.get(column).copied());
                let reserves = [decimal(have_one?)?, decimal(have_two?)?];
                Some((pair?.to_lowercase(), [one?, two?], reserves))
            };
            let (address, tokens, reserves) = row().ok_or_else(|| TextError::Row {
                line: place + 1,
                text: text.to_owned(),
            })?;
            let tokens = tokens.map(str::to_lowercase);
            let empty = reserves.contains(&BigUint::ZERO);
            if empty || tokens.contains(&address) {
                continue;
            }
            let tokens = tokens.map(|token| self.add_token(token));
            self.pool_places.insert(address.clone(), self.pools.len());
            self.pools.push(Pool {
                address,
                tokens,
                hops: both_ways(&reserves),
            });
        }
        Ok(())
    }

    fn add_token(&mut self, address: String) -> usize {
        let next = self.tokens.len();
        let place = *self.token_places.entry(address.clone()).or_insert(next);
        if place == next {
            self.tokens.push(address);
        }
        place
    }

    /// The pools.
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// How many tokens there are.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// The place of the token with that address.
    #[must_use]
    pub fn token(&self, address: &str) -> Option<usize> {
        self.token_places.get(address).copied()
    }

    /// The place of the pool with that address.
    #[must_use]
    pub fn pool(&self, address: &str) -> Option<usize> {
        self.pool_places.get(address).copied()
    }

    /// The tokens that go in and come out.
    #[must_use]
    pub fn tokens_of(&self, step: Step) -> (usize, usize) {
        let [first, second] = self.pools[step.pool].tokens;
        if step.first_in {
            (first, second)
        } else {
            (second, first)
        }
    }

    /// What a trade through these pools depends on, hop by hop.
    #[must_use]
    pub fn hops(&self, steps: &[Step]) -> Vec<&Hop> {
        let hop = |step: &Step| &self.pools[step.pool].hops[usize::from(!step.first_in)];
        steps.iter().map(hop).collect()
    }

    /// The addresses of the pools, joined as in the bot's records.
    #[must_use]
    pub fn path(&self, steps: &[Step]) -> String {
        let addresses: Vec<&str> = steps
            .iter()
            .map(|step| self.pools[step.pool].address.as_str())
            .collect();
        addresses.join("-")
    }

    /// Sets the reserves of a pool.
    pub fn set(&mut self, pool: usize, reserves: &[BigUint; 2]) -> Result<(), ReserveError> {
        let pool = &mut self.pools[pool];
        for reserve in reserves {
            if *reserve == BigUint::ZERO || *reserve > *RESERVE_MAX {
                return Err(ReserveError {
                    pool: pool.address.clone(),
                    reserve: reserve.clone(),
                });
            }
        }
        pool.hops = both_ways(reserves);
        Ok(())
    }
}

fn both_ways([first, second]: &[BigUint; 2]) -> [Hop; 2] {
    [Hop::new(first, second), Hop::new(second, first)]
}

/// A number of decimal digits and nothing else.
#[must_use]
pub fn decimal(text: &str) -> Option<BigUint> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
