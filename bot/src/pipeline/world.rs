//! What the units read: the market, the cycles, and per edge what a trade depends on.

use crate::cycles::{Cycle, CycleGraph, CycleId, CycleIndex, CycleTable};
use crate::market::{ApplyError, Market, PoolId, ReserveUpdate};
use crate::solver::{HOPS_MAX, Hop, rate};
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// Why a block was not applied, or a cycle not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// The market refused an update.
    #[error(transparent)]
    Apply(#[from] ApplyError),
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

    /// Applies a block's updates in their order and adds the pools to `changed`, each as often as it
    /// was moved. An error leaves the updates before it applied.
    pub fn apply(
        &mut self,
        updates: &[ReserveUpdate],
        changed: &mut Vec<PoolId>,
    ) -> Result<(), WorldError> {
        for update in updates {
            self.market.apply(update)?;
            self.refresh(update.pool);
            changed.push(update.pool);
        }
        Ok(())
    }

    /// Whether `cycle` is one: edges of the graph that lead from the base over distinct pools and
    /// distinct tokens back to it.
    #[must_use]
    pub fn verify(&self, cycle: &Cycle) -> bool {
        let edges = self.graph.edges();
        let base = self.graph.base();
        let mut at = base;
        for (place, id) in cycle.edges().iter().enumerate() {
            let Some(edge) = edges.get(id.index()) else {
                return false;
            };
            // A way that comes through the base is told by that, too: its last edge leads there again.
            let again = cycle.edges()[..place].iter().any(|earlier| {
                let earlier = edges.get(earlier.index());
                earlier.is_none_or(|e| e.pool == edge.pool || e.token_out == edge.token_out)
            });
            if edge.token_in != at || again {
                return false;
            }
            at = edge.token_out;
        }
        at == base
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
