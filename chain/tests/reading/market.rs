//! A made-up market, and a connection to the node that has it.

use std::time::Duration;

use alloy_primitives::{Address, B256};
use regatta_chain::read::{Limits, Reader};
use regatta_chain::rpc::{self, Client};
use regatta_fake_node::contracts::Contracts;
use regatta_fake_node::{FakeNode, Script};

pub(crate) const FACTORY: Address = Address::repeat_byte(0xfa);

/// The token of this number.
pub(crate) fn token(number: u8) -> Address {
    Address::with_last_byte(number)
}

/// The pool of the tokens of this number and the next.
pub(crate) fn pool(number: u8) -> Address {
    Address::left_padding_from(&[0xbb, number])
}

/// A factory, `pools` pools in a chain, their tokens. Pool `n` has `1000 + n` and `2000 + n`.
pub(crate) fn market(pools: u8) -> Contracts {
    let mut contracts = Contracts::default();
    contracts.factory(FACTORY);
    for number in 0..=pools {
        contracts.token(token(number), 18, &format!("T{number}"));
    }
    for number in 0..pools {
        let tokens = [token(number), token(number + 1)];
        let more = u128::from(number);
        contracts.pool(FACTORY, pool(number), tokens, [1000 + more, 2000 + more]);
    }
    contracts
}

/// No pause worth the name between the tries.
pub(crate) fn quick() -> Limits {
    Limits {
        backoff: Duration::from_millis(1),
        ..Limits::default()
    }
}

/// A connection to a node.
pub(crate) struct Line {
    pub(crate) node: FakeNode,
    pub(crate) client: Client,
}

impl Line {
    pub(crate) async fn to(script: Script) -> Self {
        Self::within(script, &rpc::Limits::default()).await
    }

    pub(crate) async fn within(script: Script, limits: &rpc::Limits) -> Self {
        let node = FakeNode::start(script).unwrap();
        let endpoint = node.endpoint().parse().unwrap();
        let (client, _, session) = rpc::connect(&endpoint, limits).await.unwrap();
        drop(tokio::spawn(session));
        Self { node, client }
    }

    pub(crate) fn head(&self) -> B256 {
        self.node.chain(|chain| chain.head_hash())
    }

    /// Reads at the head.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.client, self.head(), quick())
    }

    /// How many calls of `method` came.
    pub(crate) fn calls(&self, method: &str) -> usize {
        self.node.seen().calls(method)
    }
}

/// Runs a test, which must not hang.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_mins(2), test)
            .await
            .unwrap()
    })
}
