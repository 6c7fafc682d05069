//! Settling opportunities on an Ethereum chain: the executor, transactions, and the settlement ledger.
//!
//! # Invariants
//! - Nothing here opens a socket, reads a clock or starts a thread. Files are touched by [`ledger`] and [`key`] alone.
//! - What decides is [`engine`], a state machine: it is told what happened and says what to do.

pub mod abi;
pub mod engine;
pub mod key;
pub mod ledger;
pub mod nonce;
pub mod price;
pub mod tx;
