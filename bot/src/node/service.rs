//! The life of the node's thread.
//!
//! # Invariants
//! - One event is put together at a time, and the next one only when the pump has taken the last: what waits is bounded by
//!   what the follower says at once.
//! - A loss is told once per installed link, after the link is gone.

use super::assemble::{Assembler, head};
use super::link::{Link, LinkError, News, call_line, news};
use super::status::{self, NodeStatus};
use super::survey::{SurveyError, survey};
use super::work::{Assembled, Work};
use super::{AskError, Following, Found, NodeConfig, Reply};
use crate::source::Event;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use regatta_chain::abi::{PAIR_CREATED, SYNC};
use regatta_chain::ask::{Filter, ask};
use regatta_chain::follow::{Answer, CallId, ChainEvent, FollowConfig, Follower};
use regatta_chain::pools::Listed;
use regatta_chain::read::{self, Reader};
use regatta_chain::rpc::Request;
use regatta_chain::types::Log;
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

/// What the thread is asked for. Whoever does not wait for the answer any more has dropped its end.
pub(super) enum Command {
    Survey {
        listed: Vec<Listed>,
        reply: SyncSender<Result<Found, AskError>>,
    },
    Follow(Box<Following>),
    Connect {
        generation: u64,
        reply: SyncSender<Result<(), AskError>>,
    },
    Commit {
        generation: u64,
    },
    Discard {
        generation: u64,
    },
    Ask {
        requests: Vec<Request>,
        attempts: u32,
        reply: Reply,
    },
    AskApart {
        requests: Vec<Request>,
        wait: Duration,
        reply: Reply,
    },
    Stop,
}

/// A link that an attempt made.
struct Linked {
    generation: u64,
    link: Result<Link, LinkError>,
    reply: SyncSender<Result<(), AskError>>,
}

struct Service<'a> {
    config: Arc<NodeConfig>,
    status: &'a Mutex<NodeStatus>,
    filter: Arc<Filter>,
    linked: UnboundedSender<Linked>,
    room: Arc<Notify>,
    /// The attempt that is being made.
    connecting: Option<(u64, AbortHandle)>,
    /// A link that is not installed yet.
    waiting: Option<(u64, Link)>,
    link: Option<(u64, Link)>,
    answers: FuturesUnordered<BoxFuture<'static, (CallId, Answer)>>,
    work: Option<Work>,
}

/// The life of the thread.
pub(super) fn live(
    config: NodeConfig,
    inbox: UnboundedReceiver<Command>,
    status: &Mutex<NodeStatus>,
) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    match runtime.enable_io().enable_time().build() {
        Ok(runtime) => {
            runtime.block_on(run(config, inbox, status));
            // A name that is being looked up cannot be given up, and nobody waits for it any more.
            runtime.shutdown_background();
        }
        Err(error) => tracing::error!("the node's thread has no runtime: {error}"),
    }
}

async fn run(
    config: NodeConfig,
    mut inbox: UnboundedReceiver<Command>,
    status: &Mutex<NodeStatus>,
) {
    let (linked, mut links) = mpsc::unbounded_channel();
    let mut service = Service {
        config: Arc::new(config),
        status,
        filter: Arc::new(Filter {
            topics: vec![SYNC, PAIR_CREATED],
            ..Filter::default()
        }),
        linked,
        room: Arc::new(Notify::new()),
        connecting: None,
        waiting: None,
        link: None,
        answers: FuturesUnordered::new(),
        work: None,
    };
    loop {
        service.advance();
        let deadline = service.deadline();
        let room = Arc::clone(&service.room);
        let Service {
            link,
            answers,
            work,
            ..
        } = &mut service;
        tokio::select! {
            command = inbox.recv() => match command {
                None | Some(Command::Stop) => return,
                Some(command) => service.command(command),
            },
            Some(linked) = links.recv() => service.linked(linked),
            news = news(link) => service.news(news),
            Some((id, answer)) = answers.next(), if !answers.is_empty() => {
                service.follower(|follower, now| follower.answer(id, answer, now));
            }
            done = assembled(work) => service.assembled(done),
            () = room.notified() => {}
            () = until(deadline) => service.follower(Follower::tick),
        }
    }
}

/// Sleeps until then, or for ever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The event that is being put together.
async fn assembled(work: &mut Option<Work>) -> Assembled {
    let assembling = work.as_mut().and_then(|work| work.assembling.as_mut());
    match assembling {
        Some(assembling) => assembling.await,
        None => std::future::pending().await,
    }
}

impl Service<'_> {
    fn command(&mut self, command: Command) {
        match command {
            Command::Survey { listed, reply } => self.survey(listed, reply),
            Command::Follow(following) => self.follow(*following),
            Command::Connect { generation, reply } => self.connect(generation, reply),
            Command::Commit { generation } => self.commit(generation),
            Command::Discard { generation } => {
                self.waiting.take_if(|(of, _)| *of == generation);
                if let Some((_, task)) = self.connecting.take_if(|(of, _)| *of == generation) {
                    task.abort();
                }
            }
            Command::Ask {
                requests,
                attempts,
                reply,
            } => self.ask(requests, attempts, reply),
            Command::AskApart {
                requests,
                wait,
                reply,
            } => self.ask_apart(requests, wait, reply),
            Command::Stop => {}
        }
    }

    fn survey(&self, listed: Vec<Listed>, reply: SyncSender<Result<Found, AskError>>) {
        let config = Arc::clone(&self.config);
        tokio::spawn(async move {
            let limit = config.survey;
            let found = tokio::time::timeout(limit, survey(&config, &listed)).await;
            let _ = reply.send(match found {
                Ok(found) => found.map_err(|error| match error {
                    SurveyError::Link(error) => AskError::Link(error),
                    error => AskError::Survey(error),
                }),
                Err(_) => Err(AskError::TimedOut(limit)),
            });
        });
    }

    fn follow(&mut self, following: Following) {
        let Following {
            found,
            feeder,
            on_head,
            blocks,
            on_lost,
        } = following;
        let config = FollowConfig {
            topics: self.filter.topics.clone(),
            ..self.config.follow.clone()
        };
        let follower = match Follower::new(config, Instant::now()) {
            Ok(follower) => follower,
            Err(error) => {
                // The feeder goes without a word, which the pump takes for what it is.
                tracing::error!("the chain cannot be followed so: {error}");
                return;
            }
        };
        let room = Arc::clone(&self.room);
        feeder.on_room(move || room.notify_one());
        let assembler = Assembler::new(found.market, found.exchanges, &self.config);
        self.know(&assembler);
        let feeder = if blocks == Some(0) {
            feeder.end(Ok(()));
            None
        } else {
            Some(feeder)
        };
        self.work = Some(Work {
            follower,
            assembler: Some(assembler),
            assembling: None,
            events: VecDeque::new(),
            outbox: VecDeque::new(),
            feeder,
            on_head,
            blocks_left: blocks,
            on_lost,
        });
        if let Some((generation, _)) = self.link {
            self.installed(generation);
        }
    }

    fn know(&mut self, assembler: &Assembler) {
        self.filter = Arc::new(Filter {
            topics: self.filter.topics.clone(),
            known: assembler.known(),
            parts: self.filter.parts,
        });
    }

    /// Asks for less at once from now on. Of the calls only those for logs have answers without a bound.
    fn narrow(&mut self) {
        let filter = Arc::make_mut(&mut self.filter);
        filter.parts = (filter.parts * 2).clamp(1, filter.known.len().max(1));
    }

    fn connect(&mut self, generation: u64, reply: SyncSender<Result<(), AskError>>) {
        // One attempt at a time: what an older one brought is stale.
        self.waiting = None;
        if let Some((_, older)) = self.connecting.take() {
            older.abort();
        }
        let (config, filter) = (Arc::clone(&self.config), Arc::clone(&self.filter));
        let linked = self.linked.clone();
        let task = tokio::spawn(async move {
            let link = Link::open(&config, &filter).await;
            // The receiver lives as long as this thread does anything.
            let _ = linked.send(Linked {
                generation,
                link,
                reply,
            });
        });
        self.connecting = Some((generation, task.abort_handle()));
    }

    fn linked(&mut self, linked: Linked) {
        let Linked {
            generation,
            link,
            reply,
        } = linked;
        let current = self.connecting.take_if(|(of, _)| *of == generation);
        let answer = match link {
            Ok(link) if current.is_some() => {
                self.waiting = Some((generation, link));
                Ok(())
            }
            Ok(_) => Err(AskError::Interrupted),
            Err(error) => Err(AskError::Link(error)),
        };
        if reply.send(answer).is_err() {
            self.waiting.take_if(|(of, _)| *of == generation);
        }
    }

    fn commit(&mut self, generation: u64) {
        if let Some((_, link)) = self.waiting.take_if(|(of, _)| *of == generation) {
            self.link = Some((generation, link));
            status::lock(self.status).connections += 1;
            self.installed(generation);
        }
    }

    /// The subscriptions were confirmed before the link was handed over.
    fn installed(&mut self, generation: u64) {
        self.answers.clear();
        self.follower(|follower, now| {
            follower.connected(generation, now);
            follower.subscribed(generation, now);
        });
    }

    fn ask_apart(&self, requests: Vec<Request>, wait: Duration, reply: Reply) {
        let config = Arc::clone(&self.config);
        tokio::spawn(async move {
            let limits = read::Limits {
                attempts: 1,
                ..config.reading
            };
            let asked = async {
                let (line, _) = call_line(&config).await?;
                let reader = Reader::new(&line.client, alloy_primitives::B256::ZERO, limits);
                Ok(reader.values(&requests).await?)
            };
            let answers = tokio::time::timeout(wait, asked).await;
            reply(answers.unwrap_or(Err(AskError::TimedOut(wait))));
        });
    }

    fn ask(&self, requests: Vec<Request>, attempts: u32, reply: Reply) {
        let Some((_, link)) = &self.link else {
            reply(Err(AskError::NotConnected));
            return;
        };
        let client = link.calls.client.clone();
        let limits = read::Limits {
            attempts,
            ..self.config.reading
        };
        tokio::spawn(async move {
            let reader = Reader::new(&client, alloy_primitives::B256::ZERO, limits);
            let answers = reader.values(&requests).await;
            reply(answers.map_err(AskError::Call));
        });
    }

    /// Tells the follower something.
    fn follower(&mut self, tell: impl FnOnce(&mut Follower, Instant)) {
        if let Some(work) = &mut self.work {
            tell(&mut work.follower, Instant::now());
        }
    }

    fn news(&mut self, news: News) {
        let (subscription, value) = match news {
            News::Lost(why) => return self.lost(&why),
            News::TooLarge(why) => {
                self.narrow();
                return self.lost(&why);
            }
            News::Said(subscription, value) => (subscription, value),
        };
        let Some((_, link)) = &self.link else { return };
        let told = if subscription == link.heads {
            serde_json::from_value(value)
                .map(|header| self.follower(|follower, now| follower.header(header, now)))
        } else if subscription == link.logs {
            serde_json::from_value(value)
                .map(|log: Log| self.follower(|follower, now| follower.log(log, now)))
        } else {
            // Of a subscription that nobody made.
            Ok(())
        };
        if let Err(error) = told {
            let words = crate::market::UntrustedText::with_limit(&error.to_string(), 200);
            self.lost(&format!("it announced what is no header or log: {words}"));
        }
    }

    /// The link is gone, or given up.
    fn lost(&mut self, why: &str) {
        let Some((generation, link)) = self.link.take() else {
            return;
        };
        drop(link);
        self.answers.clear();
        tracing::warn!("the node was lost: {why}");
        self.follower(|follower, now| follower.disconnected(generation, now));
        if let Some(work) = &mut self.work {
            (work.on_lost)();
        }
    }

    fn assembled(&mut self, done: Assembled) {
        let Assembled {
            mut assembler,
            event,
            made,
        } = done;
        let Some(work) = &mut self.work else { return };
        work.assembling = None;
        let now = Instant::now();
        let mut given_up = None;
        match (made, event) {
            (Ok(events), ChainEvent::Reread { header, .. }) => {
                if work.follower.reread_done(header.hash, now) {
                    work.outbox.extend(events);
                } else {
                    assembler.untell(events);
                }
            }
            (Ok(events), _) => work.outbox.extend(events),
            (Err(error), ChainEvent::Reread { header, .. }) => {
                tracing::warn!("the pools were not read anew: {error}");
                work.follower.reread_failed(header.hash, now);
            }
            // It is put together again over the next link.
            (Err(error), event) => {
                work.events.push_front(event);
                tracing::warn!("a block waits for the next connection: {error}");
                // A link that has ended says so by itself.
                if !error.is_closed() {
                    given_up = Some(format!("it did not say what a block needs: {error}"));
                }
            }
        }
        work.assembler = Some(assembler);
        if let Some(assembler) = work.assembler.take() {
            if work
                .outbox
                .iter()
                .any(|event| matches!(event, Event::Pools(_)))
            {
                self.know(&assembler);
            }
            if let Some(work) = &mut self.work {
                work.assembler = Some(assembler);
            }
        }
        if let Some(why) = given_up {
            self.lost(&why);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.work.as_ref()?.follower.next_deadline()
    }

    /// Does all that can be done without waiting.
    fn advance(&mut self) {
        let Some(work) = &mut self.work else { return };
        while let Some(header) = work.follower.poll_head() {
            let head = head(&header);
            (work.on_head)(head);
            status::lock(self.status).head = Some((head, Instant::now()));
        }
        while let Some(event) = work.follower.poll_event() {
            work.events.push_back(event);
        }
        if let Some((_, link)) = &self.link {
            while let Some((id, call)) = work.follower.poll_call() {
                let (client, filter) = (link.calls.client.clone(), Arc::clone(&self.filter));
                self.answers.push(Box::pin(
                    async move { (id, ask(&client, call, &filter).await) },
                ));
            }
        }
        work.flush();
        if let Some((_, link)) = &self.link {
            work.assemble(link, &self.config);
        }
        let reconnect = work.follower.poll_reconnect();
        let mut status = status::lock(self.status);
        status.not_ready = work.follower.readiness().err();
        status.ended = work.feeder.is_none();
        status.held_back = work.outbox.len() + work.events.len();
        status.counters = *work.follower.counters();
        if let Some(assembler) = &work.assembler {
            status.passed = assembler.passed;
        }
        drop(status);
        if let Some(why) = reconnect {
            self.lost(&why.to_string());
        }
    }
}
