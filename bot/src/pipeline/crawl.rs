//! The crawl: every cycle of the graph is registered by a unit, a bounded number at a time.
//!
//! # Invariants
//! - At most [`REGISTRATION_WINDOW`] receipts are outstanding.
//! - Ids follow the order of the crawl, whichever seat was first: receipts are collected in the order
//!   of submission.

use super::registration::Registration;
use super::watch::{Watch, wait_unless_interrupted};
use super::workload::{Output, Pipeline, Unit};
use crate::cycles::{CycleTable, TableFull};
use regatta_core::host::EnqueueError;
use regatta_core::role::WorkerRole;
use regatta_portable::{Ended, Failure, Fleet, Receipt, WaitError};
use std::collections::VecDeque;
use std::sync::Arc;
use thiserror::Error;

/// Receipts that the crawl keeps outstanding.
pub const REGISTRATION_WINDOW: u32 = 32;

/// Why a crawl ended early.
#[derive(Debug, Error)]
pub enum CrawlError {
    /// The fleet took no more units.
    #[error("path {path} was not registered: {error}")]
    Refused {
        /// How many were registered before it.
        path: usize,
        /// What the fleet said.
        error: EnqueueError,
    },
    /// A registration ended without a result.
    #[error("path {path} was not registered: {failure}")]
    Failed {
        /// How many were registered before it.
        path: usize,
        /// Why.
        failure: Failure,
    },
    /// The registrar found a path that is no cycle; the crawl is at fault.
    #[error(
        "path {path} does not lead from the base token over distinct pools and tokens back to it"
    )]
    NotACycle {
        /// How many were registered before it.
        path: usize,
    },
    /// The crawl runs on a seat.
    #[error("the crawl cannot run on a seat of the fleet it waits for")]
    OnASeat,
    /// Whoever watches has interrupted it. What was outstanding is given up.
    #[error("the crawl was interrupted after {path} paths, and {given_up} receipts were given up")]
    Interrupted {
        /// How many were registered.
        path: usize,
        /// Receipts that were outstanding.
        given_up: u64,
    },
    /// The table is full.
    #[error(transparent)]
    TableFull(#[from] TableFull),
}

/// Where the crawl stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrawlStep {
    /// Paths submitted.
    pub submitted: usize,
    /// Paths registered.
    pub registered: usize,
    /// Receipts outstanding.
    pub outstanding: usize,
}

/// What the crawl does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Submit the next path if the window has room.
    Submit,
    /// Collect a receipt first, if one is outstanding.
    Collect,
}

/// What a crawl did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crawled {
    /// Paths registered.
    pub registered: usize,
    /// The most receipts that were outstanding at once.
    pub most_outstanding: usize,
}

/// Registers every cycle of the workload's graph and installs the table in the world.
///
/// `observe` is told where the crawl stands before each submission and after each collected receipt,
/// and says what comes next. `watch` is tended while the crawl waits.
pub fn crawl<W: Pipeline>(
    fleet: &Fleet<W>,
    watch: &dyn Watch,
    mut observe: impl FnMut(CrawlStep) -> Next,
) -> Result<Crawled, CrawlError> {
    let graph = Arc::clone(fleet.workload().arbitrage().world().graph());
    let expected: u64 = graph.count().iter().sum();
    let mut table = CycleTable::with_capacity(usize::try_from(expected).unwrap_or(0));
    let mut window = VecDeque::with_capacity(REGISTRATION_WINDOW as usize);
    let mut crawled = Crawled::default();
    let mut cycles = graph.crawl();
    let registration = Registration::new(Arc::clone(&graph), None);
    let mut submitted = 0;
    loop {
        let next = observe(CrawlStep {
            submitted,
            registered: table.len(),
            outstanding: window.len(),
        });
        let full = window.len() == REGISTRATION_WINDOW as usize;
        if !window.is_empty() && (full || next == Next::Collect) {
            collect(&mut window, &mut table, watch)?;
            continue;
        }
        let Some(cycle) = cycles.next() else { break };
        let receipt = fleet
            .submit(
                WorkerRole::Registrar,
                0,
                Unit::Register(registration.unit(submitted, cycle)),
            )
            .map_err(|refused| CrawlError::Refused {
                path: table.len(),
                error: refused.error,
            })?;
        submitted += 1;
        window.push_back(receipt);
        crawled.most_outstanding = crawled.most_outstanding.max(window.len());
    }
    while !window.is_empty() {
        collect(&mut window, &mut table, watch)?;
        observe(CrawlStep {
            submitted,
            registered: table.len(),
            outstanding: window.len(),
        });
    }
    crawled.registered = table.len();
    fleet.workload().arbitrage().world_mut().install(table);
    Ok(crawled)
}

fn collect<W: Pipeline>(
    window: &mut VecDeque<Receipt<W>>,
    table: &mut CycleTable,
    watch: &dyn Watch,
) -> Result<(), CrawlError> {
    let path = table.len();
    let Some(receipt) = window.pop_front() else {
        return Ok(());
    };
    let given_up = window.len() as u64 + 1;
    let interrupted = CrawlError::Interrupted { path, given_up };
    match wait_unless_interrupted(receipt, watch).ok_or(interrupted)? {
        Ok(Ended::Done(Output::Registered(cycle, true))) => {
            table.register(cycle)?;
            Ok(())
        }
        Ok(Ended::Done(_)) => Err(CrawlError::NotACycle { path }),
        Ok(Ended::Failed(failure, _)) => Err(CrawlError::Failed { path, failure }),
        Err(WaitError::WouldDeadlock(_) | WaitError::TimedOut(_)) => Err(CrawlError::OnASeat),
    }
}
