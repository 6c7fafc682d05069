//! Settlement with a real node, the real contracts, and the binary.

#![cfg(test)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test cannot do without ends it"
)]

mod lab;
mod live;
mod refused;
mod shadow;
