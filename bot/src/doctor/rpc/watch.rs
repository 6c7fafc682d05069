//! Listening to a node's announcements: on a socket of their own, and on one that makes calls as well.
//!
//! # Invariants
//! - It ends at its deadline, also if the node says nothing, or no end of things.
//! - At most [`MOST_CALLS`] calls are made beside the announcements.

use super::line::{Failure, open};
use super::tally::{Head, Tally};
use alloy_primitives::B256;
use futures_util::future::join_all;
use regatta_chain::abi::SYNC;
use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc::{self, Client, Notifications, SubscriptionId};
use regatta_chain::types::{Header, Log};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How many calls are open at once beside the announcements.
const CALLS: u32 = 100;
/// The most calls that are made while no header comes.
const BURST: u32 = 20 * CALLS;
/// The most calls beside the announcements.
const MOST_CALLS: u32 = 6_000;
/// After how many headers that came beside calls no more calls are made.
const ENOUGH: usize = 3;
/// How long the last header's logs are waited for.
const LAST_LOGS: Duration = Duration::from_millis(500);

/// What to listen for.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// For how many headers, at the most.
    pub(super) heads: u16,
    /// The chain's interval of blocks, as far as it is known.
    pub(super) interval: Duration,
    /// The block whose logs are asked for beside the announcements.
    pub(super) block: Option<B256>,
    pub(super) until: Instant,
}

/// The two sockets.
struct Sockets {
    own: Client,
    own_news: Notifications,
    heads: SubscriptionId,
    logs: Option<SubscriptionId>,
    shared: Option<(Client, Notifications)>,
}

/// What is shared by who listens and who calls.
struct Watch {
    plan: Plan,
    began: Instant,
    tally: RefCell<Tally>,
    calls: Cell<u64>,
    last_head: Cell<Option<Instant>>,
    came: Notify,
}

/// Listens. Failures are told to `fails`, by their step; without headers there is nothing to tell.
pub(super) async fn watch(
    endpoint: &Endpoint,
    limits: &rpc::Limits,
    plan: Plan,
    fails: &mut Vec<(&'static str, Failure)>,
) -> Option<super::record::WatchRecord> {
    let sockets = match timeout_at(plan.until, subscribe(endpoint, limits, fails)).await {
        Ok(Ok(sockets)) => sockets,
        Ok(Err(failure)) => {
            fails.push(("subscribe_heads", failure));
            return None;
        }
        Err(_) => {
            fails.push(("subscribe_heads", Failure::NoTime));
            return None;
        }
    };
    let Sockets {
        own,
        own_news,
        heads,
        logs,
        shared,
    } = sockets;
    let watch = Watch {
        plan,
        began: Instant::now(),
        tally: RefCell::default(),
        calls: Cell::new(0),
        last_head: Cell::new(None),
        came: Notify::new(),
    };
    let caller = shared.as_ref().map(|(client, _)| client.clone());
    let own_half = watch.listen(own_news, &heads, logs.as_ref(), caller.as_ref());
    let shared_half = async {
        if let Some((client, news)) = shared {
            tokio::join!(watch.listen_shared(news, &client), watch.load(&client));
        }
        std::future::pending::<()>().await;
    };
    // The deadline is an end like another.
    let _ = timeout_at(plan.until, async {
        tokio::select! {
            () = own_half => {}
            () = shared_half => {}
        }
    })
    .await;
    if let Some(why) = own.closed() {
        fails.push(("watch", closed(why)));
    }
    if let Some(why) = caller.and_then(|client| client.closed()) {
        fails.push(("shared_socket", closed(why)));
    }
    let listened = u64::try_from(watch.began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let record = watch.tally.borrow().record(listened, watch.calls.get());
    Some(record)
}

fn closed(why: regatta_chain::transport::Closed) -> Failure {
    Failure::Call(rpc::CallError::Closed {
        method: "eth_subscription".to_owned(),
        why,
    })
}

/// Connects both sockets and subscribes. The logs, and the second socket, may fail for themselves.
async fn subscribe(
    endpoint: &Endpoint,
    limits: &rpc::Limits,
    fails: &mut Vec<(&'static str, Failure)>,
) -> Result<Sockets, Failure> {
    let (own, own_news) = open(endpoint, limits).await?;
    // Logs first: none of the first head's is missed.
    let logs = match own.subscribe(json!(["logs", { "topics": [[SYNC]] }])).await {
        Ok(logs) => Some(logs),
        Err(error) => {
            fails.push(("subscribe_logs", error.into()));
            None
        }
    };
    let heads = own.subscribe(json!(["newHeads"])).await?;
    let shared = async {
        let (client, news) = open(endpoint, limits).await?;
        client.subscribe(json!(["newHeads"])).await?;
        Ok::<_, Failure>((client, news))
    };
    let shared = match shared.await {
        Ok(shared) => Some(shared),
        Err(failure) => {
            fails.push(("shared_socket", failure));
            None
        }
    };
    Ok(Sockets {
        own,
        own_news,
        heads,
        logs,
        shared,
    })
}

impl Watch {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes what comes on the socket of announcements alone, until there were enough headers.
    async fn listen(
        &self,
        mut news: Notifications,
        heads: &SubscriptionId,
        logs: Option<&SubscriptionId>,
        caller: Option<&Client>,
    ) {
        let mut last_logs: Option<Instant> = None;
        loop {
            let end = last_logs.unwrap_or(self.plan.until);
            let Ok(Some((subscription, value))) = timeout_at(end, news.next()).await else {
                return;
            };
            let now = self.now();
            let mut tally = self.tally.borrow_mut();
            if subscription == *heads {
                let loaded = caller.is_some_and(|client| client.in_flight() > 0);
                match head(value) {
                    Some(head) => tally.head(now, head, loaded),
                    None => tally.malformed(),
                }
            } else if Some(&subscription) == logs {
                match serde_json::from_value::<Log>(value) {
                    Ok(log) => tally.log(now, log.block_hash, log.removed),
                    Err(_) => tally.malformed(),
                }
            }
            if tally.heads() >= u64::from(self.plan.heads) {
                last_logs = last_logs.or(Some(Instant::now() + LAST_LOGS));
            }
        }
    }

    /// Takes the headers that come on the socket that calls are made on.
    async fn listen_shared(&self, mut news: Notifications, client: &Client) {
        while let Some((_, value)) = news.next().await {
            let now = self.now();
            if let Some(head) = head(value)
                && self
                    .tally
                    .borrow_mut()
                    .shared_head(now, head.hash, client.in_flight() > 0)
            {
                self.last_head.set(Some(Instant::now()));
                self.came.notify_waiters();
            }
        }
    }

    /// Makes calls around the times when headers are due: the first header comes without any.
    async fn load(&self, client: &Client) {
        loop {
            let came = self.came.notified();
            let Some(last) = self.last_head.get() else {
                came.await;
                continue;
            };
            sleep_until(last + self.plan.interval.mul_f64(0.9)).await;
            let mut burst = 0;
            while burst < BURST && self.last_head.get() == Some(last) {
                if self.calls.get() >= u64::from(MOST_CALLS)
                    || self.tally.borrow().compared_loaded() >= ENOUGH
                {
                    return;
                }
                burst += CALLS;
                self.calls.set(self.calls.get() + u64::from(CALLS));
                // Each fails for itself; that it was made is what matters. A node that refuses at once is not hurried.
                let pace = sleep(Duration::from_millis(10));
                let calls = join_all((0..CALLS).map(|_| {
                    client.call_within::<Value>(
                        "eth_getLogs",
                        self.question(),
                        Duration::from_secs(5),
                    )
                }));
                tokio::join!(calls, pace);
            }
            if self.last_head.get() == Some(last) {
                came.await;
            }
        }
    }

    fn question(&self) -> Value {
        self.plan.block.map_or(
            json!([{ "topics": [[SYNC]] }]),
            |hash| json!([{ "blockHash": hash, "topics": [[SYNC]] }]),
        )
    }
}

fn head(value: Value) -> Option<Head> {
    let header: Header = serde_json::from_value(value).ok()?;
    Some(Head {
        hash: header.hash,
        parent: header.parent_hash,
        number: header.number.to(),
    })
}
