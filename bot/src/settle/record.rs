//! What is said of a settlement.

use crate::market::{Address, UntrustedText};
use crate::node::address;
use crate::source::BlockHash;
use regatta_settle::abi::Reason;
use regatta_settle::engine::Mode;
use regatta_settle::ledger::{Block, Entry, Flight, Outcome, State};
use serde::Serialize;
use serde_json::Value;

/// What came of a settlement, or that it is open again.
#[derive(Clone, Debug, Serialize)]
pub struct SettlementRecord {
    /// The chain.
    pub chain: UntrustedText,
    /// Its number in the ledger.
    pub id: u64,
    /// `live` or `shadow`.
    pub mode: &'static str,
    /// The height of the block in whose state it was found; none for what fills a gap in the nonces.
    pub found: Option<u64>,
    /// That block's identity. With the path it is the key of what was published.
    pub found_hash: Option<BlockHash>,
    /// The pools of the cycle joined by `-`.
    pub path: Option<String>,
    /// The predicted profit before gas, in wei.
    pub predicted: Option<String>,
    /// `included`, `reverted`, `expired`, `dropped`, `replaced`, `dry_run_failed`, `filled`, `shadow_hit`, `shadow_miss`, or
    /// `reversed`: the block it ended in was reverted, and it is open again.
    pub outcome: &'static str,
    /// Why, where it failed.
    pub reason: Option<Value>,
    /// What it brought in before gas, in wei; of a hit in shadow mode what it would have.
    pub realised: Option<String>,
    /// The gas that its transaction used.
    pub gas_used: Option<u64>,
    /// What that cost, in wei.
    pub gas_cost: Option<String>,
    /// Its transaction, or the one that took its nonce.
    pub transaction: Option<BlockHash>,
    /// The height of the block it ended in, of the one it was scored by, or of the one that was reverted.
    pub block: Option<u64>,
    /// That block's identity.
    pub block_hash: Option<BlockHash>,
}

pub(super) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "live",
        Mode::Shadow => "shadow",
    }
}

/// An outcome in one word.
const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Included { .. } => "included",
        Outcome::Reverted { .. } => "reverted",
        Outcome::Expired { .. } => "expired",
        Outcome::Dropped { .. } => "dropped",
        Outcome::Replaced { .. } => "replaced",
        Outcome::DryRunFailed { .. } => "dry_run_failed",
        Outcome::Filled { .. } => "filled",
        Outcome::ShadowHit { .. } => "shadow_hit",
        Outcome::ShadowMiss { .. } => "shadow_miss",
    }
}

const fn reason(outcome: &Outcome) -> Option<&Reason> {
    match outcome {
        Outcome::Reverted { reason, .. }
        | Outcome::DryRunFailed { reason }
        | Outcome::ShadowMiss { reason, .. } => Some(reason),
        _ => None,
    }
}

/// The block that an outcome speaks of.
fn block(outcome: &Outcome) -> Option<Block> {
    match outcome {
        Outcome::ShadowHit { block, .. } | Outcome::ShadowMiss { block, .. } => Some(*block),
        outcome => outcome.mined().map(|mined| mined.block),
    }
}

/// The record of an entry that is one of an outcome or a reversal.
pub(super) fn of(
    chain: &UntrustedText,
    mode: Mode,
    entry: &Entry,
    flight: Option<&Flight>,
) -> Option<SettlementRecord> {
    let (id, outcome, at) = match entry {
        Entry::Outcome { id, outcome } => (id, Some(outcome), block(outcome)),
        Entry::Reversed { id, block } => (id, None, *block),
        Entry::Planned { .. } | Entry::Sent { .. } => return None,
    };
    let plan = flight.and_then(|flight| flight.plan.as_ref());
    let hash = |hash: alloy_primitives::B256| BlockHash::new(hash.0);
    let mined = outcome.and_then(Outcome::mined);
    let realised = outcome.and_then(|outcome| match outcome {
        Outcome::Included { realised, .. } | Outcome::ShadowHit { realised, .. } => {
            Some(realised.to_string())
        }
        _ => None,
    });
    Some(SettlementRecord {
        chain: chain.clone(),
        id: id.0,
        mode: mode_name(mode),
        found: plan.map(|plan| plan.found.number),
        found_hash: plan.map(|plan| hash(plan.found.hash)),
        path: plan.map(|plan| {
            let pools = plan.cycle.hops.iter().map(|hop| address(hop.pool));
            pools
                .map(|pool| Address::to_string(&pool))
                .collect::<Vec<_>>()
                .join("-")
        }),
        predicted: plan.map(|plan| plan.predicted().to_string()),
        outcome: outcome.map_or("reversed", name),
        // Its texts were escaped and cut when they were read.
        reason: outcome
            .and_then(reason)
            .and_then(|reason| serde_json::to_value(reason).ok()),
        realised,
        gas_used: mined.map(|mined| mined.gas_used),
        gas_cost: mined.map(|mined| mined.cost().to_string()),
        transaction: mined.map(|mined| hash(mined.hash)),
        block: at.map(|block| block.number),
        block_hash: at.map(|block| hash(block.hash)),
    })
}

/// What the entries of a ledger add up to, over all runs. Amounts are wei.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SettlementTotals {
    /// Settlements that began.
    pub planned: u64,
    /// Transactions that may have been sent.
    pub sent: u64,
    /// Settlements and gaps in the nonces that are open.
    pub open: u64,
    /// Settlements by outcome.
    pub included: u64,
    /// Undone in a block.
    pub reverted: u64,
    /// In no block in time.
    pub expired: u64,
    /// Given up before they were signed, or taken by no node.
    pub dropped: u64,
    /// Somebody else's transaction took the nonce.
    pub replaced: u64,
    /// The call before it failed.
    pub dry_run_failed: u64,
    /// Gaps in the nonces that were filled.
    pub filled: u64,
    /// In shadow mode: would have run.
    pub shadow_hits: u64,
    /// In shadow mode: would not have.
    pub shadow_misses: u64,
    /// Outcomes that were taken back.
    pub reversed: u64,
    /// What was predicted for the included ones, before gas.
    pub predicted: String,
    /// What they brought in, before gas.
    pub realised: String,
    /// What all transactions in blocks cost.
    pub gas_cost: String,
    /// What settlements cost beyond what they brought in.
    pub loss: String,
    /// What the hits of shadow mode would have brought in, before gas.
    pub shadow_realised: String,
}

impl SettlementTotals {
    pub(super) fn of(state: &State) -> Self {
        let totals = state.totals();
        Self {
            planned: totals.planned,
            sent: totals.sent,
            open: totals.open(),
            included: totals.included,
            reverted: totals.reverted,
            expired: totals.expired,
            dropped: totals.dropped,
            replaced: totals.replaced,
            dry_run_failed: totals.dry_run_failed,
            filled: totals.filled,
            shadow_hits: totals.shadow_hits,
            shadow_misses: totals.shadow_misses,
            reversed: totals.reversed,
            predicted: totals.predicted.to_string(),
            realised: totals.realised.to_string(),
            gas_cost: totals.gas_spent.to_string(),
            loss: totals.loss.to_string(),
            shadow_realised: totals.shadow_realised.to_string(),
        }
    }
}
