//! The payload table: beside each row of the unit table, what the unit carries.
//!
//! # Invariants
//! - A slot is vacant exactly while its row is free; the row's lane owns it.
//! - A slot has at most one waiter: a receipt cannot be shared.

use crate::receipt::{Ended, Failure};
use crate::workload::Workload;
use regatta_core::unit::{Outcome, UnitId};
use std::thread::Thread;

/// What a slot holds.
enum Content<W: Workload> {
    Vacant,
    Waiting(W::Unit),
    Running,
    /// A report from its seat that the host has yet to confirm.
    Reported(Ended<W>),
    Ended(Ended<W>),
}

/// One slot.
struct Slot<W: Workload> {
    content: Content<W>,
    waiter: Option<Thread>,
    abandoned: bool,
}

/// What follows from the end of a unit.
pub(crate) enum Then<W: Workload> {
    /// A receipt will collect it.
    Keep,
    /// This thread waits for it.
    Wake(Thread),
    /// Nobody will collect it: the row can be released.
    Release(Ended<W>),
}

/// The slots, allocated at boot.
pub(crate) struct Slots<W: Workload> {
    slots: Box<[Slot<W>]>,
    abandoned: u64,
}

impl<W: Workload> Slots<W> {
    pub(crate) fn new(rows: usize) -> Self {
        let vacant = || Slot {
            content: Content::Vacant,
            waiter: None,
            abandoned: false,
        };
        Self {
            slots: std::iter::repeat_with(vacant).take(rows).collect(),
            abandoned: 0,
        }
    }

    /// Receipts dropped before their unit's outcome was collected.
    pub(crate) const fn abandoned(&self) -> u64 {
        self.abandoned
    }

    pub(crate) fn put(&mut self, unit: UnitId, payload: W::Unit) {
        self.slots[unit.index()].content = Content::Waiting(payload);
    }

    /// Takes the payload of a unit that is about to run.
    pub(crate) fn begin(&mut self, unit: UnitId) -> Option<W::Unit> {
        let slot = &mut self.slots[unit.index()];
        match std::mem::replace(&mut slot.content, Content::Running) {
            Content::Waiting(payload) => Some(payload),
            other => {
                slot.content = other;
                None
            }
        }
    }

    /// Keeps what a seat reports until the host has taken the report. A fence may have ended the unit
    /// meanwhile; then the report is too late and comes back.
    pub(crate) fn report(&mut self, unit: UnitId, ended: Ended<W>) -> Option<Ended<W>> {
        let slot = &mut self.slots[unit.index()];
        if !matches!(slot.content, Content::Running) {
            return Some(ended);
        }
        slot.content = Content::Reported(ended);
        None
    }

    /// The host says that the unit has ended so.
    pub(crate) fn end(&mut self, unit: UnitId, outcome: Outcome) -> Then<W> {
        let slot = &mut self.slots[unit.index()];
        let content = std::mem::replace(&mut slot.content, Content::Vacant);
        let ended = match (content, outcome) {
            (Content::Reported(ended), Outcome::Done | Outcome::Panicked) => ended,
            (Content::Waiting(payload), outcome) => Ended::Failed(failure(outcome), Some(payload)),
            (_, outcome) => Ended::Failed(failure(outcome), None),
        };
        if slot.abandoned {
            slot.abandoned = false;
            return Then::Release(ended);
        }
        slot.content = Content::Ended(ended);
        slot.waiter.take().map_or(Then::Keep, Then::Wake)
    }

    /// Takes the outcome of a unit that has ended.
    pub(crate) fn take_ended(&mut self, unit: UnitId) -> Option<Ended<W>> {
        let slot = &mut self.slots[unit.index()];
        match std::mem::replace(&mut slot.content, Content::Vacant) {
            Content::Ended(ended) => {
                slot.waiter = None;
                Some(ended)
            }
            other => {
                slot.content = other;
                None
            }
        }
    }

    /// Registers the thread that waits for a unit.
    pub(crate) fn set_waiter(&mut self, unit: UnitId, waiter: Option<Thread>) {
        self.slots[unit.index()].waiter = waiter;
    }

    /// Nobody will collect the unit's outcome. Returns it if the unit has ended already.
    pub(crate) fn abandon(&mut self, unit: UnitId) -> Option<Ended<W>> {
        self.abandoned += 1;
        let ended = self.take_ended(unit);
        self.slots[unit.index()].abandoned = ended.is_none();
        ended
    }
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Done | Outcome::Panicked => Failure::Panicked {
            message: "no report".into(),
        },
        Outcome::LaneDeath => Failure::LaneDeath,
        Outcome::Closed => Failure::Closed,
        Outcome::NotRun => Failure::NotRun,
    }
}
