//! How a capture from a node ends.

use super::rig::{Capture, Rig};
use crate::{exits, read};
use regatta_bot::capture::Tail;
use regatta_fake_node::Door;
use std::process::Command;

#[test]
fn killed_it_leaves_the_beginning_of_what_was_said() {
    let rig = Rig::new();
    let mut capture = rig.start(&[]);
    rig.follow(&mut capture, 0..20);
    // While more comes.
    rig.burst(20..120);
    capture.0.kill().unwrap();
    capture.0.wait().unwrap();
    let read = rig.read();
    assert_ne!(read.ended, Ok(Tail::Ended));
    assert!(read.ended.is_ok());
    assert!(read.events.len() > 20, "{}", read.events.len());
    let canonical = rig.node.chain(|chain| chain.canonical().to_vec());
    let said: Vec<[u8; 32]> = read
        .events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            regatta_bot::source::Event::Block(block) => Some(*block.hash.as_bytes()),
            _ => None,
        })
        .collect();
    // One block after the other, without a gap.
    let canonical: Vec<[u8; 32]> = canonical.iter().map(|hash| hash.0).collect();
    assert!(canonical.windows(said.len()).any(|part| part == said));
}

#[test]
fn a_signal_ends_it_whole_while_the_node_is_away() {
    let rig = Rig::new();
    let mut capture = rig.start(&[]);
    rig.follow(&mut capture, 0..3);
    rig.node.door(Door::Shut);
    rig.node.drop_connections();
    let said = capture.stop("-INT");
    assert!(said.starts_with("captured 3 blocks in 4 events"), "{said}");
    let read = rig.read();
    assert_eq!(read.ended, Ok(Tail::Ended));
    rig.folds_to_the_chain(&read.events);
}

#[test]
fn it_ends_after_as_many_blocks_as_were_wanted() {
    let rig = Rig::new();
    let mut capture = rig.start(&["--blocks", "5"]);
    rig.until_caught_up(&mut capture);
    rig.burst(0..9);
    let code = capture.ended();
    assert_eq!(code, Some(0), "{}", capture.stderr());
    let read = rig.read();
    assert_eq!(read.ended, Ok(Tail::Ended));
    let blocks = read
        .events
        .iter()
        .filter(|recorded| matches!(recorded.event, regatta_bot::source::Event::Block(_)));
    assert_eq!(blocks.count(), 5);
}

#[test]
fn a_file_that_takes_no_more_ends_it_with_the_error() {
    let rig = Rig::new();
    // The limit is the process's, and reaching it is an error of the write, as a full disk is.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} \"$@\"",
        env!("CARGO_BIN_EXE_regatta")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh"]).args(rig.args(&[]));
    let mut capture = Capture::start(command);
    rig.until_caught_up(&mut capture);
    // The record of a block is longer than a twentieth of the limit.
    rig.burst(0..100);
    let code = capture.ended();
    let said = capture.stderr();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("node.capture: "), "{said}");
    let read = rig.read();
    assert!(matches!(
        read.ended,
        Ok(Tail::Torn { .. } | Tail::Open { .. })
    ));
    assert!(read.events.len() > 5, "{}", read.events.len());
}

#[test]
fn what_cannot_be_captured_leaves_no_file() {
    let rig = Rig::new();
    let args = |more: &[&str]| rig.args(more);
    let fails = |args: &[String], code: i32| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (out, err) = exits(&args, code);
        assert_eq!(out, "");
        err
    };
    // A base token that no pool has.
    let mut other = args(&[]);
    let base = other.iter().position(|arg| arg == "--base").unwrap() + 1;
    other[base] = "0x0000000000000000000000000000000000000001".to_owned();
    let err = fails(&other, 3);
    assert!(err.contains(&other[base]), "{err}");
    assert!(!std::path::Path::new(&rig.file()).exists());
    let err = fails(&args(&["--chain-id", "5"]), 7);
    assert!(err.contains('5'), "{err}");
    assert!(!std::path::Path::new(&rig.file()).exists());
    // Nobody asks a node for the beginning of a file that is not to be written.
    std::fs::write(rig.file(), "kept").unwrap();
    let calls = rig.node.seen().calls;
    let err = fails(&args(&[]), 2);
    assert!(err.contains("is there already"), "{err}");
    assert_eq!(rig.node.seen().calls, calls);
    assert_eq!(std::fs::read(rig.file()).unwrap(), b"kept");
    let mut capture = rig.start(&["--force"]);
    rig.follow(&mut capture, 0..1);
    capture.stop("-TERM");
    assert_eq!(
        read(&std::fs::read(rig.file()).unwrap()).unwrap().ended,
        Ok(Tail::Ended)
    );
}
