//! Nodes that cannot be followed: a typed end each, with the exit code of nodes, and a stop that is not held up.

use crate::made_up::{FACTORY, node, pool, script, token};
use crate::run::binary;
use regatta_fake_node::{Door, FakeNode, Reply};

/// The exit code of a node that is not as it must be.
const NODE: i32 = 7;

fn refused(node: &FakeNode, more: &[&str], says: &str) {
    let ended = binary(node, more).ended();
    assert_eq!(ended.code, NODE, "{says}: {}", ended.err);
    assert!(ended.err.contains(says), "{says}: {}", ended.err);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

#[test]
fn a_node_that_cannot_be_followed_is_a_typed_end() {
    let shut = FakeNode::start(script().door(Door::Shut)).unwrap();
    refused(&shut, &[], "refused");
    let garbage = FakeNode::start(script().door(Door::Garbage)).unwrap();
    refused(&garbage, &[], "--rpc");
    refused(&node(), &["--chain-id", "56"], "chain 1, and 56");
    let syncing = node();
    syncing.faults(|faults| faults.syncing = true);
    refused(&syncing, &[], "syncing");
    let silent = node();
    silent.on("eth_chainId", |_| Reply::Close(1013, "later".to_owned()));
    refused(&silent, &[], "later");
    refused(&node(), &["--most-pools", "2"], "has 3 pools");
    let nobody = node();
    nobody.contracts(|contracts| contracts.remove(FACTORY));
    refused(&nobody, &[], "there is no code at");
}

/// A signal while the pools are read, or while nobody answers, ends the run at once and in order.
#[test]
fn a_signal_during_the_survey_ends_it() {
    for silent in ["eth_call", "eth_chainId"] {
        let node = node();
        node.on(silent, |_| Reply::Silence);
        let process = binary(&node, &[]);
        node.block_until("the question", |seen| seen.calls(silent) > 0)
            .unwrap();
        process.signal("-TERM");
        let ended = process.ended();
        assert_eq!(ended.code, 0, "{silent}: {}", ended.err);
        assert_eq!(ended.out, "");
    }
}

/// Rows of a file that are not so on the chain are counted and named; the others are traded (row N15).
#[test]
fn a_mislabelled_row_is_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pools.csv");
    // The fourth has its tokens swapped, the fifth is no contract.
    let rows = [(0, 0, 1), (1, 1, 2), (2, 0, 2), (8, 3, 0), (9, 0, 1)]
        .map(|(number, a, b)| format!("{},{},18,5,{},18,5,A,B", pool(number), token(a), token(b)));
    let head = "pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1";
    std::fs::write(&file, format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    let node = node();
    node.contracts(|contracts| {
        contracts.token(token(3), 18, "T3");
        contracts.pool(FACTORY, pool(8), [token(0), token(3)], [5, 5]);
    });
    let pools = file.to_str().unwrap();
    let mut process = binary(&node, &["--pools", pools, "--log", "info"]);
    process.says("2 pools are refused");
    let line = process.line("2 pools are refused");
    let (swapped, nobody) = (pool(8).to_string(), pool(9).to_string());
    assert!(line.contains(&swapped) && line.contains(&nobody), "{line}");
    process.says("3 pools at block 0, 2 refused, 0 without reserves");
    process.signal("-TERM");
    assert_eq!(process.ended().code, 0);
}
