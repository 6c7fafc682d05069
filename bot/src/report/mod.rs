//! What a run says: one record after the other, as text or as JSON lines.
//!
//! # Invariants
//! - A record is handed on in one write and flushed, so that a reader of a pipe is never behind, and
//!   no record is begun that cannot be put together.
//! - In JSON, whatever may depend on timing stands under the key `timing` of its record. Two runs of
//!   one seed give the same bytes once that key is gone, as long as every block runs: which blocks a
//!   live run misses depends on timing, and with that which records there are.
//! - Amounts are decimal strings: they exceed what a JSON number can carry.

mod canonical;
mod chain;
mod distrust;
mod record;
mod settlement;
mod text;

pub use canonical::canonical;
pub use chain::{MissedRecord, QuarantineRecord, RegisteredRecord, ReservesRecord, RetractRecord};
pub use distrust::{DistrustRecord, EvmRecord, FeeRecord};
pub use record::{
    BinTiming, BlockRecord, BlockTiming, BudgetRecord, CensusRecord, CrawlRecord, CrawlTiming,
    HopRecord, LaneRecord, Moved, PercentileRecord, PlanRecord, Record, ScenarioRecord,
    ScenarioTiming, SeatsRecord, SummaryRecord, SummaryTiming, VerifierRecord, WinnerRecord,
};

pub use crate::settle::SettlementRecord;
pub use settlement::SettlingRecord;
pub(crate) use text::{cores, write_seats, write_shares};

use std::io::{self, Write};

/// In which form records are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// Puts `record` together: adds all of its bytes to `bytes`, the newline at the end too.
    pub(crate) fn render(self, record: &Record, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Text => text::write(bytes, record)?,
            Self::Json => {
                serde_json::to_writer(&mut *bytes, record)?;
                bytes.push(b'\n');
            }
        }
        Ok(())
    }
}

/// Writes records to `out`.
#[derive(Debug)]
pub struct Reporter<W> {
    out: W,
    format: Format,
    /// The record that is being put together.
    record: Vec<u8>,
}

impl<W: Write> Reporter<W> {
    /// A reporter in `format`.
    pub const fn new(out: W, format: Format) -> Self {
        Self {
            out,
            format,
            record: Vec::new(),
        }
    }

    /// Writes a record.
    pub fn emit(&mut self, record: &Record) -> io::Result<()> {
        self.record.clear();
        self.format.render(record, &mut self.record)?;
        self.out.write_all(&self.record)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
