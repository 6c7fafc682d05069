//! The options of captures.

use super::{LogArg, PlanArgs, RunArgs, SettleArgs, SourceArgs};
use clap::ArgGroup;
use std::path::PathBuf;

/// What to write down.
#[derive(Clone, Debug, clap::Args)]
pub struct CaptureArgs {
    /// The file that is written.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Write in the place of a file that is there.
    #[arg(long)]
    pub force: bool,

    /// What to write down.
    #[command(flatten)]
    pub source: SourceArgs,

    /// What to log to stderr.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogArg::Warn)]
    pub log: LogArg,
}

/// What to run again, and what is to come of it.
#[derive(Clone, Debug, clap::Args)]
#[command(group(ArgGroup::new("corpus").required(true).args(["expect", "write"])))]
pub struct ReplayArgs {
    /// The capture.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// What the run is to say, line by line, byte by byte.
    #[arg(long, value_name = "CORPUS")]
    pub expect: Option<PathBuf>,

    /// Write what the run says to this file, in the place of one that is there, instead of comparing it.
    #[arg(long, value_name = "CORPUS")]
    pub write: Option<PathBuf>,

    /// Take a capture that has no end record, because it was cut off, for an error.
    #[arg(long)]
    pub strict: bool,

    /// How many blocks of the capture, instead of all.
    #[arg(long, value_name = "N")]
    pub blocks: Option<u64>,

    /// The most hops of a cycle.
    #[arg(long, value_name = "2..4", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=4))]
    pub max_hops: u8,

    /// How many of the best trades of a block are published.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub top: u16,

    /// The least profit that is of interest, in the base token's smallest unit.
    #[arg(long, value_name = "UNITS", default_value_t = 1)]
    pub min_profit: u128,

    /// How to plan. What is compared does not depend on it.
    #[command(flatten)]
    pub plan: PlanArgs,

    /// How long stopping may take, in milliseconds: after that what has not stopped is cut off and left.
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub stop_budget: u64,

    /// What to log to stderr; without it what the configuration file says, or `warn`.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub log: Option<LogArg>,
}

impl ReplayArgs {
    /// The run that a replay is.
    #[must_use]
    pub fn run(&self) -> RunArgs {
        RunArgs {
            source: SourceArgs {
                pools: Vec::new(),
                base: None,
                blocks: self.blocks,
                seed: 1,
                block_time: 0,
                rpc: None,
                factory: Vec::new(),
                chain_id: None,
                most_pools: 20_000,
            },
            capture: Some(self.file.clone()),
            record: None,
            strict: self.strict,
            max_hops: self.max_hops,
            top: self.top,
            min_profit: self.min_profit,
            json: true,
            settle: Box::new(SettleArgs::default()),
            plan: self.plan.clone(),
            scenario: None,
            health: None,
            verify: false,
            max_quarantined: 8,
            sim: super::SimArg::Exact,
            stop_budget: self.stop_budget,
            inject: Vec::new(),
            log: self.log,
        }
    }
}
