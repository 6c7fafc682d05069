//! The two sockets to a node: one for calls, one that only listens.
//!
//! A socket that answers calls delays what it announces by as long as the calls take, so announcements have a socket of
//! their own.
//!
//! # Invariants
//! - A link that is handed over is of the right chain, of a node that is not syncing, and subscribed to heads and logs.
//! - Dropping a link closes both sockets.

use super::NodeConfig;
use regatta_chain::ask::Filter;
use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc::{self, CallError, Client, Notifications, SubscriptionId};
use regatta_chain::transport::{Closed, ConnectError};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::task::JoinHandle;

/// Why there is no link.
#[derive(Debug, Error)]
pub enum LinkError {
    /// A socket did not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A question was not answered.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It is another chain.
    #[error("the node is on chain {found}, and {wanted} is wanted")]
    Chain {
        /// The node's chain id.
        found: u64,
        /// The one that it has to be.
        wanted: u64,
    },
    /// The chain id is no number.
    #[error("the node says that its chain id is {0}, which is no 64-bit quantity")]
    ChainId(String),
    /// The node is still fetching the chain.
    #[error("the node is syncing: what it says of the chain is old")]
    Syncing,
}

/// A session that runs; it ends with this.
struct Running(JoinHandle<Closed>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection whose session runs by itself.
pub(super) struct Line {
    pub(super) client: Client,
    session: Running,
}

impl Line {
    async fn open(
        endpoint: &Endpoint,
        limits: &rpc::Limits,
    ) -> Result<(Self, Notifications), LinkError> {
        let (client, notifications, session) = rpc::connect(endpoint, limits).await?;
        let session = Running(tokio::spawn(session));
        Ok((Self { client, session }, notifications))
    }

    /// Waits for its end.
    pub(super) async fn closed(&mut self) -> String {
        match (&mut self.session.0).await {
            Ok(why) => why.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

/// A line for calls alone, and the chain that is at its other end.
pub(super) async fn call_line(config: &NodeConfig) -> Result<(Line, u64), LinkError> {
    let (line, _) = Line::open(&config.endpoint, &config.limits).await?;
    let chain = chain_id(&line.client).await?;
    if let Some(wanted) = config.chain_id.filter(|wanted| *wanted != chain) {
        return Err(LinkError::Chain {
            found: chain,
            wanted,
        });
    }
    let syncing: Value = line.client.call("eth_syncing", json!([])).await?;
    if syncing != Value::Bool(false) {
        return Err(LinkError::Syncing);
    }
    Ok((line, chain))
}

async fn chain_id(client: &Client) -> Result<u64, LinkError> {
    let said: String = client.call("eth_chainId", json!([])).await?;
    let id = said
        .strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok());
    id.ok_or_else(|| LinkError::ChainId(crate::market::UntrustedText::new(&said).to_string()))
}

/// Both sockets.
pub(super) struct Link {
    pub(super) calls: Line,
    pub(super) news: Line,
    pub(super) notifications: Notifications,
    pub(super) heads: SubscriptionId,
    pub(super) logs: SubscriptionId,
}

impl Link {
    /// Connects both and subscribes.
    pub(super) async fn open(config: &NodeConfig, filter: &Filter) -> Result<Self, LinkError> {
        let (calls, _) = call_line(config).await?;
        let (news, notifications) = Line::open(&config.endpoint, &config.limits).await?;
        // Logs first: none of the first head's is missed.
        let logs = news
            .client
            .subscribe(json!(["logs", filter.subscription()]))
            .await?;
        let heads = news.client.subscribe(json!(["newHeads"])).await?;
        Ok(Self {
            calls,
            news,
            notifications,
            heads,
            logs,
        })
    }
}

/// What came on the socket that only listens, or of either.
pub(super) enum News {
    Said(SubscriptionId, Value),
    Lost(String),
    /// The same; the answer to a call was more than a message may have.
    TooLarge(String),
}

/// What comes next on a link, or never without one.
pub(super) async fn news(link: &mut Option<(u64, Link)>) -> News {
    let Some((_, link)) = link else {
        return std::future::pending().await;
    };
    tokio::select! {
        said = link.notifications.next() => match said {
            Some((subscription, value)) => News::Said(subscription, value),
            None => News::Lost(link.news.closed().await),
        },
        why = link.calls.closed() => match link.calls.client.closed() {
            Some(Closed::TooLarge { .. }) => News::TooLarge(why),
            _ => News::Lost(why),
        },
    }
}
