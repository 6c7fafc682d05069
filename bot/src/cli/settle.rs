//! The options of settlement.

use super::{LogArg, RunArgs};
use crate::market::Address;
use clap::{Subcommand, ValueEnum};
use regatta_chain::endpoint::Endpoint;
use std::path::PathBuf;

/// Whether anything is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SettleMode {
    /// Transactions are signed and sent.
    Live,
    /// Nothing is signed or sent: what would be is scored in the state of the next block.
    Shadow,
}

/// Whether and how what is found is settled.
#[derive(Clone, Debug, clap::Args)]
pub struct SettleArgs {
    /// Settle what is published, on chain. The base token has to be the chain's wrapped native one. Needs --rpc,
    /// --executor and --ledger, and to be live --key.
    #[arg(long, value_enum, value_name = "MODE", requires_all = ["rpc", "executor", "ledger"])]
    pub settle: Option<SettleMode>,

    /// The file with the private key of the executor's owner: 64 hexadecimal digits, of mode 0600 or 0400. For --settle
    /// live alone.
    #[arg(
        long,
        value_name = "FILE",
        requires = "settle",
        required_if_eq("settle", "live")
    )]
    pub key: Option<PathBuf>,

    /// The executor contract, as `regatta settle deploy` made it.
    #[arg(long, value_name = "ADDRESS", requires = "settle")]
    pub executor: Option<Address>,

    /// The settlement ledger: made if it is not there, and gone on with if it is.
    #[arg(long, value_name = "FILE", requires = "settle")]
    pub ledger: Option<PathBuf>,

    /// What a settlement must leave after gas at its dearest, in wei.
    #[arg(
        long,
        value_name = "WEI",
        default_value_t = 1,
        requires = "settle",
        value_parser = clap::value_parser!(u128)
    )]
    pub min_settle_profit: u128,

    /// The most that is offered for a unit of gas, in wei. What frees the nonce of a transaction that no block took may
    /// offer twice as much.
    #[arg(
        long,
        value_name = "WEI",
        default_value_t = 500_000_000_000,
        requires = "settle"
    )]
    pub max_fee_per_gas: u128,

    /// The part of it for the block's maker, in wei.
    #[arg(
        long,
        value_name = "WEI",
        default_value_t = 1_000_000_000,
        requires = "settle"
    )]
    pub priority_fee: u128,

    /// In how many blocks after the one it was found in a settlement may run.
    #[arg(long, value_name = "K", default_value_t = 3, requires = "settle", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub expiry_blocks: u64,

    /// Settling stops, and nothing else does, when settlements have lost so much, in wei. All runs on the ledger count.
    #[arg(
        long,
        value_name = "WEI",
        default_value_t = 100_000_000_000_000_000,
        requires = "settle"
    )]
    pub loss_limit: u128,

    /// How many settlements may be open at a time.
    #[arg(long, value_name = "W", default_value_t = 8, requires = "settle", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub settle_window: u16,
}

impl Default for SettleArgs {
    /// No settlement.
    fn default() -> Self {
        Self {
            settle: None,
            key: None,
            executor: None,
            ledger: None,
            min_settle_profit: 1,
            max_fee_per_gas: 500_000_000_000,
            priority_fee: 1_000_000_000,
            expiry_blocks: 3,
            loss_limit: 100_000_000_000_000_000,
            settle_window: 8,
        }
    }
}

impl RunArgs {
    /// Whether what is found is settled, or would be.
    #[must_use]
    pub const fn settles(&self) -> bool {
        self.settle.settle.is_some()
    }
}

/// What to do about settlement, beside running.
#[derive(Clone, Debug, clap::Args)]
pub struct SettleCommand {
    /// What to do.
    #[command(subcommand)]
    pub verb: SettleVerb,
}

/// What to do about settlement.
#[derive(Clone, Debug, Subcommand)]
pub enum SettleVerb {
    /// Create the executor contract, whose owner is the key's account, wait for its receipt, and print its address.
    Deploy(DeployArgs),
    /// Print what a settlement ledger says.
    Ledger(LedgerArgs),
}

/// Where the executor is created, and by whom.
#[derive(Clone, Debug, clap::Args)]
pub struct DeployArgs {
    /// The node: `ws://HOST:PORT`, `wss://HOST`, or the path of an IPC socket.
    #[arg(long, value_name = "URL")]
    pub rpc: Endpoint,

    /// The chain that the node has to be on.
    #[arg(long, value_name = "ID")]
    pub chain_id: Option<u64>,

    /// The file with the private key of the owner to be: 64 hexadecimal digits, of mode 0600 or 0400.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,

    /// The most that is offered for a unit of gas, in wei.
    #[arg(long, value_name = "WEI", default_value_t = 500_000_000_000)]
    pub max_fee_per_gas: u128,

    /// The part of it for the block's maker, in wei.
    #[arg(long, value_name = "WEI", default_value_t = 1_000_000_000)]
    pub priority_fee: u128,

    /// How long to wait for the receipt, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: u64,

    /// What to log to stderr.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogArg::Warn)]
    pub log: LogArg,
}

/// Which ledger.
#[derive(Clone, Debug, clap::Args)]
pub struct LedgerArgs {
    /// The ledger. It may be in use.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Write one JSON object.
    #[arg(long)]
    pub json: bool,
}
