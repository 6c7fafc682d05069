//! A real Ethereum node with the real pools, for the tests and for trying the bot out.

mod abi;
pub mod anvil;
mod chain;
pub mod error;
pub mod fetch;
pub mod market;
pub mod rows;
pub mod rpc;
pub mod token;
