//! Which pools there are, and whether what a list says of one is so on the chain.
//!
//! # Invariants
//! - Everything is read at one block, by its hash.
//! - A pool that cannot be read, or is not what it is said to be, is refused with the reason; it costs no other.
//! - What is for people only (decimals, symbols) never refuses a pool.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, U256};
use alloy_sol_types::{SolCall, SolValue};
use thiserror::Error;

use crate::abi::{Factory, Pair, Token};
use crate::read::{Question, Reader, Unanswered};
use crate::rpc::CallError;

/// The most bytes of a token's symbol that are kept.
const SYMBOL_BYTES: usize = 64;

/// Pools that are read about together: it bounds what is held at a time.
const AT_ONCE: usize = 2_000;

/// Tokens that are asked in one message. They are anybody's: what their gas lets twelve of them say in answer to
/// two questions each is less than 16 MiB, the most that a message may have.
pub const TOKENS_AT_ONCE: usize = 12;

/// The gas of a question to a token. Memory of `n` words costs `n²/512 + 3n` (Yellow Paper, appendix H), so that this
/// is enough for some 340 kB, and for any token that answers from its storage, also behind a proxy.
const TOKEN_GAS: u64 = 250_000;

/// A token as it describes itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenFacts {
    /// Its contract.
    pub address: Address,
    /// Its decimal places; zero where it does not say.
    pub decimals: u8,
    /// Its name, as it came and cut to some bytes; empty where it does not say. Escape it where it is shown.
    pub symbol: String,
}

/// A pool as it describes itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolFacts {
    /// Its contract.
    pub address: Address,
    /// Who says to have made it.
    pub factory: Address,
    /// Its first token.
    pub token0: TokenFacts,
    /// Its second token.
    pub token1: TokenFacts,
    /// Reserve of the first token in its smallest unit.
    pub reserve0: u128,
    /// Reserve of the second token in its smallest unit.
    pub reserve1: u128,
}

/// What a list says of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its contract.
    pub address: Address,
    /// Its first token.
    pub token0: Address,
    /// Its second token.
    pub token1: Address,
}

/// Why a pool is refused.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Unfit {
    /// A question to it has no answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// It is not of a factory that was named.
    #[error("its factory is {found}, which is none of those that were given")]
    Factory {
        /// Who says to have made it.
        found: Address,
    },
    /// Its factory does not know it: whatever it is, it is not that factory's pool of these tokens.
    #[error("the factory {factory}, of which it says to be, has {known} as the pool of its tokens")]
    Unknown {
        /// Who says to have made it.
        factory: Address,
        /// The pool that the factory has for the tokens.
        known: Address,
    },
    /// It trades other tokens than the list says, or in the other order.
    #[error("its tokens are {} and {}, the list says {} and {}", found[0], found[1], listed[0], listed[1])]
    Tokens {
        /// What the chain says.
        found: [Address; 2],
        /// What the list says.
        listed: [Address; 2],
    },
    /// Both of its tokens are one.
    #[error("it trades {0} for itself")]
    SameToken(Address),
}

/// Pools that were looked at.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Surveyed {
    /// Those that are what they are said to be.
    pub pools: Vec<PoolFacts>,
    /// The others, with the reason.
    pub refused: Vec<(Address, Unfit)>,
}

/// Why a factory has no list of pools.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum FactoryError {
    /// The connection ended.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The factory does not answer as one.
    #[error("{factory} is no factory of pools: {why}")]
    NotAFactory {
        /// The address that was given.
        factory: Address,
        /// What is wrong.
        why: Unanswered,
    },
    /// It has more pools than are wanted.
    #[error(
        "factory {factory} has {pools} pools, more than the {limit} that may be followed: name the pools in a file"
    )]
    TooMany {
        /// The factory.
        factory: Address,
        /// How many it has.
        pools: U256,
        /// The most that may be.
        limit: usize,
    },
}

/// The pools that a factory made, in the order in which it made them; it may have made `limit` at most.
pub async fn of_factory(
    reader: &Reader<'_>,
    factory: Address,
    limit: usize,
) -> Result<Surveyed, FactoryError> {
    unknown_of(reader, factory, limit, |_| false).await
}

/// The same, without those that are `known`: of these nothing but the address is read.
pub async fn unknown_of(
    reader: &Reader<'_>,
    factory: Address,
    limit: usize,
    known: impl Fn(Address) -> bool,
) -> Result<Surveyed, FactoryError> {
    let not_a_factory = |why| FactoryError::NotAFactory { factory, why };
    let asked = [(factory, Factory::allPairsLengthCall {})];
    let count = reader.ask(&asked).await?.into_iter().next();
    let count = count
        .unwrap_or(Err(Unanswered::Silent(factory)))
        .map_err(not_a_factory)?;
    let pools = usize::try_from(count).ok().filter(|&pools| pools <= limit);
    let pools = pools.ok_or(FactoryError::TooMany {
        factory,
        pools: count,
        limit,
    })?;
    let mut surveyed = Surveyed::default();
    let places: Vec<usize> = (0..pools).collect();
    for places in places.chunks(AT_ONCE) {
        let asked: Vec<_> = places
            .iter()
            .map(|&place| {
                let index = U256::from(place);
                (factory, Factory::allPairsCall { index })
            })
            .collect();
        let mut addresses = Vec::with_capacity(places.len());
        for answer in reader.ask(&asked).await? {
            match answer {
                Ok(address) if known(address) => {}
                Ok(address) => addresses.push(address),
                Err(why) => surveyed.refused.push((factory, why.into())),
            }
        }
        let of_it = |facts: &PoolFacts| {
            if facts.factory == factory {
                Ok(())
            } else {
                Err(Unfit::Factory {
                    found: facts.factory,
                })
            }
        };
        survey(reader, &addresses, &mut surveyed, of_it).await?;
    }
    Ok(surveyed)
}

/// The pools of a list, each checked against the chain: its code, its tokens and their order, its factory (one of
/// `factories`, unless none is named) and that its factory has it as the pool of its tokens.
pub async fn of_list(
    reader: &Reader<'_>,
    list: &[Listed],
    factories: &[Address],
) -> Result<Surveyed, CallError> {
    let mut surveyed = Surveyed::default();
    let said: BTreeMap<Address, Listed> = list.iter().map(|row| (row.address, *row)).collect();
    let check = |facts: &PoolFacts| {
        let found = [facts.token0.address, facts.token1.address];
        if !factories.is_empty() && !factories.contains(&facts.factory) {
            return Err(Unfit::Factory {
                found: facts.factory,
            });
        }
        match said.get(&facts.address).map(|row| [row.token0, row.token1]) {
            Some(listed) if listed != found => Err(Unfit::Tokens { found, listed }),
            _ => Ok(()),
        }
    };
    for rows in list.chunks(AT_ONCE) {
        let addresses: Vec<Address> = rows.iter().map(|row| row.address).collect();
        survey(reader, &addresses, &mut surveyed, check).await?;
    }
    owned(reader, &mut surveyed).await?;
    Ok(surveyed)
}

/// Refuses the pools that their factories do not have.
async fn owned(reader: &Reader<'_>, surveyed: &mut Surveyed) -> Result<(), CallError> {
    let pools = std::mem::take(&mut surveyed.pools);
    for pools in pools.chunks(AT_ONCE) {
        let asked: Vec<_> = pools
            .iter()
            .map(|pool| {
                let call = Factory::getPairCall {
                    token0: pool.token0.address,
                    token1: pool.token1.address,
                };
                (pool.factory, call)
            })
            .collect();
        for (known, pool) in reader.ask(&asked).await?.into_iter().zip(pools) {
            let verdict = match known {
                Ok(known) if known == pool.address => Ok(()),
                Ok(known) => Err(Unfit::Unknown {
                    factory: pool.factory,
                    known,
                }),
                Err(why) => Err(why.into()),
            };
            match verdict {
                Ok(()) => surveyed.pools.push(pool.clone()),
                Err(why) => surveyed.refused.push((pool.address, why)),
            }
        }
    }
    Ok(())
}

/// Reads what each pool says of itself and takes those that `check` lets through.
async fn survey(
    reader: &Reader<'_>,
    addresses: &[Address],
    surveyed: &mut Surveyed,
    check: impl Fn(&PoolFacts) -> Result<(), Unfit>,
) -> Result<(), CallError> {
    // Four questions a pool, side by side.
    let mut questions = Vec::with_capacity(addresses.len() * 4);
    for &pool in addresses {
        questions.push(Question::new(pool, &Pair::factoryCall {}));
        questions.push(Question::new(pool, &Pair::token0Call {}));
        questions.push(Question::new(pool, &Pair::token1Call {}));
        questions.push(Question::new(pool, &Pair::getReservesCall {}));
    }
    let answers = reader.raw(&questions).await?;
    let mut found = Vec::with_capacity(addresses.len());
    for (&address, answers) in addresses.iter().zip(answers.chunks(4)) {
        match described(address, answers) {
            Ok(pool) => found.push(pool),
            Err(why) => surveyed.refused.push((address, why)),
        }
    }
    let tokens: BTreeSet<Address> = found
        .iter()
        .flat_map(|pool| [pool.token0.address, pool.token1.address])
        .collect();
    let tokens = tokens_of(reader, &tokens.into_iter().collect::<Vec<_>>()).await?;
    for mut pool in found {
        for token in [&mut pool.token0, &mut pool.token1] {
            if let Some(facts) = tokens.get(&token.address) {
                token.clone_from(facts);
            }
        }
        match check(&pool) {
            Ok(()) => surveyed.pools.push(pool),
            Err(why) => surveyed.refused.push((pool.address, why)),
        }
    }
    Ok(())
}

/// A pool from its four answers; of its tokens only the addresses.
fn described(
    address: Address,
    answers: &[Result<alloy_primitives::Bytes, Unanswered>],
) -> Result<PoolFacts, Unfit> {
    let answer = |place: usize| {
        let answer = answers.get(place).cloned();
        answer.unwrap_or(Err(Unanswered::Silent(address)))
    };
    let token = |address| TokenFacts {
        address,
        decimals: 0,
        symbol: String::new(),
    };
    let factory = decoded::<Pair::factoryCall>(address, answer(0)?)?;
    let token0 = decoded::<Pair::token0Call>(address, answer(1)?)?;
    let token1 = decoded::<Pair::token1Call>(address, answer(2)?)?;
    let reserves = decoded::<Pair::getReservesCall>(address, answer(3)?)?;
    if token0 == token1 {
        return Err(Unfit::SameToken(token0));
    }
    Ok(PoolFacts {
        address,
        factory,
        token0: token(token0),
        token1: token(token1),
        reserve0: reserves.reserve0.to(),
        reserve1: reserves.reserve1.to(),
    })
}

fn decoded<C: SolCall>(
    to: Address,
    answer: alloy_primitives::Bytes,
) -> Result<C::Return, Unanswered> {
    C::abi_decode_returns_validate(&answer).map_err(|_| Unanswered::Form {
        to,
        function: C::SIGNATURE,
        answer,
    })
}

/// What tokens say of themselves.
pub async fn tokens_of(
    reader: &Reader<'_>,
    addresses: &[Address],
) -> Result<BTreeMap<Address, TokenFacts>, CallError> {
    let mut questions = Vec::with_capacity(addresses.len() * 2);
    for &token in addresses {
        questions.push(Question::new(token, &Token::decimalsCall {}));
        questions.push(Question::new(token, &Token::symbolCall {}));
    }
    let reader = reader.frugal(TOKEN_GAS, 2 * TOKENS_AT_ONCE);
    let answers = reader.raw(&questions).await?;
    let facts = addresses
        .iter()
        .zip(answers.chunks(2))
        .map(|(&address, answers)| {
            let bytes = |place: usize| match answers.get(place) {
                Some(Ok(bytes)) => bytes.as_ref(),
                _ => &[],
            };
            let decimals = Token::decimalsCall::abi_decode_returns_validate(bytes(0));
            let facts = TokenFacts {
                address,
                decimals: decimals.unwrap_or(0),
                symbol: symbol(bytes(1)),
            };
            (address, facts)
        });
    Ok(facts.collect())
}

/// A symbol: a string, or the 32 bytes padded with zeros that old tokens give.
fn symbol(answer: &[u8]) -> String {
    let text = match String::abi_decode_validate(answer) {
        Ok(text) => text,
        Err(_) if answer.len() == 32 => {
            let end = answer.iter().position(|byte| *byte == 0).unwrap_or(32);
            String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).into_owned()
        }
        Err(_) => String::new(),
    };
    let cut = (0..=SYMBOL_BYTES.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at));
    text.get(..cut.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// The reserves of pools, in their order.
pub async fn reserves(
    reader: &Reader<'_>,
    pools: &[Address],
) -> Result<Vec<Result<(u128, u128), Unanswered>>, CallError> {
    let mut all = Vec::with_capacity(pools.len());
    for pools in pools.chunks(AT_ONCE) {
        let asked: Vec<_> = pools
            .iter()
            .map(|&pool| (pool, Pair::getReservesCall {}))
            .collect();
        let answers = reader.ask(&asked).await?;
        all.extend(answers.into_iter().map(|answer| {
            let reserves = answer?;
            Ok((reserves.reserve0.to(), reserves.reserve1.to()))
        }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_read_in_both_forms_and_cut() {
        assert_eq!(symbol(&"WETH".to_owned().abi_encode()), "WETH");
        let mut old = [0; 32];
        old[..3].copy_from_slice(b"MKR");
        assert_eq!(symbol(&old), "MKR");
        assert_eq!(symbol(&[]), "");
        assert_eq!(symbol(&[0xff; 64]), "");
        let long = "é".repeat(100).abi_encode();
        assert_eq!(symbol(&long), "é".repeat(32));
        let full = "x".repeat(32).into_bytes();
        assert_eq!(symbol(&full).len(), 32);
    }
}
