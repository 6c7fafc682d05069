//! Swaps in an embedded EVM, over the bytecode and the state that a node has.
//!
//! [`simulate`] runs a cycle through the executor contract as a node would, over a [`State`] that holds what is known of
//! one block. It never waits: what is not known is an answer, [`Outcome::Missing`], and whoever may wait asks the
//! node for it, by the block's hash, tells the state, and simulates again.
//!
//! [`agrees`] compares an outcome with the exact integers, [`blame`] says which token or pair makes them
//! differ, and [`fee_of`] finds which fee a pair's code takes.
//!
//! # Invariants
//! - The machine runs the code that the node has; nothing of a pair or a token is modelled.
//! - Nothing that a contract or a node says makes it panic, loop, or print unescaped text.

mod blame;
mod call;
mod code;
mod db;
mod fee;
mod learned;
mod machine;
mod outcome;
pub mod pair;
mod simulate;
mod state;
mod trace;

pub use blame::{Blame, Cause, Disagreement, agrees, blame};
pub use call::{BlockEnv, Call, DEFAULT_GAS, Executor, Hop, abi};
pub use code::{Code, CodeError};
pub use fee::{Fee, FeeAnswer, FeeQuery, fee_of};
pub use machine::Scratch;
pub use outcome::{Done, Halt, Outcome, REASON_BYTES, Revert, Reverted, Swapped, TEXT_CHARS, Text};
pub use revm::primitives::hardfork::SpecId;
pub use simulate::simulate;
pub use state::{BlockId, Key, Stale, State};
