//! A scripted Ethereum node: a WebSocket (or IPC) server on a thread of its own, which serves a small simulated chain and
//! does what a healthy node never does.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use regatta_fake_node::{FakeNode, Reply, Script};
//!
//! let node = FakeNode::start(Script::new().on("eth_gasPrice", |_| Reply::error(-32000, "not today")))?;
//! println!("connect to {}", node.endpoint());
//! let head = node.extend(vec![]); // a block; its header goes to those who subscribed
//! node.faults(|faults| faults.heads_stopped = true); // from here on no headers, though calls are answered
//! node.reorg(1, vec![vec![], vec![]]);
//! node.drop_connections();
//! # Ok(())
//! # }
//! ```
//!
//! It answers `eth_chainId`, `net_version`, `web3_clientVersion`, `eth_blockNumber`, `eth_syncing`,
//! `eth_getBlockByHash`, `eth_getBlockByNumber`, `eth_getLogs`, `eth_subscribe` (`newHeads`, `logs`) and
//! `eth_unsubscribe` from its [`FakeChain`], as its [`Faults`] distort it; a handler ([`Script::on`], [`FakeNode::on`])
//! takes the place of any of these, and is the way to answer others. `eth_call` pinned to a block's hash and `eth_getCode`
//! are answered from its [`Contracts`](contracts::Contracts), if it was given some.
//!
//! # Invariants
//! - What one change makes the node say is queued before another change begins: a test that calls [`FakeNode::extend`]
//!   twice has the first block announced first, on every connection.
//! - Nothing here waits for a time to pass. A test waits for what it needs by [`FakeNode::until`].
//! - Dropping the node closes all its sockets and ends its thread.

mod answer;
mod chain;
pub mod contracts;
mod faults;
mod filter;
mod node;
mod script;
mod serve;
mod state;
mod wire;

pub use chain::{Block, FakeChain, FakeLog, Reorg, quantity};
pub use faults::{Faults, Glitch, RangeLimit, Removed};
pub use node::{FakeNode, Seen};
pub use script::{Batches, Call, Door, Reply, Script};

pub(crate) use script::Listen;
