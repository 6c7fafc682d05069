//! Settlement with a real node, the real contracts, and the binary.

#![cfg(test)]
mod lab;
mod live;
mod refused;
mod shadow;
