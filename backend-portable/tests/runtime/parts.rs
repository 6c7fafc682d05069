//! What the tests build programs from: parts that do in each hook what they were told, a journal of what
//! they did, and gates on which they block.

use regatta_core::component::{
    BackoffPolicy, ComponentReport, ComponentSpec, DrainCounts, Plane, Probe, Remaining, Report,
    RuntimeState, SupervisorConfig,
};
use regatta_core::time::Duration as Span;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{
    Came, Component, Connect, Context, Failed, Handle, MOST, Registered, Runtime, Vitals,
};
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When a wait counts as a hang. No test takes as long as it should.
pub(crate) const FAR: Duration = Duration::from_mins(1);

/// A budget that no test can use up.
pub(crate) const HOUR: Span = Span::from_secs(3600);

/// Something that threads change and wait for.
pub(crate) struct Watched<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Watched<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Watched<T> {
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let done = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        done
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.0.lock().unwrap())
    }

    /// Waits until `holds`, or fails.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&T) -> bool) {
        let value = self.0.0.lock().unwrap();
        let waited = self.0.1.wait_timeout_while(value, FAR, |v| !holds(v));
        let timed_out = waited.unwrap().1.timed_out();
        assert!(!timed_out, "never: {what}");
    }
}

/// Closed until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Watched<bool>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.change(|open| *open = true);
    }

    pub(crate) fn pass(&self) {
        self.0.until("the gate opens", |open| *open);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Hook {
    Start,
    Quiesce,
    Drain,
    Stop,
    Fence,
    Remaining,
    /// The component was dropped.
    Drop,
}
pub(crate) use Hook::{Drain, Quiesce, Start, Stop};

/// What happened, in order: whose hook began, or ended.
#[derive(Clone, Default)]
pub(crate) struct Journal(Watched<Vec<(&'static str, Hook, bool)>>);

impl Journal {
    fn note(&self, name: &'static str, hook: Hook, ended: bool) {
        self.0.change(|all| all.push((name, hook, ended)));
    }

    /// The hooks that began, in order.
    pub(crate) fn begun(&self) -> Vec<(&'static str, Hook)> {
        let began = |(name, hook, ended): (_, _, bool)| (!ended).then_some((name, hook));
        self.0
            .look(|all| all.iter().copied().filter_map(began).collect())
    }

    pub(crate) fn count(&self, name: &'static str, hook: Hook) -> usize {
        let begun = self.begun();
        begun.iter().filter(|one| **one == (name, hook)).count()
    }

    /// Where in the journal the hook began, and where it ended.
    #[track_caller]
    pub(crate) fn span(&self, name: &'static str, hook: Hook) -> (usize, usize) {
        let at = |end| {
            self.0
                .look(|all| all.iter().position(|one| *one == (name, hook, end)))
        };
        (at(false).unwrap(), at(true).unwrap())
    }

    #[track_caller]
    pub(crate) fn began(&self, name: &'static str, hook: Hook) {
        let what = format!("{name} begins its {hook:?}");
        self.0
            .until(&what, |all| all.contains(&(name, hook, false)));
    }

    #[track_caller]
    pub(crate) fn ended(&self, name: &'static str, hook: Hook) {
        let what = format!("{name} ends its {hook:?}");
        self.0.until(&what, |all| all.contains(&(name, hook, true)));
    }
}

/// What a hook does.
pub(crate) enum Do {
    Fail(&'static str),
    Panic,
    /// Blocks on the gate, whatever time it is.
    Hang(Gate),
    /// Takes all the time that it is given.
    UseUp,
    /// Anything else.
    Run(Box<dyn FnMut() + Send>),
}

impl Do {
    pub(crate) fn run(run: impl FnMut() + Send + 'static) -> Self {
        Self::Run(Box::new(run))
    }
}

/// What a part says of itself.
pub(crate) struct Facts {
    name: &'static str,
    journal: Journal,
    pub(crate) probe: Mutex<Probe>,
    pub(crate) remaining: Mutex<Remaining>,
    panics: Mutex<Vec<Hook>>,
    /// What its fence passes before it ends.
    pub(crate) fence_passes: Mutex<Option<Gate>>,
}

impl Facts {
    fn panic_if_told(&self, hook: Hook) {
        let told = self.panics.lock().unwrap().contains(&hook);
        if told {
            // Without a trace, which takes a loaded machine longer than a fence may take.
            resume_unwind(Box::new("told to"));
        }
    }
}

impl Vitals for Facts {
    fn probe(&self) -> Probe {
        *self.probe.lock().unwrap()
    }

    fn fence(&self) {
        self.journal.note(self.name, Hook::Fence, false);
        self.panic_if_told(Hook::Fence);
        if let Some(gate) = &*self.fence_passes.lock().unwrap() {
            gate.pass();
        }
        self.journal.note(self.name, Hook::Fence, true);
    }

    fn remaining(&self) -> Remaining {
        self.panic_if_told(Hook::Remaining);
        *self.remaining.lock().unwrap()
    }
}

/// A component that does what it is told.
pub(crate) struct Part {
    depends: &'static [&'static str],
    plane: Plane,
    required: bool,
    policy: Option<BackoffPolicy>,
    connect: Option<Arc<dyn Connect>>,
    pub(crate) facts: Arc<Facts>,
    tasks: HashMap<Hook, Do>,
    came: Came,
    pub(crate) counts: DrainCounts,
    /// Given the context of the start.
    told: Option<Box<dyn FnMut(Context) + Send>>,
}

impl Part {
    pub(crate) fn new(
        name: &'static str,
        depends: &'static [&'static str],
        journal: &Journal,
    ) -> Self {
        Self {
            depends,
            plane: Plane::Data,
            required: true,
            policy: None,
            connect: None,
            facts: Arc::new(Facts {
                name,
                journal: journal.clone(),
                probe: Mutex::new(Probe::Ready),
                remaining: Mutex::default(),
                panics: Mutex::default(),
                fence_passes: Mutex::default(),
            }),
            tasks: HashMap::new(),
            came: Came::Up,
            counts: DrainCounts::default(),
            told: None,
        }
    }

    pub(crate) fn control(mut self) -> Self {
        self.plane = Plane::Control;
        self
    }

    pub(crate) fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    pub(crate) fn reconnects(mut self, policy: BackoffPolicy, by: impl Connect + 'static) -> Self {
        (self.policy, self.came) = (Some(policy), Came::Degraded);
        self.connect = Some(Arc::new(by));
        self
    }

    pub(crate) fn on(mut self, hook: Hook, task: Do) -> Self {
        if matches!(hook, Hook::Fence | Hook::Remaining) {
            self.facts.panics.lock().unwrap().push(hook);
        } else {
            self.tasks.insert(hook, task);
        }
        self
    }

    pub(crate) fn told(mut self, told: impl FnMut(Context) + Send + 'static) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    pub(crate) fn spec<'a>(&self, depends: &'a [&'a str]) -> ComponentSpec<'a> {
        ComponentSpec {
            name: self.facts.name,
            depends,
            required: self.required,
            plane: self.plane,
            reconnects: false,
            policy: self.policy,
        }
    }

    fn act(&mut self, hook: Hook, until: Instant) -> Result<(), Failed> {
        let Facts { name, journal, .. } = &*self.facts;
        journal.note(name, hook, false);
        let done = match self.tasks.get_mut(&hook) {
            None => Ok(()),
            Some(Do::Fail(code)) => Err(Failed::new(code, "told to")),
            Some(Do::Panic) => resume_unwind(Box::new("told to")),
            Some(Do::Hang(gate)) => {
                gate.pass();
                Ok(())
            }
            Some(Do::UseUp) => {
                use_up(until);
                Ok(())
            }
            Some(Do::Run(run)) => {
                run();
                Ok(())
            }
        };
        journal.note(name, hook, true);
        done
    }
}

/// Blocks until then, as a hook does that waits for something which does not come.
fn use_up(until: Instant) {
    let never = Watched::<bool>::default();
    let value = never.0.0.lock().unwrap();
    let left = until.saturating_duration_since(Instant::now());
    let waited = never.0.1.wait_timeout_while(value, left, |come| !*come);
    drop(waited.unwrap());
}

impl Component for Part {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::clone(&self.facts) as _
    }

    fn connect(&self) -> Option<Arc<dyn Connect>> {
        self.connect.clone()
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let until = context.until;
        if let Some(told) = &mut self.told {
            told(context);
        }
        self.act(Start, until).map(|()| self.came)
    }

    fn quiesce(&mut self, until: Instant) -> Result<(), Failed> {
        self.act(Quiesce, until)
    }

    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        self.act(Drain, until).map(|()| self.counts)
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.act(Stop, until)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.act(Hook::Drop, Instant::now());
    }
}

/// Budgets; the seed is one.
pub(crate) const fn budgets(start: Span, stop: Span) -> SupervisorConfig {
    SupervisorConfig {
        start_budget: start,
        stop_budget: stop,
        seed: 1,
    }
}

/// Returns once it holds, which nothing announces.
#[track_caller]
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + FAR;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// A program that runs on a thread of its own.
pub(crate) struct Program {
    pub(crate) census: Census,
    pub(crate) handle: Handle,
    run: JoinHandle<Report<MOST>>,
}

impl Program {
    pub(crate) fn new(parts: Vec<Part>, config: SupervisorConfig) -> Self {
        let census = Census::new();
        Self::of(runtime(parts, config, &census), census)
    }

    pub(crate) fn of(runtime: Runtime, census: Census) -> Self {
        let handle = runtime.handle();
        let spec = ThreadSpec::one("test", "driver");
        let run = census.spawn(spec, move || runtime.run(|_| ())).unwrap();
        Self {
            census,
            handle,
            run,
        }
    }

    /// The report, and the owners of the threads that are left.
    pub(crate) fn end(self) -> (Report<MOST>, Vec<String>) {
        let report = self.run.join().unwrap();
        let rows = self.census.rows().into_iter();
        let owners = rows.filter(|row| row.running).map(|row| row.spec.owner);
        (report, owners.collect())
    }

    /// Returns once everything is up.
    pub(crate) fn up(self) -> Self {
        eventually("everything is up", || {
            self.handle.state() == RuntimeState::Running
        });
        self
    }
}

pub(crate) fn runtime(parts: Vec<Part>, config: SupervisorConfig, census: &Census) -> Runtime {
    let depends: Vec<_> = parts.iter().map(|part| part.depends).collect();
    let registered = parts.into_iter().zip(&depends).map(|(part, depends)| {
        let spec = part.spec(depends);
        let component = Box::new(part);
        Registered { spec, component }
    });
    let audit = Box::new(|_: &Census| true);
    Runtime::new(registered.collect(), &[], config, census, audit).unwrap()
}

/// What the report says of a component.
#[track_caller]
pub(crate) fn of(report: &Report<MOST>, name: &str) -> ComponentReport {
    let mut all = report.components.iter();
    *all.find(|component| component.name == name).unwrap()
}
