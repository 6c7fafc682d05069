//! Cycles: every way to trade from the base token back to itself in a few hops.
//!
//! ```text
//! CycleGraph ──crawl──► Cycle ──register──► CycleTable ──build──► CycleIndex ──touched──► cycle ids
//! ```
//!
//! A [`CycleGraph`] is the part of a market that cycles can run through. Its [`Crawl`] yields each
//! cycle once and can stop and go on anywhere, so that cycles can be registered one by one within a
//! bounded window. When all are in the [`CycleTable`], a [`CycleIndex`] answers which cycles a set of
//! moved pools touches, at a cost that follows the answer and not the number of cycles.
//!
//! # Invariants
//! - A cycle has 2 to [`MAX_HOPS`] hops over distinct pools. It starts and ends at the base token, and
//!   the tokens between are distinct and none of them the base.
//! - Nothing here depends on reserves, so a graph, its order and its ids hold for as long as the
//!   market's list of pools does.
//! - The crawl's order is fixed: by number of hops, then by the first step, the second and so on,
//!   where steps from a token are ordered by the token they lead to, then by edge.

mod crawl;
mod graph;
mod index;
mod table;

pub use crawl::{Crawl, Cursor};
pub use graph::{CycleGraph, Edge, EdgeId, GraphError, MAX_HOPS, MAX_LIVE_POOLS};
pub use index::{CycleIndex, Touched};
pub use table::{Cycle, CycleId, CycleTable, TableFull};

#[cfg(test)]
mod tests;
