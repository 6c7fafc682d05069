//! A warm pump allocates what its results hold and nothing else, on any thread of the process.
//!
//! One test in a binary of its own: the allocator counts for the whole process, and whatever else the
//! process did would be counted too.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, in a helper too"
)]

use regatta_bot::cycles::CycleGraph;
use regatta_bot::dispatch::VerifierPipe;
use regatta_bot::pipeline::{
    Arbitrage, Next, Pump, PumpConfig, Unwatched, World, crawl, fleet_config,
};
use regatta_bot::source::embedded::{Config, EmbeddedSource, MarketConfig, generate};
use regatta_bot::source::{Block, BlockSource, Event};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_portable::{BINDINGS, Census, Fleet};
use std::alloc::System;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod counting {
    //! The system's allocator with a counter.
    #![expect(
        unsafe_code,
        reason = "the trait of an allocator is unsafe to implement"
    )]

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what it passes on.
    pub(crate) struct Counting {
        pub(crate) inner: System,
        pub(crate) allocations: AtomicU64,
    }

    // SAFETY: every call goes to the system's allocator as it came, and so does every answer.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.allocations.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { self.inner.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps the contract of `dealloc`, and the block is the inner's.
            unsafe { self.inner.dealloc(block, layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            self.allocations.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller keeps the contract of `realloc`, and the block is the inner's.
            unsafe { self.inner.realloc(block, layout, size) }
        }
    }
}

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting {
    inner: System,
    allocations: AtomicU64::new(0),
};

fn allocations() -> u64 {
    ALLOCATOR.allocations.load(Ordering::Relaxed)
}

const BINS: u8 = 6;

/// The pools that moved, the time of each bin's walk, the best trades while they are found, and the
/// published ones.
const PER_RESULT: u64 = 4;

fn fleet_and_blocks(count: u64) -> (Fleet<Arbitrage>, Vec<Block>) {
    let made = generate(&MarketConfig {
        tokens: 128,
        ..MarketConfig::with_seed(1)
    })
    .unwrap();
    let base = made.market.token_by_address(made.base).unwrap();
    let config = Config {
        blocks: Some(count),
        ..Config::with_seed(1)
    };
    let mut source = EmbeddedSource::new(made.market.clone(), base, config).unwrap();
    let mut blocks = Vec::new();
    while let Some(event) = source.next_event().unwrap() {
        if let Event::Block(block) = event {
            blocks.push(block);
        }
    }
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    let graph = Arc::new(CycleGraph::new(&made.market, made.base, 4).unwrap());
    let arbitrage = Arbitrage::new(World::new(made.market, graph), BINS).unwrap();
    let fleet = Fleet::boot(arbitrage, fleet_config(plan, BINS), &Census::new()).unwrap();
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    (fleet, blocks)
}

#[test]
fn a_warm_pump_allocates_its_results_only() {
    let (fleet, blocks) = fleet_and_blocks(10);
    let config = PumpConfig {
        bins: BINS,
        top: 1,
        min_profit: 1,
    };
    let mut pump = Pump::new(&fleet, config, &Unwatched).unwrap();
    // The same blocks again touch the same cycles, so by the third time every buffer is as large as it
    // has to be. In 30 blocks groups do not move to other bins, which would be another matter.
    let mut touched = 0;
    // The way to the verifier, which takes none of it: every block replaces the one before.
    let pipe = VerifierPipe::new();
    for _ in 0..2 {
        for block in &blocks {
            let result = pump.run(std::slice::from_ref(block)).unwrap();
            touched += result.tally.expected;
            let world = fleet.workload().world();
            pipe.publish(block.head(), &result.moved, world.market());
        }
    }
    assert!(touched > 10_000, "{touched} cycles are no load");
    for block in &blocks {
        let before = allocations();
        let result = pump.run(std::slice::from_ref(block)).unwrap();
        let world = fleet.workload().world();
        pipe.publish(block.head(), &result.moved, world.market());
        drop(world);
        let allocated = allocations() - before;
        assert!(
            allocated <= PER_RESULT,
            "{allocated} allocations in block {}",
            block.number
        );
        assert!(!result.winners.is_empty() && !result.moved.is_empty());
    }
}
