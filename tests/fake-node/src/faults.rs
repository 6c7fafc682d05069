//! How a node lies about its chain.

/// What is said once, instead of a block's logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glitch {
    /// An error.
    Error,
    /// No logs.
    Empty,
}

/// What becomes of the logs of blocks that a reorganisation takes back, on the subscriptions to logs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Removed {
    /// They are not mentioned, as anvil does it.
    #[default]
    Never,
    /// They come again as removed, the last block first and each block's logs from the last, as the specification says.
    LastFirst,
    /// They come again as removed, the first block first, in the order in which they came.
    FirstFirst,
    /// They come again as removed after the headers and logs of the new branch.
    AfterTheNew,
}

/// How queries over a range of blocks are limited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeLimit {
    /// The most logs of an answer.
    pub logs: usize,
    /// The most blocks of a range.
    pub blocks: u64,
    /// The code of the refusal.
    pub code: i64,
    /// Its words; nodes suggest ranges in them, sometimes the same one.
    pub message: String,
}

/// The faults of a node's chain. All off is a healthy node.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and all combinations have a meaning"
)]
pub struct Faults {
    /// No header is announced, while calls are answered (row N1).
    pub heads_stopped: bool,
    /// No log is announced.
    pub logs_stopped: bool,
    /// Subscriptions made while this holds get a name, and never a notification (row N3).
    pub dead_subscriptions: bool,
    /// What is said to the first questions for the logs of each block by its hash; after these the logs (row N5).
    pub log_glitches: Vec<Glitch>,
    /// How many questions for each block by its hash are answered as if it were unknown (row N6).
    pub unknown_for: usize,
    /// Blocks that a reorganisation took back are unknown by their hash.
    pub forget_branches: bool,
    /// How many `eth_call`s pinned to each block's hash find no state, whoever handles them after (row N6).
    pub stateless_for: usize,
    /// How many blocks behind the answers are, those by hash included (row N7).
    pub lag: u64,
    /// What becomes of logs that are taken back (row N8).
    pub removed: Removed,
    /// The logs of one answer or notification burst come in the wrong order (row N8).
    pub logs_reversed: bool,
    /// The limit of ranges (row N10).
    pub range_limit: Option<RangeLimit>,
    /// The most logs of a single block's answer by its hash; over it the refusal of `range_limit` comes (row N10).
    pub block_limit: Option<usize>,
    /// A block's logs are announced before its header.
    pub logs_first: bool,
    /// `eth_syncing` says that the node is.
    pub syncing: bool,
}
