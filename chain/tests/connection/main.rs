//! The connection to a node, on real sockets against a scripted one.
#![cfg(test)]

mod calls;
mod connects;
mod endpoints;
mod ends;
mod framing;
mod news;

use std::time::Duration;

use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc::{self, Client, Limits, Notifications, Session};
use regatta_chain::transport::Closed;
use regatta_fake_node::{FakeNode, Script};

/// Runs a test, which must not hang.
fn run<T>(test: impl Future<Output = T>) -> T {
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

/// Limits with calls that wait for as long as a test may take.
fn patient() -> Limits {
    Limits {
        call: Duration::from_mins(1),
        ..Limits::default()
    }
}

async fn connect(node: &FakeNode, limits: &Limits) -> (Client, Notifications, Session) {
    let endpoint: Endpoint = node.endpoint().parse().unwrap();
    rpc::connect(&endpoint, limits).await.unwrap()
}

/// Connects to `node`, and runs the session beside the test.
async fn join(
    node: &FakeNode,
    limits: &Limits,
) -> (Client, Notifications, tokio::task::JoinHandle<Closed>) {
    let (client, notifications, session) = connect(node, limits).await;
    (client, notifications, tokio::spawn(session))
}

/// The two kinds of socket.
fn sockets() -> [fn() -> Script; 2] {
    [Script::new, || Script::new().ipc()]
}
