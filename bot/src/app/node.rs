//! A node as the chain source of a run: its thread, its feed and its connections as a component.
//!
//! # Invariants
//! - Every connection is made by an attempt of the runtime's, also the first, and is used only if the runtime let it be
//!   installed.
//! - The thread that asks for an attempt waits no longer than the attempt may take; what comes later is closed.

use super::stage::Stage;
use crate::node::{AskError, Asker, Following, Found, Node, NodeReader, OnHead, not_ready_name};
use crate::pipeline::{Feed, LiveFeed};
use regatta_core::component::{BackoffPolicy, Limit, Probe, Remaining};
use regatta_core::time::Duration;
use regatta_portable::runtime::{Attempt, Came, Component, Connect, Context, Failed, Vitals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a node is reconnected to. The first delay is a restart's; with the cap, a hundred attempts are about fifty
/// minutes, after which somebody has to look.
pub(super) const RECONNECT: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_millis(100),
    factor: 2,
    cap: Duration::from_secs(30),
    jitter_percent: 25,
    limit: Limit::Attempts(100),
    attempt: Duration::from_secs(15),
    stable: Duration::from_secs(60),
};

/// What has a node as its source.
pub(super) trait Host: Send + Sync + 'static {
    /// The node and the market that was found there; once.
    fn node(&self) -> Option<(Node, Found)>;

    /// Takes what can be asked for reserves.
    fn take_reader(&self, reader: NodeReader);

    /// What is told of each header.
    fn head(&self) -> OnHead;

    /// The stream ends after so many blocks.
    fn blocks(&self) -> Option<u64>;

    /// Takes the events, before the first of them.
    fn take_events(&self, feed: LiveFeed);

    /// Nobody is to take events from here on, nor to wait for one.
    fn close(&self);

    /// Lets the events go, if they are still there.
    fn drop_events(&self);
}

impl Host for Stage {
    fn node(&self) -> Option<(Node, Found)> {
        self.take_node()
    }

    fn take_reader(&self, reader: NodeReader) {
        self.set_reader(Box::new(reader));
    }

    fn head(&self) -> OnHead {
        self.on_head()
    }

    fn blocks(&self) -> Option<u64> {
        self.args().source.blocks
    }

    fn take_events(&self, feed: LiveFeed) {
        self.set_feed(Feed::Live(feed));
    }

    fn close(&self) {
        self.interrupt();
    }

    fn drop_events(&self) {
        drop(self.take_feed());
    }
}

pub(super) fn component<H: Host>(host: &Arc<H>, asker: &Asker) -> Box<dyn Component> {
    let host: Arc<dyn Host> = Arc::<H>::clone(host);
    Box::new(NodeComponent {
        host: Arc::clone(&host),
        vitals: Arc::new(NodeVitals {
            host,
            asker: asker.clone(),
            thread: AtomicBool::new(true),
        }),
        node: None,
    })
}

struct NodeComponent {
    host: Arc<dyn Host>,
    vitals: Arc<NodeVitals>,
    node: Option<Node>,
}

struct NodeVitals {
    host: Arc<dyn Host>,
    asker: Asker,
    thread: AtomicBool,
}

impl Vitals for NodeVitals {
    fn probe(&self) -> Probe {
        let status = self.asker.status();
        match &status.not_ready {
            Some(reason) if !status.ended => Probe::NotReady(not_ready_name(reason)),
            _ if status.connections == 0 => Probe::NotReady("disconnected"),
            _ => Probe::Ready,
        }
    }

    fn fence(&self) {
        self.host.close();
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            threads: u32::from(self.thread.load(Ordering::Acquire)),
            ..Remaining::NONE
        }
    }
}

struct Attempts(Asker);

impl Connect for Attempts {
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<(), Failed> {
        let generation = attempt.generation().number();
        let wait = attempt.until.saturating_duration_since(Instant::now());
        if let Err(error) = self.0.connect(generation, wait) {
            // Whatever still comes of it is closed.
            self.0.discard(generation);
            tracing::warn!("attempt {generation} to reach the node failed: {error}");
            return Err(Failed::new(code(&error), error));
        }
        attempt
            .install(|| self.0.commit(generation))
            .map_err(|error| {
                self.0.discard(generation);
                Failed::new("too_late", error)
            })
    }
}

/// A failed attempt in one word.
const fn code(error: &AskError) -> &'static str {
    match error {
        AskError::TimedOut(_) => "timed_out",
        AskError::Link(_) => "no_link",
        AskError::Ended | AskError::Interrupted => "stopped",
        AskError::NotConnected | AskError::Call(_) | AskError::Survey(_) => "call_failed",
    }
}

impl Component for NodeComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<NodeVitals>::clone(&self.vitals)
    }

    fn connect(&self) -> Option<Arc<dyn Connect>> {
        Some(Arc::new(Attempts(self.vitals.asker.clone())))
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let (node, found) = self
            .host
            .node()
            .ok_or_else(|| Failed::new("started_twice", "a source starts once"))?;
        self.host.take_reader(NodeReader(self.vitals.asker.clone()));
        let (feed, feeder) = LiveFeed::open();
        let following = Following {
            found,
            feeder,
            on_head: self.host.head(),
            blocks: self.host.blocks(),
            on_lost: Box::new(move || context.runtime.lost(context.id)),
        };
        let node = self.node.insert(node);
        node.follow(following)
            .map_err(|error| Failed::new("no_thread", error))?;
        self.host.take_events(feed);
        Ok(Came::Degraded)
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.host.close();
        Ok(())
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.host.close();
        self.host.drop_events();
        if let Some(node) = &mut self.node
            && !node.stop(until)
        {
            return Err(Failed::new("thread_left", "the node's thread does not end"));
        }
        self.vitals.thread.store(false, Ordering::Release);
        Ok(())
    }
}
