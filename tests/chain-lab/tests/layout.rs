//! The layout against the real node and the real contracts.
#![cfg(test)]

use std::path::Path;
use std::time::Instant;

use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::Market;
use regatta_chain_lab::rows::{self, WETH};

#[test]
fn real_pools_stand_where_they_do_on_mainnet_with_their_reserves() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/uniswap_v2_pairs.csv");
    let all = rows::read(&file).unwrap();
    let count = std::env::var("LAB_COUNT").map_or(300, |n| n.parse().unwrap());
    let chosen = rows::choose(&all, count, WETH).unwrap();
    eprintln!("cycles {}", rows::cycles(&chosen, WETH));
    let kit = Kit::fetch().unwrap();
    let t = Instant::now();
    let mut node = Anvil::start(&kit, Options::default()).unwrap();
    eprintln!("up {:?}", t.elapsed());
    let t = Instant::now();
    let market = Market::lay_out(&mut node, &chosen).unwrap();
    eprintln!("laid out {:?} {:?}", t.elapsed(), node.rpc().head());
    for pool in &market.pools {
        assert_eq!(
            market.pair_address(pool.tokens, &kit.pair_init),
            pool.address
        );
    }
    let t = Instant::now();
    node.restart().unwrap();
    eprintln!("restart {:?} {:?}", t.elapsed(), node.rpc().head());
    market.verify(node.rpc()).unwrap();
}
