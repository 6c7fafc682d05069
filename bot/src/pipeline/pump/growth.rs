//! Growth: pools that come while blocks run, and the cycles over them.
//!
//! The market grows at once, so no update of a new pool is lost. Its cycles are crawled over a new graph and
//! registered while blocks run on the old one. When all are, graph and cycles take effect together, between two
//! cycles of the pump.
//!
//! # Invariants
//! - Ids of cycles that were registered stay. New ones follow, in the order of the crawl.
//! - A cycle is new if it has a pool that the market did not have when the graph before was made: every other one
//!   is registered already.
//! - At most [`REGISTRATION_WINDOW`] receipts are outstanding, and only one that has ended is waited for, unless
//!   the caller asks to wait.

use super::super::feed::FeedWaker;
use super::super::registration::Registration;
use super::super::watch::wait_unless_interrupted;
use super::super::workload::{Output, Pipeline, Unit};
use super::super::{MAX_CYCLES, REGISTRATION_WINDOW};
use super::{Pump, PumpError};
use crate::cycles::{Cursor, Cycle, CycleGraph, GraphError};
use crate::market::PoolId;
use crate::source::NewPool;
use regatta_core::role::WorkerRole;
use regatta_portable::{Ended, Receipt};
use std::collections::VecDeque;
use std::sync::Arc;

/// What took effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grown {
    /// The epoch that ended last.
    pub epoch: u64,
    /// Pools that came.
    pub pools: usize,
    /// Pools that the market refused.
    pub skipped: usize,
    /// Cycles over them.
    pub cycles: usize,
    /// All cycles that are registered now.
    pub total: usize,
    /// Why there are no cycles over them, if that was refused.
    pub refused: Option<GraphError>,
}

/// The growth of a market.
#[derive(Debug)]
pub(super) struct Growth<W: Pipeline> {
    pub(super) wake: Option<FeedWaker>,
    /// Pools that the market had when the last graph was made.
    known: usize,
    /// Pools that were refused since.
    skipped: usize,
    crawl: Option<Crawling<W>>,
}

/// The crawl for new cycles.
#[derive(Debug)]
struct Crawling<W: Pipeline> {
    registration: Arc<Registration>,
    /// The pools of the market that are new.
    new: std::ops::Range<usize>,
    skipped: usize,
    cursor: Cursor,
    /// Why there is nothing more to submit, if so.
    over: Option<Result<(), GraphError>>,
    window: VecDeque<Receipt<W>>,
    cycles: Vec<Cycle>,
}

impl<W: Pipeline> Growth<W> {
    pub(super) const fn new(known: usize) -> Self {
        Self {
            wake: None,
            known,
            skipped: 0,
            crawl: None,
        }
    }
}

impl<W: Pipeline> Crawling<W> {
    /// The next new cycle. Looks at all cycles of the graph, once.
    fn next(&mut self) -> Option<Cycle> {
        let graph = self.registration.graph();
        let mut crawl = graph.crawl_from(self.cursor);
        let is_new = |cycle: &Cycle| {
            let mut edges = cycle.edges().iter();
            edges.any(|edge| graph.edge(*edge).pool.index() >= self.new.start)
        };
        let next = crawl.find(is_new);
        self.cursor = crawl.cursor();
        next
    }
}

impl<W: Pipeline> Pump<'_, W> {
    /// What is woken when registrations end.
    pub fn wake(&mut self, wake: Option<FeedWaker>) {
        self.growth.wake = wake;
    }

    /// Adds pools to the market. Those that it refuses are skipped and counted. [`Pump::grow`] does the rest.
    pub fn extend(&mut self, pools: &[NewPool]) -> Result<(), PumpError> {
        let number = self.number;
        let mut skipped = 0;
        self.change(number, |world, changed| {
            for pool in pools {
                if let Err(refused) = world.extend(pool, changed)? {
                    tracing::warn!("a new pool was skipped: {refused}");
                    skipped += 1;
                }
            }
            Ok(())
        })?;
        self.growth.skipped += skipped;
        Ok(())
    }

    /// Whether registrations are outstanding.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.growth.crawl.is_some()
    }

    /// Collects registrations that have ended, submits more, and lets the cycles over new pools take effect when
    /// all of them are registered; then it says so, and there may be more to do. With `wait` it waits for that.
    pub fn grow(&mut self, wait: bool) -> Result<Option<Grown>, PumpError> {
        let Some(mut crawl) = self.growth.crawl.take().or_else(|| self.begin_growth()) else {
            return Ok(None);
        };
        loop {
            if !crawl.window.is_empty() {
                let first = crawl.cycles.len();
                let ended = crawl.registration.take_ended(first);
                if ended || wait {
                    self.registered(&mut crawl)?;
                    continue;
                }
            }
            if crawl.over.is_none() && crawl.window.len() < REGISTRATION_WINDOW as usize {
                self.submit_next(&mut crawl)?;
            } else if crawl.window.is_empty() {
                return self.install(&crawl).map(Some);
            } else if !wait {
                self.growth.crawl = Some(crawl);
                return Ok(None);
            }
        }
    }

    /// Gives up the registrations that are outstanding; how many.
    pub fn give_up_growth(&mut self) -> u64 {
        let crawl = self.growth.crawl.take();
        crawl.map_or(0, |crawl| crawl.window.len() as u64)
    }

    /// A crawl over the market as it is, if it has grown.
    fn begin_growth(&mut self) -> Option<Crawling<W>> {
        let world = self.fleet.workload().arbitrage().world();
        let market = world.market();
        let new = self.growth.known..market.pools().len();
        let skipped = std::mem::take(&mut self.growth.skipped);
        if new.is_empty() && skipped == 0 {
            return None;
        }
        self.growth.known = new.end;
        let old = world.graph();
        let base = market.token(old.base()).address;
        let (graph, over) = if new.is_empty() {
            (Arc::clone(old), Some(Ok(())))
        } else {
            match CycleGraph::new(market, base, old.max_hops()) {
                Ok(graph) => (Arc::new(graph), None),
                Err(refused) => (Arc::clone(old), Some(Err(refused))),
            }
        };
        Some(Crawling {
            registration: Registration::new(graph, self.growth.wake.clone()),
            new,
            skipped,
            cursor: Cursor::START,
            over,
            window: VecDeque::with_capacity(REGISTRATION_WINDOW as usize),
            cycles: Vec::new(),
        })
    }

    fn submit_next(&mut self, crawl: &mut Crawling<W>) -> Result<(), PumpError> {
        let Some(cycle) = crawl.next() else {
            crawl.over = Some(Ok(()));
            return Ok(());
        };
        let number = crawl.cycles.len() + crawl.window.len();
        let registered = self.fleet.workload().arbitrage().world().table().len();
        if registered + number >= MAX_CYCLES {
            crawl.over = Some(Err(GraphError::TooManyCycles {
                max_hops: crawl.registration.graph().max_hops(),
                limit: MAX_CYCLES,
            }));
            return Ok(());
        }
        let job = crawl.registration.unit(number, cycle);
        let receipt = self.submit(WorkerRole::Registrar, 0, Unit::Register(job))?;
        crawl.window.push_back(receipt);
        Ok(())
    }

    /// Collects the oldest registration.
    fn registered(&self, crawl: &mut Crawling<W>) -> Result<(), PumpError> {
        let role = WorkerRole::Registrar;
        let Some(receipt) = crawl.window.pop_front() else {
            return Ok(());
        };
        let number = self.number;
        let given_up = crawl.window.len() as u64 + 1;
        let interrupted = PumpError::Interrupted { number, given_up };
        match wait_unless_interrupted(receipt, self.watch).ok_or(interrupted)? {
            Ok(Ended::Done(Output::Registered(cycle, true))) => {
                crawl.registration.take_ended(crawl.cycles.len());
                crawl.cycles.push(cycle);
                Ok(())
            }
            Ok(Ended::Failed(failure, _)) => Err(PumpError::Failed {
                number,
                role: super::name(role),
                failure,
            }),
            Ok(Ended::Done(_)) | Err(_) => Err(self.protocol(role)),
        }
    }

    /// What was registered takes effect.
    fn install(&mut self, crawl: &Crawling<W>) -> Result<Grown, PumpError> {
        let arbitrage = self.fleet.workload().arbitrage();
        let number = self.number;
        let refused = crawl.over.as_ref().and_then(|over| over.err());
        let graph = Arc::clone(crawl.registration.graph());
        if let Some(refused) = &refused {
            tracing::error!("cycles over new pools are not registered: {refused}");
        } else {
            arbitrage
                .world_mut()
                .grow(graph, &crawl.cycles)
                .map_err(|error| PumpError::World { number, error })?;
            arbitrage.place_new_groups()?;
            // Each new cycle is to be looked at, and each has a new pool.
            let new = crawl
                .new
                .clone()
                .filter_map(|pool| u32::try_from(pool).ok());
            self.changed.extend(new.map(PoolId::new));
        }
        let total = arbitrage.world().table().len();
        if let Some(merge) = &mut self.merge {
            merge.grow(total);
        }
        Ok(Grown {
            epoch: self.epoch,
            pools: crawl.new.len(),
            skipped: crawl.skipped,
            cycles: refused.map_or(crawl.cycles.len(), |_| 0),
            total,
            refused,
        })
    }
}
