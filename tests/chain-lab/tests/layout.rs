//! The layout on the real node with the real contracts.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use alloy_primitives::{U256, address};
use common::{kit, lab, rows};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::error::LabError;
use regatta_chain_lab::market::{Market, NO_CODE};
use regatta_chain_lab::rows::{self, WETH};
use regatta_chain_lab::rpc::Call;
use serde_json::{Value, json};

/// The factory computes the addresses by CREATE2, so equal addresses mean the real contracts at the real place.
/// The layout itself asks the node for every address and reserve; here the node is asked in another way, by storage.
#[test]
fn three_hundred_real_pools_stand_where_they_do_on_mainnet_with_their_reserves() {
    let (mut node, market) = lab(300);
    let rows = rows(300);
    assert!(rows::cycles(&rows, WETH) > 300);
    // In a pair, slot 8 holds both reserves: 112 bits each, the first one lowest.
    let slots: Vec<Call> = rows
        .iter()
        .map(|row| Call::new("eth_getStorageAt", json!([row.pair, "0x8", "latest"])))
        .collect();
    let words = node.rpc().batch(&slots).unwrap();
    assert_eq!(words.len(), 300);
    let mask = (U256::ONE << 112) - U256::ONE;
    for ((row, word), pool) in rows.iter().zip(words).zip(&market.pools) {
        let word: U256 = serde_json::from_value(word).unwrap();
        assert_eq!(word & mask, U256::from(row.reserve0));
        assert_eq!(word >> 112 & mask, U256::from(row.reserve1));
        let derived = market.pair_address(pool.tokens, &node.kit().pair_init);
        assert_eq!(derived, row.pair);
    }
}

#[test]
fn tokens_say_their_symbol_and_decimals() {
    let (mut node, market) = lab(20);
    let usdc = address!("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48");
    assert_eq!(market.tokens[&usdc].symbol, "USDC");
    // `decimals()` and `symbol()`; a text comes as its offset, its length and its bytes.
    let decimals = Call::view(usdc, &[0x31, 0x3c, 0xe5, 0x67]);
    let symbol = Call::view(usdc, &[0x95, 0xd8, 0x9b, 0x41]);
    let answers = node.rpc().batch(&[decimals, symbol]).unwrap();
    assert_eq!(answers[0], format!("0x{:064x}", 6));
    let text = format!("0x{:064x}{:064x}{:0<64}", 32, 4, "55534443");
    assert_eq!(answers[1], text);
}

#[test]
fn a_pool_that_is_not_as_in_the_market_is_named() {
    let (mut node, mut market) = lab(20);
    market.verify(node.rpc()).unwrap();
    market.pools[7].reserves[1] += 1;
    let pool = market.pools[7].address;
    let error = market.verify(node.rpc()).unwrap_err();
    assert!(
        matches!(error, LabError::Layout { pool: named, what: "its reserves", .. } if named == pool),
        "{error}"
    );
}

#[test]
fn a_row_whose_address_is_not_its_tokens_pair_is_refused() {
    let mut rows = rows(20);
    let stranger = address!("0x1000000000000000000000000000000000000001");
    rows[3].pair = stranger;
    let mut node = Anvil::start(&kit(), Options::default()).unwrap();
    Market::lay_out(&mut node, &rows).unwrap_err();
}

#[test]
fn no_code_stands_where_the_lab_says_so() {
    let (mut node, _) = lab(20);
    let code: Value = node
        .rpc()
        .call("eth_getCode", json!([NO_CODE, "latest"]))
        .unwrap();
    assert_eq!(code, "0x");
}
