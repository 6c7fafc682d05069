//! `regatta run`: the main job from the command line to the exit code.

use crate::cli::{RunArgs, ScenarioArg};
use crate::cycles::{CycleGraph, GraphError};
use crate::exit::Exit;
use crate::machine::{self, Sampling, Seats};
use crate::market::{Address, Market, TokenId, csv};
use crate::partition::PartitionError;
use crate::pipeline::{
    Arbitrage, CrawlError, Crawled, Feed, FeedError, GROUP, LiveFeed, Next, Pump, PumpConfig,
    PumpError, REGISTRATION_WINDOW, Watch, World, crawl, fleet_config,
};
use crate::plan::{self, PlanError};
use crate::report::{CrawlRecord, CrawlTiming, Format, MissedRecord, Record, Reporter};
use crate::scenario::{self, ScenarioError};
use crate::source::embedded::{
    Config, ConfigError, EmbeddedSource, GenerateError, MarketConfig, generate,
};
use crate::source::{Block, Event};
use crate::tally::Totals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_core::plan::BootRefused;
use regatta_core::role::WorkerRole;
use regatta_portable::census::CensusError;
use regatta_portable::{BootError, Census, EdgeDelivery, Fleet};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// WETH on Ethereum: the base token unless the command line names another.
const WETH: Address = Address::new([
    0xc0, 0x2a, 0xaa, 0x39, 0xb2, 0x23, 0xfe, 0x8d, 0x0a, 0x0e, 0x5c, 0x4f, 0x27, 0xea, 0xd9, 0x08,
    0x3c, 0x75, 0x6c, 0xc2,
]);

/// The name of the chain that the embedded source makes up.
pub(crate) const CHAIN: &str = "embedded";

/// The most cycles that a run registers: 1.4 gigabytes of them.
const MAX_CYCLES: usize = 50_000_000;

/// How long a run lets its fleet drain at the end. Nothing is owed by then.
const DRAIN: Duration = Duration::from_secs(10);

/// How often the progress bar is drawn, in paths.
const PROGRESS_STEP: usize = 4096;

/// Why a run ended early.
#[derive(Debug, Error)]
pub enum RunError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A pool file is wrong.
    #[error(transparent)]
    Pools(#[from] csv::LoadError),
    /// No market can be made up.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The base token has no cycles.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// No blocks can be made up.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The fleet did not boot.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A thread could not be had.
    #[error(transparent)]
    Thread(#[from] CensusError),
    /// The groups could not be placed.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The crawl ended early.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// There is no next block.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The source takes a block back, and this run has no journal to undo it by.
    #[error(
        "block {number} was reverted by its source, which a run without a journal cannot follow"
    )]
    Reverted {
        /// The block.
        number: u64,
    },
    /// The pump stopped.
    #[error(transparent)]
    Pump(#[from] PumpError),
    /// A scenario did not end as it must.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
    /// The unit ledger does not balance at the end.
    #[error("the unit ledger does not balance at the end; see the summary")]
    Unbalanced,
}

impl RunError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            // Whoever reads us has had enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Plan(PlanError::Boot(refused)) => Exit::from(&**refused),
            Self::Plan(_) => Exit::Usage,
            Self::Pools(_)
            | Self::Generate(_)
            | Self::Graph(_)
            | Self::Config(_)
            | Self::Crawl(CrawlError::TableFull(_))
            | Self::Pump(PumpError::World { .. }) => Exit::Input,
            Self::Boot(BootError::Binding(_)) => Exit::from(&BootRefused::BindingUnavailable),
            Self::Boot(BootError::Host(_) | BootError::Role { .. }) | Self::Partition(_) => {
                Exit::BootConfig
            }
            Self::Boot(BootError::Thread(_) | BootError::Seat { .. })
            | Self::Thread(_)
            | Self::Feed(_)
            | Self::Reverted { .. }
            | Self::Output(_) => Exit::Failed,
            Self::Pump(PumpError::Fuse { .. }) => Exit::FuseTripped,
            Self::Crawl(_) | Self::Pump(_) => Exit::FleetFailed,
            Self::Scenario(_) => Exit::Scenario,
            Self::Unbalanced => Exit::LedgerUnbalanced,
        }
    }
}

/// Where a run starts.
struct Start {
    name: String,
    market: Market,
    skipped: csv::Skipped,
    base: Address,
}

fn start(args: &RunArgs) -> Result<Start, RunError> {
    if args.pools.is_empty() {
        let mut config = MarketConfig::with_seed(args.seed);
        if args.scenario.is_some() {
            config.tokens = scenario::TOKENS;
        }
        let made = generate(&config)?;
        return Ok(Start {
            name: format!("made up from seed {}", args.seed),
            market: made.market,
            skipped: csv::Skipped::default(),
            base: args.base.unwrap_or(made.base),
        });
    }
    let loaded = csv::load(&args.pools, csv::PoolIsToken::Keep)?;
    let names: Vec<String> = loaded
        .market
        .exchanges()
        .iter()
        .map(|exchange| exchange.name.to_string())
        .collect();
    Ok(Start {
        name: names.join(" + "),
        market: loaded.market,
        skipped: loaded.skipped,
        base: args.base.unwrap_or(WETH),
    })
}

/// Runs the main job, or a scenario, and writes its records to `out`.
pub fn run(args: &RunArgs, out: impl Write) -> Result<(), RunError> {
    let format = if args.json {
        Format::Json
    } else {
        Format::Text
    };
    let mut reporter = Reporter::new(out, format);
    let (plan, findings) = plan::derive(&args.plan)?;
    let start = start(args)?;
    let graph = Arc::new(CycleGraph::new(&start.market, start.base, args.max_hops)?);
    graph.at_most(MAX_CYCLES)?;
    let bins = plan.keys(WorkerRole::Solver.id());
    let bound = machine::affinity(&plan, &findings, &args.plan);
    let seats = Seats::choose(&args.plan, bound.0);
    let record = machine::seats_record(&plan, bound, Some(seats.wake()));
    reporter.emit(&Record::Plan(plan::record(&plan, &findings, record)))?;

    let census = Census::new();
    let world = World::new(start.market.clone(), Arc::clone(&graph));
    let mut config = fleet_config(plan, bins);
    if findings.allowed.count > 0 {
        config = config.allowed_cpus(findings.allowed.count);
    }
    if args.scenario.is_some() {
        config = config.edges(EdgeDelivery::Suppress);
    }
    let fleet = Arc::new(seats.boot(Arbitrage::new(world, bins)?, config, &census)?);
    if args.scenario == Some(ScenarioArg::CordonCrawl) {
        let record = scenario::cordon_crawl(&fleet, &census)?;
        reporter.emit(&Record::Scenario(record))?;
        return end(&fleet, &Totals::new(bins), &graph, &mut reporter);
    }

    let began = Instant::now();
    let sampling = Sampling::new(&fleet);
    sampling.work(true);
    let crawled = crawl_with_progress(&fleet, &graph, &sampling)?;
    let record = crawl_record(&start, &graph, crawled, began.elapsed());
    reporter.emit(&Record::Crawl(record))?;
    let totals = follow(
        args,
        start,
        &graph,
        (&fleet, &sampling),
        &census,
        &mut reporter,
    )?;
    end(&fleet, &totals, &graph, &mut reporter)
}

fn crawl_with_progress(
    fleet: &Fleet<Arbitrage>,
    graph: &CycleGraph,
    watch: &dyn Watch,
) -> Result<Crawled, CrawlError> {
    // Hidden by itself where stderr is no terminal.
    let bar = ProgressBar::with_draw_target(
        Some(graph.count().iter().sum()),
        ProgressDrawTarget::stderr(),
    );
    if let Ok(style) = ProgressStyle::with_template("crawl  {bar:40} {pos}/{len} paths") {
        bar.set_style(style);
    }
    let crawled = crawl(fleet, watch, |step| {
        if step.registered.is_multiple_of(PROGRESS_STEP) {
            bar.set_position(step.registered as u64);
        }
        Next::Submit
    });
    bar.finish_and_clear();
    crawled
}

fn crawl_record(
    start: &Start,
    graph: &CycleGraph,
    crawled: Crawled,
    elapsed: Duration,
) -> CrawlRecord {
    let market = &start.market;
    CrawlRecord {
        market: start.name.clone(),
        pools: market.pools().len(),
        tokens: market.tokens().len(),
        skipped_zero_reserve: start.skipped.zero_reserve,
        skipped_pool_is_token: start.skipped.pool_is_token,
        base: start.base,
        base_symbol: market.token(graph.base()).symbol.to_string(),
        max_hops: graph.max_hops(),
        cycles: graph.count(),
        registered: crawled.registered,
        window: REGISTRATION_WINDOW,
        groups: crawled.registered.div_ceil(GROUP as usize),
        timing: CrawlTiming {
            elapsed_ms: elapsed.as_secs_f64() * 1e3,
        },
    }
}

/// Follows the blocks to their end.
fn follow(
    args: &RunArgs,
    start: Start,
    graph: &CycleGraph,
    (fleet, watch): (&Fleet<Arbitrage>, &dyn Watch),
    census: &Census,
    reporter: &mut Reporter<impl Write>,
) -> Result<Totals, RunError> {
    let bins = fleet.plan().keys(WorkerRole::Solver.id());
    let config = PumpConfig {
        bins,
        top: usize::from(args.top),
        min_profit: args.min_profit,
    };
    let mut pump = Pump::new(fleet, config, watch)?;
    let base: TokenId = graph.base();
    let source = Box::new(EmbeddedSource::new(
        start.market,
        base,
        Config {
            blocks: Some(args.blocks),
            ..Config::with_seed(args.seed)
        },
    )?);
    let mut feed = match args.block_time {
        0 => Feed::Replay(source),
        ms => Feed::Live(LiveFeed::start(source, Duration::from_millis(ms), census)?),
    };
    let mut totals = Totals::new(bins);
    let (mut events, mut blocks): (Vec<Event>, Vec<Block>) = (Vec::new(), Vec::new());
    let began = Instant::now();
    loop {
        feed.next_batch(&mut events, watch)?;
        for event in events.drain(..) {
            match event {
                Event::Block(block) => blocks.push(block),
                Event::Reverted { number, .. } => return Err(RunError::Reverted { number }),
            }
        }
        let Some((newest, earlier)) = blocks.split_last() else {
            break;
        };
        let result = pump.run(&blocks)?;
        for block in earlier {
            totals.miss();
            reporter.emit(&Record::Missed(MissedRecord {
                chain: CHAIN,
                number: block.number,
                hash: block.hash,
                covered_by: newest.number,
            }))?;
        }
        totals.add(newest.number, &result);
        let record = crate::publish::block_record(newest, &result, graph, fleet);
        reporter.emit(&Record::Block(record))?;
        blocks.clear();
    }
    totals.elapsed = began.elapsed();
    Ok(totals)
}

/// Closes the fleet and accounts for everything.
fn end(
    fleet: &Fleet<Arbitrage>,
    totals: &Totals,
    graph: &CycleGraph,
    reporter: &mut Reporter<impl Write>,
) -> Result<(), RunError> {
    let closed = fleet.close(DRAIN);
    let status = fleet.status();
    let summary = totals.summary(&status, closed, |amount| {
        crate::publish::show_amount(
            amount,
            fleet.workload().world().market().token(graph.base()),
        )
    });
    let balanced = summary.balanced;
    reporter.emit(&Record::Summary(summary))?;
    if balanced {
        Ok(())
    } else {
        Err(RunError::Unbalanced)
    }
}
