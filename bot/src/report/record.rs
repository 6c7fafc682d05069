//! The records. `docs/output.md` describes them for readers of the JSON.

use super::chain::{MissedRecord, QuarantineRecord, RegisteredRecord, RetractRecord};
use super::distrust::{DistrustRecord, EvmRecord};
use super::settlement::SettlingRecord;
use crate::market::{Address, UntrustedText};
use crate::settle::SettlementRecord;
use crate::source::BlockHash;
use serde::Serialize;

/// Anything a run says.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// First: how the fleet is set up, and where each number came from.
    Plan(PlanRecord),
    /// Second, unless a scenario runs: what was registered.
    Crawl(CrawlRecord),
    /// One per block that ran.
    Block(BlockRecord),
    /// One per block that was coalesced into a later one.
    Missed(MissedRecord),
    /// Something is not what it is said to be, by its bytecode.
    Distrust(DistrustRecord),
    /// A pool was taken out of trade.
    Quarantine(QuarantineRecord),
    /// One each time that cycles over new pools took effect.
    Registered(RegisteredRecord),
    /// One per record that was published for a block that was reverted.
    Retract(RetractRecord),
    /// What came of a settlement, or that it is open again.
    Settlement(SettlementRecord),
    /// The end of a scenario.
    Scenario(ScenarioRecord),
    /// Last.
    Summary(SummaryRecord),
}

/// How the fleet is set up.
#[derive(Clone, Debug, Serialize)]
pub struct PlanRecord {
    /// The quota that is shared out, in milli-cores.
    pub quota_milli: u32,
    /// Who set it.
    pub quota_origin: &'static str,
    /// What was detected, in milli-cores.
    pub detected_milli: Option<u32>,
    /// What bounds it.
    pub bounded_by: &'static str,
    /// How sure that is.
    pub confidence: &'static str,
    /// Why.
    pub reason: String,
    /// The control group whose limit was detected, if it is one.
    pub limiting_level: Option<String>,
    /// The file that it was read from.
    pub limiting_file: Option<String>,
    /// What the operator wanted.
    pub profile: &'static str,
    /// What runs.
    pub binding: &'static str,
    /// Whether the shares exceed the quota.
    pub oversubscribed: bool,
    /// The tier that was refused, by name.
    pub tier_refused: Option<&'static str>,
    /// The same as a sentence.
    pub tier_refused_because: Option<String>,
    /// Units that may be runnable at once.
    pub permits: u16,
    /// Bins, each with a solver unit per block.
    pub bins: u8,
    /// The seats.
    pub seats: SeatsRecord,
    /// The shares.
    pub budget: Vec<BudgetRecord>,
    /// What the plan puts on the machine.
    pub census: Vec<CensusRecord>,
    /// Overrides that have no say in this plan.
    pub idle_overrides: Vec<String>,
}

/// The seats of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct SeatsRecord {
    /// How many.
    pub count: u16,
    /// `allowed_set` or `one_cpu_each`.
    pub affinity: &'static str,
    /// Why.
    pub because: &'static str,
    /// `futex`, `eventfd`, `io_uring` or `park`; none for a copy of a machine.
    pub wake: Option<&'static str>,
    /// Why.
    pub wake_because: Option<String>,
}

/// One consumer's share.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetRecord {
    /// The consumer.
    pub name: &'static str,
    /// Whole cores of its own.
    pub cores: u16,
    /// Whose cores it uses as well.
    pub within: Option<&'static str>,
    /// Threads of its own.
    pub threads: u16,
    /// The rule.
    pub rule: String,
    /// Who set the share.
    pub origin: &'static str,
}

/// One resource.
#[derive(Clone, Debug, Serialize)]
pub struct CensusRecord {
    /// What it is.
    pub resource: &'static str,
    /// Whose.
    pub owner: &'static str,
    /// How many.
    pub count: u16,
    /// How the count came about.
    pub sizing: String,
    /// How its thread names begin.
    pub threads: Option<String>,
    /// How it meets threads.
    pub binding: &'static str,
}

/// What was registered.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlRecord {
    /// Where the market came from.
    pub market: String,
    /// Pools in the market.
    pub pools: usize,
    /// Tokens in the market.
    pub tokens: usize,
    /// Rows left out because a reserve is zero.
    pub skipped_zero_reserve: u64,
    /// Rows left out because the pool's address is a token's.
    pub skipped_pool_is_token: u64,
    /// The base token.
    pub base: Address,
    /// Its symbol, safe to print.
    pub base_symbol: String,
    /// The most hops of a cycle.
    pub max_hops: u8,
    /// Cycles of two, three and four hops.
    pub cycles: [u64; 3],
    /// Cycles registered.
    pub registered: usize,
    /// Receipts that the crawl keeps outstanding at most.
    pub window: u32,
    /// Groups that the cycles are placed into bins by.
    pub groups: usize,
    /// Timing.
    pub timing: CrawlTiming,
}

/// How long the crawl took.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlTiming {
    /// Milliseconds.
    pub elapsed_ms: f64,
}

/// What came of a block.
#[derive(Clone, Debug, Serialize)]
pub struct BlockRecord {
    /// The chain. With the block's hash and a winner's path it is the key of what is published.
    pub chain: UntrustedText,
    /// The block's height.
    pub number: u64,
    /// Its identity.
    pub hash: BlockHash,
    /// The identity of the block it builds on.
    pub parent: BlockHash,
    /// Whether the market was read anew at it; then what moved is what turned out to be otherwise.
    pub reread: bool,
    /// The pools that moved, with their reserves now.
    pub moved: Vec<Moved>,
    /// Cycles over them.
    pub touched: u64,
    /// Of these, bounded.
    pub solved: u64,
    /// Of these, rejected by the screen.
    pub suppressed: u64,
    /// Of these, lost with their unit.
    pub failed: u64,
    /// Solved cycles whose upper bound reaches the least profit of interest.
    pub profitable: usize,
    /// Candidates simulated exactly.
    pub simulated: usize,
    /// Simulations whose optimum could not be proved.
    pub unproved: usize,
    /// Simulations that failed.
    pub sim_failed: usize,
    /// What the machine came to, where candidates run as bytecode, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evm: Option<EvmRecord>,
    /// The best trades, larger profit first.
    pub winners: Vec<WinnerRecord>,
    /// Timing.
    pub timing: BlockTiming,
}

/// A pool that moved.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The pool.
    pub pool: Address,
    /// Its reserve of the first token.
    #[serde(serialize_with = "decimal")]
    pub reserve0: u128,
    /// Its reserve of the second token.
    #[serde(serialize_with = "decimal")]
    pub reserve1: u128,
}

/// A trade that is published: a record of kind `opportunity`.
#[derive(Clone, Debug, Serialize)]
pub struct WinnerRecord {
    /// The kind of record.
    pub kind: &'static str,
    /// The cycle's number in this run.
    pub cycle: u32,
    /// The pools of the cycle joined by `-`: its identity in any run.
    pub path: String,
    /// What goes in, in the base token's smallest unit.
    #[serde(serialize_with = "decimal")]
    pub input: u128,
    /// What comes out.
    #[serde(serialize_with = "decimal")]
    pub output: u128,
    /// The difference: the proved largest.
    #[serde(serialize_with = "decimal")]
    pub profit: u128,
    /// Whether no smaller input has the same profit, as far as was proved.
    pub least_input: bool,
    /// The trades.
    pub hops: Vec<HopRecord>,
    /// The profit in the base token, for people.
    #[serde(skip)]
    pub shown: String,
}

/// One trade of a cycle.
#[derive(Clone, Debug, Serialize)]
pub struct HopRecord {
    /// The pool.
    pub pool: Address,
    /// The token that goes in.
    pub token_in: Address,
    /// The token that comes out.
    pub token_out: Address,
    /// How much goes in, in that token's smallest unit.
    #[serde(serialize_with = "decimal")]
    pub amount_in: u128,
    /// How much comes out.
    #[serde(serialize_with = "decimal")]
    pub amount_out: u128,
}

/// How long a block took, and what else depends on timing.
#[derive(Clone, Debug, Serialize)]
pub struct BlockTiming {
    /// From the start of the block's cycle to its result, in microseconds.
    pub cycle_us: u64,
    /// The posture at the end of the cycle.
    pub posture: &'static str,
    /// Units held at the end of the cycle.
    pub held: u64,
    /// How long each bin's walk took, in microseconds.
    pub walk_us: Vec<u64>,
}

/// How a scenario went.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioRecord {
    /// Which.
    pub scenario: &'static str,
    /// Paths to register.
    pub paths: u64,
    /// Paths registered when the cordon set in.
    pub registered_at_cordon: usize,
    /// Receipts outstanding while it lasted.
    pub outstanding: usize,
    /// Units held while it lasted.
    pub held: u64,
    /// Why.
    pub hold_reason: &'static str,
    /// Paths registered while it lasted.
    pub registered_under_cordon: u64,
    /// Posture edges that reached the host.
    pub edges_delivered: u64,
    /// Paths registered in the end.
    pub registered: usize,
    /// Whether all were.
    pub completed: bool,
    /// Timing.
    pub timing: ScenarioTiming,
}

/// What of a scenario depends on timing.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioTiming {
    /// Backstop ticks until the crawl went on.
    pub ticks: u64,
    /// From the cordon to its lifting, in milliseconds.
    pub cordoned_ms: f64,
    /// From the lifting to the next registration, in milliseconds.
    pub resumed_after_ms: f64,
}

/// The end of a run.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryRecord {
    /// Blocks that ran.
    pub blocks: u64,
    /// Cycles touched, over all blocks.
    pub touched: u64,
    /// Cycles bounded.
    pub solved: u64,
    /// Cycles rejected by the screen.
    pub suppressed: u64,
    /// Cycles lost with their unit.
    pub failed: u64,
    /// Trades published.
    pub published: u64,
    /// Of these, retracted.
    pub retracted: u64,
    /// Simulations whose optimum could not be proved.
    pub unproved: u64,
    /// The best profit of any block, in the base token's smallest unit.
    pub best_profit: Option<String>,
    /// The block it was in.
    pub best_block: Option<u64>,
    /// The unit ledger, per lane that had units.
    pub ledger: Vec<LaneRecord>,
    /// Receipts dropped before their outcome was collected.
    pub abandoned: u64,
    /// Whether every lane accounts for every unit, none is left, and every receipt was collected.
    pub balanced: bool,
    /// The profit in the base token, for people.
    #[serde(skip)]
    pub best_shown: Option<String>,
    /// Timing.
    pub timing: SummaryTiming,
}

/// One lane's ledger.
#[derive(Clone, Debug, Serialize)]
pub struct LaneRecord {
    /// The role.
    pub role: &'static str,
    /// Units accepted.
    pub submitted: u64,
    /// Units with a seat.
    pub in_flight: u64,
    /// Units waiting.
    pub waiting: u64,
    /// Units that ended.
    pub resolved: u64,
    /// Ended units whose receipt was not collected.
    pub uncollected: u64,
}

/// What of a summary depends on timing.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryTiming {
    /// From the first block to the last, in milliseconds.
    pub elapsed_ms: f64,
    /// Blocks that were coalesced into later ones.
    pub missed: u64,
    /// Cycle times in microseconds.
    pub cycle_us: PercentileRecord,
    /// Walk times per bin in microseconds.
    pub bins: Vec<BinTiming>,
    /// Units that were held on arrival, all lanes.
    pub suppressed_intake: u64,
    /// Leases that the guard took back.
    pub handed_back: u64,
    /// Backstop ticks.
    pub ticks: u64,
    /// The unit ledger of the lanes whose number of units depends on timing.
    pub ledger: Vec<LaneRecord>,
    /// What the verifier did, if there was one.
    pub verifier: Option<VerifierRecord>,
    /// What settling came to, if there was any.
    pub settlement: Option<Box<SettlingRecord>>,
}

/// What the verifier did with the blocks that were published.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifierRecord {
    /// Blocks published.
    pub published: u64,
    /// Of these, skipped for a newer one.
    pub skipped: u64,
    /// Of these, compared.
    pub verified: u64,
    /// Of these, dropped because they were reverted.
    pub reverted: u64,
    /// Of these, not read.
    pub read_failed: u64,
    /// Of these, not read in time.
    pub read_timed_out: u64,
    /// Of these, not compared by the fleet.
    pub not_run: u64,
    /// Pools compared, over all blocks.
    pub compared: u64,
    /// Pools that the source said nothing of.
    pub unread: u64,
    /// Pools that moved and did not fit.
    pub left_out: u64,
    /// Pools quarantined.
    pub quarantined: u64,
}

/// Walk times of a bin.
#[derive(Clone, Debug, Serialize)]
pub struct BinTiming {
    /// The bin.
    pub bin: usize,
    /// Microseconds.
    pub walk_us: PercentileRecord,
}

/// Percentiles of a histogram.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PercentileRecord {
    /// How many values.
    pub count: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// Nine of ten.
    pub p90: u64,
    /// Ninety-nine of a hundred.
    pub p99: u64,
    /// All of them.
    pub max: u64,
}

pub(super) fn decimal<S: serde::Serializer>(
    value: &u128,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
