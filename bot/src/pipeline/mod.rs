//! The main job: from blocks to published opportunities, over the fleet.
//!
//! ```text
//! source ─► pump ─► apply ─► Resolve ─► Solver bins ─► Merge ─► SimDriver ─► record
//!                    world    touched    screen, bound   fuse     exact, in order
//! ```
//!
//! The pump is the one driver. It applies a block to the [`World`], then leads it through the roles by
//! submitting units and waiting for their receipts. Buffers travel with the units and come back with
//! the outputs, so a warm pump allocates nothing per unit.
//!
//! # Invariants
//! - The world changes only between cycles, when no unit that reads it is with a seat.
//! - What is published does not depend on how cycles are spread over bins or in which order bins end:
//!   candidates are ordered by (bound, id), and exact profits by (profit, id).
//! - Every touched cycle has exactly one outcome; the fuse compares sets.

mod best;
mod crawl;
mod feed;
mod journal;
mod merge;
mod pump;
mod queue;
mod registration;
mod reread;
mod resolve;
mod result;
mod simulate;
mod solve;
mod watch;
mod workload;
mod world;

pub use crawl::{CrawlError, CrawlStep, Crawled, Next, REGISTRATION_WINDOW, crawl};
pub use feed::{
    Feed, FeedCloser, FeedError, FeedNext, FeedWaker, Feeder, LiveFeed, LiveSource, Untaken,
};
pub use journal::JOURNAL_DEPTH;
pub use merge::Candidate;
pub use pump::{Grown, Pump};
pub use registration::RegisterJob;
pub use reread::ReadJob;
pub use result::{BlockResult, PumpConfig, PumpError};
pub use simulate::{Trade, Winner};
pub use watch::{Unwatched, Watch};
pub(crate) use workload::settling;
pub use workload::{Arbitrage, Output, Pipeline, Unit, fleet_config};
pub use world::{World, WorldError};

/// Cycles per group: what is placed into a bin, and reported to the fuse, as one.
///
/// Neighbouring ids share their first hops, so a group is local in memory; 512 are eight words of a bit
/// set, and the 305,804 cycles of the demonstration market make 598 groups, enough to balance six bins
/// to within half a per cent.
pub const GROUP: u32 = 512;

/// The most cycles that a run registers: 1.4 gigabytes of them.
pub(crate) const MAX_CYCLES: usize = 50_000_000;

/// Words of a group's bit set.
pub(crate) const GROUP_WORDS: usize = GROUP as usize / 64;

#[cfg(test)]
pub(crate) mod tests;
