//! Sixty blocks of a chain to which everything happens that a node lets happen.

use crate::bot::Bot;
use crate::lab::Lab;
use crate::said;
use crate::settled::{self, Settling};
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
        Self::on(Lab::start(seed), more)
    }

    fn on(lab: Lab, more: &[&str]) -> Self {
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

    /// Waits until the bot is done with the chain's head.
    fn published(&mut self) -> Value {
        let head = self.lab.history.head().head;
        self.bot.is_done_with(head)
    }

    pub(crate) fn blocks(&mut self, count: usize) {
        for _ in 0..count {
            self.lab.step();
            self.published();
        }
    }

    pub(crate) fn reorg(&mut self, depth: u64) {
        // It sees the new blocks when all are made: before, this node answers for one from the state of another.
        self.bot.signal("-STOP");
        self.lab.reorg(depth);
        self.bot.signal("-CONT");
        self.published();
    }
}

/// The whole promise of a run on a node: what is published is what the chain has, once, and what the chain takes back
/// is taken back; nothing is owed when it ends.
#[test]
fn sixty_blocks_with_two_reorganisations_a_restart_and_a_new_pool() {
    let mut lab = Lab::start(SEED);
    let settling = Settling::deploy(&mut lab);
    let more = settling.arguments();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let mut scenario = Scenario::on(lab, &more);
    scenario.blocks(10);
    scenario.reorg(1);
    scenario.blocks(10);
    scenario.reorg(3);
    scenario.blocks(5);
    let created = scenario.lab.create();
    scenario.published();
    // It may take effect before the block that made the pool runs.
    let is_registration = |record: &Value| record["type"] == "registered";
    let registered = scenario.bot.has_said("registration", is_registration);
    assert_eq!(
        (&registered["pools"], &registered["skipped"]),
        (&1.into(), &0.into())
    );
    assert!(registered["cycles"].as_u64().unwrap() > 0, "{registered}");
    scenario.blocks(7);
    let emptied = scenario.lab.empty();
    let emptying = scenario.published();
    scenario.blocks(6);
    scenario.lab.node.restart().unwrap();
    // The first of these may be made before the bot is back.
    scenario.blocks(20);
    scenario.lab.verify();

    let Scenario { mut lab, bot } = scenario;
    let ended = bot.terminate();
    let records = ended.records();
    assert!(settled::check(&records, &mut lab) > 0, "{}", ended.log);
    let found = said::check(&records, &lab.history);
    said::ended_well(&ended, &found);
    assert!(2 * found.with_trade > found.blocks, "{found:?}");
    assert!(found.orphaned_trades > 0, "{found:?}");
    // It is a fifth off, so there is a trade through it; through an empty one there is none.
    assert!(found.traded.contains(&created.address), "{found:?}");
    let since = records.iter().skip_while(|record| **record != emptying);
    for record in since {
        assert!(!said::pools(record).contains(&emptied), "{record}");
    }
}
