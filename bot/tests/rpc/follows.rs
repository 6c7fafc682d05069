//! Runs that follow a scripted node.

use crate::made_up::{FACTORY, ONE, pool, script, step, token, triangle};
use crate::run::{Run, ask, exactly_once};
use alloy_primitives::Address;
use regatta_fake_node::contracts::{pair_created, sync};
use regatta_fake_node::{Door, Removed};

/// As many blocks as were wanted, with trades found, and a clean end by itself.
#[test]
fn a_run_ends_after_its_blocks() {
    let run = Run::start(&["--blocks", "6"]);
    // The pools drift apart by more than their fees.
    for number in 60..66 {
        run.node.extend(step(number));
    }
    let Run { process, node } = run;
    let ended = process.ended();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.is_balanced());
    assert!(ended.out.contains(r#""path":"#), "no trade was found");
    exactly_once(&ended, &node);
}

/// Row N4 and the whole of a run: connections dropped again and again, blocks and short branches meanwhile. What stands at
/// the end is the chain, each block once.
#[test]
fn connections_that_drop_lose_and_repeat_nothing() {
    let run = Run::start(&[]);
    for number in 0..5 {
        run.block(step(number));
    }
    // The pools drift apart by more than their fees, so that most blocks have trades.
    let mut number = 150;
    let mut next = || {
        number += 1;
        step(number)
    };
    // Each drop makes the next wait twice as long.
    for round in 0..3 {
        run.node.faults(|faults| {
            faults.removed = [Removed::Never, Removed::LastFirst][round % 2];
        });
        run.node.extend(next());
        run.drop_connections();
        run.block(next());
        run.node.reorg(2, vec![next(), next(), next()]);
        run.block(next());
        if round % 3 == 0 {
            // What comes while it is away.
            run.node.drop_connections();
            run.node.extend(next());
            run.node.reorg(1, vec![next(), next()]);
            run.subscribed();
        }
    }
    // The subscriptions may be those of a connection that is just being dropped: the last block comes whichever it is.
    let settled = |seen: &regatta_fake_node::Seen| seen.open == 2 && seen.subscriptions == 2;
    run.node.block_until("it to settle", settled).unwrap();
    run.block(next());
    let (ended, node) = run.stop();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.is_balanced());
    assert!(ended.out.contains(r#""type":"retract""#));
    exactly_once(&ended, &node);
}

/// The node goes and does not come back: alive, not ready and it says why, and a stop is a clean end.
#[test]
fn a_node_that_is_gone_leaves_a_run_that_stops() {
    let mut run = Run::start(&["--health", "127.0.0.1:0"]);
    let addr = run.probes();
    run.block(step(0));
    let (status, ready) = ask(addr, "/readyz");
    assert_eq!(status, 200, "{ready}");
    assert_eq!(ready["head"]["number"], 2);
    run.node.door(Door::Shut);
    let shut = |seen: &regatta_fake_node::Seen| !seen.listening;
    run.node.block_until("it to shut", shut).unwrap();
    run.node.drop_connections();
    run.process.says("the node was lost");
    run.process.says("to reach the node failed");
    let (status, ready) = ask(addr, "/readyz");
    assert_eq!(status, 503, "{ready}");
    let reasons = ready["reasons"].to_string();
    assert!(reasons.contains("source"), "{reasons}");
    assert!(reasons.contains("not connected"), "{reasons}");
    assert_eq!(ask(addr, "/livez").0, 200);
    let (ended, node) = run.stop();
    assert_eq!(ended.code, 0, "{}", ended.err);
    exactly_once(&ended, &node);
}

/// Row N1: heads stop on a connection that answers. By the chain's own pace it is not ready, and connects again.
#[test]
fn heads_that_stop_are_noticed() {
    let run = Run::start(&[]);
    for number in 0..8 {
        run.block(step(number));
    }
    let mut run = run;
    run.node.faults(|faults| faults.heads_stopped = true);
    run.node.extend(step(9));
    run.process.says("the node was lost");
    run.node.faults(|faults| faults.heads_stopped = false);
    run.subscribed();
    let seen = run.node.seen().accepted;
    assert!(seen >= 3, "{seen}");
    run.block(step(10));
    let (ended, node) = run.stop();
    assert_eq!(ended.code, 0, "{}", ended.err);
    exactly_once(&ended, &node);
}

/// A pool that a known factory makes is registered and traded while the run goes on; one of a stranger is nothing.
#[test]
fn a_pool_that_is_made_meanwhile_is_traded() {
    let run = Run::start(&[]);
    run.block(step(0));
    let tokens = [token(0), token(1)];
    run.node
        .contracts(|contracts| contracts.pool(FACTORY, pool(9), tokens, [0, 0]));
    let stranger = Address::repeat_byte(0x33);
    run.block(vec![
        pair_created(stranger, pool(10), tokens),
        pair_created(FACTORY, pool(9), tokens),
    ]);
    run.says(r#""type":"registered""#);
    run.block(vec![sync(pool(9), 3000 * ONE, 1000 * ONE)]);
    run.block(vec![sync(pool(9), 3001 * ONE, 1000 * ONE)]);
    let (ended, node) = run.stop();
    assert_eq!(ended.code, 0, "{}", ended.err);
    let path = format!("{:?}", pool(9));
    assert!(ended.out.contains(&path), "the new pool is not traded");
    assert!(!ended.out.contains(&format!("{:?}", pool(10))));
    exactly_once(&ended, &node);
}

/// Row N13: a pool without a reserve is followed and not traded; once it has reserves it is.
#[test]
fn a_pool_without_reserves_is_traded_once_it_has_some() {
    let mut contracts = triangle();
    let tokens = [token(0), token(1)];
    contracts.pool(FACTORY, pool(9), tokens, [0, 5]);
    let run = Run::on(script().contracts(contracts), &[]);
    let path = format!("{:?}", pool(9));
    run.block(step(0));
    run.block(step(1));
    let trades = |text: &str| text.contains(&format!(r#""pool":"{path}""#));
    run.block(vec![sync(pool(9), 3000 * ONE, 1000 * ONE)]);
    run.block(step(2));
    let (ended, node) = run.stop();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(trades(&ended.out), "{}", ended.out);
    let winners = |record: &serde_json::Value| {
        let winners = record["winners"].as_array();
        winners.is_some_and(|all| {
            all.iter()
                .any(|winner| winner["path"].as_str().unwrap().contains(&path))
        })
    };
    let with_it: Vec<_> = ended
        .records()
        .into_iter()
        .filter(|record| record["type"] == "block" && winners(record))
        .map(|record| record["number"].as_u64().unwrap())
        .collect();
    assert!(!with_it.is_empty());
    assert!(with_it.iter().all(|number| *number >= 4), "{with_it:?}");
    exactly_once(&ended, &node);
}
