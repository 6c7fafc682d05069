//! A made-up chain for the tests that follow a node: a factory, a triangle of pools, and what moves them.

use alloy_primitives::Address;
use regatta_fake_node::contracts::{Contracts, sync};
use regatta_fake_node::{FakeLog, FakeNode, Script};

pub(crate) const FACTORY: Address = Address::repeat_byte(0xfa);

/// The tokens are numbered from 0; the first one is the base.
pub(crate) fn token(number: u8) -> Address {
    Address::left_padding_from(&[0x70, number])
}

/// The pools are numbered from 0.
pub(crate) fn pool(number: u8) -> Address {
    Address::left_padding_from(&[0xbb, number])
}

/// A whole token.
pub(crate) const ONE: u128 = 1_000_000_000_000_000_000;

/// Three tokens, each traded for each other in one pool, of which one is better than the two others.
pub(crate) fn triangle() -> Contracts {
    let mut contracts = Contracts::default();
    contracts.factory(FACTORY);
    for number in 0..3 {
        contracts.token(token(number), 18, &format!("T{number}"));
    }
    for (number, [a, b]) in [[0, 1], [1, 2], [0, 2]].into_iter().enumerate() {
        let at = pool(u8::try_from(number).unwrap());
        let reserves = [1000 * ONE, 1000 * ONE];
        contracts.pool(FACTORY, at, [token(a), token(b)], reserves);
    }
    contracts
}

/// A node with them.
pub(crate) fn node() -> FakeNode {
    FakeNode::start(script()).unwrap()
}

pub(crate) fn script() -> Script {
    Script::new().contracts(triangle())
}

/// A move of one of the three pools, a different one for each number.
pub(crate) fn step(number: u64) -> Vec<FakeLog> {
    let which = u8::try_from(number % 3).unwrap();
    let more = u128::from(number % 97 + 1) * ONE;
    vec![sync(pool(which), 1000 * ONE + more, 1000 * ONE)]
}
