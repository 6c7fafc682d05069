//! The market as a node has it: found by factories, listed in files, or both, and checked.
//!
//! # Invariants
//! - Everything is read at one block.
//! - A pool of a file is followed only if the chain says of it what the file says. Its reserves are the chain's.
//! - What is refused is counted, and named in the log.

use super::NodeConfig;
use super::assemble::{head, token};
use super::bytes::{address, plain};
use super::link::{LinkError, call_line};
use crate::market::{Address, BuildError, ExchangeId, Market, MarketBuilder, Pool, UntrustedText};
use crate::solver::Fee;
use crate::source::Head;
use regatta_chain::pools::{self, FactoryError, Listed, PoolFacts, Surveyed};
use regatta_chain::read::Reader;
use regatta_chain::rpc::CallError;
use regatta_chain::types::Header;
use serde_json::json;
use std::collections::BTreeMap;
use thiserror::Error;

/// The most refused pools that are named in the log, one by one.
const NAMED: usize = 20;

/// Why there is no market.
#[derive(Debug, Error)]
pub enum SurveyError {
    /// There is no node, or not the right one.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The node stopped answering.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A factory is none, or too large.
    #[error(transparent)]
    Factory(#[from] FactoryError),
    /// The market cannot be put together.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The node has no latest block.
    #[error("the node has no latest block")]
    NoBlock,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The chain's id.
    pub chain_id: u64,
    /// The block at which everything was read.
    pub head: Head,
    /// The market.
    pub market: Market,
    /// The exchanges whose factories are known.
    pub exchanges: BTreeMap<Address, ExchangeId>,
    /// Pools that cannot be read, or are not what they are said to be.
    pub refused: u64,
    /// Pools without a reserve; they are followed, and traded once they have some.
    pub empty: u64,
}

/// Reads the market: the pools of the configuration's factories, and those of `listed`.
pub(super) async fn survey(config: &NodeConfig, listed: &[Listed]) -> Result<Found, SurveyError> {
    let (line, chain_id) = call_line(config).await?;
    let latest: Option<Header> = line
        .client
        .call("eth_getBlockByNumber", json!(["latest", false]))
        .await?;
    let latest = latest.ok_or(SurveyError::NoBlock)?;
    let reader = Reader::new(&line.client, latest.hash, config.reading);
    let mut market = Collected::default();
    let factories: Vec<_> = config.factories.iter().map(|f| plain(f.address)).collect();
    for factory in &config.factories {
        market.exchange(factory.address, factory.fee)?;
    }
    // What a file names is read by itself; a factory is asked for all that it has only where no file says which of
    // them are wanted.
    if listed.is_empty() {
        for factory in &factories {
            let found = pools::of_factory(&reader, *factory, config.most_pools).await?;
            market.take(&found)?;
        }
    } else {
        let found = pools::of_list(&reader, listed, &factories).await?;
        market.take(&found)?;
    }
    market.say();
    Ok(Found {
        chain_id,
        head: head(&latest),
        refused: market.refused,
        empty: market.empty,
        market: market.builder.build(),
        exchanges: market.exchanges,
    })
}

/// The market as far as it is read.
#[derive(Default)]
struct Collected {
    builder: MarketBuilder,
    exchanges: BTreeMap<Address, ExchangeId>,
    refused: u64,
    empty: u64,
    named: Vec<String>,
}

impl Collected {
    fn exchange(&mut self, factory: Address, fee: Fee) -> Result<ExchangeId, BuildError> {
        if let Some(known) = self.exchanges.get(&factory) {
            return Ok(*known);
        }
        let id = self
            .builder
            .exchange(UntrustedText::new(&factory.to_string()), fee)?;
        self.exchanges.insert(factory, id);
        Ok(id)
    }

    fn take(&mut self, found: &Surveyed) -> Result<(), BuildError> {
        for (at, why) in &found.refused {
            self.refuse(|| format!("{at}: {why}"));
        }
        for pool in &found.pools {
            // A token that says something else of its decimals to another pool, or a pool that is there twice: it
            // costs that pool.
            if let Err(error) = self.add(pool) {
                match error {
                    BuildError::TooMany { .. } => return Err(error),
                    error => self.refuse(|| error.to_string()),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, facts: &PoolFacts) -> Result<(), BuildError> {
        let exchange = self.exchange(address(facts.factory), Fee::default())?;
        let mut side = |facts| {
            let token = token(facts);
            self.builder
                .token(token.address, token.decimals, &token.symbol)
        };
        let (token0, token1) = (side(&facts.token0)?, side(&facts.token1)?);
        let pool = Pool {
            address: address(facts.address),
            exchange,
            token0,
            token1,
            reserve0: facts.reserve0,
            reserve1: facts.reserve1,
        };
        self.builder.pool(pool)?;
        self.empty += u64::from(!pool.is_usable());
        Ok(())
    }

    fn refuse(&mut self, why: impl FnOnce() -> String) {
        self.refused += 1;
        if self.named.len() < NAMED {
            self.named.push(why());
        }
    }

    fn say(&self) {
        if self.refused > 0 {
            tracing::warn!(
                "{} pools are refused, the first of them: {}",
                self.refused,
                self.named.join("; ")
            );
        }
    }
}
