//! The dispatch seam: what the pump and the source hand on, over three pipes with three semantics, and one owner.
//!
//! | pipe | what goes through | semantics |
//! | --- | --- | --- |
//! | [`drain`](crate::drain) | records, finalizers | an ordered queue, one drainer, nothing dropped; the sender may wait |
//! | [`clock`] | headers | one to one, in order, on the source's thread; waits for nobody |
//! | [`verifier`] | published blocks | the newest wins, skipped ones are counted; the pump never waits |
//!
//! They are not one bus: a header behind a record would be as late as the slowest sink, a verification in order would
//! lag further and further, and records of which only the newest counts are no records.
//!
//! # Invariants
//! - The pipes share no lock, and none of theirs is held while a unit runs.
//! - What leaves the process is ordered by the drain alone.
//! - Who ends what: the source stops the clock, the pump's end closes the verifier's intake, and the drain, which carries
//!   the summary, is quiesced last.

pub mod clock;
pub mod verifier;

pub use clock::{Clock, ClockStatus, CutOff, Tick, TickError, Ticks};
pub use verifier::{VerifierPipe, VerifierStatus};

use crate::drain::{Drain, Status};
use crate::source::BlockHash;
use std::sync::{Arc, OnceLock};

/// The owner of the three pipes.
#[derive(Debug)]
pub struct Dispatch {
    drain: OnceLock<Drain>,
    clock: Arc<Clock>,
    verifier: Option<Arc<VerifierPipe>>,
}

/// How the pipes are.
#[derive(Clone, Debug)]
pub struct DispatchStatus {
    /// The drain, once it has started.
    pub drain: Option<Status>,
    /// The clock.
    pub clock: ClockStatus,
    /// The verifier's pipe, if there is a verifier.
    pub verifier: Option<VerifierStatus>,
}

impl Dispatch {
    /// The pipes before anything has started; with one to a verifier where blocks are to be verified.
    #[must_use]
    pub fn new(verifies: bool) -> Self {
        Self {
            drain: OnceLock::new(),
            clock: Arc::new(Clock::new()),
            verifier: verifies.then(|| Arc::new(VerifierPipe::new())),
        }
    }

    /// Takes the drain that has started. The first one stays.
    pub fn set_drain(&self, drain: Drain) {
        self.drain.get_or_init(|| drain);
    }

    /// The drain, once it has started.
    #[must_use]
    pub fn drain(&self) -> Option<&Drain> {
        self.drain.get()
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// The way to the verifier, if there is one.
    #[must_use]
    pub const fn verifier(&self) -> Option<&Arc<VerifierPipe>> {
        self.verifier.as_ref()
    }

    /// The block is no longer part of the chain: no verification of it has an effect from here on.
    pub fn reverted(&self, block: BlockHash) {
        if let Some(verifier) = &self.verifier {
            verifier.reverted(block);
        }
    }

    /// How the pipes are.
    #[must_use]
    pub fn status(&self) -> DispatchStatus {
        DispatchStatus {
            drain: self.drain().map(Drain::status),
            clock: self.clock.status(),
            verifier: self.verifier.as_ref().map(|pipe| pipe.status()),
        }
    }
}
