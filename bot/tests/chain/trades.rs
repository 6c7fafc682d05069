//! A published trade, recomputed from the chain's reserves in big integers.

use crate::history::History;
use crate::said::{address, amount};
use alloy_primitives::Address;
use num_bigint::BigUint;
use serde_json::Value;
use std::collections::BTreeMap;

/// The reserves of some state of the chain.
pub(crate) type Reserves = BTreeMap<Address, [u128; 2]>;

/// What a pool gives, by the exchange's own formula: `a * 997 * out / (in * 1000 + a * 997)`, rounded down.
fn amount_out(amount: &BigUint, [reserve_in, reserve_out]: [u128; 2]) -> BigUint {
    let paid = amount * 997_u32;
    let divisor = BigUint::from(reserve_in) * 1000_u32 + &paid;
    paid * reserve_out / divisor
}

/// The reserves of a pool as a trade in one direction sees them: of what goes in, of what comes out.
fn seen(pool: Address, token_in: Address, state: &Reserves, history: &History) -> [u128; 2] {
    let [token0, token1] = history.tokens[&pool];
    let [reserve0, reserve1] = state[&pool];
    if token_in == token0 {
        [reserve0, reserve1]
    } else {
        assert_eq!(token_in, token1, "{pool}");
        [reserve1, reserve0]
    }
}

/// Each amount follows from the reserves, the whole is a cycle of the base token, and it earns what it says.
pub(crate) fn check(winner: &Value, reserves: &Reserves, history: &History) {
    assert_eq!(winner["kind"], "opportunity");
    let hops = winner["hops"].as_array().unwrap();
    assert!((2..=4).contains(&hops.len()), "{winner}");
    let mut token = history.base;
    let mut held = amount(&winner["input"]);
    let mut pools = Vec::new();
    let mut sides_of = Vec::new();
    for hop in hops {
        let pool = address(&hop["pool"]);
        assert!(!pools.contains(&pool), "twice through {pool}: {winner}");
        let told = (address(&hop["token_in"]), amount(&hop["amount_in"]));
        assert_eq!(told, (token, held), "{hop}");
        let sides = seen(pool, token, reserves, history);
        let out = amount_out(&held.into(), sides);
        held = amount(&hop["amount_out"]);
        assert_eq!(out, held.into(), "{hop}");
        let other = history.tokens[&pool]
            .into_iter()
            .find(|other| *other != token);
        token = address(&hop["token_out"]);
        assert_eq!(Some(token), other, "{hop}");
        pools.push(pool);
        sides_of.push(sides);
    }
    assert_eq!(token, history.base, "{winner}");
    assert_eq!(amount(&winner["output"]), held, "{winner}");
    let (input, profit) = (amount(&winner["input"]), amount(&winner["profit"]));
    assert_eq!(held.checked_sub(input), Some(profit), "{winner}");
    assert!(profit > 0, "{winner}");
    let told: Vec<Address> = winner["path"]
        .as_str()
        .unwrap()
        .split('-')
        .map(|pool| pool.parse().unwrap())
        .collect();
    assert_eq!(told, pools, "{winner}");
    // The profit is said to be the largest: none of these inputs has a larger one.
    let others =
        [1_u32, 50, 90, 99, 101, 110, 200].map(|parts| BigUint::from(input) * parts / 100_u32);
    let near = [input - 1, input + 1].map(BigUint::from);
    for input in others.into_iter().chain(near) {
        let output = sides_of
            .iter()
            .fold(input.clone(), |held, sides| amount_out(&held, *sides));
        assert!(output <= input + profit, "{winner}");
    }
}
