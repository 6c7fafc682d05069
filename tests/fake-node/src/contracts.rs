//! Contracts as `eth_call` and `eth_getCode` show them: what each says to which input.
//!
//! A pool says the reserves of the last `Sync` on the branch of the block at which it is asked.
//!
//! # Invariants
//! - A call of an address without a contract succeeds with no data, as on a real node.
//! - A contract that has no answer to an input reverts.

use std::collections::HashMap;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use serde_json::json;

use crate::{FakeChain, FakeLog, Reply};

/// A word of the ABI.
#[must_use]
pub fn word(value: u128) -> Vec<u8> {
    U256::from(value).to_be_bytes_vec()
}

/// An address as a word of the ABI.
#[must_use]
pub fn address_word(address: Address) -> Vec<u8> {
    address.into_word().to_vec()
}

/// A string as the only result of a function.
#[must_use]
pub fn string(text: &str) -> Vec<u8> {
    let padding = vec![0; text.len().next_multiple_of(32) - text.len()];
    let length = text.len() as u128;
    [word(32), word(length), text.as_bytes().to_vec(), padding].concat()
}

/// The input of a call of the function with this signature.
#[must_use]
pub fn input(signature: &str, arguments: &[Vec<u8>]) -> Bytes {
    let selector = keccak256(signature).0.into_iter().take(4).collect();
    Bytes::from([&[selector], arguments].concat().concat())
}

/// A pool's log that it has these reserves.
#[must_use]
pub fn sync(pool: Address, reserve0: u128, reserve1: u128) -> FakeLog {
    let data = [word(reserve0), word(reserve1)].concat();
    FakeLog::new(pool, vec![sync_topic()], data)
}

/// A factory's log that it made a pool.
#[must_use]
pub fn pair_created(factory: Address, pool: Address, of: [Address; 2]) -> FakeLog {
    let [first, second] = of.map(|token| token.into_word());
    let topic = keccak256("PairCreated(address,address,address,uint256)");
    let data = [address_word(pool), word(1)].concat();
    FakeLog::new(factory, vec![topic, first, second], data)
}

fn sync_topic() -> B256 {
    keccak256("Sync(uint112,uint112)")
}

#[derive(Clone, Default, Debug)]
struct Contract {
    answers: HashMap<Bytes, Reply>,
    /// What a pool has before its first `Sync`.
    reserves: Option<[u128; 2]>,
    /// What a factory made.
    pools: Vec<Address>,
}

/// The contracts of a chain.
#[derive(Clone, Default, Debug)]
pub struct Contracts(HashMap<Address, Contract>);

impl Contracts {
    /// Has `contract` answer `input` so. It makes the contract if there is none.
    pub fn answer(&mut self, contract: Address, input: Bytes, reply: Reply) {
        let contract = self.0.entry(contract).or_default();
        contract.answers.insert(input, reply);
    }

    /// Has `contract` give these bytes to a function without arguments.
    pub fn give(&mut self, contract: Address, signature: &str, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.answer(contract, input(signature, &[]), Reply::Result(json!(bytes)));
    }

    /// Takes a contract away.
    pub fn remove(&mut self, contract: Address) {
        self.0.remove(&contract);
    }

    /// A token.
    pub fn token(&mut self, token: Address, decimals: u8, symbol: &str) {
        self.give(token, "decimals()", &word(decimals.into()));
        self.give(token, "symbol()", &string(symbol));
    }

    /// A factory that has made nothing yet.
    pub fn factory(&mut self, factory: Address) {
        self.give(factory, "allPairsLength()", &word(0));
    }

    /// A pool of a factory, with what it has before its first `Sync`.
    pub fn pool(
        &mut self,
        factory: Address,
        pool: Address,
        tokens: [Address; 2],
        reserves: [u128; 2],
    ) {
        self.give(pool, "factory()", &address_word(factory));
        self.give(pool, "token0()", &address_word(tokens[0]));
        self.give(pool, "token1()", &address_word(tokens[1]));
        self.0.entry(pool).or_default().reserves = Some(reserves);
        let maker = self.0.entry(factory).or_default();
        let place = maker.pools.len() as u128;
        maker.pools.push(pool);
        let said = Reply::Result(json!(Bytes::from(address_word(pool))));
        let nth = input("allPairs(uint256)", &[word(place)]);
        let of_tokens = tokens.map(address_word);
        let by_tokens = input("getPair(address,address)", &of_tokens);
        self.answer(factory, nth, said.clone());
        self.answer(factory, by_tokens, said);
        self.give(factory, "allPairsLength()", &word(place + 1));
    }

    /// What a contract says to an input at a block.
    pub(crate) fn call(&self, chain: &FakeChain, to: Address, data: &Bytes, at: B256) -> Reply {
        let Some(contract) = self.0.get(&to) else {
            return Reply::Result(json!("0x"));
        };
        if let Some(reply) = contract.answers.get(data) {
            return reply.clone();
        }
        if let Some([reserve0, reserve1]) = contract.reserves
            && *data == input("getReserves()", &[])
        {
            let first = || Bytes::from([word(reserve0), word(reserve1)].concat());
            let said = last_sync(chain, to, at).unwrap_or_else(first);
            return Reply::Result(json!(Bytes::from([said.to_vec(), word(0)].concat())));
        }
        Reply::error(3, "execution reverted")
    }

    /// What a pool has at the last block.
    pub(crate) fn reserves(&self, chain: &FakeChain, pool: Address) -> Option<[u128; 2]> {
        let first = self.0.get(&pool)?.reserves?;
        let Some(said) = last_sync(chain, pool, chain.head_hash()) else {
            return Some(first);
        };
        let (reserve0, reserve1) = said.split_at_checked(32)?;
        let number = |word: &[u8]| U256::try_from_be_slice(word)?.try_into().ok();
        Some([number(reserve0)?, number(reserve1)?])
    }

    /// The code at an address.
    pub(crate) fn code(&self, at: Address) -> Reply {
        let code = if self.0.contains_key(&at) {
            "0x00"
        } else {
            "0x"
        };
        Reply::Result(json!(code))
    }
}

/// The data of the last `Sync` of a pool on the branch that ends with a block.
fn last_sync(chain: &FakeChain, pool: Address, at: B256) -> Option<Bytes> {
    let mut at = chain.block(at);
    while let Some(block) = at {
        let of_pool = |log: &&FakeLog| log.address == pool && log.topics == [sync_topic()];
        if let Some(log) = block.logs.iter().rev().find(of_pool) {
            return Some(log.data.clone());
        }
        at = chain.block(block.parent);
    }
    None
}
