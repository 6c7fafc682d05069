//! Shadow mode.

use crate::lab::{Lab, until};

#[test]
fn shadow_mode_scores_what_it_would_send_and_sends_nothing() {
    let mut lab = Lab::new(14);
    let before = lab.nonce();
    let (ledger, executor) = (lab.text("ledger"), lab.executor.clone());
    let args = [
        "--settle",
        "shadow",
        "--executor",
        &executor,
        "--ledger",
        &ledger,
    ];
    let mut bot = lab.run(&args);
    for _ in 0..40 {
        lab.step(&bot);
        if !bot.ended("shadow_hit").is_empty() {
            break;
        }
        assert_eq!(lab.pending(), 0);
    }
    // The last block scores what was armed in the one before.
    until("a score", || {
        !bot.ended("shadow_hit").is_empty() || !bot.ended("shadow_miss").is_empty()
    });
    for hit in bot.ended("shadow_hit") {
        assert_eq!(
            (&hit["mode"], &hit["predicted"]),
            (&"shadow".into(), &hit["realised"])
        );
        assert!(
            hit["transaction"].is_null() && hit["gas_cost"].is_null(),
            "{hit}"
        );
        assert!(hit["block"].as_u64() > hit["found"].as_u64(), "{hit}");
    }
    assert!(bot.stop().success(), "{}", bot.errors());
    assert_eq!((lab.pending(), lab.nonce()), (0, before));
    let totals = *lab.ledger().state.totals();
    assert_eq!(totals.sent, 0);
    assert!(totals.shadow_hits + totals.shadow_misses > 0, "{totals:?}");
}
