//! `--sim evm`: each candidate also runs as bytecode over the node's state, and the two have to agree.
//!
//! ```text
//!  exact trade ─► Machine ─► unit (SimDriver): regatta_evm::simulate over a snapshot
//!                    ▲            │ Missing(keys)            │ an outcome
//!                    └─ StateReader ◄┘  by the block's hash  └─► agrees? ─► counted; who lies is marked
//! ```
//!
//! # Invariants
//! - A unit never waits: what it lacks is its answer, and the pump's thread fetches that, never a seat.
//! - A candidate is published only if the bytecode gave its profit and its amounts to the last unit. What could not be
//!   decided (a node that is silent, slow or says something else) is counted and not published.
//! - Rounds, keys and time are bounded, for a candidate and for a block.
//! - What was marked stays marked for the rest of the run, and so do pools that come later.

mod executor;
mod job;
mod machine;
mod marks;
mod node;
mod reader;

pub use executor::ExecutorError;
pub use job::{EvmAnswer, EvmArena, EvmJob};
pub use machine::{Limits, Machine, Unavailable};
pub use marks::{EvmResult, Mark, Marked, Reason};
pub(crate) use node::NodeStates;
pub use reader::{StateError, StateReader, Told};
