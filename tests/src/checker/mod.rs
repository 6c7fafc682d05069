//! An independent program that recomputes what the bot published.
//!
//! What goes in are the pool files and the bytes of the bot's JSON lines, and nothing else: it reads
//! the files by itself, has types of its own, finds the cycles by itself, and computes in big integers
//! only. It is slow and plain. So where it and the bot agree, they do not agree by a common mistake.
//!
//! - [`market`]: pools from text, and their reserves from block to block.
//! - [`cycles`]: every cycle, by walking the pools.
//! - [`staircase`]: exact swaps, and the search for a profit over every integer input.
//! - [`curve`]: the same cycle in real numbers, which bounds the integers from above.
//! - [`record`]: the JSON.
//! - [`check`]: what is claimed, against what is.

pub mod check;
pub mod curve;
pub mod cycles;
pub mod market;
pub mod record;
pub mod staircase;

pub use check::{Checker, Found, Objection};

#[cfg(test)]
mod tests;
