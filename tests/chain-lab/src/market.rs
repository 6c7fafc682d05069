//! Lays the pools out on a node, and knows what is there.
//!
//! The factory's code stands at its mainnet address and a token at every token's address; pairs are then made by the
//! factory, so CREATE2 puts them where they are on mainnet.
//!
//! # Invariants
//! - After [`Market::lay_out`] each pool has the address and the exact reserves of its row, as asked of the node.
//! - The lab's own account, the node's last, holds 2^160 units of every token.

use std::collections::BTreeMap;
use std::io::Write;

use alloy_primitives::{Address, Bytes, U256, address, hex, keccak256};
use alloy_sol_types::SolCall;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::abi;
use crate::anvil::Anvil;
use crate::chain::{self, Send};
use crate::error::{Foreign, LabError};
use crate::rows::{Row, WETH};
use crate::rpc::{Call, Rpc, read};
use crate::token::{self, Token};

/// Uniswap's factory on mainnet.
pub const FACTORY: Address = address!("0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f");

/// An address at which no lab puts any code, for whoever configures a wrong factory.
pub const NO_CODE: Address = address!("0x00000000000000000000000000000000000dEaD0");

/// The factory's slot of the one who may set the fee; the one above, who gets it, stays zero: no fee.
const FEE_TO_SETTER: u64 = 1;

/// Pools that one block of the layout makes.
const POOLS_A_BLOCK: usize = 500;

/// Gas of those blocks.
const LAYOUT_GAS: u64 = 4_000_000_000;

const CREATE_GAS: u64 = 3_000_000;
const MINT_GAS: u64 = 300_000;

/// The pair burns so much of the first liquidity; a pool with no more cannot be minted, and is synced instead.
const MINIMUM_LIQUIDITY: u64 = 1000;

/// A pool that stands on the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Its address.
    pub address: Address,
    /// The lower one first.
    pub tokens: [Address; 2],
    /// As far as the lab has seen, in smallest units.
    pub reserves: [u128; 2],
}

/// What stands on a node.
#[derive(Clone, Debug)]
pub struct Market {
    /// The factory that made the pools.
    pub factory: Address,
    /// The token in which cycles start and end.
    pub base: Address,
    /// The account that moves the pools.
    pub lab: Address,
    /// In the order of the factory's `allPairs`.
    pub pools: Vec<Pool>,
    /// By address.
    pub tokens: BTreeMap<Address, Token>,
}

impl Market {
    /// Puts `rows` on a fresh `node`. Takes a block for 500 pools.
    pub fn lay_out(node: &mut Anvil, rows: &[Row]) -> Result<Self, LabError> {
        let lab = node.accounts().last().ok_or(LabError::NotRunning)?.address;
        let mut tokens = BTreeMap::new();
        for row in rows {
            for (address, decimals, symbol) in [
                (row.token0, row.decimals0, &row.symbol0),
                (row.token1, row.decimals1, &row.symbol1),
            ] {
                tokens.entry(address).or_insert_with(|| Token {
                    decimals,
                    symbol: symbol.clone(),
                    tax_bps: 0,
                });
            }
        }
        let pools = rows.iter().map(|row| Pool {
            address: row.pair,
            tokens: [row.token0, row.token1],
            reserves: [row.reserve0, row.reserve1],
        });
        let market = Self {
            factory: FACTORY,
            base: WETH,
            lab,
            pools: pools.collect(),
            tokens,
        };
        market.load(node)?;
        market.make_pools(node)?;
        market.verify(node.rpc())?;
        Ok(market)
    }

    /// Loads the factory, the tokens and their balances as one state.
    fn load(&self, node: &mut Anvil) -> Result<(), LabError> {
        let mut balances: BTreeMap<Address, Vec<(Address, U256)>> = BTreeMap::new();
        for pool in &self.pools {
            for (token, reserve) in pool.tokens.into_iter().zip(pool.reserves) {
                let of_token = balances.entry(token).or_default();
                of_token.push((pool.address, U256::from(reserve)));
            }
        }
        let code = token_code()?;
        let mut accounts = serde_json::Map::new();
        for (address, token) in &self.tokens {
            let of_token = balances.remove(address).unwrap_or_default();
            let held = of_token.into_iter().chain([(self.lab, lab_holding())]);
            let held = held.map(|(holder, amount)| (token::balance_slot(holder), amount));
            let slots = held.chain(token.slots());
            accounts.insert(address.to_string(), account(&code, slots));
        }
        let setter = U256::from_be_bytes(self.lab.into_word().0);
        let factory = account(&node.kit().factory, [(U256::from(FEE_TO_SETTER), setter)]);
        accounts.insert(self.factory.to_string(), factory);
        let state = json!({
            "block": null, "accounts": accounts, "best_block_number": null,
            "blocks": [], "transactions": [], "historical_states": null,
        });
        let packed = packed(&state).map_err(|source| LabError::io("pack", "the state", source))?;
        let state = hex::encode_prefixed(packed);
        let rpc = node.rpc();
        if rpc.ask("anvil_loadState", json!([state]))? {
            let plenty = U256::ONE << 100;
            rpc.call("anvil_setBalance", json!([self.lab, plenty]))?;
            Ok(())
        } else {
            Err(LabError::Answer {
                method: "anvil_loadState".to_owned(),
                expected: "true",
                said: Foreign::new("false"),
            })
        }
    }

    /// Has the factory make the pairs, which take what they already hold as their reserves.
    fn make_pools(&self, node: &mut Anvil) -> Result<(), LabError> {
        let usual = node.options().gas_limit;
        let rpc = node.rpc();
        rpc.call("evm_setBlockGasLimit", json!([format!("{LAYOUT_GAS:#x}")]))?;
        for pools in self.pools.chunks(POOLS_A_BLOCK) {
            let sends: Vec<Send> = pools.iter().flat_map(|pool| self.creation(pool)).collect();
            let block = chain::mine(rpc, self.lab, &sends)?;
            block.all_succeeded()?;
        }
        rpc.call("evm_setBlockGasLimit", json!([format!("{usual:#x}")]))?;
        rpc.call("anvil_setNextBlockBaseFeePerGas", json!(["0x3b9aca00"]))?;
        Ok(())
    }

    /// The transactions that make `pool`, which holds its tokens before they run.
    pub(crate) fn creation(&self, pool: &Pool) -> [Send; 2] {
        let [token_a, token_b] = pool.tokens;
        let create = abi::createPairCall {
            tokenA: token_a,
            tokenB: token_b,
        };
        let [reserve0, reserve1] = pool.reserves.map(U256::from);
        let least = U256::from(MINIMUM_LIQUIDITY);
        let minted = abi::mintCall { to: self.lab }.abi_encode();
        let fill = if (reserve0 * reserve1).root(2) > least {
            minted
        } else {
            abi::syncCall {}.abi_encode()
        };
        [
            Send::new(self.factory, create.abi_encode(), CREATE_GAS),
            Send::new(pool.address, fill, MINT_GAS),
        ]
    }

    /// Asks the node for each pool's address and reserves.
    pub fn verify(&self, rpc: &mut Rpc) -> Result<(), LabError> {
        let calls: Vec<Call> = self
            .pools
            .iter()
            .map(|pool| {
                let [token_a, token_b] = pool.tokens;
                let call = abi::getPairCall {
                    tokenA: token_a,
                    tokenB: token_b,
                };
                Call::view(self.factory, &call.abi_encode())
            })
            .collect();
        for (pool, answer) in self.pools.iter().zip(rpc.batch(&calls)?) {
            let word: Bytes = read("getPair", &answer)?;
            let found = abi::getPairCall::abi_decode_returns(&word).unwrap_or_default();
            if found != pool.address {
                return Err(LabError::Layout {
                    pool: pool.address,
                    what: "its address by the factory",
                    found: found.to_string(),
                    expected: pool.address.to_string(),
                });
            }
        }
        let found = reserves(rpc, &self.pools, &json!("latest"))?;
        for (pool, found) in self.pools.iter().zip(found) {
            if found != Some(pool.reserves) {
                return Err(LabError::Layout {
                    pool: pool.address,
                    what: "its reserves",
                    found: format!("{found:?}"),
                    expected: format!("{:?}", pool.reserves),
                });
            }
        }
        Ok(())
    }

    /// The place of a pool in [`pools`](Self::pools).
    #[must_use]
    pub fn position(&self, pool: Address) -> Option<usize> {
        self.pools.iter().position(|known| known.address == pool)
    }

    /// Where the factory puts the pair of two tokens: the lower 20 bytes of
    /// `keccak256(0xff ++ factory ++ keccak256(token0 ++ token1) ++ keccak256(init code))` (EIP-1014).
    #[must_use]
    pub fn pair_address(&self, tokens: [Address; 2], pair_init: &Bytes) -> Address {
        let salt = keccak256(tokens.concat());
        self.factory.create2(salt, keccak256(pair_init))
    }
}

/// The reserves of the pools in the state after the block `at`; none of a pool that is not there.
pub fn reserves(
    rpc: &mut Rpc,
    pools: &[Pool],
    at: &Value,
) -> Result<Vec<Option<[u128; 2]>>, LabError> {
    let data = Bytes::from(abi::getReservesCall {}.abi_encode());
    let calls: Vec<Call> = pools
        .iter()
        .map(|pool| Call::new("eth_call", json!([{"to": pool.address, "data": data}, at])))
        .collect();
    let answers = rpc.batch(&calls)?.into_iter();
    let decode = |answer: Value| {
        let words: Bytes = read("getReserves", &answer)?;
        let decoded = abi::getReservesCall::abi_decode_returns(&words).ok();
        Ok(decoded.map(|r| [r.reserve0.to(), r.reserve1.to()]))
    };
    answers.map(decode).collect()
}

/// What the lab's account holds of each token.
pub(crate) fn lab_holding() -> U256 {
    U256::ONE << 160
}

pub(crate) fn token_code() -> Result<Bytes, LabError> {
    token::code().map_err(|error| LabError::Artifact {
        path: "contracts/testing/Token.json".into(),
        what: error.to_string(),
    })
}

fn account(code: &Bytes, slots: impl IntoIterator<Item = (U256, U256)>) -> Value {
    let storage = slots.into_iter().map(|(slot, value)| {
        let key = hex::encode_prefixed(slot.to_be_bytes::<32>());
        let value = hex::encode_prefixed(value.to_be_bytes::<32>());
        (key, Value::String(value))
    });
    let storage: serde_json::Map<String, Value> = storage.collect();
    json!({"nonce": 1, "balance": "0x0", "code": code, "storage": storage})
}

/// A state as the node takes it: JSON, compressed.
fn packed(state: &Value) -> std::io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(&serde_json::to_vec(state)?)?;
    out.finish()
}
