//! Reading contracts: over real sockets, from a scripted node with a made-up market.
#![cfg(test)]

mod asking;
mod factories;
mod lists;
mod market;
mod reader;
mod tokens;
