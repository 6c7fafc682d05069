//! The verifier pipe: the pump publishes a block and goes on; the verifier takes the newest, and what it finds comes back
//! when the pump looks.
//!
//! # Invariants
//! - **The newest wins.** A block that was published and not taken before the next one is skipped, and counted.
//! - **Nobody waits for the verifier.** The lock is held for moving a buffer, never for reading, comparing or filling.
//! - **Three buffers**: one is filled, one waits, one is with the verifier. They go round, so that publishing allocates
//!   nothing once they have grown.
//! - **A finding is said once.** A pool that was found out is not compared again; a finding about a block that was
//!   reverted before the pump took it is dropped, and the pool is compared as before.

use crate::market::{Market, PoolId, ReserveUpdate};
use crate::source::{BlockHash, Head};
use crate::verify::{Mismatch, VerifyJob};
use regatta_core::dispatch::{LatestWins, Offered};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Buffers that are kept for the next block.
const SPARE: usize = 2;

/// How a verification ended that compared nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unverified {
    /// The source could not be read.
    ReadFailed,
    /// The source took longer than it may.
    ReadTimedOut,
    /// The fleet did not run the comparison.
    NotRun,
}

/// What went through the pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifierStatus {
    /// Blocks published.
    pub published: u64,
    /// Of these, replaced by a newer one before they were taken.
    pub skipped: u64,
    /// Of these, compared.
    pub verified: u64,
    /// Of these, not compared or of no effect because they were reverted.
    pub reverted: u64,
    /// Of these, not compared because the source could not be read.
    pub read_failed: u64,
    /// Of these, not compared because reading took too long.
    pub read_timed_out: u64,
    /// Of these, not compared because the fleet did not run the comparison.
    pub not_run: u64,
    /// Pools compared, over all blocks.
    pub compared: u64,
    /// Pools that the source said nothing of when it was asked.
    pub unread: u64,
    /// Pools that moved in a block and did not fit its comparison.
    pub left_out: u64,
    /// Findings about a reverted block that were dropped.
    pub findings_dropped: u64,
    /// Pools found out, whether the pump has heard of it or not.
    pub found_out: u64,
    /// Units that were given up at the end.
    pub given_up: u64,
}

/// The block that the verifier has.
#[derive(Clone, Copy)]
struct InHand {
    block: BlockHash,
    /// It was reverted since.
    reverted: bool,
    since: Instant,
    /// It was read, and a unit of it may be with the fleet.
    compared: bool,
}

#[derive(Default)]
struct State {
    cell: LatestWins<Box<VerifyJob>>,
    #[expect(clippy::vec_box, reason = "the boxes go round, as units do")]
    spare: Vec<Box<VerifyJob>>,
    sequence: u64,
    /// Where the turn through the market goes on.
    next: u32,
    in_hand: Option<InHand>,
    /// Findings that the pump has not taken.
    findings: Vec<Mismatch>,
    /// Pools that are not compared again.
    known: Arc<BTreeSet<PoolId>>,
    /// No more is published.
    closed: bool,
    /// Nothing that the verifier does has an effect.
    fenced: bool,
    counts: VerifierStatus,
}

impl State {
    fn keep(&mut self, job: Box<VerifyJob>) {
        if self.spare.len() < SPARE {
            self.spare.push(job);
        }
    }

    /// Takes back what the verifier has; whether it still counts.
    fn back(&mut self) -> bool {
        let reverted = self.in_hand.take().is_some_and(|in_hand| in_hand.reverted);
        if reverted {
            self.counts.reverted += 1;
        }
        !reverted && !self.fenced
    }
}

/// The pipe. See the [module](self).
#[derive(Default)]
pub struct VerifierPipe {
    state: Mutex<State>,
    changed: Condvar,
}

impl fmt::Debug for VerifierPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VerifierPipe").field(&self.status()).finish()
    }
}

impl VerifierPipe {
    /// An empty pipe.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is of counts and whole buffers.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a block with the pools that moved in it, each once and by number, and the market as it is there. For
    /// the pump alone.
    pub fn publish(&self, head: Head, moved: &[ReserveUpdate], market: &Market) {
        let (mut job, from, known) = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            let job = state.spare.pop().unwrap_or_default();
            (job, state.next, Arc::clone(&state.known))
        };
        job.fill(head, moved, market, from, &known);
        drop(known);
        let mut state = self.lock();
        state.counts.published += 1;
        state.counts.left_out += job.left_out();
        state.sequence += 1;
        let sequence = state.sequence;
        match state.cell.offer(sequence, job) {
            Offered::Held => {}
            Offered::Replaced(old) | Offered::Stale(old) => {
                state.counts.skipped += 1;
                state.keep(old);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The block is no longer part of the chain.
    pub fn reverted(&self, block: BlockHash) {
        let mut state = self.lock();
        let waits = state
            .cell
            .held()
            .is_some_and(|job| job.head().hash == block);
        if waits && let Some((_, job)) = state.cell.take() {
            state.counts.reverted += 1;
            state.keep(job);
        }
        if let Some(in_hand) = &mut state.in_hand {
            in_hand.reverted |= in_hand.block == block;
        }
        let (dropped, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.findings)
            .into_iter()
            .partition(|finding| finding.head.hash == block);
        state.findings = kept;
        state.counts.findings_dropped += dropped.len() as u64;
        state.counts.found_out -= dropped.len() as u64;
        let known = Arc::make_mut(&mut state.known);
        for finding in dropped {
            known.remove(&finding.pool);
        }
    }

    /// Takes what was found out since, in order: adds it to `findings`.
    pub fn take_findings(&self, findings: &mut Vec<Mismatch>) {
        findings.append(&mut self.lock().findings);
    }

    /// No more is published; what waits is verified still.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Nothing that the verifier does from here on has an effect.
    pub fn fence(&self) {
        let mut state = self.lock();
        (state.closed, state.fenced) = (true, true);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether no more is published.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether the verifier was cut off.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.lock().fenced
    }

    /// Whether a unit of the verifier may be with the fleet. Once it is fenced, none will be that is not.
    #[must_use]
    pub fn is_comparing(&self) -> bool {
        self.lock().in_hand.is_some_and(|in_hand| in_hand.compared)
    }

    /// Blocks that wait for the verifier, or are with it.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let state = self.lock();
        let counts = &state.counts;
        let through = counts.skipped
            + counts.verified
            + counts.reverted
            + counts.read_failed
            + counts.read_timed_out
            + counts.not_run;
        counts.published.saturating_sub(through)
    }

    /// For how long the verifier has had its block, if it has one.
    #[must_use]
    pub fn busy_for(&self) -> Option<Duration> {
        let in_hand = self.lock().in_hand?;
        Some(in_hand.since.elapsed())
    }

    /// What went through it.
    #[must_use]
    pub fn status(&self) -> VerifierStatus {
        self.lock().counts
    }

    /// Waits for the newest block; none once no more will come. For the verifier alone, which says what became of it.
    pub(crate) fn take(&self) -> Option<Box<VerifyJob>> {
        let mut state = self.lock();
        loop {
            if state.fenced {
                return None;
            }
            if let Some((_, job)) = state.cell.take() {
                state.in_hand = Some(InHand {
                    block: job.head().hash,
                    reverted: false,
                    since: Instant::now(),
                    compared: false,
                });
                state.next = job.next();
                return Some(job);
            }
            if state.closed {
                return None;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The block was read and is to be compared; `false` if nothing is any more.
    pub(crate) fn compare(&self) -> bool {
        let mut state = self.lock();
        let wanted = !state.fenced;
        if let Some(in_hand) = &mut state.in_hand {
            in_hand.compared = wanted;
        }
        wanted
    }

    /// The block was compared.
    pub(crate) fn verified(&self, job: Box<VerifyJob>) {
        let mut state = self.lock();
        if state.back() {
            state.counts.verified += 1;
            let read = job.checks().iter().filter(|check| check.read.is_some());
            let read = read.count() as u64;
            state.counts.compared += read;
            state.counts.unread += job.checks().len() as u64 - read;
            for finding in job.mismatches() {
                // Between two blocks the pump may not have heard of the first finding yet.
                if Arc::make_mut(&mut state.known).insert(finding.pool) {
                    state.counts.found_out += 1;
                    state.findings.push(*finding);
                }
            }
        }
        state.keep(job);
    }

    /// The block was not compared. A buffer that was lost with its unit is made anew.
    pub(crate) fn unverified(&self, job: Option<Box<VerifyJob>>, why: Unverified) {
        let mut state = self.lock();
        if state.back() {
            match why {
                Unverified::ReadFailed => state.counts.read_failed += 1,
                Unverified::ReadTimedOut => state.counts.read_timed_out += 1,
                Unverified::NotRun => state.counts.not_run += 1,
            }
        }
        if let Some(job) = job {
            state.keep(job);
        }
    }

    /// A unit was given up on purpose.
    pub(crate) fn give_up(&self) {
        self.lock().counts.given_up += 1;
    }
}
