//! The chain that is followed: from what the follower says to what the pump has room for.
//!
//! # Invariants
//! - Events leave in the order in which the follower said them, each put together once the one before has left.
//! - An event whose reading failed is put together again; nothing that belongs to it was said before. A reading ends
//!   after a stated time.

use super::assemble::Assembler;
use super::link::Link;
use super::{NodeConfig, OnHead, OnLost, hash};
use crate::pipeline::{Feeder, Untaken};
use crate::source::Event;
use futures_util::future::BoxFuture;
use regatta_chain::follow::{ChainEvent, Follower};
use regatta_chain::read::Reader;
use regatta_chain::rpc::{CallError, Client};
use std::collections::VecDeque;
use std::sync::Arc;

/// An event that was put together, or was not.
pub(super) struct Assembled {
    pub(super) assembler: Assembler,
    pub(super) event: ChainEvent,
    pub(super) made: Result<Vec<Event>, CallError>,
}

/// The chain that is followed.
pub(super) struct Work {
    pub(super) follower: Follower,
    /// Gone while it puts an event together.
    pub(super) assembler: Option<Assembler>,
    pub(super) assembling: Option<BoxFuture<'static, Assembled>>,
    /// What the follower said and is not put together yet.
    pub(super) events: VecDeque<ChainEvent>,
    /// What the pump has no room for yet.
    pub(super) outbox: VecDeque<Event>,
    pub(super) feeder: Option<Feeder>,
    pub(super) on_head: OnHead,
    pub(super) blocks_left: Option<u64>,
    pub(super) on_lost: OnLost,
}

impl Work {
    /// Gives the pump what it has room for.
    pub(super) fn flush(&mut self) {
        while let Some(event) = self.outbox.pop_front() {
            let Some(feeder) = &self.feeder else {
                break;
            };
            let is_block = matches!(event, Event::Block(_));
            match feeder.offer(event) {
                Ok(()) => {}
                Err(Untaken::Full(event)) => {
                    self.outbox.push_front(event);
                    return;
                }
                Err(Untaken::Closed(_)) => {
                    self.feeder = None;
                    continue;
                }
            }
            if is_block && let Some(left) = &mut self.blocks_left {
                *left = left.saturating_sub(1);
                if *left == 0
                    && let Some(feeder) = self.feeder.take()
                {
                    feeder.end(Ok(()));
                }
            }
        }
        if self.feeder.is_none() {
            // Nobody takes them any more, and the chain goes on.
            self.outbox.clear();
            self.events.clear();
        }
    }

    /// Begins with the next event, once the last one is taken.
    pub(super) fn assemble(&mut self, link: &Link, config: &Arc<NodeConfig>) {
        if self.assembling.is_some() || !self.outbox.is_empty() || self.feeder.is_none() {
            return;
        }
        let Some(mut assembler) = self.assembler.take() else {
            return;
        };
        let Some(event) = self.events.pop_front() else {
            self.assembler = Some(assembler);
            return;
        };
        let (client, config) = (link.calls.client.clone(), Arc::clone(config));
        self.assembling = Some(Box::pin(async move {
            let after = config.follow.reread_deadline;
            let made = tokio::time::timeout(after, make(&mut assembler, &event, &client, &config));
            let made = made.await.unwrap_or_else(|_| {
                Err(CallError::TimedOut {
                    method: "eth_call".to_owned(),
                    after,
                })
            });
            Assembled {
                assembler,
                event,
                made,
            }
        }));
    }
}

/// Puts an event together.
async fn make(
    assembler: &mut Assembler,
    event: &ChainEvent,
    client: &Client,
    config: &NodeConfig,
) -> Result<Vec<Event>, CallError> {
    match event {
        ChainEvent::Block { header, logs } => {
            let reader = Reader::new(client, header.hash, config.reading);
            assembler.block(&reader, header, logs).await
        }
        ChainEvent::Reverted { number, hash } => Ok(vec![Event::Reverted {
            number: *number,
            hash: self::hash(*hash),
        }]),
        ChainEvent::Reread { header, why } => {
            tracing::info!("the pools are read at block {}: {why}", header.number);
            assembler.reread(client, header, config).await
        }
    }
}
