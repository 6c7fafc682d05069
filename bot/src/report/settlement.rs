//! Settlement in the summary.

use crate::settle::{SettlementTotals, Skipped};
use serde::Serialize;

/// What settling came to.
#[derive(Clone, Debug, Serialize)]
pub struct SettlingRecord {
    /// What the ledger's entries add up to, over all runs on it.
    #[serde(flatten)]
    pub totals: SettlementTotals,
    /// Published trades of this run that were not taken.
    pub skipped: Skipped,
}
