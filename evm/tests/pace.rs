//! How long a simulation takes, and that the artifact of the tests' contracts is that of their source.
#![cfg(test)]

mod support;

use std::time::Instant;

use alloy_primitives::hex;
use regatta_evm::{Outcome, Scratch, simulate};
use sha2::{Digest, Sha256};
use support::{CHAIN, World, amount, block, cycle, profitable};

#[test]
fn the_tests_contracts_are_those_of_their_source() {
    let source = include_bytes!("data/Tokens.sol");
    let artifact: serde_json::Value =
        serde_json::from_str(include_str!("data/Tokens.json")).unwrap();
    assert_eq!(
        artifact["source_sha256"],
        hex::encode(Sha256::digest(source))
    );
}

const RUNS: u32 = 2000;

#[test]
#[ignore = "it measures, and asserts nothing of time"]
#[expect(clippy::print_stderr, reason = "its result is for reading")]
fn pace() {
    let call = cycle(&profitable(), amount());
    let state = World::ring(&profitable()).full(block(100, 0));
    let mut scratch = Scratch::new(CHAIN);
    for round in 0..5 {
        let start = Instant::now();
        for _ in 0..RUNS {
            assert!(matches!(
                simulate(&state, &call, &mut scratch),
                Outcome::Done(_)
            ));
        }
        eprintln!(
            "round {round}: {:?} a cycle of three hops",
            start.elapsed() / RUNS
        );
    }
    let start = Instant::now();
    for _ in 0..RUNS {
        let _ = Scratch::new(CHAIN);
    }
    eprintln!("a new scratch: {:?}", start.elapsed() / RUNS);
}
