//! `regatta run`: the main job from the command line to the exit code.

pub use crate::app::SetLog;
use crate::app::{self, Ready, Signals, Stage};
use crate::capture::{self, ReadError, WriteError};
use crate::cli::{RunArgs, SimArg};
use crate::config::ConfigFile;
use crate::cycles::{CycleGraph, GraphError};
use crate::evm::ExecutorError;
use crate::exit::Exit;
use crate::machine::{self, Seats};
use crate::market::{UntrustedText, csv};
use crate::node::AskError;
use crate::partition::PartitionError;
use crate::pipeline::{
    Arbitrage, CrawlError, Crawled, FeedError, GROUP, MAX_CYCLES, Next, PumpError,
    REGISTRATION_WINDOW, Watch, World, WorldError, crawl, fleet_config, settling,
};
use crate::plan::{self, PlanError};
use crate::report::{CrawlRecord, CrawlTiming};
use crate::scenario::ScenarioError;
use crate::settle::{Prepared, SettleError};
use crate::source::SourceError;
use crate::source::embedded::{ConfigError, GenerateError};
use crate::start;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_core::host::EnqueueError;
use regatta_core::plan::BootRefused;
use regatta_core::role::WorkerRole;
use regatta_portable::census::CensusError;
use regatta_portable::{BootError, Census, EdgeDelivery, Failure, Fleet};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

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
    /// No exchange and no pool is named.
    #[error("--rpc: name the pools by --factory or --pools")]
    NoPools,
    /// The bytecode was to be run, and there is none.
    #[error(
        "--sim evm needs --rpc: it runs the bytecode that pools and tokens have on a chain, and without a node there is none"
    )]
    SimNeedsNode,
    /// There is no executor to simulate with.
    #[error("--sim evm: {0}")]
    Executor(#[from] ExecutorError),
    /// The node did not say which pools there are.
    #[error("--rpc: {0}")]
    Node(#[from] AskError),
    /// Nothing can be settled so.
    #[error(transparent)]
    Settle(#[from] SettleError),
    /// The base token has no cycles.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A capture cannot be read.
    #[error("{file}: {error}")]
    Capture {
        /// The file.
        file: UntrustedText,
        /// What is wrong with it.
        error: ReadError,
    },
    /// What the source says cannot be written down.
    #[error("--record {file}: {error}")]
    Record {
        /// The file.
        file: UntrustedText,
        /// Why.
        error: WriteError,
    },
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
    /// The pump stopped.
    #[error(transparent)]
    Pump(#[from] PumpError),
    /// Too many pools are not what the source says they are.
    #[error(
        "{pools} pools are quarantined because the source says otherwise, and {most} may be (--max-quarantined)"
    )]
    Quarantined {
        /// Pools that are.
        pools: u64,
        /// Pools that may be.
        most: u32,
    },
    /// A scenario did not end as it must.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
    /// The components do not fit together: the bot is at fault.
    #[error(transparent)]
    Components(#[from] Box<regatta_core::component::GraphError>),
    /// The components ask for more threads than there are to be: the bot is at fault.
    #[error(transparent)]
    Threads(#[from] regatta_core::component::DemandError),
    /// A component did not start, and says why in the log.
    #[error("component {component} did not start")]
    NotStarted {
        /// Which.
        component: &'static str,
    },
    /// A component failed, and the run cannot go on without it.
    #[error("component {component} failed")]
    ComponentFailed {
        /// Which.
        component: &'static str,
    },
    /// Everything stopped in time, and something is left.
    #[error("stopped with something left: {components}")]
    StopIncomplete {
        /// Of what.
        components: String,
    },
    /// Something did not stop in time.
    #[error("did not stop in time: {components}")]
    StopTimedOut {
        /// What.
        components: String,
    },
    /// The component was cut off; what it says has no effect.
    #[error("cut off")]
    Cut,
    /// The unit ledger does not balance at the end.
    #[error("the unit ledger does not balance at the end; see the summary")]
    Unbalanced,
}

impl RunError {
    pub(crate) fn of_record(path: &Path, error: WriteError) -> Self {
        let file = UntrustedText::with_limit(&path.to_string_lossy(), usize::MAX);
        Self::Record { file, error }
    }

    /// Whether it is that whoever reads the records has had enough.
    #[must_use]
    pub fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether it is that the fleet takes and runs nothing more, which it does at a stop.
    pub(crate) const fn is_closed_fleet(&self) -> bool {
        matches!(
            self,
            Self::Crawl(
                CrawlError::Refused {
                    error: EnqueueError::Closed { .. },
                    ..
                } | CrawlError::Failed {
                    failure: Failure::Closed | Failure::NotRun,
                    ..
                }
            ) | Self::Pump(
                PumpError::Refused {
                    error: EnqueueError::Closed { .. },
                    ..
                } | PumpError::Failed {
                    failure: Failure::Closed | Failure::NotRun,
                    ..
                }
            )
        )
    }

    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            // Whoever reads us has had enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Plan(PlanError::Boot(refused)) => Exit::from(&**refused),
            Self::Plan(_) | Self::NoPools | Self::SimNeedsNode => Exit::Usage,
            // A signal that came before there was anything to stop.
            Self::Node(AskError::Interrupted) => Exit::Ok,
            Self::Node(_) => Exit::Node,
            Self::Settle(error) => error.exit(),
            Self::Pools(_)
            | Self::Generate(_)
            | Self::Graph(_)
            | Self::Config(_)
            | Self::Crawl(CrawlError::TableFull(_))
            | Self::Pump(PumpError::World {
                error: WorldError::Apply(_),
                ..
            }) => Exit::Input,
            Self::Capture { .. } | Self::Feed(FeedError::Source(SourceError::Capture(_))) => {
                Exit::Capture
            }
            Self::Boot(BootError::Binding(_)) => Exit::from(&BootRefused::BindingUnavailable),
            Self::Boot(BootError::Host(_) | BootError::Role { .. }) | Self::Partition(_) => {
                Exit::BootConfig
            }
            Self::Boot(BootError::Thread(_) | BootError::Seat { .. })
            | Self::Thread(_)
            | Self::Feed(_)
            // The source does not say what a chain does.
            | Self::Pump(PumpError::World { .. })
            | Self::Output(_)
            | Self::Executor(_)
            | Self::Record { .. }
            | Self::ComponentFailed { .. }
            | Self::Cut => Exit::Failed,
            Self::Pump(PumpError::Fuse { .. }) => Exit::FuseTripped,
            Self::Crawl(_) | Self::Pump(_) => Exit::FleetFailed,
            Self::Quarantined { .. } => Exit::PoolsQuarantined,
            Self::Scenario(_) => Exit::Scenario,
            Self::Unbalanced => Exit::LedgerUnbalanced,
            Self::Components(_) | Self::Threads(_) => Exit::BootConfig,
            Self::NotStarted { .. } => Exit::StartFailed,
            Self::StopIncomplete { .. } => Exit::StopIncomplete,
            Self::StopTimedOut { .. } => Exit::StopTimedOut,
        }
    }
}

/// What a run has of its process.
#[derive(Default)]
pub struct Outside {
    /// The signals that ask for a stop.
    pub signals: Option<Signals>,
    /// Changes the log level, when the configuration does.
    pub set_log: Option<SetLog>,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}

/// Runs the main job, or a scenario, and writes its records to `out`.
pub fn run(
    args: &RunArgs,
    out: impl Write + Send + 'static,
    outside: Outside,
) -> Result<(), RunError> {
    if args.sim == SimArg::Evm && args.source.rpc.is_none() {
        return Err(RunError::SimNeedsNode);
    }
    let file = match &args.plan.config {
        Some(path) => ConfigFile::read(path).map_err(PlanError::from)?,
        None => ConfigFile::default(),
    };
    if let (None, Some(level), Some(set_log)) = (args.log, file.log, &outside.set_log) {
        set_log(level);
    }
    let (plan, findings) = plan::derive(&args.plan)?;
    let census = Census::new();
    let mut signals = outside.signals;
    let interrupted = || signals.as_mut().is_some_and(Signals::asked);
    let prepared = Prepared::of(args)?;
    let start = start::start(args, &census, interrupted)?;
    let settlement = match (prepared, start.asker(), start.chain.id) {
        (Some(prepared), Some(asker), Some(id)) => Some(prepared.open(args, &asker, id)?),
        (Some(_), ..) => return Err(SettleError::Options("--settle needs --rpc").into()),
        (None, ..) => None,
    };
    let graph = Arc::new(CycleGraph::new(&start.market, start.base, args.max_hops)?);
    graph.at_most(MAX_CYCLES)?;
    let bins = plan.keys(WorkerRole::Solver.id());
    let bound = machine::affinity(&plan, &findings, &args.plan);
    let seats = Seats::choose(&args.plan, bound.0);
    let seats_record = machine::seats_record(&plan, bound, Some(seats.wake()));
    let mut plan_record = plan::record(&plan, &findings, seats_record);
    let services = app::rows(args);
    plan_record
        .census
        .extend(services.iter().map(plan::census_record));

    let world = World::new(start.market.clone(), Arc::clone(&graph));
    let mut config = fleet_config(plan.clone(), bins);
    if settlement.is_some() {
        config = settling(config);
    }
    if findings.allowed.count > 0 {
        config = config.allowed_cpus(findings.allowed.count);
    }
    if args.scenario.is_some() {
        config = config.edges(EdgeDelivery::Suppress);
    }
    let record = match &args.record {
        Some(path) => {
            let created = capture::create(path, &start.header(), false);
            Some(created.map_err(|error| RunError::of_record(path, error))?)
        }
        None => None,
    };
    let ready = Ready {
        args: args.clone(),
        plan,
        plan_record,
        seats,
        start,
        graph,
        workload: Arbitrage::new(world, bins)?,
        config,
        settlement,
        out: Box::new(out),
        record,
        file,
        set_log: outside.set_log.unwrap_or_else(|| Box::new(|_| ())),
    };
    let stage = Arc::new(Stage::new(ready, bins, census));
    app::run(&stage, signals)
}

pub(crate) fn crawl_with_progress(
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

pub(crate) fn crawl_record(stage: &Stage, crawled: Crawled, elapsed: Duration) -> CrawlRecord {
    let (graph, origin) = (stage.graph(), stage.origin());
    CrawlRecord {
        market: origin.name.clone(),
        pools: origin.pools,
        tokens: origin.tokens,
        skipped_zero_reserve: origin.skipped.zero_reserve,
        skipped_pool_is_token: origin.skipped.pool_is_token,
        base: origin.base,
        base_symbol: origin.base_symbol.clone(),
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
