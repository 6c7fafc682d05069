//! What the tests of the lab begin with. They fetch what they need; without npm or network they fail and say so.

use std::path::Path;

use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::Market;
use regatta_chain_lab::rows::{self, Row, WETH};

/// The node's binary and the contracts.
pub(crate) fn kit() -> Kit {
    match Kit::fetch() {
        Ok(kit) => kit,
        Err(error) => panic!("{error}"),
    }
}

/// Some of the real pools.
pub(crate) fn rows(count: usize) -> Vec<Row> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/uniswap_v2_pairs.csv");
    rows::choose(&rows::read(&file).unwrap(), count, WETH).unwrap()
}

/// A node with so many real pools on it.
pub(crate) fn lab(count: usize) -> (Anvil, Market) {
    let mut node = Anvil::start(&kit(), Options::default()).unwrap();
    let market = Market::lay_out(&mut node, &rows(count)).unwrap();
    (node, market)
}
