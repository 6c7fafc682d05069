//! The command line.

mod capture;
mod doctor;
mod settle;

pub use capture::{CaptureArgs, ReplayArgs};
pub use doctor::{DoctorArgs, NodeArgs};
pub use settle::{DeployArgs, LedgerArgs, SettleArgs, SettleCommand, SettleMode, SettleVerb};

use crate::market::Address;
use crate::node::FactoryArg;
use clap::{Parser, Subcommand, ValueEnum};
use regatta_chain::endpoint::Endpoint;
use regatta_core::affinity::SeatAffinity;
use regatta_core::budget::MilliCpu;
use regatta_core::plan::Profile;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// A CPU-budgeted worker fleet and the arbitrage bot that runs on it.
#[derive(Debug, Parser)]
#[command(name = "regatta", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find arbitrage: follow blocks, solve what they touch, publish the best trades.
    Run(RunArgs),
    /// Write down what a source says, to be run again: no fleet, only the source and the file.
    Capture(CaptureArgs),
    /// Run a capture and compare what it says with what it is to say.
    Replay(ReplayArgs),
    /// Create the executor contract, or read a settlement ledger.
    Settle(SettleCommand),
    /// Say what bounds this process, how sure that is, and the plan that follows; or, with --rpc, measure a node.
    Doctor(DoctorArgs),
}

/// How to plan.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// The quota to allocate, in milli-cores, instead of the detected one.
    #[arg(long, value_name = "MILLI", value_parser = milli_cpu)]
    pub quota: Option<MilliCpu>,

    /// Which tier to run on.
    #[arg(long, value_enum, default_value_t = ProfileArg::Auto)]
    pub profile: ProfileArg,

    /// Override a share: a key of the plan, such as `ambient_io_cores` or `solver_pins`. The
    /// environment takes the same keys as `REGATTA_AMBIENT_IO_CORES` and so on; the command line wins.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Read the plan's overrides, the posture policy and the log level from this file, in TOML. The
    /// environment wins over it, and the command line over both. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How the threads of seats sleep and are woken. What the kernel does not offer is replaced, with
    /// a line that says so.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = WakeArg::Auto)]
    pub wake: WakeArg,

    /// On which CPUs seats run. Without it they run on every allowed CPU, or on one each where the CPUs
    /// are this process's alone and there is one for each seat.
    #[arg(long, value_enum, value_name = "WHERE")]
    pub affinity: Option<AffinityArg>,
}

/// Which market, and where its blocks come from.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    /// Start from the pools of this CSV file; each file is an exchange. May be given several times.
    /// Without it a market is made up from the seed.
    #[arg(long, value_name = "FILE")]
    pub pools: Vec<PathBuf>,

    /// The token that cycles start from and return to. WETH with --pools; the made-up market has its
    /// own.
    #[arg(long, value_name = "ADDRESS")]
    pub base: Option<Address>,

    /// How many blocks. Without it a made-up chain has 20, a capture all that it has, and a node no end.
    #[arg(long, value_name = "N")]
    pub blocks: Option<u64>,

    /// What the made-up market and the blocks follow from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,

    /// Milliseconds between blocks, up to a day. 0 runs every block as fast as it goes; otherwise
    /// blocks come at their own pace and those that come during a cycle are coalesced.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub block_time: u64,

    /// Follow an Ethereum node instead of making blocks up: `ws://HOST:PORT`, `wss://HOST`, or the path of an IPC socket.
    #[arg(long, value_name = "URL", conflicts_with_all = ["seed", "block_time"])]
    pub rpc: Option<Endpoint>,

    /// With --rpc: an exchange, by the contract that makes its pools, and its fee in hundredths of a per cent of the
    /// input, 30 where none is given. May be given several times. Without --pools every pool of every factory is
    /// followed; with --pools those of the files that are of one of the factories. New pools are followed either way.
    #[arg(long, value_name = "ADDRESS[:FEE]", requires = "rpc")]
    pub factory: Vec<FactoryArg>,

    /// With --rpc: the chain that the node has to be on.
    #[arg(long, value_name = "ID", requires = "rpc")]
    pub chain_id: Option<u64>,

    /// With --rpc: the most pools that are followed.
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "rpc")]
    pub most_pools: usize,
}

/// How to run.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// What to follow.
    #[command(flatten)]
    pub source: SourceArgs,

    /// Run the events of this capture instead, from the market that it starts with; `--blocks` limits how many.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pools", "seed", "block_time", "scenario", "rpc"])]
    pub capture: Option<PathBuf>,

    /// Write what the source says to this file too, as a capture: each event before it is acted upon. The file must not be
    /// there yet.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["capture", "scenario"])]
    pub record: Option<PathBuf>,

    /// Take a capture that has no end record, because it was cut off, for an error.
    #[arg(long, requires = "capture")]
    pub strict: bool,

    /// The most hops of a cycle.
    #[arg(long, value_name = "2..4", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=4))]
    pub max_hops: u8,

    /// How many of the best trades of a block are published.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub top: u16,

    /// The least profit that is of interest, in the base token's smallest unit.
    #[arg(long, value_name = "UNITS", default_value_t = 1)]
    pub min_profit: u128,

    /// Write one JSON object a line.
    #[arg(long)]
    pub json: bool,

    /// Whether and how to settle.
    #[command(flatten)]
    pub settle: Box<SettleArgs>,

    /// How to plan.
    #[command(flatten)]
    pub plan: PlanArgs,

    /// Run a named incident instead of blocks.
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["blocks", "block_time", "top", "min_profit"])]
    pub scenario: Option<ScenarioArg>,

    /// Answer the probes `/livez` and `/readyz` at this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS")]
    pub health: Option<SocketAddr>,

    /// Compare the reserves of the newest published block with what the source says of it. With the made-up chain
    /// that is a second computation of it. A node is always asked.
    #[arg(long)]
    pub verify: bool,

    /// How many pools may be quarantined because the source says otherwise; with one more the run stops.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub max_quarantined: u32,

    /// How candidates are simulated: by exact integers alone, or also by running the bytecode that the node has in an
    /// embedded EVM, where both have to agree. The latter needs --rpc.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SimArg::Exact)]
    pub sim: SimArg,

    /// How long stopping may take, in milliseconds: after that what has not stopped is cut off and left.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub stop_budget: u64,

    /// Inject a fault into a component's hook, to try out how a run stops: COMPONENT=KIND-HOOK with KIND
    /// `hang`, `slow`, `fail` or `panic`, and HOOK `start`, `quiesce`, `drain` or `stop`. `panic-run` ends the
    /// thread of `source`, `pump` or `drain` after a few blocks. With `verifier` and `run` the fault is its reader's, which
    /// may also `lie`.
    #[arg(long, value_name = "FAULT", hide = true)]
    pub inject: Vec<FaultArg>,

    /// What to log to stderr; without it what the configuration file says, or `warn`.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub log: Option<LogArg>,
}

impl RunArgs {
    /// Whether published blocks are verified.
    #[must_use]
    pub const fn verifies(&self) -> bool {
        self.verify || self.source.rpc.is_some()
    }
}

/// A tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProfileArg {
    /// Whatever the quota allows.
    Auto,
    /// The pinned tier, even where its shares do not fit.
    Pinned,
    /// The serial tier.
    Serial,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Auto => Self::Auto,
            ProfileArg::Pinned => Self::Pinned,
            ProfileArg::Serial => Self::Serial,
        }
    }
}

/// How candidates are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SimArg {
    /// By the exact integers of the pools' formula.
    Exact,
    /// Also by the pools' and tokens' own bytecode, over the state that the node has.
    Evm,
}

/// A way to wake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WakeArg {
    /// The cheapest that the kernel offers.
    Auto,
    /// A word of memory that the kernel waits on.
    Futex,
    /// A counter behind a descriptor.
    Eventfd,
    /// The same counter, waited for through a ring of the seat's own.
    #[value(name = "io_uring")]
    IoUring,
}

/// Where seats run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum AffinityArg {
    /// Each seat on every allowed CPU.
    AllowedSet,
    /// Each seat on one CPU of its own.
    OneCpuEach,
}

impl From<AffinityArg> for SeatAffinity {
    fn from(affinity: AffinityArg) -> Self {
        match affinity {
            AffinityArg::AllowedSet => Self::AllowedSet,
            AffinityArg::OneCpuEach => Self::OneCpuEach,
        }
    }
}

/// A fault of a component's hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultArg {
    /// The component.
    pub component: String,
    /// What happens.
    pub kind: FaultKind,
    /// In which hook.
    pub hook: Hook,
}

/// What a fault does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The hook never returns.
    Hang,
    /// It takes longer.
    Slow,
    /// It fails.
    Fail,
    /// It panics.
    Panic,
    /// It answers, and wrongly: the reader of the verifier alone.
    Lie,
}

/// A hook of a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// Its start.
    Start,
    /// Its quiesce.
    Quiesce,
    /// Its drain.
    Drain,
    /// Its stop.
    Stop,
    /// None: the component's own thread, at work.
    Run,
}

const KINDS: [(&str, FaultKind); 5] = [
    ("hang", FaultKind::Hang),
    ("slow", FaultKind::Slow),
    ("fail", FaultKind::Fail),
    ("panic", FaultKind::Panic),
    ("lie", FaultKind::Lie),
];

const HOOKS: [(&str, Hook); 5] = [
    ("start", Hook::Start),
    ("quiesce", Hook::Quiesce),
    ("drain", Hook::Drain),
    ("stop", Hook::Stop),
    ("run", Hook::Run),
];

impl FromStr for FaultArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(component, rest)| {
            let (kind, hook) = rest.split_once('-')?;
            let kind = KINDS.iter().find(|(name, _)| *name == kind)?.1;
            let hook = HOOKS.iter().find(|(name, _)| *name == hook)?.1;
            if kind == FaultKind::Lie && (component, hook) != ("verifier", Hook::Run) {
                return None;
            }
            Some(Self {
                component: component.to_owned(),
                kind,
                hook,
            })
        });
        parsed.ok_or_else(|| "it takes COMPONENT=KIND-HOOK, such as pump=hang-drain".to_owned())
    }
}

impl fmt::Display for FaultArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = KINDS.iter().find(|(_, kind)| *kind == self.kind);
        let hook = HOOKS.iter().find(|(_, hook)| *hook == self.hook);
        write!(
            f,
            "{}={}-{}",
            self.component,
            kind.map_or("", |(name, _)| name),
            hook.map_or("", |(name, _)| name)
        )
    }
}

/// An incident.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ScenarioArg {
    /// A cordon sets in during the crawl, at 9,955 registered paths with 32 receipts outstanding, and
    /// every posture edge is lost. The crawl must complete after the cordon lifts.
    CordonCrawl,
}

/// A log level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogArg {
    /// Nothing.
    Off,
    /// Faults.
    Error,
    /// And changes of posture and policy.
    Warn,
    /// And notes on what goes well.
    Info,
    /// And the walk of every bin, and what each look at the partition came to.
    Debug,
}

impl From<LogArg> for tracing::level_filters::LevelFilter {
    fn from(level: LogArg) -> Self {
        match level {
            LogArg::Off => Self::OFF,
            LogArg::Error => Self::ERROR,
            LogArg::Warn => Self::WARN,
            LogArg::Info => Self::INFO,
            LogArg::Debug => Self::DEBUG,
        }
    }
}

fn milli_cpu(text: &str) -> Result<MilliCpu, String> {
    MilliCpu::parse(text).map_err(|error| error.to_string())
}
