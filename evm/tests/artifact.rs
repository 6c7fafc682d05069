//! The artifact of the tests' contracts is that of their source.
#![cfg(test)]

use alloy_primitives::hex;
use sha2::{Digest, Sha256};

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
