//! What the components of a run share.

use crate::capture::Writer;
use crate::cli::{FaultKind, Hook, LogArg, RunArgs};
use crate::config::ConfigFile;
use crate::cycles::CycleGraph;
use crate::dispatch::Dispatch;
use crate::drain::{Drain, Item, Refusal, Refused};
use crate::machine::Seats;
use crate::node::{Asker, Found, Node, OnHead};
use crate::pipeline::{Arbitrage, Feed, FeedCloser};
use crate::report::{PlanRecord, Record};
use crate::run::RunError;
use crate::settle::{Intake, Opened, Settler};
use crate::start::{Origin, Start};
use crate::tally::Totals;
use crate::verify::ReserveReader;
use regatta_core::plan::FleetPlan;
use regatta_portable::{Census, Fleet, FleetConfig};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Changes the log level.
pub type SetLog = Box<dyn Fn(LogArg) + Send + Sync>;

/// From this block on an injected end of a thread comes; a live run may miss any single one.
pub(crate) const FATAL_BLOCK: u64 = 5;

/// Where a run writes to.
pub(crate) type Out = Box<dyn io::Write + Send>;

/// What is made before anything starts.
pub(crate) struct Ready {
    pub(crate) args: RunArgs,
    pub(crate) plan: FleetPlan,
    pub(crate) plan_record: PlanRecord,
    pub(crate) seats: Seats,
    pub(crate) start: Start,
    pub(crate) graph: Arc<CycleGraph>,
    pub(crate) workload: Arbitrage,
    pub(crate) config: FleetConfig,
    pub(crate) settlement: Option<Opened>,
    pub(crate) out: Out,
    pub(crate) record: Option<Writer<File>>,
    pub(crate) file: ConfigFile,
    pub(crate) set_log: SetLog,
}

/// What the fleet is booted from, once.
pub(crate) struct Boot {
    pub(crate) workload: Arbitrage,
    pub(crate) config: FleetConfig,
    pub(crate) plan_record: PlanRecord,
}

/// What the components share.
pub(crate) struct Stage {
    args: RunArgs,
    plan: FleetPlan,
    seats: Seats,
    graph: Arc<CycleGraph>,
    census: Census,
    out: Mutex<Option<Out>>,
    record: Mutex<Option<Writer<File>>>,
    dispatch: Dispatch,
    boot: Mutex<Option<Boot>>,
    origin: Origin,
    start: Mutex<Option<Start>>,
    asker: Option<Asker>,
    settler: Mutex<Option<Settler>>,
    settling: Option<Intake>,
    fleet: OnceLock<Arc<Fleet<Arbitrage>>>,
    feed: Mutex<Option<Feed>>,
    reader: Mutex<Option<Box<dyn ReserveReader>>>,
    closer: OnceLock<FeedCloser>,
    /// The pump is to take no more blocks, and to give up what it waits for.
    interrupted: AtomicBool,
    /// What the pump says from here on has no effect.
    cut: AtomicBool,
    /// The summary has been said.
    accounted: AtomicBool,
    config: Mutex<ConfigFile>,
    set_log: SetLog,
    totals: Mutex<Totals>,
    failure: Mutex<Option<RunError>>,
}

/// A lock whose holder changes the value whole or not at all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    pub(crate) fn new(ready: Ready, bins: u8, census: Census) -> Self {
        let (settler, settling) = ready.settlement.map(Settler::new).unzip();
        Self {
            settler: Mutex::new(settler),
            settling,
            dispatch: Dispatch::new(ready.args.verifies()),
            asker: ready.start.asker(),
            args: ready.args,
            plan: ready.plan,
            seats: ready.seats,
            census,
            out: Mutex::new(Some(ready.out)),
            record: Mutex::new(ready.record),
            boot: Mutex::new(Some(Boot {
                workload: ready.workload,
                config: ready.config,
                plan_record: ready.plan_record,
            })),
            origin: Origin::of(&ready.start, &ready.graph),
            start: Mutex::new(Some(ready.start)),
            graph: ready.graph,
            fleet: OnceLock::new(),
            feed: Mutex::new(None),
            reader: Mutex::new(None),
            closer: OnceLock::new(),
            interrupted: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            accounted: AtomicBool::new(false),
            config: Mutex::new(ready.file),
            set_log: ready.set_log,
            totals: Mutex::new(Totals::new(bins)),
            failure: Mutex::new(None),
        }
    }

    pub(crate) const fn args(&self) -> &RunArgs {
        &self.args
    }

    pub(crate) const fn plan(&self) -> &FleetPlan {
        &self.plan
    }

    pub(crate) const fn seats(&self) -> &Seats {
        &self.seats
    }

    pub(crate) const fn graph(&self) -> &Arc<CycleGraph> {
        &self.graph
    }

    pub(crate) const fn census(&self) -> &Census {
        &self.census
    }

    /// What the fleet is booted from; once.
    pub(crate) fn take_boot(&self) -> Option<Boot> {
        lock(&self.boot).take()
    }

    /// What is said of where the run started.
    pub(crate) const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The node that the run follows, if it follows one; once.
    pub(crate) fn take_node(&self) -> Option<(Node, Found)> {
        let mut start = lock(&self.start);
        match start.take()?.into_node() {
            Ok(node) => Some(node),
            Err(other) => {
                *start = Some(other);
                None
            }
        }
    }

    /// What asks the node, if the run follows one.
    pub(crate) const fn asker(&self) -> Option<&Asker> {
        self.asker.as_ref()
    }

    /// The way to what settles, if anything does.
    pub(crate) const fn settling(&self) -> Option<&Intake> {
        self.settling.as_ref()
    }

    /// What settles, before it starts; once.
    pub(crate) fn take_settler(&self) -> Option<Settler> {
        lock(&self.settler).take()
    }

    /// What a source that delivers by itself calls with each header.
    pub(crate) fn on_head(&self) -> OnHead {
        let clock = Arc::clone(self.dispatch.clock());
        Box::new(move |head| clock.tick(head))
    }

    /// Where the run starts; once.
    pub(crate) fn take_start(&self) -> Option<Start> {
        lock(&self.start).take()
    }

    /// Gives a fleet the posture policy of the configuration file.
    pub(crate) fn tune(&self, fleet: &Fleet<Arbitrage>) {
        let path = self.args.plan.config.as_deref();
        // The file was checked when it was read.
        if let Ok(Some(patch)) = lock(&self.config).patch(path.unwrap_or(Path::new("")))
            && let Err(error) = fleet.posture().retune(&patch)
        {
            tracing::error!("the posture policy of the configuration was not taken: {error}");
        }
    }

    pub(crate) fn set_fleet(&self, fleet: Arc<Fleet<Arbitrage>>) {
        self.fleet.get_or_init(|| fleet);
    }

    pub(crate) fn fleet(&self) -> Option<&Arc<Fleet<Arbitrage>>> {
        self.fleet.get()
    }

    pub(crate) fn set_feed(&self, feed: Feed) {
        if let Feed::Live(live) = &feed {
            self.closer.get_or_init(|| live.closer());
        }
        *lock(&self.feed) = Some(feed);
    }

    pub(crate) fn take_feed(&self) -> Option<Feed> {
        lock(&self.feed).take()
    }

    /// Takes what can be asked for reserves, if the source can.
    pub(crate) fn set_reader(&self, reader: Box<dyn ReserveReader>) {
        *lock(&self.reader) = Some(reader);
    }

    pub(crate) fn take_reader(&self) -> Option<Box<dyn ReserveReader>> {
        lock(&self.reader).take()
    }

    /// The pipes by which things are handed on.
    pub(crate) const fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    pub(crate) fn totals(&self) -> MutexGuard<'_, Totals> {
        lock(&self.totals)
    }

    /// Where the run writes to; once.
    pub(crate) fn take_out(&self) -> Option<Out> {
        lock(&self.out).take()
    }

    /// Where what the source says is written down, if it is; once.
    pub(crate) fn take_record(&self) -> Option<Writer<File>> {
        lock(&self.record).take()
    }

    pub(crate) fn set_drain(&self, drain: Drain) {
        self.dispatch.set_drain(drain);
    }

    pub(crate) fn drain(&self) -> Option<&Drain> {
        self.dispatch.drain()
    }

    /// The threads of a component that live, those of its hooks apart.
    pub(crate) fn threads_of(&self, owner: &str) -> u32 {
        let rows = self.census.rows();
        let living = rows.iter().filter(|row| {
            row.running
                && row.spec.owner == owner
                && row.spec.role != regatta_portable::runtime::ROLE
        });
        u32::try_from(living.count()).unwrap_or(u32::MAX)
    }

    /// Says something, waiting for a slow sink for as long as `patient` says.
    pub(crate) fn emit(&self, record: Record, patient: impl Fn() -> bool) -> Result<(), RunError> {
        self.emit_while(record, patient, || true)
    }

    /// The same, for as long as whoever says it is `wanted`: that is asked where it takes effect.
    fn emit_while(
        &self,
        record: Record,
        patient: impl Fn() -> bool,
        wanted: impl Fn() -> bool,
    ) -> Result<(), RunError> {
        let drain = self.drain().ok_or(RunError::Cut)?;
        let mut item = Item::publish(record);
        loop {
            let Refused { item: back, why } = match drain.send_while(item, &wanted) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            item = back;
            match why {
                Refusal::Full { .. } if patient() => {}
                Refusal::Withdrawn => return Err(RunError::Cut),
                Refusal::ReaderGone { .. } => {
                    return Err(RunError::Output(io::ErrorKind::BrokenPipe.into()));
                }
                why => return Err(RunError::Output(io::Error::other(why.to_string()))),
            }
        }
    }

    /// Says something of the pump's, unless the pump has been cut off.
    pub(crate) fn emit_of_pump(&self, record: Record) -> Result<(), RunError> {
        self.emit_while(record, || true, || !self.is_cut())
    }

    /// The summary has been said.
    pub(crate) fn account(&self) {
        self.accounted.store(true, Ordering::Release);
    }

    /// Whether the summary has been said.
    pub(crate) fn is_accounted(&self) -> bool {
        self.accounted.load(Ordering::Acquire)
    }

    /// The pump is to end: it takes no more blocks, and gives up what it waits for.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        if let Some(closer) = self.closer.get() {
            closer.close();
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    /// Nothing that the pump says from here on has an effect.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        if let Some(drain) = self.drain() {
            drain.recheck();
        }
    }

    /// Reads the configuration file again: what may change while the process runs does, the rest is
    /// refused by name. A file that is wrong changes nothing.
    pub(crate) fn reload(&self) {
        let Some(path) = &self.args.plan.config else {
            tracing::warn!("SIGHUP: there is no configuration file to read again");
            return;
        };
        let new = match ConfigFile::read(path) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!("SIGHUP: nothing was changed: {error}");
                return;
            }
        };
        let mut current = lock(&self.config);
        for key in current.fixed_changes(&new) {
            tracing::error!("SIGHUP: {key} was not changed: that takes a restart");
        }
        if let (Some(fleet), Ok(Some(patch))) = (self.fleet(), new.patch(path))
            && let Err(error) = fleet.posture().retune(&patch)
        {
            tracing::error!("SIGHUP: nothing was changed: {error}");
            return;
        }
        if let (None, Some(level)) = (self.args.log, new.log) {
            (self.set_log)(level);
        }
        tracing::warn!("SIGHUP: {} was read again", path.display());
        // What takes a restart is what it was.
        current.take_live(new);
    }

    /// Whether the pump was cut off.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// The thread of `component` is at block `number`: the place for an injected end of it.
    #[expect(clippy::panic, reason = "the end of a thread is one of the faults")]
    pub(crate) fn suffer(&self, component: &str, number: u64) {
        if number >= FATAL_BLOCK && self.is_to_die(component) {
            tracing::warn!("an injected fault begins: {component}=panic-run");
            panic!("a fault that was injected");
        }
    }

    /// Ends the drainer's thread, as an injected fault.
    #[expect(clippy::panic, reason = "the end of a thread is one of the faults")]
    pub(crate) fn kill_drainer(&self) {
        tracing::warn!("an injected fault begins: drain=panic-run");
        if let Some(drain) = self.drain() {
            // Whether it is taken or not, nothing follows from it here.
            let _ = drain.send(Item::finalize(|| panic!("a fault that was injected")));
        }
    }

    /// Whether the thread of `component` is to end at work.
    pub(crate) fn is_to_die(&self, component: &str) -> bool {
        let mut faults = self.args.inject.iter();
        faults.any(|fault| {
            fault.component == component
                && (fault.kind, fault.hook) == (FaultKind::Panic, Hook::Run)
        })
    }

    /// The first failure of all is the run's.
    pub(crate) fn fail(&self, error: RunError) {
        let mut failure = lock(&self.failure);
        if failure.is_none() {
            *failure = Some(error);
        } else if !error.is_reader_gone() {
            tracing::error!("and then: {error}");
        }
    }

    /// Whether whoever reads the records has had enough.
    pub(crate) fn is_reader_gone(&self) -> bool {
        lock(&self.failure)
            .as_ref()
            .is_some_and(RunError::is_reader_gone)
    }

    /// The failure, if there was one.
    pub(crate) fn failure(&self) -> Option<RunError> {
        lock(&self.failure).take()
    }
}
