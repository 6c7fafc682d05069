//! An Ethereum node over WebSocket or IPC: calls, subscriptions, and the chain they describe.
//!
//! # Invariants
//! - What decides has no socket, clock or thread: [`follow`] is a state machine that is told headers, logs, answers and
//!   the time, and says which calls to make and what the chain did.
//! - A block is told by its hash. Numbers order, and identify nothing.

pub mod follow;
pub mod types;
