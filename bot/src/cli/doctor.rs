//! The options of the doctor.

use super::PlanArgs;
use crate::node::FactoryArg;
use regatta_chain::endpoint::Endpoint;
use std::path::PathBuf;

/// What to diagnose.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Diagnose a copy of a machine: a folder with `proc/self/cgroup`, `proc/self/mountinfo`, the control
    /// groups' files under their mount points, and `affinity`, a list of CPUs such as 0-3,8 in place
    /// of the process's mask.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,

    /// Write one JSON object.
    #[arg(long)]
    pub json: bool,

    /// Measure a node instead.
    #[command(flatten)]
    pub node: NodeArgs,

    /// How to plan.
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// Which node to measure, and for how long.
#[derive(Clone, Debug, clap::Args)]
pub struct NodeArgs {
    /// Measure an Ethereum node instead of this machine, and say what it is fit for and what to configure:
    /// a WebSocket (`ws` or `wss`), or the path of an IPC socket. It makes up to some 8,000 calls.
    #[arg(
        long, value_name = "URL",
        conflicts_with_all = ["root", "quota", "profile", "set", "config", "wake", "affinity"]
    )]
    pub rpc: Option<Endpoint>,

    /// With --rpc: how long everything may take, in seconds. Questions have half of it; announcements are listened to
    /// for the rest, so that a chain with a block each twelve seconds is worth some minutes.
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 30, requires = "rpc", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,

    /// With --rpc: for how many headers to listen, at the most. 0 does not listen.
    #[arg(long, value_name = "N", default_value_t = 16, requires = "rpc", value_parser = clap::value_parser!(u16).range(..=1000))]
    pub heads: u16,

    /// With --rpc: the chain that the node has to be on.
    #[arg(long, value_name = "ID", requires = "rpc")]
    pub chain_id: Option<u64>,

    /// With --rpc: look at this factory as well. May be given several times.
    #[arg(long, value_name = "ADDRESS[:FEE]", requires = "rpc")]
    pub factory: Vec<FactoryArg>,

    /// With --rpc: the most pools that are to be followed.
    #[arg(long, value_name = "N", default_value_t = 20_000, requires = "rpc")]
    pub most_pools: usize,

    /// With --rpc: end with exit code 7 if the node is unfit for something that the bot needs.
    #[arg(long, requires = "rpc")]
    pub strict: bool,
}
