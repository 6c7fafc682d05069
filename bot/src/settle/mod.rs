//! Settlement: published trades become transactions of the executor.
//!
//! ```text
//!  pump ── published trades, reverts ──► intake ─┐             ┌─► Submitter   signing, on a seat of the fleet
//!  clock ── every header ──────────────► intake ─┼─► settler ──┼─► Asker       calls, sends: ambient, nobody waits
//!  node ── answers ────────────────────► intake ─┘   (engine)  ├─► ledger      on the disk before anything is sent
//!                                                              └─► drain       a record of each outcome
//! ```
//!
//! What decides is [`regatta_settle::engine`]; this carries its actions out, on one thread of its own.
//!
//! # Invariants
//! - The thread waits for messages, its next deadline and the disk, and for nothing else: no call and no seat.
//! - A transaction is sent after its entry is on the disk, and never before.
//! - The key is in the jobs that sign and nowhere else. No record, line or error has more of it than its address.

mod calls;
mod deploy;
mod driver;
mod intake;
mod job;
mod open;
mod record;
mod show;

pub(crate) use driver::{Left, Settler, Surroundings};
pub(crate) use intake::Intake;
pub use intake::Skipped;
pub use job::SubmitJob;
pub use open::SettleError;
pub(crate) use open::{Opened, Prepared};
pub use record::{SettlementRecord, SettlementTotals};

use crate::cli::{SettleCommand, SettleVerb};
use crate::source::Head;
use alloy_primitives::B256;
use regatta_settle::engine::{Answer, CallId, Opportunity};
use std::io::Write;

/// What the settler is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// A trade was published.
    Found(Box<Opportunity>),
    /// A header came.
    Head(Head),
    /// The pump has this one.
    Applied(Head),
    /// A block was reverted.
    Reverted(B256),
    /// The node answered.
    Answer(CallId, Answer),
    /// A signing unit ran.
    Ran,
    /// Nothing new is to be taken.
    Drain,
    /// The thread is to end.
    Stop,
}

/// `regatta settle`: writes what the verb says to `out`.
pub fn settle(command: &SettleCommand, out: impl Write) -> Result<(), SettleError> {
    match &command.verb {
        SettleVerb::Deploy(args) => deploy::deploy(args, out),
        SettleVerb::Ledger(args) => show::show(args, out),
    }
}

#[cfg(test)]
mod tests;
