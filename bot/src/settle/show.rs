//! `regatta settle ledger`: what a ledger says.

use super::{SettleError, SettlementTotals};
use crate::cli::LedgerArgs;
use crate::market::Address;
use crate::node::address;
use regatta_settle::ledger::Ledger;
use serde::Serialize;
use std::io::Write;

/// A ledger's summary.
#[derive(Serialize)]
struct Summary {
    chain_id: u64,
    executor: Address,
    owner: Address,
    entries: u64,
    /// Bytes that a crash left of a last entry.
    torn: u64,
    #[serde(flatten)]
    totals: SettlementTotals,
    /// The open ones, by number, with their nonces.
    open_settlements: Vec<(u64, Option<u64>)>,
}

pub(super) fn show(args: &LedgerArgs, mut out: impl Write) -> Result<(), SettleError> {
    let read = Ledger::read(&args.file)?;
    let summary = Summary {
        chain_id: read.header.chain_id,
        executor: address(read.header.executor),
        owner: address(read.header.owner),
        entries: read.entries,
        torn: read.torn.map_or(0, |torn| torn.length),
        totals: SettlementTotals::of(&read.state),
        open_settlements: read
            .state
            .open()
            .map(|(id, flight)| (id.0, flight.nonce))
            .collect(),
    };
    if args.json {
        serde_json::to_writer(&mut out, &summary).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        write_text(&mut out, &summary)?;
    }
    out.flush()?;
    Ok(())
}

fn write_text(out: &mut impl Write, summary: &Summary) -> std::io::Result<()> {
    let totals = &summary.totals;
    writeln!(
        out,
        "chain {}, executor {}, owner {}",
        summary.chain_id, summary.executor, summary.owner
    )?;
    write!(out, "{} entries", summary.entries)?;
    match summary.torn {
        0 => writeln!(out)?,
        torn => writeln!(out, ", and {torn} bytes that a crash left of another")?,
    }
    for (name, count) in [
        ("planned", totals.planned),
        ("sent", totals.sent),
        ("open", totals.open),
        ("included", totals.included),
        ("reverted", totals.reverted),
        ("expired", totals.expired),
        ("dropped", totals.dropped),
        ("replaced", totals.replaced),
        ("dry run failed", totals.dry_run_failed),
        ("filled", totals.filled),
        ("shadow hits", totals.shadow_hits),
        ("shadow misses", totals.shadow_misses),
        ("reversed", totals.reversed),
    ] {
        writeln!(out, "{name:<16}{count}")?;
    }
    for (name, amount) in [
        ("predicted", &totals.predicted),
        ("realised", &totals.realised),
        ("gas", &totals.gas_cost),
        ("loss", &totals.loss),
        ("shadow realised", &totals.shadow_realised),
    ] {
        writeln!(out, "{name:<16}{amount} wei")?;
    }
    for (id, nonce) in &summary.open_settlements {
        match nonce {
            Some(nonce) => writeln!(out, "open: settlement {id}, nonce {nonce}")?,
            None => writeln!(out, "open: settlement {id}, not signed")?,
        }
    }
    Ok(())
}
