//! The node, the hand that moves its pools, and the record of what it did.

use crate::history::History;
use alloy_primitives::{Address, U256};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::{Market, Pool};
use regatta_chain_lab::mover::Mover;
use regatta_chain_lab::moves::Style;
use regatta_chain_lab::rows::{self, WETH};
use serde_json::json;
use std::path::Path;

/// Pools that stand on the node.
const POOLS: usize = 300;

/// A node with real pools.
pub(crate) struct Lab {
    pub(crate) node: Anvil,
    pub(crate) mover: Mover,
    pub(crate) history: History,
}

impl Lab {
    pub(crate) fn start(seed: u64) -> Self {
        let kit = Kit::fetch().unwrap_or_else(|error| panic!("{error}"));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/uniswap_v2_pairs.csv");
        let rows = rows::choose(&rows::read(&file).unwrap(), POOLS, WETH).unwrap();
        let mut node = Anvil::start(&kit, Options::default()).unwrap();
        let market = Market::lay_out(&mut node, &rows).unwrap();
        let head = node.rpc().head().unwrap();
        let history = History::new(head, &market);
        let mover = Mover::new(&mut node, market, seed, Style::default()).unwrap();
        Self {
            node,
            mover,
            history,
        }
    }

    /// The arguments with which the bot follows this chain.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let market = self.mover.market();
        let (factory, base) = (market.factory.to_string(), market.base.to_string());
        [
            "--rpc",
            &self.node.ws(),
            "--factory",
            &factory,
            "--base",
            &base,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    pub(crate) fn step(&mut self) {
        let step = self.mover.step(&mut self.node).unwrap();
        self.history.step(&step);
    }

    pub(crate) fn reorg(&mut self, depth: u64) {
        let reorg = self.mover.reorg(&mut self.node, depth).unwrap();
        self.history.reorg(&reorg);
    }

    /// Makes a pool of two tokens that had none, at a price that is a fifth off, and returns it.
    pub(crate) fn create(&mut self) -> Pool {
        let (tokens, reserves) = self.missing_pair();
        let step = self.mover.create_pair(&mut self.node, tokens, reserves);
        self.history.step(&step.unwrap());
        let pool = *self.mover.market().pools.last().unwrap();
        self.history.create(&pool);
        pool
    }

    /// The tokens of two deep pools with the base token that have no pool together, and reserves a tenth as deep.
    fn missing_pair(&self) -> ([Address; 2], [u128; 2]) {
        let market = self.mover.market();
        // With what is held of the other token, and of the base token.
        let mut spokes: Vec<(Address, u128, u128)> = market
            .pools
            .iter()
            .filter_map(|pool| {
                let ([token0, token1], [reserve0, reserve1]) = (pool.tokens, pool.reserves);
                match market.base {
                    base if base == token0 => Some((token1, reserve1, reserve0)),
                    base if base == token1 => Some((token0, reserve0, reserve1)),
                    _ => None,
                }
            })
            .collect();
        spokes.sort_by_key(|&(token, _, depth)| (u128::MAX - depth, token));
        let has_pool = |a, b| {
            let tokens = if a < b { [a, b] } else { [b, a] };
            market.pools.iter().any(|pool| pool.tokens == tokens)
        };
        let mut pairs = spokes.iter().enumerate().flat_map(|(at, one)| {
            let others = spokes.iter().skip(at + 1);
            others.map(move |other| (*one, *other))
        });
        let ((a, held_a, base_a), (b, held_b, base_b)) = pairs
            .find(|(one, other)| !has_pool(one.0, other.0))
            .unwrap();
        let of_a = held_a / 10;
        let worth = U256::from(of_a) * U256::from(base_a) / U256::from(held_a);
        let of_b =
            worth * U256::from(held_b) * U256::from(12) / U256::from(base_b) / U256::from(10);
        ([a, b], [of_a, of_b.to()])
    }

    /// Empties a side of the shallowest pool of the base token, and returns the pool.
    pub(crate) fn empty(&mut self) -> Address {
        let market = self.mover.market();
        let depth = |pool: &&Pool| {
            let sides = pool.tokens.into_iter().zip(pool.reserves);
            let mut base = sides.filter(|(token, _)| *token == market.base);
            base.next().map_or(u128::MAX, |(_, reserve)| reserve)
        };
        let pool = market.pools.iter().min_by_key(depth).unwrap().address;
        let step = self.mover.empty(&mut self.node, pool, 0).unwrap();
        self.history.step(&step);
        pool
    }

    /// Transactions that wait at the node.
    pub(crate) fn waiting(&mut self) -> u64 {
        let status = self.node.rpc().call("txpool_status", json!([])).unwrap();
        let count = status["pending"].as_str().unwrap();
        u64::from_str_radix(count.trim_start_matches("0x"), 16).unwrap()
    }

    /// What is known here is what the node says.
    pub(crate) fn verify(&mut self) {
        let market = self.mover.market();
        market.verify(self.node.rpc()).unwrap();
        for pool in &market.pools {
            let known = self.history.head().reserves.get(&pool.address);
            assert_eq!(known, Some(&pool.reserves), "{}", pool.address);
        }
    }
}
