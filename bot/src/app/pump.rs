//! The block pump as a component: a thread that crawls and then follows the blocks.

use super::quarantine;
use super::record::RunRecord;
use super::stage::{FATAL_BLOCK, Stage};
use crate::cli::SimArg;
use crate::evm::{Limits, Machine, NodeStates};
use crate::follow::{Follower, Said};
use crate::machine::Sampling;
use crate::pipeline::{Arbitrage, CrawlError, Feed, FeedNext, PumpConfig, PumpError, Watch};
use crate::report::Record;
use crate::run::{RunError, crawl_record, crawl_with_progress};
use crate::scenario;
use crate::source::{Block, Event, Head};
use regatta_core::component::{ComponentId, DrainCounts, Probe, Remaining, StopReason};
use regatta_core::plan::LaneBinding;
use regatta_core::role::WorkerRole;
use regatta_portable::Fleet;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{Came, Component, Context, Failed, Handle, Vitals};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) fn component(stage: &Arc<Stage>) -> Box<dyn Component> {
    Box::new(PumpComponent {
        shared: Arc::new(Shared {
            stage: Arc::clone(stage),
            life: Mutex::new(Life::default()),
            changed: Condvar::new(),
            following: AtomicBool::new(false),
        }),
        thread: None,
    })
}

/// Where the thread is.
#[derive(Default)]
struct Life {
    running: bool,
    /// Blocks that it has in hand.
    in_hand: u64,
    /// Blocks that it had in hand when it was to quiesce, if it was.
    owed: Option<u64>,
}

struct Shared {
    stage: Arc<Stage>,
    life: Mutex<Life>,
    /// The thread ended.
    changed: Condvar,
    /// The crawl is over.
    following: AtomicBool,
}

impl Shared {
    fn life(&self) -> MutexGuard<'_, Life> {
        // Each change is one assignment.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the thread to end; whether it has.
    fn ended(&self, until: Instant) -> bool {
        let mut life = self.life();
        while life.running {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(life, left);
            life = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Vitals for Shared {
    fn probe(&self) -> Probe {
        if !self.life().running {
            Probe::NotReady("ended")
        } else if self.following.load(Ordering::Acquire) {
            Probe::Ready
        } else {
            Probe::NotReady("crawling")
        }
    }

    fn fence(&self) {
        self.stage.interrupt();
        self.stage.cut();
    }

    fn remaining(&self) -> Remaining {
        let life = self.life();
        Remaining {
            receipts: life.in_hand,
            threads: u32::from(life.running),
            handles: 0,
        }
    }
}

struct PumpComponent {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Component for PumpComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let spec = ThreadSpec {
            kernel_name: "rg-pump".to_owned(),
            name: "regatta/bot/pump".to_owned(),
            owner: "pump".to_owned(),
            role: "pump".to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Pinned,
        };
        let shared = Arc::clone(&self.shared);
        shared.life().running = true;
        let (runtime, id) = (context.runtime, context.id);
        let thread = shared.stage.census().spawn(spec, {
            let shared = Arc::clone(&shared);
            move || live(&shared, &runtime, id)
        });
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                Ok(Came::Up)
            }
            Err(error) => {
                shared.life().running = false;
                Err(Failed::new("no_thread", error))
            }
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        let mut life = self.shared.life();
        life.owed = Some(life.in_hand);
        drop(life);
        self.shared.stage.interrupt();
        Ok(())
    }

    /// The block in hand is led to its end.
    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        self.shared.ended(until);
        let life = self.shared.life();
        let owed = life.owed.unwrap_or(0);
        Ok(DrainCounts {
            accepted_before_quiesce: owed,
            completed_during_drain: owed.saturating_sub(life.in_hand),
            remaining_at_deadline: life.in_hand.min(owed),
            ..DrainCounts::default()
        })
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.shared.stage.interrupt();
        if !self.shared.ended(until) {
            return Err(Failed::new("thread_left", "the pump does not end"));
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(Failed::new("panicked", "the pump's thread unwound"));
        }
        Ok(())
    }
}

/// The life of the thread.
fn live(shared: &Shared, runtime: &Handle, id: ComponentId) {
    let stage = &shared.stage;
    let ended = catch_unwind(AssertUnwindSafe(|| work(shared)));
    // Said before the thread counts as ended, so that whoever waits for that finds the failure.
    match ended {
        Ok(Ok(())) => runtime.stop(StopReason::Requested),
        // Whoever reads us has had enough: an end like any other.
        Ok(Err(error)) if error.is_reader_gone() => {
            stage.fail(error);
            runtime.stop(StopReason::Requested);
        }
        // Cut off, it finds what it needs gone: that is no failure of its own.
        Ok(Err(error)) if stage.is_cut() => tracing::debug!("the pump was cut off: {error}"),
        // So is one that is late to be cut off: the fence and the fleet's end come at the same time.
        Ok(Err(error)) if error.is_closed_fleet() && runtime.deadline().is_some() => {
            tracing::debug!("the fleet ended before the pump: {error}");
        }
        Ok(Err(error)) => {
            stage.fail(error);
            runtime.failed(id);
        }
        Err(_) => {
            stage.fail(RunError::ComponentFailed { component: "pump" });
            runtime.failed(id);
        }
    }
    let mut life = shared.life();
    // What it had in hand ended with it, typed: its units are the fleet's to account for.
    (life.running, life.in_hand) = (false, 0);
    drop(life);
    shared.changed.notify_all();
}

/// Samples, and knows when to stop waiting.
struct Interruptible<'a> {
    sampling: &'a dyn Watch,
    stage: &'a Stage,
}

impl fmt::Debug for Interruptible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interruptible").finish_non_exhaustive()
    }
}

impl Watch for Interruptible<'_> {
    fn work(&self, working: bool) {
        self.sampling.work(working);
    }

    fn interrupted(&self) -> bool {
        self.stage.is_interrupted()
    }

    fn tend(&self) -> Option<Duration> {
        self.sampling.tend()
    }
}

fn work(shared: &Shared) -> Result<(), RunError> {
    let stage = &shared.stage;
    let fleet = stage.fleet().ok_or(RunError::Cut)?;
    if stage.args().scenario.is_some() {
        let record = scenario::cordon_crawl(fleet, stage.census())?;
        return stage.emit_of_pump(Record::Scenario(record));
    }
    let feed = stage.take_feed().ok_or(RunError::Cut)?;
    let written = RunRecord::of(stage);
    let began = Instant::now();
    let sampling = Sampling::new(fleet.as_ref());
    let watch = Interruptible {
        sampling: &sampling,
        stage,
    };
    watch.work(true);
    let crawled = match crawl_with_progress(fleet, stage.graph(), &watch) {
        Err(CrawlError::Interrupted { path, given_up }) => {
            tracing::warn!("stopped during the crawl, after {path} paths");
            stage.totals().give_up(given_up);
            return written.end();
        }
        crawled => crawled?,
    };
    let record = crawl_record(stage, crawled, began.elapsed());
    stage.emit_of_pump(Record::Crawl(record))?;
    shared.following.store(true, Ordering::Release);
    follow(shared, fleet, feed, written, &watch)
}

/// Follows the blocks to their end.
fn follow(
    shared: &Shared,
    fleet: &Fleet<Arbitrage>,
    mut feed: Feed,
    mut written: RunRecord<'_>,
    watch: &dyn Watch,
) -> Result<(), RunError> {
    let stage = &shared.stage;
    let args = stage.args();
    let config = PumpConfig {
        bins: fleet.plan().keys(WorkerRole::Solver.id()),
        top: usize::from(args.top),
        min_profit: args.min_profit,
    };
    let chain = stage.origin().chain.clone();
    let mut follower = Follower::new(fleet, config, chain, feed.is_replay(), watch)?;
    if let Some(machine) = machine(stage)? {
        follower = follower.with_evm(machine);
    }
    follower.wake(feed.waker());
    let mut events: Vec<Event> = Vec::new();
    let mut findings = Vec::new();
    let began = Instant::now();
    while !stage.is_interrupted() {
        if feed.next(&mut events, watch, follower.is_growing())? == FeedNext::End {
            break;
        }
        events = written.take(events)?;
        let blocks = || {
            let blocks = events.iter().filter_map(|event| match event {
                Event::Block(Block { number, .. })
                | Event::Reread {
                    head: Head { number, .. },
                    ..
                } => Some(*number),
                _ => None,
            });
            blocks.rev()
        };
        shared.life().in_hand = blocks().count() as u64;
        if let Some(newest) = blocks().next() {
            stage.suffer("pump", newest);
        }
        for event in &events {
            if let Event::Reverted { hash, .. } = event {
                stage.dispatch().reverted(*hash);
            }
            if let Some(settling) = stage.settling() {
                settling.event(event);
            }
        }
        quarantine::take(stage, fleet, &mut findings)?;
        match follower.take(events.drain(..), &mut |said| say(stage, fleet, said)) {
            Err(RunError::Pump(PumpError::Interrupted { number, given_up })) => {
                tracing::warn!("stopped while units were held after block {number}");
                stage.totals().give_up(given_up);
                break;
            }
            taken => taken?,
        }
        shared.life().in_hand = 0;
    }
    let given_up = follower.finish(&mut |said| say(stage, fleet, said))?;
    stage.totals().give_up(given_up);
    stage.totals().elapsed = began.elapsed();
    written.end()
}

/// The machine, if candidates are to run as bytecode.
fn machine(stage: &Stage) -> Result<Option<Machine>, RunError> {
    if stage.args().sim == SimArg::Exact {
        return Ok(None);
    }
    let (Some(asker), Some(chain_id)) = (stage.asker(), stage.origin().chain_id) else {
        return Err(RunError::SimNeedsNode);
    };
    let reader = Box::new(NodeStates(asker.clone()));
    Ok(Some(Machine::new(chain_id, reader, Limits::default())?))
}

/// Adds it up and hands it on.
fn say(stage: &Stage, fleet: &Fleet<Arbitrage>, said: Said<'_>) -> Result<(), RunError> {
    let record = match said {
        Said::Block(head, record, result) => {
            stage.totals().add(record.number, result);
            if record.number >= FATAL_BLOCK && stage.is_to_die("drain") {
                stage.kill_drainer();
            }
            // What is settled was published: it is offered after the record was taken.
            let found = stage.settling().map(|_| record.winners.clone());
            stage.emit_of_pump(Record::Block(*record))?;
            if let Some(settling) = stage.settling() {
                for winner in found.iter().flatten() {
                    settling.found(&head, winner);
                }
            }
            if let Some(verifier) = stage.dispatch().verifier() {
                let world = fleet.workload().world();
                verifier.publish(head, &result.moved, world.market());
            }
            return Ok(());
        }
        Said::Distrust(record) => Record::Distrust(record),
        Said::Missed(record) => {
            stage.totals().miss();
            Record::Missed(record)
        }
        Said::Registered(record) => Record::Registered(record),
        Said::Retract(record) => {
            stage.totals().retract();
            Record::Retract(record)
        }
    };
    stage.emit_of_pump(record)
}
