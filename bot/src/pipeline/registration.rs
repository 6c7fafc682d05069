//! What registrar units work on, and how they say that they have ended.
//!
//! A registration may be held for as long as a cordon lasts, and blocks do not wait for it. So whoever has them
//! outstanding is told which have ended, and waits for no other.
//!
//! # Invariants
//! - A unit that ended, was lost, or was given back has said so once it does not exist any more: the part that
//!   says it is dropped with the unit.
//! - Who is woken by a registration finds it marked.

use super::REGISTRATION_WINDOW;
use super::feed::FeedWaker;
use crate::cycles::{Cycle, CycleGraph};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the registrations of one crawl share.
#[derive(Debug)]
pub(super) struct Registration {
    /// What the cycles are checked against.
    graph: Arc<CycleGraph>,
    /// Which of the outstanding units have ended: a bit for each place in the window.
    ended: AtomicU32,
    wake: Option<FeedWaker>,
}

impl Registration {
    /// Of cycles of `graph`; each that ends wakes `wake`.
    pub(crate) fn new(graph: Arc<CycleGraph>, wake: Option<FeedWaker>) -> Arc<Self> {
        Arc::new(Self {
            graph,
            ended: AtomicU32::new(0),
            wake,
        })
    }

    pub(crate) const fn graph(&self) -> &Arc<CycleGraph> {
        &self.graph
    }

    /// A unit, the `number`-th of the crawl.
    pub(crate) fn unit(self: &Arc<Self>, number: usize, cycle: Cycle) -> RegisterJob {
        RegisterJob {
            cycle,
            of: Arc::clone(self),
            bit: bit(number),
        }
    }

    /// Whether the `number`-th has ended. Its place is free then.
    pub(crate) fn take_ended(&self, number: usize) -> bool {
        let bit = bit(number);
        self.ended.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }
}

/// The place of a unit in the window. The units that are outstanding have different ones.
fn bit(number: usize) -> u32 {
    const { assert!(REGISTRATION_WINDOW <= u32::BITS) }
    1 << (number % REGISTRATION_WINDOW as usize)
}

/// What a registrar unit works on.
#[derive(Debug)]
pub struct RegisterJob {
    cycle: Cycle,
    of: Arc<Registration>,
    bit: u32,
}

impl RegisterJob {
    /// The cycle.
    pub(crate) const fn cycle(&self) -> Cycle {
        self.cycle
    }

    /// Whether it is one.
    pub(crate) fn run(&self) -> bool {
        self.of.graph.is_cycle(&self.cycle)
    }
}

impl Drop for RegisterJob {
    fn drop(&mut self) {
        self.of.ended.fetch_or(self.bit, Ordering::AcqRel);
        if let Some(wake) = &self.of.wake {
            wake.wake();
        }
    }
}
