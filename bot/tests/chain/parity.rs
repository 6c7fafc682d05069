//! The same chain on both tiers.

use crate::bot::{Bot, Ended};
use crate::lab::Lab;
use crate::said;
use regatta_bot::report::canonical;

/// What the chain makes the bot say, without what depends on timing.
fn of_the_chain(ended: &Ended) -> Vec<String> {
    let kinds = ["block", "missed", "retract"].map(|kind| format!(r#""type":"{kind}""#));
    let lines = ended.lines.iter();
    let lines = lines.filter(|line| kinds.iter().any(|kind| line.contains(kind)));
    lines.filter_map(|line| canonical(line)).collect()
}

/// What is published follows from the chain, not from the tier: two bots that follow one node, one with a single thread
/// and one with a seat for each of its bins, say the same.
#[test]
fn both_tiers_publish_the_same_of_one_chain() {
    let mut lab = Lab::start(23);
    let arguments = lab.arguments();
    let mut bots = [
        &["--profile", "serial"][..],
        &["--profile", "pinned", "--quota", "8000"],
    ]
    .map(|tier| {
        let arguments = arguments
            .iter()
            .map(String::as_str)
            .chain(tier.iter().copied());
        Bot::start(&arguments.collect::<Vec<_>>())
    });
    for block in 0..=20 {
        let head = lab.history.head().head;
        for bot in &mut bots {
            bot.is_done_with(head);
        }
        match block {
            20 => {}
            // One block takes the place of one: none waits for another, so none is missed.
            10 => lab.reorg(1),
            _ => lab.step(),
        }
    }
    let ended = bots.map(Bot::terminate);
    for ended in &ended {
        let found = said::check(&ended.records(), &lab.history);
        said::ended_well(ended, &found);
        assert_eq!((found.blocks, found.missed), (21, 0), "{found:?}");
    }
    let [serial, pinned] = ended.map(|ended| of_the_chain(&ended));
    assert_eq!(serial, pinned);
}
