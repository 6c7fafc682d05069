//! What a reading of the market changes.

use super::world::World;
use crate::market::ReserveUpdate;

/// Reserves that a unit compares at most: a few microseconds of work.
pub(crate) const READ_BATCH: usize = 1024;

/// Comparisons that the pump keeps outstanding. A market of the largest size is 32 of them.
pub(crate) const READ_WINDOW: u32 = 4;

/// What a pool-state unit works on, and what it yields.
#[derive(Debug)]
pub struct ReadJob {
    /// In: reserves that were read. Out: those that are not the world's.
    pub(crate) reserves: Vec<ReserveUpdate>,
}

impl ReadJob {
    /// Drops what the world has already. A pool that it does not have is not dropped: applying it says so.
    pub(crate) fn run(&mut self, world: &World) {
        let pools = world.market().pools();
        self.reserves.retain(|read| {
            pools
                .get(read.pool.index())
                .is_none_or(|pool| (pool.reserve0, pool.reserve1) != (read.reserve0, read.reserve1))
        });
    }
}

/// One reading per pool, by id: the last, if a pool was read more than once.
pub(crate) fn last_of_each(reserves: &mut Vec<ReserveUpdate>) {
    reserves.reverse();
    reserves.sort_by_key(|read| read.pool);
    reserves.dedup_by_key(|read| read.pool);
}
