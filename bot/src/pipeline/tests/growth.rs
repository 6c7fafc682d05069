//! What work and memory grow with.

use super::*;
use crate::market::csv;
use crate::market::tests::{address, market_of};
use std::path::Path;

/// A clique of tokens around the base, which is number 0.
fn clique(tokens: std::ops::Range<u32>) -> Vec<(u32, u32)> {
    let with_base = tokens.clone().map(|token| (0, token));
    let among = tokens
        .clone()
        .flat_map(|a| tokens.clone().map(move |b| (a, b)));
    with_base.chain(among.filter(|(a, b)| a < b)).collect()
}

/// Runs one block that moves the pools of the small clique; how many cycles are registered, and what
/// came of the block.
fn touch_small(pairs: &[(u32, u32)], pools: u32) -> (usize, BlockResult) {
    let made = Generated {
        market: market_of(pairs),
        base: address(0),
    };
    let updates: Vec<_> = (0..pools)
        .map(|pool| ReserveUpdate {
            pool: PoolId::new(pool),
            reserve0: 1000 + u128::from(pool),
            reserve1: 1000,
        })
        .collect();
    let fleet = fleet_of(arbitrage(&made, 4, 1), 1);
    let registered = crawl(&fleet, &crate::pipeline::Unwatched, |_| {
        crate::pipeline::Next::Submit
    })
    .unwrap()
    .registered;
    let mut pump = Pump::new(&fleet, publishing(1, 1), &crate::pipeline::Unwatched).unwrap();
    let result = pump.run(&[block(1, updates)]).unwrap();
    drop(pump);
    assert_balanced(&fleet);
    (registered, timeless(&result))
}

#[test]
fn what_is_not_touched_is_not_looked_at() {
    let small = clique(1..7);
    let pools = u32::try_from(small.len()).unwrap();
    let mut large = small.clone();
    large.extend(clique(100..116));
    let (few, alone) = touch_small(&small, pools);
    let (many, among) = touch_small(&large, pools);
    assert!(many > 10 * few, "{many} cycles and {few}");
    assert_eq!(
        alone.tally.expected, few as u64,
        "all of the small clique is touched"
    );
    assert_eq!(
        (alone.tally, alone.profitable, alone.simulated),
        (among.tally, among.profitable, among.simulated)
    );
}

#[test]
fn a_registered_cycle_takes_at_most_32_bytes() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    let files = ["uniswap_v2_pairs.csv", "sushiswap_v2_pairs.csv"].map(|name| data.join(name));
    let market = csv::load(&files, csv::PoolIsToken::Keep).unwrap().market;
    let weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";
    let base = weth.parse().unwrap();
    let made = Generated { market, base };
    let blocks = blocks_of(&made, 1, 1);
    let fleet = fleet_of(arbitrage(&made, 4, 6), 6);
    crawl(&fleet, &crate::pipeline::Unwatched, |_| {
        crate::pipeline::Next::Submit
    })
    .unwrap();
    let mut pump = Pump::new(&fleet, publishing(6, 1), &crate::pipeline::Unwatched).unwrap();
    // What grows on demand is there after a block.
    pump.run(&blocks).unwrap();
    let cycles = fleet.workload().world().table().len();
    assert_eq!(cycles, 305_804);
    let bytes = fleet.workload().world().memory() + pump.memory();
    assert!(bytes <= 32 * cycles, "{} bytes a cycle", bytes / cycles);
}
