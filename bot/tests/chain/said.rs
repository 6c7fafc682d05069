//! What the bot said, against what the lab knows.

use crate::bot::Ended;
use crate::history::History;
use crate::trades;
use alloy_primitives::{Address, B256};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What came of the checks, so that a test can say that they had something to check.
#[derive(Default, Debug)]
pub(crate) struct Found {
    /// Blocks that ran.
    pub(crate) blocks: usize,
    /// Of these, those at which the market was read anew.
    pub(crate) rereads: usize,
    /// Blocks that were coalesced into others.
    pub(crate) missed: usize,
    /// Blocks with a trade.
    pub(crate) with_trade: usize,
    /// The pools of all trades.
    pub(crate) traded: BTreeSet<Address>,
    /// Trades that were taken back.
    pub(crate) retracted: usize,
    /// Blocks that do not stand and had been published with a trade.
    pub(crate) orphaned_trades: usize,
}

pub(crate) fn hash(record: &Value, key: &str) -> B256 {
    let text = record[key].as_str();
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no {key} in {record}"))
}

pub(crate) fn address(value: &Value) -> Address {
    value.as_str().unwrap().parse().unwrap()
}

pub(crate) fn amount(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The pools of the trades that a record publishes.
pub(crate) fn pools(record: &Value) -> BTreeSet<Address> {
    let hops = list(&record["winners"])
        .iter()
        .flat_map(|winner| list(&winner["hops"]));
    hops.map(|hop| address(&hop["pool"])).collect()
}

/// Checks each record in turn, and what stands in the end.
pub(crate) fn check(records: &[Value], history: &History) -> Found {
    let mut found = Found::default();
    let mut standing = Standing::default();
    for record in records {
        match record["type"].as_str().unwrap() {
            "block" => {
                let fresh = std::mem::take(&mut standing.fresh);
                let ran = Ran::of(record, history, standing.last_ran, fresh);
                ran.reserves_are_the_chains(history);
                for winner in list(&record["winners"]) {
                    trades::check(winner, &history.block(ran.hash).reserves, history);
                }
                standing.publish(record, ran.hash);
                found.traded.extend(pools(record));
                found.blocks += 1;
                found.rereads += usize::from(ran.reread);
                found.with_trade += usize::from(!list(&record["winners"]).is_empty());
            }
            "missed" => {
                standing.miss(record);
                found.missed += 1;
            }
            "registered" => standing.fresh = true,
            "retract" => {
                standing.retract(record, history);
                found.retracted += 1;
            }
            "quarantine" => panic!("the chain is said to be otherwise: {record}"),
            _ => {}
        }
    }
    found.orphaned_trades = standing.taken_back.len();
    standing.is_the_chain(history);
    found
}

/// A block that ran.
struct Ran<'r> {
    record: &'r Value,
    hash: B256,
    reread: bool,
    /// It builds on the block that ran before it: what moved is what this block moved, and nothing else.
    plain: bool,
    /// It is the first over the cycles of new pools, which are looked at whether or not they moved.
    fresh: bool,
}

impl<'r> Ran<'r> {
    fn of(record: &'r Value, history: &History, last_ran: Option<B256>, fresh: bool) -> Self {
        let hash = hash(record, "hash");
        let head = history.block(hash).head;
        let told = (
            record["number"].as_u64().unwrap(),
            self::hash(record, "parent"),
        );
        assert_eq!(told, (head.number, head.parent), "{record}");
        let reread = record["reread"] == true;
        Self {
            record,
            hash,
            reread,
            plain: !reread && last_ran == Some(head.parent),
            fresh,
        }
    }

    /// The reserves that are said to have moved are those after this block, and none that it moved is missing.
    fn reserves_are_the_chains(&self, history: &History) {
        let known = history.block(self.hash);
        let moved: BTreeMap<Address, [u128; 2]> = list(&self.record["moved"])
            .iter()
            .map(|moved| {
                let reserves = ["reserve0", "reserve1"].map(|key| amount(&moved[key]));
                (address(&moved["pool"]), reserves)
            })
            .collect();
        if self.plain {
            let mut others = moved
                .keys()
                .filter(|pool| !known.changed.contains_key(*pool));
            assert!(
                others.all(|pool| self.fresh && history.is_created(*pool)),
                "{}",
                self.record
            );
        }
        for (pool, reserves) in &moved {
            assert_eq!(Some(reserves), known.reserves.get(pool), "{}", self.record);
        }
        if !self.reread {
            for pool in known.changed.keys() {
                assert!(moved.contains_key(pool), "{pool} moved: {}", self.record);
            }
        }
    }
}

/// What a reader of the records holds for true so far.
#[derive(Default)]
struct Standing {
    last_ran: Option<B256>,
    /// Cycles over new pools took effect, and no block came since.
    fresh: bool,
    /// The trades that stand, by height and block.
    trades: BTreeMap<(u64, B256), BTreeSet<String>>,
    /// Blocks that were said to have run, or to be missed and covered.
    told: BTreeMap<B256, &'static str>,
    /// Of blocks that do not stand.
    taken_back: BTreeSet<B256>,
}

impl Standing {
    fn publish(&mut self, record: &Value, hash: B256) {
        let number = record["number"].as_u64().unwrap();
        if record["reread"] == true {
            self.told.remove(&hash);
        }
        let before = self.told.insert(hash, "ran");
        assert_eq!(before, None, "told twice: {record}");
        let other = self.trades.range((number, B256::ZERO)..).next();
        assert_eq!(other, None, "an orphan was not taken back before: {record}");
        for winner in list(&record["winners"]) {
            let path = winner["path"].as_str().unwrap().to_owned();
            let trades = self.trades.entry((number, hash)).or_default();
            assert!(trades.insert(path), "published twice: {record}");
        }
        self.last_ran = Some(hash);
    }

    fn miss(&mut self, record: &Value) {
        let covered = record["covered_by"].is_u64();
        assert!(covered, "nothing covers it: {record}");
        let before = self.told.insert(hash(record, "hash"), "missed");
        assert_eq!(before, None, "told twice: {record}");
    }

    fn retract(&mut self, record: &Value, history: &History) {
        let hash = hash(record, "hash");
        let key = (record["number"].as_u64().unwrap(), hash);
        assert_eq!(record["kind"], "opportunity");
        let stood = self
            .trades
            .get_mut(&key)
            .is_some_and(|trades| trades.remove(record["path"].as_str().unwrap()));
        assert!(stood, "it did not stand: {record}");
        self.trades.retain(|_, trades| !trades.is_empty());
        if history.is_orphaned(hash) {
            self.taken_back.insert(hash);
        } else {
            // Its block stands: then the market was read anew at it, and a block record that says so follows.
            assert_eq!(self.told.insert(hash, "reread"), Some("ran"), "{record}");
        }
    }

    /// Each block of the chain was told of, from the first that was, and no trade of another block stands.
    fn is_the_chain(&self, history: &History) {
        for (_, hash) in self.trades.keys() {
            assert!(!history.is_orphaned(*hash), "{hash} still stands");
        }
        let mut chain = history.canonical().iter();
        let first = chain.find(|hash| self.told.contains_key(*hash));
        assert!(first.is_some(), "no block of the chain was told of");
        for hash in chain {
            let told = self.told.get(hash).copied();
            assert!(matches!(told, Some("ran" | "missed")), "{hash}: {told:?}");
        }
    }
}

/// It ended in peace, and everything that it counted adds up.
pub(crate) fn ended_well(ended: &Ended, found: &Found) {
    assert_eq!(ended.code, 0, "{}", ended.log);
    let records = ended.records();
    let of_type = |kind: &str| {
        records
            .iter()
            .filter(|record| record["type"] == kind)
            .count()
    };
    let summary = records.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["balanced"], true, "{summary}");
    for (key, count) in [
        ("blocks", found.blocks),
        ("retracted", found.retracted),
        ("abandoned", 0),
        ("failed", 0),
    ] {
        assert_eq!(summary[key], count, "{key}: {summary}");
    }
    let winners = records.iter().map(|record| list(&record["winners"]).len());
    assert_eq!(summary["published"], winners.sum::<usize>(), "{summary}");
    for lane in list(&summary["ledger"]) {
        assert_eq!(lane["submitted"], lane["resolved"], "{lane}");
        for left in ["in_flight", "waiting", "uncollected"] {
            assert_eq!(lane[left], 0, "{lane}");
        }
    }
    let verifier = &summary["timing"]["verifier"];
    assert_eq!(verifier["quarantined"], 0, "{verifier}");
    assert!(verifier["verified"].as_u64().unwrap() > 0, "{verifier}");
    assert_eq!(of_type("quarantine"), 0);
    assert!(!ended.log.contains("panicked"), "{}", ended.log);
}
