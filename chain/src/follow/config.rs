//! What a follower is told about its chain, its node and its patience.
//!
//! # Invariants
//! - A configuration that [`FollowConfig::check`] lets through makes every piece of work of the follower bounded: no count
//!   is zero where one is needed, no duration is zero where a loop would spin, none is longer than a day.

use core::time::Duration;

use alloy_primitives::{Address, B256};

/// The longest duration that a configuration may name.
const LONGEST: Duration = Duration::from_hours(24);
/// The most blocks that a configuration may name.
const MOST_BLOCKS: usize = 65_536;

/// How a follower follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FollowConfig {
    /// Applied blocks that are remembered, so that they can be reverted. A reorganisation that is deeper is read anew.
    /// At least 1.
    pub journal_blocks: usize,
    /// The most blocks that are filled in one by one. A gap that is longer is read anew. At least 1.
    pub backfill_blocks: usize,
    /// Blocks of a branch whose logs are asked for at the same time. At least 1.
    pub calls_at_once: usize,
    /// How often a call is tried before the follower rests. At least 1.
    pub call_attempts: u32,
    /// How often a node has to say that a block has no logs, where the header's bloom lets it have some. At least 1, at
    /// most [`Self::call_attempts`].
    pub empty_asks: u32,
    /// How long an answer may take.
    pub call_deadline: Duration,
    /// The first wait between two tries of a call; each further one is twice as long.
    pub backoff_first: Duration,
    /// The longest wait between two tries; also how long the follower rests after the last one.
    pub backoff_cap: Duration,
    /// Rests without a block in between after which the driver is asked to reconnect. At least 1.
    pub rests_to_reconnect: u32,
    /// How long the driver may take to read the pools anew.
    pub reread_deadline: Duration,
    /// How long a connection may take to be subscribed, and a subscription to bring its first head.
    pub first_head: Duration,
    /// The head-age watchdog fires after this many times the median interval between heads. At least 1.
    pub watchdog_factor: u32,
    /// The watchdog's shortest age: a burst of heads must not make it nervous.
    pub watchdog_floor: Duration,
    /// The watchdog's longest age; also its age while too few heads came to measure an interval.
    pub watchdog_cap: Duration,
    /// The first topics (event signatures) that matter. Empty: all.
    pub topics: Vec<B256>,
    /// The contracts that matter. Empty: all, which is right while pools come and go.
    pub addresses: Vec<Address>,
    /// Whether a header's bloom can be believed. Some chains fill it with zeros.
    pub trust_bloom: bool,
    /// Logs of subscriptions that are kept for blocks that are not applied yet.
    pub waiting_logs: usize,
    /// The most logs that matter in one block. An answer with more is refused.
    pub block_logs: usize,
}

impl Default for FollowConfig {
    /// For a chain with blocks every 0.25 to 15 seconds: a journal as deep as two epochs of the beacon chain, which is
    /// where blocks become final, and tries of a call that span about six seconds.
    fn default() -> Self {
        Self {
            journal_blocks: 64,
            backfill_blocks: 128,
            calls_at_once: 4,
            call_attempts: 7,
            empty_asks: 3,
            call_deadline: Duration::from_secs(5),
            backoff_first: Duration::from_millis(50),
            backoff_cap: Duration::from_secs(3),
            rests_to_reconnect: 3,
            reread_deadline: Duration::from_mins(1),
            first_head: Duration::from_secs(30),
            watchdog_factor: 4,
            watchdog_floor: Duration::from_secs(2),
            watchdog_cap: Duration::from_mins(2),
            topics: Vec::new(),
            addresses: Vec::new(),
            trust_bloom: true,
            waiting_logs: 65_536,
            block_logs: 65_536,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// A count is out of its range.
    #[error("{name} is {value}, it takes {least} to {most}")]
    Count {
        /// The field.
        name: &'static str,
        /// What it is.
        value: usize,
        /// The least that it may be.
        least: usize,
        /// The most that it may be.
        most: usize,
    },
    /// A duration is out of its range.
    #[error("{name} is {value:?}, it takes {least:?} to {most:?}")]
    Duration {
        /// The field.
        name: &'static str,
        /// What it is.
        value: Duration,
        /// The least that it may be.
        least: Duration,
        /// The most that it may be.
        most: Duration,
    },
}

impl FollowConfig {
    /// Checks every field against its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let attempts = small(self.call_attempts);
        let counts = [
            ("journal_blocks", self.journal_blocks, 1, MOST_BLOCKS),
            ("backfill_blocks", self.backfill_blocks, 1, MOST_BLOCKS),
            ("calls_at_once", self.calls_at_once, 1, 1_024),
            ("call_attempts", attempts, 1, 1_000),
            ("empty_asks", small(self.empty_asks), 1, attempts),
            (
                "rests_to_reconnect",
                small(self.rests_to_reconnect),
                1,
                1_000,
            ),
            ("watchdog_factor", small(self.watchdog_factor), 1, 1_000),
            ("waiting_logs", self.waiting_logs, 0, 1 << 24),
            ("block_logs", self.block_logs, 1, 1 << 24),
        ];
        for (name, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Err(ConfigError::Count {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        let tick = Duration::from_millis(1);
        let durations = [
            ("call_deadline", self.call_deadline, tick),
            ("backoff_first", self.backoff_first, tick),
            ("backoff_cap", self.backoff_cap, self.backoff_first),
            ("reread_deadline", self.reread_deadline, tick),
            ("first_head", self.first_head, tick),
            ("watchdog_floor", self.watchdog_floor, tick),
            ("watchdog_cap", self.watchdog_cap, self.watchdog_floor),
        ];
        for (name, value, least) in durations {
            if !(least..=LONGEST).contains(&value) {
                return Err(ConfigError::Duration {
                    name,
                    value,
                    least,
                    most: LONGEST,
                });
            }
        }
        Ok(())
    }

    /// How long to wait after the attempt of this number (from 1).
    pub(super) fn backoff(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(30);
        self.backoff_first
            .saturating_mul(1 << doublings)
            .min(self.backoff_cap)
    }
}

fn small(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
