//! What others tell the settler, and what it lets them know.
//!
//! # Invariants
//! - Telling never waits. Opportunities are bounded: one too many is a skip that is counted.

use super::{Message, SettlementTotals};
use crate::node::{plain, plain_hash};
use crate::report::WinnerRecord;
use crate::source::{Event, Head};
use alloy_primitives::U256;
use regatta_settle::abi::Hop;
use regatta_settle::engine::{Opportunity, Skip};
use regatta_settle::ledger::Block;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opportunities that may wait for the settler.
pub(super) const BOUND: usize = 256;

/// Opportunities that were not taken, by why.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Skipped {
    /// The settler was behind.
    pub behind: u64,
    /// It was ending.
    pub draining: u64,
    /// It had stopped settling.
    pub stopped: u64,
    /// It was not reconciled with the node.
    pub not_ready: u64,
    /// A cycle with a pool twice, or without any.
    pub malformed: u64,
    /// Its block was too old or reverted.
    pub late: u64,
    /// The profit was below the minimum before gas.
    pub too_small: u64,
    /// One of its pools was in an open settlement.
    pub pool_taken: u64,
    /// As many were open as may be.
    pub full: u64,
}

impl Skipped {
    pub(super) const fn count(&mut self, skip: Skip) {
        let counter = match skip {
            Skip::Draining => &mut self.draining,
            Skip::Stopped => &mut self.stopped,
            Skip::NotReady => &mut self.not_ready,
            Skip::Malformed => &mut self.malformed,
            Skip::Late => &mut self.late,
            Skip::TooSmall => &mut self.too_small,
            Skip::PoolTaken(_) => &mut self.pool_taken,
            Skip::Full => &mut self.full,
        };
        *counter += 1;
    }
}

/// How settlement is.
#[derive(Clone, Default, Debug)]
pub(crate) struct SettleStatus {
    /// Why nothing is settled, in one word; nothing if it is.
    pub(crate) not_ready: Option<&'static str>,
    /// Settlements that are open.
    pub(crate) open: u64,
    /// The rest.
    pub(crate) totals: Option<SettlementTotals>,
    pub(crate) skipped: Skipped,
}

struct Shared {
    sender: Sender<Message>,
    waiting: AtomicUsize,
    status: Mutex<SettleStatus>,
}

/// The way to the settler. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct Intake(Arc<Shared>);

impl Intake {
    pub(super) fn new(sender: Sender<Message>) -> Self {
        Self(Arc::new(Shared {
            sender,
            waiting: AtomicUsize::new(0),
            status: Mutex::new(SettleStatus {
                not_ready: Some("not_started"),
                ..SettleStatus::default()
            }),
        }))
    }

    pub(super) fn sender(&self) -> Sender<Message> {
        self.0.sender.clone()
    }

    pub(super) fn send(&self, message: Message) {
        // With the settler gone there is nobody to be told.
        let _ = self.0.sender.send(message);
    }

    /// How it is.
    pub(crate) fn status(&self) -> MutexGuard<'_, SettleStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A header has come.
    pub(crate) fn head(&self, head: Head) {
        self.send(Message::Head(head));
    }

    /// The pump has taken this. Nobody announces a block that came while there was no connection.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Block(block) => self.send(Message::Applied(block.head())),
            Event::Reread { head, .. } => self.send(Message::Applied(*head)),
            Event::Reverted { hash, .. } => self.send(Message::Reverted(plain_hash(*hash))),
            Event::Pools(_) => {}
        }
    }

    /// A trade was published for the block.
    pub(crate) fn found(&self, head: &Head, winner: &WinnerRecord) {
        if self.0.waiting.fetch_add(1, Ordering::AcqRel) >= BOUND {
            self.taken();
            self.status().skipped.behind += 1;
            return;
        }
        self.send(Message::Found(Box::new(opportunity(head, winner))));
    }

    /// The settler takes one that waited.
    pub(super) fn taken(&self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }

    /// No new opportunity is taken; what is out is followed.
    pub(crate) fn drain(&self) {
        self.send(Message::Drain);
    }

    /// The settler ends at once.
    pub(crate) fn stop(&self) {
        self.send(Message::Stop);
    }
}

/// What the executor is to do for a trade. A pool's token 0 is the one with the lower address.
fn opportunity(head: &Head, winner: &WinnerRecord) -> Opportunity {
    let hops = winner.hops.iter().map(|hop| Hop {
        pool: plain(hop.pool),
        zero_for_one: hop.token_in < hop.token_out,
        amount_out: U256::from(hop.amount_out),
    });
    let base = winner.hops.first().map(|hop| plain(hop.token_in));
    Opportunity {
        found: Block {
            number: head.number,
            hash: plain_hash(head.hash),
        },
        base: base.unwrap_or_default(),
        amount_in: U256::from(winner.input),
        hops: hops.collect(),
        profit: U256::from(winner.profit),
    }
}
