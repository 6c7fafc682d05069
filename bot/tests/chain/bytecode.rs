//! A run whose candidates also run as bytecode.

use crate::said;
use crate::whole::Scenario;

/// The exact integers and the pools' own bytecode agree on every candidate of a run, through a reorganisation, and what is
/// published is as without the bytecode.
#[test]
fn integers_and_bytecode_agree_on_every_candidate_of_a_run() {
    let mut scenario = Scenario::start(31, &["--sim", "evm"]);
    scenario.blocks(8);
    scenario.reorg(1);
    scenario.blocks(8);
    let Scenario { lab, bot } = scenario;
    let ended = bot.terminate();
    let records = ended.records();
    let found = said::check(&records, &lab.history);
    said::ended_well(&ended, &found);
    let blocks = records.iter().filter(|record| record["type"] == "block");
    let sum = |key: &str| -> u64 {
        let counts = blocks.clone().map(|block| block["evm"][key].as_u64());
        counts.map(Option::unwrap).sum()
    };
    assert!(sum("agreed") > 16, "{} agreed", sum("agreed"));
    assert_eq!((sum("disagreed"), sum("unavailable")), (0, 0));
}
