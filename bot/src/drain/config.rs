//! How a drain is set up, and why one may not start.

use super::sink::Sink;
use super::state::Status;
use regatta_core::dispatch::{StallRule, Stalled};
use regatta_core::time::Duration as Span;
use regatta_portable::census::CensusError;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What is done about a stall: called once, on the timekeeper's thread, with no lock held.
pub type OnStall = Arc<dyn Fn(&Stalled, &Status) + Send + Sync>;

/// How a drain is set up.
#[derive(Clone)]
pub struct DrainConfig {
    /// Items that wait for the drainer at most.
    pub queue: usize,
    /// Records that wait for each sink at most, the one in its hand not counted.
    pub spool: usize,
    /// How long [`send`](super::Drain::send) waits for room in a full queue before it hands the item back.
    pub patience: Duration,
    /// How often a sink tries a record in vain, without one byte of progress, before it is given up.
    pub attempts: u32,
    /// The pause between two attempts.
    pub pause: Duration,
    /// When the drainer counts as frozen.
    pub rule: StallRule,
    /// What is done then.
    pub on_stall: OnStall,
}

impl std::fmt::Debug for DrainConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DrainConfig")
            .field("queue", &self.queue)
            .field("spool", &self.spool)
            .field("patience", &self.patience)
            .field("attempts", &self.attempts)
            .field("pause", &self.pause)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl Default for DrainConfig {
    /// 256 items, 1,024 records a sink, a second of patience, three attempts a tenth of a second apart, the
    /// core's stall rule, and [`log_and_abort`].
    fn default() -> Self {
        Self {
            queue: 256,
            spool: 1024,
            patience: Duration::from_secs(1),
            attempts: 3,
            pause: Duration::from_millis(100),
            rule: StallRule::default(),
            on_stall: Arc::new(log_and_abort),
        }
    }
}

/// Logs the stall with the state of the drain, and aborts the process.
pub fn log_and_abort(stalled: &Stalled, status: &Status) {
    tracing::error!("the drain has stalled: {stalled}\n{status}");
    std::process::abort()
}

/// Why a drain did not start.
#[derive(Debug, Error)]
pub enum DrainError {
    /// There is nowhere to drain to.
    #[error("the drain has no sink: it takes at least one")]
    NoSink,
    /// Two sinks have one name.
    #[error("two sinks are named {name:?}: each needs a name of its own")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A number is zero.
    #[error("{key} is 0: it takes at least 1")]
    Zero {
        /// The field of [`DrainConfig`].
        key: &'static str,
    },
    /// A thread could not be had.
    #[error(transparent)]
    Thread(#[from] CensusError),
}

pub(super) fn check(
    config: &DrainConfig,
    sinks: &[(String, Box<dyn Sink>)],
) -> Result<(), DrainError> {
    let zeros = [
        ("queue", config.queue == 0),
        ("spool", config.spool == 0),
        ("attempts", config.attempts == 0),
        ("rule.floor", config.rule.floor == 0),
        ("rule.interval", config.rule.interval == Span::ZERO),
    ];
    if let Some((key, _)) = zeros.into_iter().find(|(_, zero)| *zero) {
        return Err(DrainError::Zero { key });
    }
    if sinks.is_empty() {
        return Err(DrainError::NoSink);
    }
    let twice = sinks
        .iter()
        .enumerate()
        .find(|(i, (name, _))| sinks.iter().take(*i).any(|(other, _)| other == name));
    match twice {
        Some((_, (name, _))) => Err(DrainError::Duplicate { name: name.clone() }),
        None => Ok(()),
    }
}
