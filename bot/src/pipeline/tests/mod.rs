//! The pipeline against plain references. What is here are the fleets that the tests run on.

mod best;
mod faults;
mod fuse;
mod growth;
mod runs;
mod units;
mod worlds;

use super::merge::Candidate;
use super::workload::Arbitrage;
use super::{BlockResult, Output, Pipeline, Pump, PumpConfig, Unit, World, crawl, fleet_config};
use crate::cycles::{CycleGraph, CycleId, CycleTable};
use crate::evm::EvmArena;
use crate::market::{PoolId, ReserveUpdate};
use crate::source::embedded::{Config, EmbeddedSource, Generated, MarketConfig, generate};
use crate::source::{Block, BlockHash, BlockSource, Event};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_portable::{BINDINGS, Census, Fleet, Pin, UnitContext, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) fn made_up(seed: u64, tokens: u32) -> Generated {
    let config = MarketConfig {
        tokens,
        ..MarketConfig::with_seed(seed)
    };
    generate(&config).unwrap()
}

/// The world of a market with all its cycles registered.
pub(crate) fn world_of(made: &Generated, max_hops: u8) -> World {
    let graph = Arc::new(CycleGraph::new(&made.market, made.base, max_hops).unwrap());
    let mut table = CycleTable::new();
    for cycle in graph.crawl() {
        table.register(cycle).unwrap();
    }
    let mut world = World::new(made.market.clone(), graph);
    world.install(table);
    world
}

/// The first blocks that a seed makes of a market.
fn blocks_of(made: &Generated, seed: u64, count: u64) -> Vec<Block> {
    let base = made.market.token_by_address(made.base).unwrap();
    let config = Config {
        blocks: Some(count),
        ..Config::with_seed(seed)
    };
    let mut source = EmbeddedSource::new(made.market.clone(), base, config).unwrap();
    let events = std::iter::from_fn(|| source.next_event().unwrap());
    events
        .map(|event| match event {
            Event::Block(block) => block,
            other => panic!("a made-up chain only grows: {other:?}"),
        })
        .collect()
}

fn block(number: u64, updates: Vec<ReserveUpdate>) -> Block {
    Block {
        number,
        hash: BlockHash::new([0; 32]),
        parent: BlockHash::new([0; 32]),
        timestamp: 0,
        base_fee: None,
        updates,
    }
}

/// A fleet of the bot that is driven by whatever workload of its units.
pub(crate) fn fleet_of<W: Pipeline>(workload: W, bins: u8) -> Fleet<W> {
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    Fleet::boot(workload, fleet_config(plan, bins), &Census::new()).unwrap()
}

pub(crate) fn arbitrage(made: &Generated, max_hops: u8, bins: u8) -> Arbitrage {
    let graph = Arc::new(CycleGraph::new(&made.market, made.base, max_hops).unwrap());
    Arbitrage::new(World::new(made.market.clone(), graph), bins).unwrap()
}

pub(crate) const fn publishing(bins: u8, top: usize) -> PumpConfig {
    PumpConfig {
        bins,
        top,
        min_profit: 1,
    }
}

/// Crawls, runs every block by itself, and closes; the ledger must balance.
fn run_all<W: Pipeline>(
    fleet: &Fleet<W>,
    config: PumpConfig,
    blocks: &[Block],
    mut between: impl FnMut(&Fleet<W>),
) -> Vec<BlockResult> {
    crawl(fleet, &crate::pipeline::Unwatched, |_| super::Next::Submit).unwrap();
    let mut pump = Pump::new(fleet, config, &crate::pipeline::Unwatched).unwrap();
    let results = blocks
        .iter()
        .map(|block| {
            let result = pump.run(std::slice::from_ref(block)).unwrap();
            between(fleet);
            result
        })
        .collect();
    assert_balanced(fleet);
    results
}

pub(crate) fn assert_balanced<W: Pipeline>(fleet: &Fleet<W>) {
    let closed = fleet.close(Duration::from_secs(10));
    let status = fleet.status();
    assert!(closed.is_clean() && status.balanced(), "{status}");
    assert_eq!(status.abandoned, 0);
    for lane in &status.lanes {
        let owed = lane.ledger.in_flight + lane.ledger.waiting() + lane.ledger.uncollected;
        assert_eq!(owed, 0, "{status}");
    }
}

/// A result without what depends on timing.
pub(crate) fn timeless(result: &BlockResult) -> BlockResult {
    BlockResult {
        cycle: Duration::ZERO,
        walks: Vec::new(),
        ..result.clone()
    }
}

/// Plainly: the cycles over any of the pools.
pub(crate) fn touched_by(world: &World, pools: &[PoolId]) -> Vec<CycleId> {
    (0..)
        .map(CycleId::new)
        .zip(world.table().cycles())
        .filter(|(_, cycle)| {
            cycle
                .edges()
                .iter()
                .any(|edge| pools.contains(&world.graph().edge(*edge).pool))
        })
        .map(|(id, _)| id)
        .collect()
}

/// The bot's workload, except for one unit.
struct Sabotaged {
    inner: Arbitrage,
    /// Which units are counted.
    counts: fn(&Unit) -> bool,
    /// Which of them is sabotaged, from zero.
    at: u32,
    seen: AtomicU32,
    /// What comes of it instead. It may panic.
    instead: fn(Unit, &Arbitrage) -> Output,
}

impl Sabotaged {
    fn new(
        inner: Arbitrage,
        counts: fn(&Unit) -> bool,
        at: u32,
        instead: fn(Unit, &Arbitrage) -> Output,
    ) -> Self {
        Self {
            inner,
            counts,
            at,
            seen: AtomicU32::new(0),
            instead,
        }
    }
}

impl Workload for Sabotaged {
    type Unit = Unit;
    type Output = Output;
    type Arena = EvmArena;

    fn arena(&self, _: Pin) -> EvmArena {
        EvmArena::default()
    }

    fn run(&self, unit: Unit, arena: &mut EvmArena, context: &UnitContext) -> Output {
        let counted = (self.counts)(&unit);
        if counted && self.seen.fetch_add(1, Ordering::Relaxed) == self.at {
            (self.instead)(unit, &self.inner)
        } else {
            self.inner.run(unit, arena, context)
        }
    }
}

impl Pipeline for Sabotaged {
    fn arbitrage(&self) -> &Arbitrage {
        &self.inner
    }
}
