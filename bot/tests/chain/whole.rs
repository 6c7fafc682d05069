//! Sixty blocks of a chain to which everything happens that a node lets happen.

use crate::bot::Bot;
use crate::lab::Lab;
use crate::said;
use alloy_primitives::B256;
use serde_json::Value;

/// Where the moves come from.
const SEED: u64 = 7;

/// A chain and the bot on it.
pub(crate) struct Scenario {
    pub(crate) lab: Lab,
    pub(crate) bot: Bot,
}

impl Scenario {
    pub(crate) fn start(seed: u64, more: &[&str]) -> Self {
        let lab = Lab::start(seed);
        let arguments = lab.arguments();
        let arguments: Vec<&str> = arguments
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        let bot = Bot::start(&arguments);
        let mut scenario = Self { lab, bot };
        // It reads the market at the block that is there.
        scenario.published();
        scenario
    }

    /// Waits until what came of the chain's head is published.
    fn published(&mut self) -> Value {
        let hash = self.lab.history.head().head.hash;
        self.bot
            .until("record of the head", |record| of_block(record, hash))
    }

    pub(crate) fn blocks(&mut self, count: usize) {
        for _ in 0..count {
            self.lab.step();
            self.published();
        }
    }

    fn reorg(&mut self, depth: u64) {
        self.lab.reorg(depth);
        self.published();
    }
}

/// Whether it is the record of this block.
pub(crate) fn of_block(record: &Value, hash: B256) -> bool {
    record["type"] == "block" && said::hash(record, "hash") == hash
}

/// The whole promise of a run on a node: what is published is what the chain has, once, and what the chain takes back
/// is taken back; nothing is owed when it ends.
#[test]
fn sixty_blocks_with_two_reorganisations_a_restart_and_a_new_pool() {
    let mut scenario = Scenario::start(SEED, &[]);
    scenario.blocks(10);
    scenario.reorg(1);
    scenario.blocks(10);
    scenario.reorg(3);
    scenario.blocks(5);
    let created = scenario.lab.create();
    scenario.published();
    let registered = scenario
        .bot
        .until("registration of the new pool", |record| {
            record["type"] == "registered"
        });
    assert_eq!(
        (&registered["pools"], &registered["skipped"]),
        (&1.into(), &0.into())
    );
    assert!(registered["cycles"].as_u64().unwrap() > 0, "{registered}");
    scenario.blocks(7);
    let emptied = scenario.lab.empty();
    scenario.published();
    scenario.blocks(6);
    scenario.lab.node.restart().unwrap();
    // The first of these may be over before the bot is back.
    for _ in 0..3 {
        scenario.lab.step();
    }
    scenario.published();
    scenario.blocks(17);
    scenario.lab.verify();

    let Scenario { lab, bot } = scenario;
    let ended = bot.terminate();
    let records = ended.records();
    let found = said::check(&records, &lab.history);
    eprintln!(
        "{found:?} {created:?} {emptied} {}",
        records.last().unwrap()
    );
    std::fs::write("/tmp/w/e2e-records.jsonl", ended.lines.join("\n")).unwrap();
    std::fs::write("/tmp/w/e2e-log.txt", &ended.log).unwrap();
    assert!(2 * found.with_trade > found.blocks, "{found:?}");
    assert!(found.orphaned_trades > 0, "{found:?}");
    said::ended_well(&ended, &found);
}
