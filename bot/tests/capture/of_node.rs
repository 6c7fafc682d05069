//! Captures from a node: what it says is in the file, in its order, however the capture ends.

#![cfg(unix)]

mod ends;
mod rig;

use crate::exits;
use regatta_bot::capture::Tail;
use regatta_bot::source::Event;
use regatta_fake_node::Door;
use regatta_fake_node::contracts::{pair_created, sync};
use rig::{Rig, pool, step, token, units};
use serde_json::Value;

#[test]
fn what_a_node_does_is_in_the_file_in_its_order() {
    let rig = Rig::new();
    let mut capture = rig.start(&[]);
    rig.follow(&mut capture, 1..4);
    // Two blocks are replaced by three.
    rig.node.reorg(2, (10..13).map(step).collect());
    rig.until_caught_up(&mut capture);
    // A new pool.
    let fresh = [token(0), token(3)];
    rig.node.contracts(|contracts| {
        contracts.token(token(3), 6, "T3");
        contracts.pool(rig::FACTORY, pool(3), fresh, [units(5), units(7)]);
    });
    let made = pair_created(rig::FACTORY, pool(3), fresh);
    rig.node
        .extend(vec![made, sync(pool(3), units(6), units(8))]);
    rig.follow(&mut capture, 20..22);
    // The connection is lost for two blocks, and for more than are fetched one by one.
    for missed in [2, 200] {
        rig.node.door(Door::Shut);
        rig.node.drop_connections();
        rig.burst(0..missed);
        rig.node.door(Door::Open);
        rig.until_caught_up(&mut capture);
    }
    rig.follow(&mut capture, 30..32);
    let said = capture.stop("-TERM");

    let read = rig.read();
    assert_eq!(read.ended, Ok(Tail::Ended));
    rig.folds_to_the_chain(&read.events);
    let count = |is: fn(&Event) -> bool| read.events.iter().filter(|r| is(&r.event)).count();
    assert_eq!(count(|e| matches!(e, Event::Reverted { .. })), 2);
    assert_eq!(count(|e| matches!(e, Event::Pools(_))), 1);
    // At the start, and after the long gap.
    assert_eq!(count(|e| matches!(e, Event::Reread { .. })), 2);
    let blocks = count(|e| matches!(e, Event::Block(_)));
    assert!(blocks >= 3 + 3 + 1 + 2 + 2 + 2, "{blocks}");
    let expected = format!("captured {blocks} blocks in {} events", read.events.len());
    assert!(said.starts_with(&expected), "{said}");
    replays(&rig, &read.events);
}

/// A run of the capture says each block once, in the order of the events, and takes back exactly what it said of those
/// that were reverted.
fn replays(rig: &Rig, events: &[regatta_bot::capture::Recorded]) {
    let file = rig.file();
    let args = [
        "run",
        "--json",
        "--quota",
        "2000",
        "--top",
        "2",
        "--log",
        "off",
        "--capture",
        &file,
    ];
    let (out, _) = exits(&args, 0);
    let records: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str, field: &str| -> Vec<Value> {
        let found = records.iter().filter(|r| r["type"] == kind);
        found.map(|r| r[field].clone()).collect()
    };
    let ran: Vec<Value> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::Block(block) => Some(block.hash),
            Event::Reread { head, .. } => Some(head.hash),
            _ => None,
        })
        .map(|hash| Value::from(hash.to_string()))
        .collect();
    assert_eq!(of("block", "hash"), ran);
    assert_eq!(of("missed", "hash"), Vec::<Value>::new());
    // Newest block first, and within a block in the order of publication.
    let mut taken_back = Vec::new();
    for recorded in events {
        if let Event::Reverted { hash, .. } = &recorded.event {
            let hash = Value::from(hash.to_string());
            let block = records
                .iter()
                .find(|r| r["type"] == "block" && r["hash"] == hash)
                .unwrap();
            let winners = block["winners"].as_array().unwrap();
            taken_back.extend(winners.iter().map(|w| (hash.clone(), w["path"].clone())));
        }
    }
    assert!(!taken_back.is_empty());
    let retracted: Vec<_> = of("retract", "hash")
        .into_iter()
        .zip(of("retract", "path"))
        .collect();
    assert_eq!(retracted, taken_back);
    assert_eq!(of("registered", "pools").len(), 1);

    // And it says the same on every binding.
    let corpus = format!("{file}.corpus");
    let serial = ["--quota", "2000", "--profile", "serial"];
    exits(
        &[&["replay", &file, "--write", &corpus][..], &serial].concat(),
        0,
    );
    let other: &[&str] = if cfg!(all(feature = "linux", target_os = "linux")) {
        &["--quota", "8000", "--profile", "pinned"]
    } else {
        &serial
    };
    exits(
        &[&["replay", &file, "--expect", &corpus], other].concat(),
        0,
    );
}
