//! A real node with the real contracts on it.

use crate::{Doctor, verdict};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::Market;
use regatta_chain_lab::mover::Mover;
use regatta_chain_lab::moves::Style;
use regatta_chain_lab::rows::{self, WETH};
use serde_json::json;
use std::path::Path;

#[test]
fn a_real_node_is_fit_for_everything() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/uniswap_v2_pairs.csv");
    let rows = rows::choose(&rows::read(&file).unwrap(), 20, WETH).unwrap();
    let kit = Kit::fetch().unwrap();
    let mut node = Anvil::start(&kit, Options::default()).unwrap();
    let market = Market::lay_out(&mut node, &rows).unwrap();
    let factory = market.factory.to_string();
    let mut mover = Mover::new(&mut node, market, 7, Style::default()).unwrap();
    mover.step(&mut node).unwrap();
    let more = [
        "--json",
        "--heads",
        "0",
        "--for",
        "120",
        "--factory",
        &factory,
    ];
    let record = Doctor::start(&node.ws(), &more).end().record();
    assert!(
        record["client"].as_str().unwrap().contains("anvil"),
        "{record}"
    );
    assert_eq!(record["factories"][0]["pools"], json!("20"));
    for requirement in [
        "chain",
        "synced",
        "unknown_hash",
        "logs_by_hash",
        "state_by_hash",
        "batches",
        "factories",
    ] {
        assert_eq!(verdict(&record, requirement), "ok", "{record}");
    }
}
