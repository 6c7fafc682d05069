//! A world of pairs, tokens and the executor, told in full, to answer from.
//!
//! # Invariants
//! - The pairs run the exchange's own bytecode, fetched and never part of this repository; the executor is the
//!   artifact that is deployed.
//! - What the world does not name is zero, as on a chain.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::similar_names,
    reason = "each test file uses a part of it, and a test's support fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use alloy_primitives::aliases::U112;
use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use regatta_chain_lab::fetch::Kit;
use regatta_evm::pair::{self, Reserves};
use regatta_evm::{BlockEnv, BlockId, Call, Code, Executor, Hop, Key, State};
use serde_json::Value;

pub(crate) const OWNER: Address = Address::repeat_byte(0x0a);
pub(crate) const EXECUTOR: Address = Address::repeat_byte(0xee);
pub(crate) const CHAIN: u64 = 31337;
/// The most units that a pair can hold of a token.
pub(crate) const MOST: U256 = U256::from_limbs([u64::MAX, u64::MAX >> 16, 0, 0]);

/// `UniswapV2Pair` as it stands on chain.
pub(crate) static PAIR: LazyLock<Code> =
    LazyLock::new(|| Code::new(Kit::fetch().unwrap().pair).unwrap());

static TOKENS: LazyLock<Value> = LazyLock::new(|| read("tests/data/Tokens.json"));

/// The executor, owned by [`OWNER`].
pub(crate) static EXECUTOR_CODE: LazyLock<Code> = LazyLock::new(|| executor_of(OWNER));

/// The executor with an owner.
pub(crate) fn executor_of(owner: Address) -> Code {
    let artifact = read("../contracts/Executor.json");
    let places = artifact["immutableReferences"].as_object().unwrap();
    let places: Vec<usize> = places
        .values()
        .flat_map(|place| place.as_array().unwrap())
        .map(|place| usize::try_from(place["start"].as_u64().unwrap()).unwrap())
        .collect();
    Code::with_immutable(&bytes(&artifact["runtimeBytecode"]), &places, owner).unwrap()
}

fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// The code of a contract of `tests/data/Tokens.sol`.
pub(crate) fn contract(name: &str) -> Code {
    Code::new(bytes(&TOKENS["deployed"][name]).into()).unwrap()
}

/// An address told by a kind and a number.
pub(crate) fn at(kind: u8, number: u8) -> Address {
    let mut bytes = [kind; 20];
    bytes[19] = number;
    Address::new(bytes)
}

pub(crate) fn token(number: u8) -> Address {
    at(0x70, number)
}

pub(crate) fn pool(number: u8) -> Address {
    at(0x90, number)
}

/// The slot of a holder's entry of the mapping at `place`.
pub(crate) fn entry(holder: Address, place: u64) -> U256 {
    let place: [u8; 32] = U256::from(place).to_be_bytes();
    keccak256([holder.into_word().0, place].concat()).into()
}

/// A block at a height, on a branch of the chain.
pub(crate) fn block(number: u64, branch: u8) -> BlockId {
    BlockId {
        number,
        hash: keccak256([number.to_be_bytes().as_slice(), &[branch]].concat()),
    }
}

pub(crate) fn env(number: u64) -> BlockEnv {
    BlockEnv {
        number,
        timestamp: 1_700_000_000 + 12 * number,
        base_fee: 7,
        gas_limit: 30_000_000,
        beneficiary: Address::ZERO,
        random: B256::ZERO,
    }
}

/// A pair of a world, seen from the side that a cycle goes in at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) reserve_in: U256,
    pub(crate) reserve_out: U256,
    pub(crate) zero_for_one: bool,
}

/// All of the state.
#[derive(Clone, Default, Debug)]
pub(crate) struct World {
    pub(crate) accounts: BTreeMap<Address, (Code, U256, u64)>,
    pub(crate) slots: BTreeMap<(Address, U256), U256>,
}

impl World {
    /// A ring of pairs: pair `i` takes token `i` and gives token `i + 1`, the last one token 0. All tokens are plain.
    pub(crate) fn ring(sides: &[Side]) -> Self {
        let mut world = Self::default();
        world.put(EXECUTOR, EXECUTOR_CODE.clone());
        world.put(OWNER, Code::new(Bytes::new()).unwrap());
        let tokens = u8::try_from(sides.len()).unwrap();
        for number in 0..tokens {
            world.put(token(number), contract("Plain"));
            world.hold(token(number), EXECUTOR, U256::ZERO);
        }
        for (number, at) in (0..tokens).zip(sides) {
            world.pair(number, at, token(number), token((number + 1) % tokens));
        }
        world
    }

    pub(crate) fn put(&mut self, address: Address, code: Code) {
        self.accounts.insert(address, (code, U256::ZERO, 1));
    }

    /// A pair of two tokens that keep balances in slot 0.
    pub(crate) fn pair(&mut self, number: u8, side: &Side, into: Address, out: Address) {
        let sides = [(into, side.reserve_in), (out, side.reserve_out)];
        let [(token0, reserve0), (token1, reserve1)] = if side.zero_for_one {
            sides
        } else {
            [sides[1], sides[0]]
        };
        let at = pool(number);
        self.put(at, PAIR.clone());
        let reserves = Reserves {
            reserve0: U112::from(reserve0),
            reserve1: U112::from(reserve1),
            timestamp: 1_700_000_000,
        };
        let slots = [
            (pair::TOKEN_0, token0.into_word().into()),
            (pair::TOKEN_1, token1.into_word().into()),
            (pair::RESERVES, reserves.pack()),
            (pair::PRICE_0, U256::from(5)),
            (pair::PRICE_1, U256::from(6)),
            (pair::LOCK, U256::ONE),
        ];
        self.slots
            .extend(slots.map(|(slot, value)| ((at, slot), value)));
        self.hold(token0, at, reserve0);
        self.hold(token1, at, reserve1);
    }

    /// Gives a holder this much of a token that keeps balances in slot 0.
    pub(crate) fn hold(&mut self, token: Address, holder: Address, amount: U256) {
        self.slots.insert((token, entry(holder, 0)), amount);
    }

    /// Answers as a node would, for the block that the state is at.
    pub(crate) fn answer(&self, state: &mut State, keys: &[Key]) {
        let at = state.head().hash;
        for key in keys {
            match *key {
                Key::Account(address) => {
                    let none = (Code::new(Bytes::new()).unwrap(), U256::ZERO, 0);
                    let (code, wei, nonce) = self.accounts.get(&address).cloned().unwrap_or(none);
                    state.set_account(address, code, wei, nonce, at).unwrap();
                }
                Key::Slot(address, slot) => {
                    let value = self
                        .slots
                        .get(&(address, slot))
                        .copied()
                        .unwrap_or_default();
                    state.set_slot(address, slot, value, at).unwrap();
                }
            }
        }
    }

    /// A state that knows all that the world names.
    pub(crate) fn full(&self, head: BlockId) -> State {
        let mut state = State::new(head);
        let accounts = self.accounts.keys().copied().map(Key::Account);
        let slots = self
            .slots
            .keys()
            .map(|&(address, slot)| Key::Slot(address, slot));
        self.answer(&mut state, &accounts.chain(slots).collect::<Vec<_>>());
        state
    }
}

/// The cycle over a ring, with the amounts of the formula.
pub(crate) fn cycle(sides: &[Side], amount_in: U256) -> Call {
    let mut amount = amount_in;
    let hops = (0..).zip(sides).map(|(number, side)| {
        amount = amount_out(amount, side.reserve_in, side.reserve_out);
        Hop {
            pool: pool(number),
            zero_for_one: side.zero_for_one,
            amount_out: amount,
        }
    });
    Call {
        block: env(101),
        gas: regatta_evm::DEFAULT_GAS,
        owner: OWNER,
        executor: Executor {
            address: EXECUTOR,
            code: None,
        },
        base: token(0),
        amount_in,
        hops: hops.collect(),
        min_profit: U256::ZERO,
        expiry_block: 103,
    }
}

/// `UniswapV2Library.getAmountOut`, in integers without bounds.
pub(crate) fn amount_out(amount_in: U256, reserve_in: U256, reserve_out: U256) -> U256 {
    use num_bigint::BigUint;
    let big = |word: U256| BigUint::from_bytes_be(&word.to_be_bytes::<32>());
    let paid = big(amount_in) * 997u32;
    let out = &paid * big(reserve_out) / (big(reserve_in) * 1000u32 + &paid);
    U256::from_be_slice(&out.to_bytes_be())
}

/// A ring of three that gives a profit of some per cent.
pub(crate) fn profitable() -> [Side; 3] {
    let side = |reserve_in: u64, reserve_out: u64, zero_for_one| Side {
        reserve_in: U256::from(reserve_in) * U256::from(1_000_000_000_000_000u64),
        reserve_out: U256::from(reserve_out) * U256::from(1_000_000_000_000_000u64),
        zero_for_one,
    };
    [
        side(1_000_000, 3_000_000, true),
        side(2_000_000, 2_100_000, false),
        side(4_000_000, 1_500_000, true),
    ]
}

/// An amount in for [`profitable`].
pub(crate) fn amount() -> U256 {
    U256::from(1_000_000_000_000_000_000u64)
}

/// What the cycle gives over what it takes.
pub(crate) fn profit(call: &Call) -> U256 {
    call.hops.last().unwrap().amount_out - call.amount_in
}
