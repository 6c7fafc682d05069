//! The real binary against a real Ethereum node with the real contracts and real pools.
//!
//! What the bot says is compared with what the lab knows of the chain that it made: the lab has its own client and
//! its own record of every block, and the amounts are recomputed in big integers from those. Nothing is paced by a clock:
//! the next block is made once the bot has said what came of the last one.
//!
//! The first run fetches the node from npm; without npm or the network the tests fail and say so.
#![cfg(all(test, unix))]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod bot;
mod bytecode;
mod history;
mod killed;
mod lab;
// The portable build has one tier.
#[cfg(all(feature = "linux", target_os = "linux"))]
mod parity;
mod said;
mod settled;
mod trades;
mod whole;
