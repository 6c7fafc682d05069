//! A real Ethereum node with the real contracts and real pools, for the tests and for trying the bot out.
//!
//! [`fetch`] gets the node and the exchange's contracts, [`anvil`] runs the node, [`rows`] chooses pools of a file,
//! [`market`] lays them out, and [`mover`] moves them block by block:
//!
//! ```no_run
//! # use regatta_chain_lab::{anvil, fetch, market, moves, mover, rows};
//! # fn lab() -> Result<(), regatta_chain_lab::error::LabError> {
//! let rows = rows::read("data/uniswap_v2_pairs.csv".as_ref())?;
//! let rows = rows::choose(&rows, 300, rows::WETH)?;
//! let kit = fetch::Kit::fetch()?;
//! let mut node = anvil::Anvil::start(&kit, anvil::Options::default())?;
//! let market = market::Market::lay_out(&mut node, &rows)?;
//! let mut mover = mover::Mover::new(&mut node, market, 7, moves::Style::default())?;
//! mover.step(&mut node)?;
//! mover.reorg(&mut node, 1)?;
//! node.restart()?;
//! # Ok(())
//! # }
//! ```
//!
//! What this node does and does not do, version 1.7.1, as the tests here check:
//! - An orderly stop keeps every block, its hash and its logs, and with [`anvil::Options::history`] the states of old
//!   blocks; transactions that waited are lost. A kill loses what was since the last stop.
//! - A reorganisation sends the new headers and logs, with the old heights, and no `removed` logs; the orphaned
//!   blocks are then unknown by hash.
//!
//! # Invariants
//! - Nothing here is linked into the product, and the product's client is not used here.

mod abi;
pub mod anvil;
mod chain;
pub mod error;
pub mod fetch;
pub mod market;
pub mod mover;
pub mod moves;
mod rng;
pub mod rows;
pub mod rpc;
pub mod token;
pub mod watch;
