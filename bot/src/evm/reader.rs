//! What the machine asks for the state that it lacks.
//!
//! # Invariants
//! - Everything is asked by the block's hash: what a node says of another branch is never taken.

use crate::source::BlockHash;
use alloy_primitives::{Bytes, U256};
use regatta_evm::Key;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What a key holds at a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// Of [`Key::Account`].
    Account {
        /// Its code; empty if it has none.
        code: Bytes,
        /// Its balance in wei.
        balance: U256,
        /// Its nonce.
        nonce: u64,
    },
    /// Of [`Key::Slot`]: the word.
    Slot(U256),
}

/// Why keys were not read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The reading failed.
    #[error("{0}")]
    Failed(Box<dyn Error + Send + Sync>),
    /// What was said is not what such a key holds.
    #[error("the answer to {0:?} is not what such a key holds")]
    Garbled(Key),
}

/// Reads the state of a block.
pub trait StateReader: Send + fmt::Debug {
    /// What each of `keys` holds at `block`, in their order. It blocks, for no longer than `wait`, so it is not to be called
    /// from a seat.
    fn read(&self, block: BlockHash, keys: &[Key], wait: Duration)
    -> Result<Vec<Told>, StateError>;
}
