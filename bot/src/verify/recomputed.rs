//! Reserves of the made-up chain, computed once more.
//!
//! It shares nothing with the world that it is compared with but where they started: its blocks come from a source of its
//! own, and its reserves are the source's.

use super::{ReadError, ReserveReader};
use crate::market::Address;
use crate::source::embedded::EmbeddedSource;
use crate::source::{BlockHash, BlockSource, Event};
use std::sync::{Mutex, PoisonError};

struct State {
    source: EmbeddedSource,
    /// The block that the source is at.
    at: Option<BlockHash>,
}

/// A second source of the same chain, which follows the blocks that it is asked for. It goes forward only: it knows
/// a block no more once it was asked for a later one.
pub struct Recomputed(Mutex<State>);

impl std::fmt::Debug for Recomputed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recomputed").finish_non_exhaustive()
    }
}

impl Recomputed {
    /// A reader of the chain that `source`, which must be at its beginning and have an end, makes.
    #[must_use]
    pub const fn new(source: EmbeddedSource) -> Self {
        Self(Mutex::new(State { source, at: None }))
    }
}

impl ReserveReader for Recomputed {
    fn reserves_at(
        &self,
        block: BlockHash,
        pools: &[Address],
    ) -> Result<Vec<Option<(u128, u128)>>, ReadError> {
        // A step is whole, or the source has said that it is at fault.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while state.at != Some(block) {
            let event = state
                .source
                .next_event()
                .map_err(|error| ReadError::Failed(Box::new(error)))?;
            match event {
                Some(Event::Block(next)) => state.at = Some(next.hash),
                Some(_) => {}
                None => return Err(ReadError::UnknownBlock(block)),
            }
        }
        let market = state.source.market();
        Ok(pools
            .iter()
            .map(|address| {
                let pool = market.pool(market.pool_by_address(*address)?);
                Some((pool.reserve0, pool.reserve1))
            })
            .collect())
    }
}
