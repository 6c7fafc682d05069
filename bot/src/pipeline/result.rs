//! What the pump is asked, what it answers, and why it stops.

use super::simulate::Winner;
use super::world::WorldError;
use crate::evm::EvmResult;
use crate::market::ReserveUpdate;
use crate::partition::PartitionError;
use regatta_core::host::{EnqueueError, EpochError};
use regatta_core::outcome::{FuseTrip, Tally};
use regatta_portable::Failure;
use std::time::Duration;
use thiserror::Error;

/// What the pump publishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PumpConfig {
    /// Bins, one solver unit each per block.
    pub bins: u8,
    /// How many of the best trades of a block are published.
    pub top: usize,
    /// The least profit that is of interest, in the base token's smallest unit; at least 1.
    pub min_profit: u128,
}

/// Why the pump stopped.
#[derive(Debug, Error)]
pub enum PumpError {
    /// A block could not be applied, or not be reverted.
    #[error("block {number}: {error}")]
    World {
        /// The block.
        number: u64,
        /// Why.
        error: WorldError,
    },
    /// The outcome ledger does not balance: a cycle has two outcomes, or none. The run cannot be
    /// trusted.
    #[error("block {number}: the outcome fuse tripped: {trip}")]
    Fuse {
        /// The block.
        number: u64,
        /// What tripped it.
        trip: FuseTrip,
    },
    /// The fleet took no unit.
    #[error("block {number}: the {role} lane refused a unit: {error}")]
    Refused {
        /// The block.
        number: u64,
        /// The role.
        role: &'static str,
        /// What the fleet said.
        error: EnqueueError,
    },
    /// A unit without which the block cannot go on ended without a result.
    #[error("block {number}: the {role} unit failed: {failure}")]
    Failed {
        /// The block.
        number: u64,
        /// The role.
        role: &'static str,
        /// Why.
        failure: Failure,
    },
    /// The pump runs on a seat, or a role answered with another role's output: the bot is at fault.
    #[error("block {number}: the {role} unit did not answer as its role does")]
    Protocol {
        /// The block.
        number: u64,
        /// The role.
        role: &'static str,
    },
    /// The fleet refused the end of an epoch.
    #[error("block {number}: {error}")]
    Epoch {
        /// The block.
        number: u64,
        /// Why.
        error: EpochError,
    },
    /// Whoever watches has interrupted the pump. What was outstanding is given up.
    #[error("block {number}: the pump was interrupted, and {given_up} receipts were given up")]
    Interrupted {
        /// The block.
        number: u64,
        /// Receipts that were outstanding.
        given_up: u64,
    },
    /// The groups could not be placed.
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

/// What came of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockResult {
    /// The outcomes of the touched cycles.
    pub tally: Tally,
    /// Solved cycles whose bound reaches the least profit of interest.
    pub profitable: usize,
    /// Candidates that were simulated exactly.
    pub simulated: usize,
    /// Simulations whose optimum could not be proved; they are not published.
    pub unproved: usize,
    /// Simulations that failed.
    pub sim_failed: usize,
    /// The best trades: larger profit first, ties by id.
    pub winners: Vec<Winner>,
    /// What the machine came to, where candidates run as bytecode, too.
    pub evm: Option<EvmResult>,
    /// The pools that moved, with their reserves now, by id.
    pub moved: Vec<ReserveUpdate>,
    /// Timing: from the arrival of the block to its result.
    pub cycle: Duration,
    /// Timing: how long each bin's walk took; zero for a bin without touched cycles.
    pub walks: Vec<Duration>,
}
