//! The dispatch seam: a clock that waits for nobody, a verifier that nobody waits for, and what a finding does.
#![cfg(test)]

mod clock;
mod quarantine;
mod seam;
mod verifier;

use regatta_bot::cycles::CycleGraph;
use regatta_bot::dispatch::VerifierPipe;
use regatta_bot::market::{Address, PoolId};
use regatta_bot::pipeline::{
    Arbitrage, BlockResult, Next, Pipeline, Pump, PumpConfig, Unwatched, World, crawl, fleet_config,
};
use regatta_bot::source::embedded::{Config, EmbeddedSource, Generated, MarketConfig, generate};
use regatta_bot::source::{Block, BlockHash, BlockSource, Event, Head};
use regatta_bot::verify::{ReadError, Recomputed, ReserveReader, verify};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::role::FLEET_ROLES;
use regatta_portable::census::ThreadSpec;
use regatta_portable::{BINDINGS, Census, Fleet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BINS: u8 = 2;

/// Reaching it is a failure.
const FAR: Duration = Duration::from_mins(1);

fn market() -> Generated {
    generate(&MarketConfig {
        tokens: 48,
        ..MarketConfig::with_seed(11)
    })
    .unwrap()
}

fn source_of(made: &Generated, count: u64) -> EmbeddedSource {
    let base = made.market.token_by_address(made.base).unwrap();
    let config = Config {
        blocks: Some(count),
        ..Config::with_seed(5)
    };
    EmbeddedSource::new(made.market.clone(), base, config).unwrap()
}

fn blocks_of(made: &Generated, count: u64) -> Vec<Block> {
    let mut source = source_of(made, count);
    let events = std::iter::from_fn(|| source.next_event().unwrap());
    events
        .map(|event| match event {
            Event::Block(block) => block,
            other => panic!("a made-up chain only grows: {other:?}"),
        })
        .collect()
}

fn head(number: u64) -> Head {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    Head {
        number,
        hash: BlockHash::new(hash),
        parent: BlockHash::new([0; 32]),
        timestamp: number,
        base_fee: None,
    }
}

fn arbitrage(made: &Generated) -> Arbitrage {
    let graph = Arc::new(CycleGraph::new(&made.market, made.base, 3).unwrap());
    Arbitrage::new(World::new(made.market.clone(), graph), BINS).unwrap()
}

/// A fleet whose cycles are registered.
fn fleet_of<W: Pipeline>(workload: W) -> Arc<Fleet<W>> {
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    let fleet = Fleet::boot(workload, fleet_config(plan, BINS), &Census::new()).unwrap();
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    Arc::new(fleet)
}

const fn config() -> PumpConfig {
    PumpConfig {
        bins: BINS,
        top: 3,
        min_profit: 1,
    }
}

fn assert_balanced<W: Pipeline>(fleet: &Fleet<W>) {
    let closed = fleet.close(FAR);
    let status = fleet.status();
    assert!(closed.is_clean() && status.balanced(), "{status}");
    assert_eq!(status.abandoned, 0);
}

/// A thread of a test.
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let spec = ThreadSpec::one("test", "test");
    Census::new().spawn(spec, work).unwrap()
}

/// Yields until it is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + FAR;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// The verifier of a fleet on a thread of its own, and the pump of that fleet on the test's.
struct Rig {
    fleet: Arc<Fleet<Arbitrage>>,
    pipe: Arc<VerifierPipe>,
    thread: JoinHandle<()>,
}

impl Rig {
    fn new(made: &Generated, reader: impl ReserveReader + 'static) -> Self {
        let fleet = fleet_of(arbitrage(made));
        let pipe = Arc::new(VerifierPipe::new());
        let thread = spawn({
            let (fleet, pipe) = (Arc::clone(&fleet), Arc::clone(&pipe));
            move || verify(&fleet, &pipe, &reader)
        });
        Self {
            fleet,
            pipe,
            thread,
        }
    }

    fn pump(&self) -> Pump<'_> {
        Pump::new(&self.fleet, config(), &Unwatched).unwrap()
    }

    /// A block as the bot runs it: what was found out takes effect, the block is run, and published.
    fn run(&self, pump: &mut Pump<'_>, block: &Block) -> BlockResult {
        let mut findings = Vec::new();
        self.pipe.take_findings(&mut findings);
        for finding in findings {
            let mut world = self.fleet.workload().world_mut();
            assert!(world.quarantine(finding.pool), "it is said once");
        }
        let result = pump.run(std::slice::from_ref(block)).unwrap();
        let world = self.fleet.workload().world();
        self.pipe
            .publish(block.head(), &result.moved, world.market());
        result
    }

    /// Waits until everything that was published is verified.
    fn settled(&self) {
        until("nothing pends", || self.pipe.pending() == 0);
    }

    fn end(self) {
        self.pipe.close();
        self.thread.join().unwrap();
        assert_balanced(&self.fleet);
    }
}

/// The pools of a result's winners.
fn traded(result: &BlockResult, world: &World) -> Vec<PoolId> {
    let cycles = result
        .winners
        .iter()
        .map(|winner| *world.table().get(winner.id).unwrap());
    cycles
        .flat_map(|cycle| {
            let edges = cycle.edges().to_vec();
            edges.into_iter().map(|edge| world.graph().edge(edge).pool)
        })
        .collect()
}

/// The reserves of pools at a block, or why not.
type Reserves = Result<Vec<Option<(u128, u128)>>, ReadError>;

/// A reader whose honest answers go through `change`.
struct Through<F>(Recomputed, F);

impl<F: Fn(BlockHash, &[Address], Reserves) -> Reserves + Send> ReserveReader for Through<F> {
    fn reserves_at(&self, block: BlockHash, pools: &[Address]) -> Reserves {
        (self.1)(block, pools, self.0.reserves_at(block, pools))
    }
}

fn through<F>(made: &Generated, blocks: u64, change: F) -> Through<F>
where
    F: Fn(BlockHash, &[Address], Reserves) -> Reserves + Send,
{
    Through(Recomputed::new(source_of(made, blocks)), change)
}
