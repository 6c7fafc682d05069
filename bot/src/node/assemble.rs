//! From what a chain did to what the pump is told.
//!
//! # Invariants
//! - The replica's pools have the ids that the pump's market has: both grow by the same pools in the same order, and
//!   what a market refuses is refused here, before the pump hears of it.
//! - A pool of a known factory only: anyone can emit a `PairCreated`.
//! - A log that is not exactly a `Sync` of a known pool changes nothing, and is counted.

use super::NodeConfig;
use super::bytes::{address, hash, plain};
use crate::market::{
    Address, ExchangeId, MAX_RESERVE, Market, ReserveUpdate, Token, UntrustedText,
};
use crate::source::{Block, Event, Head, NewPool};
use regatta_chain::abi::{self, Created};
use regatta_chain::pools::{self, TokenFacts};
use regatta_chain::read::Reader;
use regatta_chain::rpc::{CallError, Client};
use regatta_chain::types::{Header, Log};
use std::collections::BTreeMap;

/// What was passed over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passed {
    /// Pools that came and that the market refuses, or cannot hold.
    pub refused_pools: u64,
    /// Pools whose reserves could not be read when all were read anew; they are unusable until they move.
    pub unread_pools: u64,
    /// Logs with the topic of an event and another form.
    pub malformed_logs: u64,
    /// Moves of pools that are not followed.
    pub foreign_logs: u64,
}

/// Knows the pools that the pump knows.
pub(super) struct Assembler {
    market: Market,
    exchanges: BTreeMap<Address, ExchangeId>,
    most_pools: usize,
    /// Pools that were taken into the replica and that the pump was not told of yet: a reading failed in between.
    untold: Vec<NewPool>,
    pub(super) passed: Passed,
}

/// A header as the bot reads it.
pub(super) fn head(header: &Header) -> Head {
    Head {
        number: header.number.to(),
        hash: hash(header.hash),
        parent: hash(header.parent_hash),
        timestamp: header.timestamp.to(),
        base_fee: header
            .base_fee_per_gas
            .and_then(|fee| u128::try_from(fee).ok()),
    }
}

impl Assembler {
    /// Over the market that the pump starts with.
    pub(super) const fn new(
        market: Market,
        exchanges: BTreeMap<Address, ExchangeId>,
        config: &NodeConfig,
    ) -> Self {
        Self {
            market,
            exchanges,
            most_pools: config.most_pools,
            untold: Vec::new(),
            passed: Passed {
                refused_pools: 0,
                unread_pools: 0,
                malformed_logs: 0,
                foreign_logs: 0,
            },
        }
    }

    /// The addresses whose logs matter.
    pub(super) fn known(&self) -> Vec<alloy_primitives::Address> {
        let factories = self.exchanges.keys().copied();
        let pools = self.market.pools().iter().map(|pool| pool.address);
        factories.chain(pools).map(plain).collect()
    }

    /// What a block says to the pump: the pools that it made, and itself.
    pub(super) async fn block(
        &mut self,
        reader: &Reader<'_>,
        header: &Header,
        logs: &[Log],
    ) -> Result<Vec<Event>, CallError> {
        let mut events = Vec::new();
        let made = self.made(logs);
        if !made.is_empty() {
            self.new_pools(reader, &made).await?;
        }
        events.extend(self.tell_of_pools());
        let mut updates = Vec::new();
        for log in logs
            .iter()
            .filter(|log| log.topics.first() == Some(&abi::SYNC))
        {
            match (
                abi::sync(log),
                self.market.pool_by_address(address(log.address)),
            ) {
                (Some((reserve0, reserve1)), Some(pool)) => updates.push(ReserveUpdate {
                    pool,
                    reserve0,
                    reserve1,
                }),
                (Some(_), None) => self.passed.foreign_logs += 1,
                (None, _) => self.passed.malformed_logs += 1,
            }
        }
        let Head {
            number,
            hash,
            parent,
            timestamp,
            base_fee,
        } = head(header);
        events.push(Event::Block(Block {
            number,
            hash,
            parent,
            timestamp,
            base_fee,
            updates,
        }));
        Ok(events)
    }

    /// The pools that known factories made in a block and that are not followed yet.
    fn made(&mut self, logs: &[Log]) -> Vec<Created> {
        let mut made = Vec::new();
        for log in logs
            .iter()
            .filter(|log| log.topics.first() == Some(&abi::PAIR_CREATED))
        {
            match abi::created(log) {
                // A pool that is known was made in a block that was taken back, and is made again.
                Some(created)
                    if self.exchanges.contains_key(&address(created.factory))
                        && self.market.pool_by_address(address(created.pair)).is_none() =>
                {
                    made.push(created);
                }
                Some(_) => {}
                None => self.passed.malformed_logs += 1,
            }
        }
        made
    }

    /// Takes back what was put together: it is not said, and the pools in it still have to be.
    pub(super) fn untell(&mut self, events: Vec<Event>) {
        for event in events {
            if let Event::Pools(pools) = event {
                self.untold.extend(pools);
            }
        }
    }

    fn tell_of_pools(&mut self) -> Option<Event> {
        let pools = std::mem::take(&mut self.untold);
        (!pools.is_empty()).then_some(Event::Pools(pools))
    }

    /// Takes new pools into the replica. They have nothing before the block that made them.
    async fn new_pools(&mut self, reader: &Reader<'_>, made: &[Created]) -> Result<(), CallError> {
        let mut sides: Vec<_> = made
            .iter()
            .flat_map(|pool| [pool.token0, pool.token1])
            .collect();
        sides.sort_unstable();
        sides.dedup();
        let facts = pools::tokens_of(reader, &sides).await?;
        for created in made {
            let exchange = self.exchanges.get(&address(created.factory)).copied();
            let token = |at| facts.get(&at).map(token);
            let (Some(exchange), Some(token0), Some(token1)) =
                (exchange, token(created.token0), token(created.token1))
            else {
                continue;
            };
            self.take(NewPool {
                address: address(created.pair),
                exchange,
                token0,
                token1,
                reserve0: 0,
                reserve1: 0,
            });
        }
        Ok(())
    }

    fn take(&mut self, pool: NewPool) {
        let full = self.market.pools().len() >= self.most_pools;
        let refused = if full {
            Some(format!(
                "{} pools are followed, the most there may be",
                self.most_pools
            ))
        } else {
            self.market
                .extend(&pool)
                .err()
                .map(|error| error.to_string())
        };
        if let Some(why) = refused {
            self.passed.refused_pools += 1;
            tracing::warn!("pool {} is not followed: {why}", pool.address);
        } else {
            self.untold.push(pool);
        }
    }

    /// All reserves at a block. A pool that cannot be read has none: it is not traded until it says what it has.
    pub(super) async fn reread(
        &mut self,
        client: &Client,
        header: &Header,
        config: &NodeConfig,
    ) -> Result<Vec<Event>, CallError> {
        let reader = Reader::new(client, header.hash, config.reading);
        self.made_meanwhile(&reader).await?;
        let addresses: Vec<_> = self
            .market
            .pools()
            .iter()
            .map(|pool| plain(pool.address))
            .collect();
        let read = pools::reserves(&reader, &addresses).await?;
        let mut all = Vec::with_capacity(read.len());
        for ((pool, of), read) in self.market.pool_ids().zip(&addresses).zip(read) {
            let (reserve0, reserve1) = match read {
                Ok((reserve0, reserve1)) if reserve0.max(reserve1) <= MAX_RESERVE => {
                    (reserve0, reserve1)
                }
                Ok(_) => (0, 0),
                Err(why) => {
                    self.passed.unread_pools += 1;
                    tracing::error!(
                        "the reserves of pool {of} cannot be read, it is not traded: {why}"
                    );
                    (0, 0)
                }
            };
            all.push(ReserveUpdate {
                pool,
                reserve0,
                reserve1,
            });
        }
        let mut events: Vec<_> = self.tell_of_pools().into_iter().collect();
        events.push(Event::Reread {
            head: head(header),
            reserves: all,
        });
        Ok(events)
    }

    /// The pools of the factories that are not followed yet: they were made in blocks that were not seen.
    async fn made_meanwhile(&mut self, reader: &Reader<'_>) -> Result<(), CallError> {
        let exchanges: Vec<_> = self.exchanges.iter().map(|(at, id)| (*at, *id)).collect();
        for (factory, exchange) in exchanges {
            let known = |pool: alloy_primitives::Address| {
                self.market.pool_by_address(address(pool)).is_some()
            };
            let found = match pools::unknown_of(reader, plain(factory), self.most_pools, known)
                .await
            {
                Ok(found) => found,
                Err(pools::FactoryError::Call(error)) => return Err(error),
                Err(why) => {
                    tracing::error!("what factory {factory} made meanwhile is not known: {why}");
                    continue;
                }
            };
            for facts in found.pools {
                self.take(NewPool {
                    address: address(facts.address),
                    exchange,
                    token0: token(&facts.token0),
                    token1: token(&facts.token1),
                    // They come with all the others.
                    reserve0: 0,
                    reserve1: 0,
                });
            }
            self.passed.refused_pools += found.refused.len() as u64;
        }
        Ok(())
    }
}

/// A token as the market has it.
pub(super) fn token(facts: &TokenFacts) -> Token {
    Token {
        address: address(facts.address),
        decimals: facts.decimals,
        symbol: UntrustedText::new(&facts.symbol),
    }
}
