//! What the node keeps over a stop, a kill and a pause.
#![cfg(test)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{kit, lab, rows};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::error::LabError;
use regatta_chain_lab::market::{Market, reserves};
use regatta_chain_lab::mover::{Mover, Step};
use regatta_chain_lab::moves::Style;
use serde_json::json;

/// A node with `history` or without, and four blocks on it.
fn moved(history: bool) -> (Anvil, Mover, Vec<Step>) {
    let options = Options {
        history,
        ..Options::default()
    };
    let mut node = Anvil::start(&kit(), options).unwrap();
    let market = Market::lay_out(&mut node, &rows(20)).unwrap();
    let mut mover = Mover::new(&mut node, market, 1, Style::default()).unwrap();
    let steps = (0..4).map(|_| mover.step(&mut node).unwrap()).collect();
    (node, mover, steps)
}

#[test]
fn a_restart_keeps_the_port_every_hash_every_log_and_old_states() {
    let (mut node, mut mover, steps) = moved(true);
    let (ws, ipc, pid) = (node.ws(), node.ipc(), node.pid());
    let accounts = node.accounts().to_vec();
    let logs = |node: &mut Anvil| -> Vec<_> {
        let all = steps.iter().map(|step| {
            let filter = json!([{"blockHash": step.head.hash}]);
            node.rpc().call("eth_getLogs", filter).unwrap()
        });
        all.collect()
    };
    let blocks =
        |node: &mut Anvil| -> Vec<_> { (0..=5).map(|n| node.rpc().block_at(n).unwrap()).collect() };
    let old = json!(format!("{:#x}", steps[0].head.number));
    let pools = mover.market().pools.clone();
    let before = (
        logs(&mut node),
        blocks(&mut node),
        reserves(node.rpc(), &pools, &old).unwrap(),
    );
    node.restart().unwrap();
    assert_eq!((node.ws(), node.ipc()), (ws, ipc));
    assert_eq!(node.accounts(), accounts);
    assert_ne!(node.pid(), pid);
    let after = (
        logs(&mut node),
        blocks(&mut node),
        reserves(node.rpc(), &pools, &old).unwrap(),
    );
    assert_eq!(before, after);
    mover.market().verify(node.rpc()).unwrap();
    // It goes on; a reorganisation can reach down to the restart.
    mover.step(&mut node).unwrap();
    mover.step(&mut node).unwrap();
    let error = mover.reorg(&mut node, 3).unwrap_err();
    assert!(matches!(error, LabError::Depth { known: 2, .. }), "{error}");
    mover.reorg(&mut node, 2).unwrap();
    assert_eq!(mover.market().pools.len(), pools.len());
    mover.market().verify(node.rpc()).unwrap();
}

#[test]
fn without_history_a_restart_keeps_the_blocks_but_not_their_states() {
    let (mut node, mut mover, steps) = moved(false);
    node.restart().unwrap();
    for step in &steps {
        let found = node.rpc().block_at(step.head.number).unwrap();
        assert_eq!(found, step.head);
    }
    mover.market().verify(node.rpc()).unwrap();
    let old = json!(format!("{:#x}", steps[0].head.number));
    let pools = mover.market().pools.clone();
    let error = reserves(node.rpc(), &pools, &old).unwrap_err();
    assert!(matches!(error, LabError::Refused { .. }), "{error}");
    mover.step(&mut node).unwrap();
    mover.reorg(&mut node, 1).unwrap();
    assert_eq!(mover.market().pools.len(), pools.len());
    mover.market().verify(node.rpc()).unwrap();
}

#[test]
fn a_killed_node_is_gone_and_comes_back_with_what_it_had_at_its_last_stop() {
    let (mut node, mut mover, steps) = moved(true);
    node.restart().unwrap();
    mover.step(&mut node).unwrap();
    node.kill().unwrap();
    assert!(matches!(node.kill(), Err(LabError::NotRunning)));
    assert!(matches!(node.pause(), Err(LabError::NotRunning)));
    let error = node.rpc().head().unwrap_err();
    assert!(matches!(error, LabError::Connection { .. }), "{error}");
    node.resurrect().unwrap();
    assert_eq!(node.rpc().head().unwrap(), steps.last().unwrap().head);
}

#[test]
fn a_paused_node_does_not_answer_and_a_resumed_one_does() {
    let (mut node, market) = lab(20);
    let before = node.rpc().head().unwrap();
    node.pause().unwrap();
    node.rpc().set_deadline(Duration::from_millis(200));
    let error = node.rpc().head().unwrap_err();
    assert!(matches!(error, LabError::Connection { .. }), "{error}");
    node.resume().unwrap();
    node.rpc().set_deadline(Duration::from_mins(1));
    assert_eq!(node.rpc().head().unwrap(), before);
    market.verify(node.rpc()).unwrap();
}

#[test]
fn a_paused_node_can_be_restarted() {
    let (mut node, market) = lab(20);
    node.pause().unwrap();
    node.restart().unwrap();
    market.verify(node.rpc()).unwrap();
}

#[test]
fn a_dropped_node_has_no_process_even_if_it_was_paused() {
    let node = Anvil::start(&kit(), Options::default()).unwrap();
    let process = format!("/proc/{}", node.pid().unwrap());
    node.pause().unwrap();
    assert!(Path::new(&process).exists());
    drop(node);
    assert!(!Path::new(&process).exists());
}

#[test]
fn a_port_that_is_taken_is_an_error_with_what_the_node_said() {
    let first = Anvil::start(&kit(), Options::default()).unwrap();
    let options = Options {
        port: first.port(),
        ..Options::default()
    };
    let error = Anvil::start(&kit(), options).unwrap_err();
    assert!(matches!(&error, LabError::NotReady { .. }), "{error}");
    assert!(error.to_string().contains("in use"), "{error}");
}
