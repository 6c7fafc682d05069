//! What the ledger's lines say.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{Deserialize, Serialize};

use crate::abi::{Cycle, Reason};
use crate::price::Fees;

/// The form of the lines, in the header.
pub const VERSION: u32 = 1;

/// What a ledger is of: its first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`VERSION`].
    pub settlement_ledger: u32,
    /// The chain.
    pub chain_id: u64,
    /// The executor contract.
    pub executor: Address,
    /// The account that sends: the executor's owner.
    pub owner: Address,
}

impl Header {
    /// The first line of a ledger of today's form.
    #[must_use]
    pub fn new(chain_id: u64, executor: Address, owner: Address) -> Self {
        Self {
            settlement_ledger: VERSION,
            chain_id,
            executor,
            owner,
        }
    }
}

/// A block: its hash says which.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// Its height.
    pub number: u64,
    /// Its identity.
    pub hash: B256,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.number, self.hash)
    }
}

/// Which settlement: counted from 0 in the order of planning, over all runs on the ledger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Id(pub u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "settlement {}", self.0)
    }
}

/// What is to be settled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The block whose state it was found in.
    pub found: Block,
    /// The executor's call; its `min_profit` is the predicted profit in wei, so that less reverts.
    pub cycle: Cycle,
    /// What it must leave after gas, in wei.
    pub min_profit: U256,
}

impl Plan {
    /// The predicted profit before gas, in wei.
    #[must_use]
    pub fn predicted(&self) -> U256 {
        self.cycle.min_profit
    }
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It runs the cycle.
    Settle,
    /// It does nothing but take the nonce.
    Cancel,
}

/// A transaction that was signed, and from its line on may be at a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// What for.
    pub kind: Kind,
    /// Its identity.
    pub hash: B256,
    /// What it offers for a unit of gas.
    #[serde(with = "fees")]
    pub fees: Fees,
    /// The gas it may use.
    pub gas_limit: u64,
    /// It, as a node takes it: what is sent again is the same.
    pub raw: Bytes,
}

/// Fees with numbers that JSON readers take.
mod fees {
    use super::Fees;
    use alloy_primitives::U128;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(fees: &Fees, to: S) -> Result<S::Ok, S::Error> {
        (U128::from(fees.max), U128::from(fees.priority)).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Fees, D::Error> {
        let (max, priority) = <(U128, U128)>::deserialize(from)?;
        Ok(Fees {
            max: max.to(),
            priority: priority.to(),
        })
    }
}

/// A transaction in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mined {
    /// The transaction.
    pub hash: B256,
    /// The block.
    pub block: Block,
    /// The gas it used.
    pub gas_used: u64,
    /// Wei that it paid for a unit.
    pub gas_price: U256,
}

impl Mined {
    /// What it cost, in wei.
    #[must_use]
    pub fn cost(&self) -> U256 {
        U256::from(self.gas_used).saturating_mul(self.gas_price)
    }
}

/// How a settlement ended. Nothing else happens to it, but that its block is orphaned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The cycle ran.
    Included {
        /// The profit before gas that the executor reported, in wei.
        realised: U256,
        /// Where, and for how much.
        mined: Mined,
    },
    /// It was in a block and undone.
    Reverted {
        /// Why.
        reason: Reason,
        /// Where, and for how much.
        mined: Mined,
    },
    /// No block up to its expiry had it.
    Expired {
        /// What took its nonce; nothing if it was never signed.
        cancel: Option<Mined>,
    },
    /// No node took it, or it was given up before it was signed.
    Dropped {
        /// What took its nonce; nothing if it was never signed.
        cancel: Option<Mined>,
    },
    /// A transaction that is not ours took its nonce.
    Replaced {
        /// That transaction, where the node told.
        by: Option<B256>,
    },
    /// The call before it failed: nothing was signed.
    DryRunFailed {
        /// Why.
        reason: Reason,
    },
    /// A nonce that nothing used was taken, so that later ones could go on.
    Filled {
        /// By this.
        cancel: Mined,
    },
    /// Shadow mode: in the next block's state it would have run.
    ShadowHit {
        /// The profit before gas, in wei.
        realised: U256,
        /// That block.
        block: Block,
    },
    /// Shadow mode: in the next block's state it would have failed.
    ShadowMiss {
        /// Why.
        reason: Reason,
        /// That block.
        block: Block,
    },
}

impl Outcome {
    /// The transaction of ours that ended it, if one did.
    #[must_use]
    pub fn mined(&self) -> Option<&Mined> {
        match self {
            Self::Included { mined, .. } | Self::Reverted { mined, .. } => Some(mined),
            Self::Filled { cancel } => Some(cancel),
            Self::Expired { cancel } | Self::Dropped { cancel } => cancel.as_ref(),
            Self::Replaced { .. }
            | Self::DryRunFailed { .. }
            | Self::ShadowHit { .. }
            | Self::ShadowMiss { .. } => None,
        }
    }

    /// What it brought in before gas, in wei.
    #[must_use]
    pub fn realised(&self) -> U256 {
        match self {
            Self::Included { realised, .. } => *realised,
            _ => U256::ZERO,
        }
    }

    /// What it cost for gas, in wei.
    #[must_use]
    pub fn cost(&self) -> U256 {
        self.mined().map_or(U256::ZERO, Mined::cost)
    }
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A settlement begins.
    Planned {
        /// Its number, the next one.
        id: Id,
        /// What it is.
        plan: Plan,
    },
    /// A transaction of it may be sent from now on. One without a plan fills a gap in the nonces.
    Sent {
        /// The settlement.
        id: Id,
        /// The transaction's nonce; all of a settlement's have the same.
        nonce: u64,
        /// The transaction.
        attempt: Attempt,
    },
    /// It ended.
    Outcome {
        /// The settlement.
        id: Id,
        /// How.
        outcome: Outcome,
    },
    /// The block in which it ended is no longer of the chain: it is open again.
    Reversed {
        /// The settlement.
        id: Id,
        /// That block; nothing if a transaction that is not ours had ended it.
        block: Option<Block>,
    },
}
