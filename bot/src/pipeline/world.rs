//! What the units read: the market, the cycles, and per edge what a trade depends on.
//!
//! # Invariants
//! - What is known per edge follows from the reserves of its pool.
//! - A block that is reverted leaves no trace in the market: its pools are as they were before it.

use super::journal::{JOURNAL_DEPTH, Journal};
use crate::cycles::{Cycle, CycleGraph, CycleId, CycleIndex, CycleTable, TableFull};
use crate::market::{ApplyError, BuildError, Market, PoolId, ReserveUpdate};
use crate::solver::{HOPS_MAX, Hop, rate};
use crate::source::{BlockHash, NewPool};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// Why a block was not applied, or a cycle not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// The market refused an update.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A block was reverted that is not the last.
    #[error(
        "it was reverted as {hash}, and the last block is {last} ({last_hash}): blocks are reverted newest first"
    )]
    NotTheLast {
        /// The block that was to be reverted.
        hash: BlockHash,
        /// The height of the last block.
        last: u64,
        /// Its identity.
        last_hash: BlockHash,
    },
    /// A block was reverted that the journal does not hold.
    #[error(
        "it was reverted as {hash}, and the journal, of the last {JOURNAL_DEPTH} blocks at most, does not hold it; \
         the market has to be read anew"
    )]
    NotInJournal {
        /// The block that was to be reverted.
        hash: BlockHash,
    },
    /// A pool that cycles run through is not in the graph of the market with more pools: the bot is at fault.
    #[error("the graph of a market with more pools lacks pools of the one before")]
    Shrunk,
    /// The table is full.
    #[error(transparent)]
    Full(#[from] TableFull),
    /// The block at which the market was read was reverted, and no other reading came.
    #[error(
        "it came after the block at which the market was read had been reverted; the market has to be read anew"
    )]
    NotRead,
}

/// The market and its registered cycles.
#[derive(Debug)]
pub struct World {
    market: Market,
    graph: Arc<CycleGraph>,
    table: CycleTable,
    index: CycleIndex,
    /// Marginal rate per edge; zero where the pool cannot be traded through, so that the screen rejects
    /// every cycle over it.
    rates: Vec<f64>,
    /// What the exact solver needs, per edge.
    hops: Vec<Option<Hop>>,
    /// Pools that are traded through no more, whatever their reserves.
    quarantined: BTreeSet<PoolId>,
    journal: Journal,
    /// The block at which the market was read was reverted: what the market is at now is not known.
    unread: bool,
}

impl World {
    /// A world without cycles.
    #[must_use]
    pub fn new(market: Market, graph: Arc<CycleGraph>) -> Self {
        let table = CycleTable::new();
        let index = CycleIndex::new(&graph, &table);
        let mut world = Self {
            rates: vec![0.0; graph.edges().len()],
            hops: vec![None; graph.edges().len()],
            quarantined: BTreeSet::new(),
            market,
            graph,
            table,
            index,
            journal: Journal::new(),
            unread: false,
        };
        for pool in world.graph.pools().to_vec() {
            world.refresh(pool);
        }
        world
    }

    /// Takes the registered cycles and indexes them.
    pub fn install(&mut self, table: CycleTable) {
        self.index = CycleIndex::new(&self.graph, &table);
        self.table = table;
    }

    /// Adds a pool to the market, as part of the last block: if that is reverted, the pool has no reserves. It has
    /// no cycles until the world grows. A pool that the market refuses is not added.
    pub fn extend(
        &mut self,
        pool: &NewPool,
        changed: &mut Vec<PoolId>,
    ) -> Result<Result<PoolId, BuildError>, WorldError> {
        let id = match self.market.extend(pool) {
            Ok(id) => id,
            Err(refused) => return Ok(Err(refused)),
        };
        let update = ReserveUpdate {
            pool: id,
            reserve0: pool.reserve0,
            reserve1: pool.reserve1,
        };
        self.apply(&[update], changed)?;
        Ok(Ok(id))
    }

    /// Takes a graph of the market as it has become, and registers `new` cycles of it after those that are
    /// registered, which keep their ids.
    pub fn grow(&mut self, graph: Arc<CycleGraph>, new: &[Cycle]) -> Result<(), WorldError> {
        let edges = graph.edges_from(&self.graph).ok_or(WorldError::Shrunk)?;
        let mut table = self.table.with_edges(&edges, new.len());
        for cycle in new {
            table.register(*cycle)?;
        }
        self.graph = graph;
        self.install(table);
        self.rates = vec![0.0; self.graph.edges().len()];
        self.hops = vec![None; self.graph.edges().len()];
        for pool in self.graph.pools().to_vec() {
            self.refresh(pool);
        }
        Ok(())
    }

    /// The market.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.market
    }

    /// The graph.
    #[must_use]
    pub const fn graph(&self) -> &Arc<CycleGraph> {
        &self.graph
    }

    /// The registered cycles.
    #[must_use]
    pub const fn table(&self) -> &CycleTable {
        &self.table
    }

    /// Which cycles a pool is in.
    #[must_use]
    pub const fn index(&self) -> &CycleIndex {
        &self.index
    }

    /// Bytes on the heap for the registered cycles and their edges.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.table.memory()
            + self.index.memory()
            + self.rates.capacity() * size_of::<f64>()
            + self.hops.capacity() * size_of::<Option<Hop>>()
    }

    /// Applies updates in their order and adds the pools to `changed`, each as often as it
    /// was moved. An error leaves the updates before it applied.
    pub fn apply(
        &mut self,
        updates: &[ReserveUpdate],
        changed: &mut Vec<PoolId>,
    ) -> Result<(), WorldError> {
        for update in updates {
            let inverse = self.market.apply(update)?;
            self.journal.push(inverse);
            self.refresh(update.pool);
            changed.push(update.pool);
        }
        Ok(())
    }

    /// Applies a block, as [`World::apply`] does its updates, so that it can be reverted. What is in
    /// `changed` before it is what a run owes to blocks before it.
    pub fn apply_block(
        &mut self,
        number: u64,
        hash: BlockHash,
        updates: &[ReserveUpdate],
        changed: &mut Vec<PoolId>,
    ) -> Result<(), WorldError> {
        if self.unread {
            return Err(WorldError::NotRead);
        }
        self.journal.begin(number, hash, changed.clone());
        self.apply(updates, changed)
    }

    /// Applies what was read at a block, which is the last one from here on: the journal has no block before it.
    /// It can be reverted, but then only another reading says where the market is.
    pub fn reread(
        &mut self,
        number: u64,
        hash: BlockHash,
        differing: &[ReserveUpdate],
        changed: &mut Vec<PoolId>,
    ) -> Result<(), WorldError> {
        self.journal.restart(number, hash, changed.clone());
        self.unread = false;
        self.apply(differing, changed)
    }

    /// Reverts the last block, and adds to `changed` what a run owed when it was applied: its own cycle, if it
    /// had one, does not count any more. With `own`, the pools that are as before are added as well.
    /// `changed` is in order afterwards, each pool once.
    pub fn revert(
        &mut self,
        hash: BlockHash,
        own: bool,
        changed: &mut Vec<PoolId>,
    ) -> Result<(), WorldError> {
        let last = self.journal.last();
        let last = last.ok_or(WorldError::NotInJournal { hash })?;
        if last.hash != hash {
            let (last, last_hash) = (last.number, last.hash);
            return Err(WorldError::NotTheLast {
                hash,
                last,
                last_hash,
            });
        }
        while let Some(inverse) = self.journal.pop_update() {
            self.market.apply(&inverse)?;
            self.refresh(inverse.pool);
            if own {
                changed.push(inverse.pool);
            }
        }
        if let Some(entry) = self.journal.pop() {
            self.unread |= entry.reread;
            changed.extend(entry.owed);
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(())
    }

    /// The marginal rates of a cycle's hops, for the screen, and how many they are.
    #[must_use]
    pub(crate) fn rates_of(&self, cycle: Cycle) -> ([f64; HOPS_MAX], usize) {
        let mut rates = [0.0; HOPS_MAX];
        for (rate, edge) in rates.iter_mut().zip(cycle.edges()) {
            *rate = self.rates[edge.index()];
        }
        (rates, cycle.hops())
    }

    /// The hops of a cycle, if it is registered and every pool of it can be traded through.
    #[must_use]
    pub fn hops_of(&self, id: CycleId) -> Option<CycleHops> {
        let cycle = self.table.get(id)?;
        let mut edges = cycle.edges().iter().map(|edge| self.hops[edge.index()]);
        let first = edges.next()??;
        let mut hops = CycleHops {
            hops: [first; HOPS_MAX],
            len: 1,
        };
        for hop in edges {
            hops.hops[hops.len] = hop?;
            hops.len += 1;
        }
        Some(hops)
    }

    /// Takes a pool out of trade for good: its edges have no hop and a rate of zero, so no cycle over it passes the
    /// screen or is simulated, whatever its reserves become. `false` if it is out already.
    pub fn quarantine(&mut self, pool: PoolId) -> bool {
        let new = self.quarantined.insert(pool);
        self.refresh(pool);
        new
    }

    /// The pools that were taken out of trade.
    #[must_use]
    pub const fn quarantined(&self) -> &BTreeSet<PoolId> {
        &self.quarantined
    }

    /// Brings the two edges of a pool in line with its reserves, or takes them out of trade.
    fn refresh(&mut self, pool: PoolId) {
        let Some(edges) = self.graph.edges_of(pool) else {
            return;
        };
        for id in edges {
            let hop = if self.quarantined.contains(&pool) {
                None
            } else {
                self.market.hop(pool, self.graph.edge(id).direction).hop()
            };
            self.rates[id.index()] = hop.as_ref().map_or(0.0, rate);
            self.hops[id.index()] = hop;
        }
    }
}

/// The hops of one cycle, by value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CycleHops {
    hops: [Hop; HOPS_MAX],
    len: usize,
}

impl CycleHops {
    /// The hops in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[Hop] {
        &self.hops[..self.len]
    }
}
