//! The connection, as the follower sees it, and how old its last head may be.
//!
//! # Invariants
//! - A subscription is live only after it was confirmed and a head came.
//! - Every state but `Down` has a deadline; `Down` waits for the driver, which owns the reconnecting.
//! - The watchdog's age comes from the chain's own intervals between heads on one connection, never from block times.

use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use super::after;
use super::config::FollowConfig;
use super::event::{NotReady, ReconnectReason};

/// Intervals from which the watchdog's age is measured.
const SAMPLES: usize = 16;
/// Fewer intervals than this say nothing.
const FEW: usize = 4;

/// The state of the subscriptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Down,
    Connected {
        since: Instant,
    },
    Subscribed {
        since: Instant,
    },
    Live {
        last: Instant,
    },
    /// A new connection was asked for, and is asked for again at the deadline.
    GivenUp {
        reason: ReconnectReason,
        again: Instant,
    },
}

/// The subscriptions and their watchdog.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) link: Link,
    intervals: VecDeque<Duration>,
}

impl Watch {
    pub(super) const fn new() -> Self {
        Self {
            link: Link::Down,
            intervals: VecDeque::new(),
        }
    }

    /// Whether the chain is followed.
    pub(super) const fn follows(&self) -> bool {
        matches!(self.link, Link::Subscribed { .. } | Link::Live { .. })
    }

    /// A head came; `fresh` if it had not come before.
    pub(super) fn head(&mut self, fresh: bool, now: Instant) {
        match self.link {
            Link::Subscribed { .. } => self.link = Link::Live { last: now },
            Link::Live { last } if fresh => {
                self.intervals
                    .push_back(now.saturating_duration_since(last));
                if self.intervals.len() > SAMPLES {
                    self.intervals.pop_front();
                }
                self.link = Link::Live { last: now };
            }
            _ => {}
        }
    }

    /// The age of a head at which the watchdog fires.
    pub(super) fn limit(&self, config: &FollowConfig) -> Duration {
        if self.intervals.len() < FEW {
            return config.watchdog_cap;
        }
        let mut sorted: Vec<Duration> = self.intervals.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted
            .get(sorted.len() / 2)
            .copied()
            .unwrap_or(config.watchdog_cap);
        median
            .saturating_mul(config.watchdog_factor)
            .clamp(config.watchdog_floor, config.watchdog_cap)
    }

    pub(super) fn deadline(&self, config: &FollowConfig) -> Option<Instant> {
        match self.link {
            Link::Down => None,
            Link::Connected { since } | Link::Subscribed { since } => {
                Some(after(since, config.first_head))
            }
            Link::Live { last } => Some(after(last, self.limit(config))),
            Link::GivenUp { again, .. } => Some(again),
        }
    }

    /// Why the connection is to be given up now, if it is.
    pub(super) fn verdict(&self, now: Instant, config: &FollowConfig) -> Option<ReconnectReason> {
        if self.deadline(config).is_none_or(|deadline| deadline > now) {
            return None;
        }
        Some(match self.link {
            Link::Down => return None,
            Link::Connected { .. } => ReconnectReason::NotSubscribed(config.first_head),
            Link::Subscribed { .. } => ReconnectReason::NoFirstHead(config.first_head),
            Link::Live { .. } => ReconnectReason::HeadAge {
                limit: self.limit(config),
            },
            Link::GivenUp { reason, .. } => reason,
        })
    }

    pub(super) const fn not_ready(&self) -> Option<NotReady> {
        match self.link {
            Link::Down => Some(NotReady::Disconnected),
            Link::Connected { .. } => Some(NotReady::Subscribing),
            Link::Subscribed { .. } => Some(NotReady::AwaitingFirstHead),
            Link::Live { .. } => None,
            Link::GivenUp { reason, .. } => Some(NotReady::GivenUp(reason)),
        }
    }
}
