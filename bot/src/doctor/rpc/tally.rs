//! What announcements amount to. It is told each with the time of its arrival; it has no clock and no socket.
//!
//! # Invariants
//! - A block is told by its hash. Numbers say what was passed over, and nothing else.
//! - What is remembered is bounded: of more than [`MOST_BLOCKS`] blocks, the further ones are not looked at.

use super::record::{Quantiles, StallRecord, WatchRecord};
use alloy_primitives::B256;
use std::collections::HashMap;

/// The most blocks that are remembered.
const MOST_BLOCKS: usize = 4096;

/// A header, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) hash: B256,
    pub(super) parent: B256,
    pub(super) number: u64,
}

/// What came of a block, in microseconds since the beginning.
#[derive(Clone, Copy, Default, Debug)]
struct Block {
    header: Option<u64>,
    first_log: Option<u64>,
    last_log: u64,
    /// On the socket with calls.
    shared: Option<u64>,
    /// Whether calls were open at either arrival of its header.
    loaded: bool,
}

/// Everything that came.
#[derive(Default, Debug)]
pub(super) struct Tally {
    blocks: HashMap<B256, Block>,
    last: Option<(Head, u64)>,
    arrivals: Vec<u64>,
    counts: WatchRecord,
}

impl Tally {
    fn block(&mut self, hash: B256) -> Option<&mut Block> {
        if self.blocks.len() >= MOST_BLOCKS && !self.blocks.contains_key(&hash) {
            return None;
        }
        Some(self.blocks.entry(hash).or_default())
    }

    /// A header came on the socket of announcements alone.
    pub(super) fn head(&mut self, at: u64, head: Head, loaded: bool) {
        let Some(block) = self.block(head.hash) else {
            return;
        };
        if block.header.is_some() {
            self.counts.heads_repeated += 1;
            return;
        }
        block.header = Some(at);
        block.loaded |= loaded;
        self.counts.heads += 1;
        if let Some((last, when)) = self.last {
            self.arrivals.push(at.saturating_sub(when));
            let above = head.number.checked_sub(last.number);
            match above {
                Some(0) | None => self.counts.reorgs += 1,
                Some(1) => self.counts.reorgs += u64::from(head.parent != last.hash),
                Some(above) => {
                    self.counts.heads_missing = self.counts.heads_missing.saturating_add(above - 1);
                }
            }
        }
        self.last = Some((head, at));
    }

    /// A header came on the socket that makes calls as well. Says whether it is the first time.
    pub(super) fn shared_head(&mut self, at: u64, hash: B256, loaded: bool) -> bool {
        let Some(block) = self.block(hash) else {
            return false;
        };
        block.loaded |= loaded;
        let first = block.shared.is_none();
        block.shared = block.shared.or(Some(at));
        first
    }

    /// A log came.
    pub(super) fn log(&mut self, at: u64, hash: B256, removed: bool) {
        if removed {
            self.counts.logs_removed += 1;
            return;
        }
        self.counts.logs += 1;
        if let Some(block) = self.block(hash) {
            block.first_log = block.first_log.or(Some(at));
            block.last_log = at;
        }
    }

    /// Something came that cannot be read.
    pub(super) fn malformed(&mut self) {
        self.counts.malformed += 1;
    }

    /// How many different headers came.
    pub(super) fn heads(&self) -> u64 {
        self.counts.heads
    }

    /// How many headers have been compared between the sockets while calls were open.
    pub(super) fn compared_loaded(&self) -> usize {
        let both =
            |block: &&Block| block.loaded && block.header.is_some() && block.shared.is_some();
        self.blocks.values().filter(both).count()
    }

    /// What it amounts to after `listened_ms`, with `calls` made on the shared socket.
    pub(super) fn record(&self, listened_ms: u64, calls: u64) -> WatchRecord {
        let mut record = self.counts.clone();
        let (mut lags, mut idle, mut loaded) = (Vec::new(), Vec::new(), Vec::new());
        for block in self.blocks.values() {
            if let (Some(header), Some(shared)) = (block.header, block.shared) {
                let later = shared.saturating_sub(header);
                if block.loaded {
                    loaded.push(later);
                } else {
                    idle.push(later);
                }
            }
            match (block.header, block.first_log) {
                (Some(header), Some(first)) => {
                    record.blocks_with_logs += 1;
                    record.logs_before_header += u64::from(first < header);
                    lags.push(block.last_log.saturating_sub(header));
                }
                (None, Some(_)) => record.logs_without_header += 1,
                (_, None) => {}
            }
        }
        WatchRecord {
            listened_ms,
            arrival_interval_us: Quantiles::of(self.arrivals.clone()),
            log_lag_us: Quantiles::of(lags),
            stall: StallRecord {
                calls,
                idle_us: Quantiles::of(idle),
                loaded_us: Quantiles::of(loaded),
            },
            ..record
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn head(hash: u8, parent: u8, number: u64) -> Head {
        Head {
            hash: B256::repeat_byte(hash),
            parent: B256::repeat_byte(parent),
            number,
        }
    }

    fn quantiles(samples: u64, p50: u64, p90: u64, max: u64) -> Quantiles {
        Quantiles {
            samples,
            p50,
            p90,
            max,
        }
    }

    #[test]
    fn what_is_repeated_passed_over_or_turned_back_is_counted_apart() {
        let mut tally = Tally::default();
        // 1, 2, 2 again, 5 (two passed over), 5' (a sibling), 6 on 5 (not on 5'), 3 (far back).
        let heads = [
            head(1, 0, 1),
            head(2, 1, 2),
            head(2, 1, 2),
            head(5, 4, 5),
            head(15, 4, 5),
            head(6, 5, 6),
            head(13, 2, 3),
        ];
        for (at, head) in (0..).map(|i| i * 10).zip(heads) {
            tally.head(at, head, false);
        }
        let record = tally.record(60, 0);
        assert_eq!((record.heads, record.heads_repeated), (6, 1));
        assert_eq!((record.heads_missing, record.reorgs), (2, 3));
        assert_eq!(record.arrival_interval_us, Some(quantiles(5, 10, 20, 20)));
    }

    #[test]
    fn a_lag_goes_to_the_last_log_and_logs_may_come_first() {
        let mut tally = Tally::default();
        tally.head(100, head(1, 0, 1), false);
        tally.log(130, B256::repeat_byte(1), false);
        tally.log(170, B256::repeat_byte(1), false);
        tally.log(200, B256::repeat_byte(2), false);
        tally.head(250, head(2, 1, 2), false);
        tally.log(260, B256::repeat_byte(9), false);
        tally.log(270, B256::repeat_byte(1), true);
        let record = tally.record(1, 0);
        assert_eq!((record.logs, record.logs_removed), (4, 1));
        assert_eq!((record.blocks_with_logs, record.logs_before_header), (2, 1));
        assert_eq!(record.logs_without_header, 1);
        assert_eq!(record.log_lag_us, Some(quantiles(2, 0, 70, 70)));
    }

    #[test]
    fn a_stall_is_between_the_sockets_and_loaded_if_calls_were_open_at_either_end() {
        let mut tally = Tally::default();
        tally.head(100, head(1, 0, 1), false);
        assert!(tally.shared_head(105, B256::repeat_byte(1), false));
        tally.head(200, head(2, 1, 2), true);
        assert!(tally.shared_head(290, B256::repeat_byte(2), false));
        assert!(!tally.shared_head(999, B256::repeat_byte(2), false));
        assert!(tally.shared_head(300, B256::repeat_byte(3), true));
        tally.head(310, head(3, 2, 3), false);
        assert_eq!(tally.compared_loaded(), 2);
        let stall = tally.record(1, 200).stall;
        assert_eq!(stall.calls, 200);
        assert_eq!(stall.idle_us, Some(quantiles(1, 5, 5, 5)));
        assert_eq!(stall.loaded_us, Some(quantiles(2, 0, 90, 90)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut tally = Tally::default();
        for number in 0..2 * MOST_BLOCKS as u64 {
            tally.log(
                number,
                B256::from(alloy_primitives::U256::from(number)),
                false,
            );
        }
        assert_eq!(tally.blocks.len(), MOST_BLOCKS);
        assert_eq!(tally.record(1, 0).logs, 2 * MOST_BLOCKS as u64);
    }
}
