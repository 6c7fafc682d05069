//! What was measured of a node, as a value. `docs/operations.md` describes its JSON.
//!
//! # Invariants
//! - What the node said is in here escaped and cut.
//! - What was not measured is `None`, and a finding says why.

use serde::Serialize;

/// Everything the doctor says of a node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRecord {
    /// Where it is, without its secrets.
    pub endpoint: String,
    /// Which chain.
    pub chain: ChainRecord,
    /// What it says it is.
    pub client: Option<String>,
    /// Whether it is still fetching the chain.
    pub sync: SyncRecord,
    /// Its latest block.
    pub head: HeadRecord,
    /// How long a call takes that costs the node nothing, in microseconds.
    pub round_trip_us: Option<Quantiles>,
    /// What it says to `eth_getLogs`.
    pub logs: LogsRecord,
    /// How much it answers at once.
    pub batch: BatchRecord,
    /// How large its answers are.
    pub frame: FrameRecord,
    /// What it says of a block that there is not.
    pub unknown_hash: UnknownRecord,
    /// Which state it has.
    pub state: StateRecord,
    /// What it announced; none if it was not listened to.
    pub watch: Option<WatchRecord>,
    /// The factories that were asked about.
    pub factories: Vec<FactoryRecord>,
    /// The steps that failed.
    pub findings: Vec<FindingRecord>,
    /// What to configure.
    pub hints: Vec<NodeHint>,
    /// Whether it is fit, by what the bot needs.
    pub verdicts: Vec<VerdictRecord>,
}

/// Which chain.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct ChainRecord {
    /// The node's.
    pub id: Option<u64>,
    /// The one of `--chain-id`.
    pub wanted: Option<u64>,
    /// Whether they are the same.
    pub matches: Option<bool>,
}

/// Whether it is still fetching the chain.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct SyncRecord {
    /// Whether it says so.
    pub syncing: Option<bool>,
    /// How many blocks it says that it lacks.
    pub behind_blocks: Option<u64>,
}

/// The latest block.
#[derive(Clone, Default, Debug, Serialize)]
pub struct HeadRecord {
    /// Its height.
    pub number: Option<u64>,
    /// Its identity.
    pub hash: Option<String>,
    /// How many seconds its timestamp is behind this machine's clock; negative if it is ahead.
    pub age_s: Option<i64>,
    /// Of how many blocks the timestamps were read, the latest included.
    pub headers: u64,
    /// The mean interval of their timestamps, in milliseconds.
    pub interval_ms: Option<u64>,
    /// The largest one, in seconds.
    pub interval_max_s: Option<u64>,
}

/// What came to a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AnswerRecord {
    /// `data`, `empty`, `not_found` (null), `refused` (an error), `timed_out`, `too_large`, `garbage`, `malformed`,
    /// `closed`, `unreachable`, `busy` or `no_time`.
    pub says: &'static str,
    /// The code of an error.
    pub code: Option<i64>,
    /// Its words, or what went wrong.
    pub message: Option<String>,
}

/// What it says to `eth_getLogs`.
#[derive(Clone, Default, Debug, Serialize)]
pub struct LogsRecord {
    /// To the latest block by its hash, for the topic of `Sync`.
    pub by_hash: Option<AnswerRecord>,
    /// How many logs that were.
    pub by_hash_logs: Option<usize>,
    /// The most blocks of a range that was answered.
    pub largest_range_blocks: Option<u64>,
    /// How many logs that answer had.
    pub largest_range_logs: Option<usize>,
    /// The first range that was not answered.
    pub refused_range_blocks: Option<u64>,
    /// What came instead.
    pub range_refusal: Option<AnswerRecord>,
}

/// How much it answers at once.
#[derive(Clone, Default, Debug, Serialize)]
pub struct BatchRecord {
    /// The largest batch that was answered whole, of 10, 100 and 1000.
    pub largest: Option<usize>,
    /// The first that was not.
    pub refused: Option<usize>,
    /// What came instead.
    pub refusal: Option<AnswerRecord>,
}

/// How large its answers are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FrameRecord {
    /// The largest one, in bytes as this program would write it; also of one that was not taken, as far as it told.
    pub largest_bytes: usize,
    /// What this program takes.
    pub limit_bytes: usize,
}

/// What it says of a block that there is not.
#[derive(Clone, Default, Debug, Serialize)]
pub struct UnknownRecord {
    /// To `eth_getBlockByHash`.
    pub header: Option<AnswerRecord>,
    /// To `eth_getLogs`.
    pub logs: Option<AnswerRecord>,
    /// To `eth_call`.
    pub call: Option<AnswerRecord>,
}

/// Which state it has.
#[derive(Clone, Default, Debug, Serialize)]
pub struct StateRecord {
    /// `eth_call` by the latest block's hash (EIP-1898).
    pub latest: Option<AnswerRecord>,
    /// How many blocks the old one is back.
    pub old_blocks: Option<u64>,
    /// `eth_call` by its hash.
    pub old: Option<AnswerRecord>,
}

/// A factory.
#[derive(Clone, Debug, Serialize)]
pub struct FactoryRecord {
    /// Where.
    pub address: String,
    /// The size of its code.
    pub code_bytes: Option<usize>,
    /// How many pools it made.
    pub pools: Option<String>,
    /// The number of `--most-pools`.
    pub most_pools: usize,
    /// Whether they are at most so many.
    pub fits: Option<bool>,
}

/// What it announced.
#[derive(Clone, Default, Debug, Serialize)]
pub struct WatchRecord {
    /// For how long it was listened to, in milliseconds.
    pub listened_ms: u64,
    /// Different headers.
    pub heads: u64,
    /// Headers that came again.
    pub heads_repeated: u64,
    /// Heights that were passed over.
    pub heads_missing: u64,
    /// Headers that do not build on the one before, and are not above it by more than one.
    pub reorgs: u64,
    /// Announcements that cannot be read.
    pub malformed: u64,
    /// Between arrivals of headers, in microseconds.
    pub arrival_interval_us: Option<Quantiles>,
    /// Logs of `Sync`.
    pub logs: u64,
    /// Logs that were taken back.
    pub logs_removed: u64,
    /// Blocks with such logs, whose header came too.
    pub blocks_with_logs: u64,
    /// Blocks of those whose first log came before the header.
    pub logs_before_header: u64,
    /// Blocks with logs, whose header did not come.
    pub logs_without_header: u64,
    /// From a block's header to its last log, in microseconds; 0 if that was before.
    pub log_lag_us: Option<Quantiles>,
    /// What calls do to announcements on the same socket.
    pub stall: StallRecord,
}

/// What calls do to announcements on the same socket: how much later than on a socket of its own a header comes, in
/// microseconds.
#[derive(Clone, Default, Debug, Serialize)]
pub struct StallRecord {
    /// How many calls were made beside them.
    pub calls: u64,
    /// Headers that came while no call was open.
    pub idle_us: Option<Quantiles>,
    /// Headers that came while calls were.
    pub loaded_us: Option<Quantiles>,
}

/// Of some numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Quantiles {
    /// How many they are.
    pub samples: u64,
    /// Half of them are at most this.
    pub p50: u64,
    /// Nine of ten are at most this.
    pub p90: u64,
    /// The largest.
    pub max: u64,
}

impl Quantiles {
    /// Those of `numbers`, if there are any: each the smallest number that so many are not above.
    #[must_use]
    pub fn of(mut numbers: Vec<u64>) -> Option<Self> {
        numbers.sort_unstable();
        let at = |tenths: usize| {
            let rank = (numbers.len() * tenths).div_ceil(10);
            numbers.get(rank.saturating_sub(1)).copied()
        };
        Some(Self {
            samples: numbers.len() as u64,
            p50: at(5)?,
            p90: at(9)?,
            max: at(10)?,
        })
    }
}

/// A step that failed, or said what it should not.
#[derive(Clone, Debug, Serialize)]
pub struct FindingRecord {
    /// Which step.
    pub step: &'static str,
    /// How, as in [`AnswerRecord::says`]; or `wrong`.
    pub kind: &'static str,
    /// In words.
    pub text: String,
}

/// What to configure.
#[derive(Clone, Debug, Serialize)]
pub struct NodeHint {
    /// Its name.
    pub name: &'static str,
    /// What to do, and why.
    pub text: String,
    /// The field that it follows from.
    pub follows_from: &'static str,
}

/// Whether the node is fit for something that the bot needs.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictRecord {
    /// What.
    pub requirement: &'static str,
    /// Whether.
    pub verdict: Verdict,
    /// Why.
    pub because: String,
}

/// How fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the bot needs it.
    Ok,
    /// The bot works, and less well.
    Limited,
    /// The bot does not work, or cannot be trusted.
    Unfit,
    /// It was not measured.
    Unmeasured,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// By counting: so many are not above, and any smaller one of the numbers has too few.
        #[test]
        fn a_quantile_is_the_smallest_that_so_many_are_not_above(numbers in proptest::collection::vec(0u64..50, 0..60)) {
            let reference = |tenths: usize| numbers.iter().copied().filter(|&candidate| {
                let below = numbers.iter().filter(|&&n| n <= candidate).count();
                below * 10 >= numbers.len() * tenths
            }).min();
            let expected = reference(5).map(|p50| Quantiles {
                samples: numbers.len() as u64,
                p50,
                p90: reference(9).unwrap(),
                max: numbers.iter().copied().max().unwrap(),
            });
            prop_assert_eq!(Quantiles::of(numbers.clone()), expected);
        }
    }
}
