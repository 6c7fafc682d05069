//! The runtime: drives the core's [`Supervisor`] with real threads.
//!
//! A program builds its long-lived parts as [`Component`]s, and [`Runtime::run`] starts them in the order
//! of their dependencies, waits, and stops them within one deadline. Each hook of a component runs on a
//! census thread of its own while it runs, so one that hangs holds up nobody else; what it still holds is
//! in the report. The core decides everything; this module carries it out.
//!
//! # Invariants
//! - The supervisor is used under one lock, and every answer is given there by the thread that has it.
//! - At most one hook of a component runs at a time, attempts to reconnect and the fence apart.
//! - A thread that has answered is joined; one that has not is left, and counted as left. Nobody else's
//!   threads are joined.
//! - What an attempt to reconnect brings is installed under the same lock that decides whether it may be.

mod component;
mod handle;
mod worker;

pub use component::{Attempt, Came, Component, Connect, Context, Failed, Registered, Vitals};
pub use handle::Handle;
pub use worker::ROLE;

use crate::census::Census;
use crate::clock::MonotonicClock;
use regatta_core::component::{
    Action, ComponentId, ComponentSet, ComponentSpec, Graph, GraphError, Input, Probe, Reaction,
    Remaining, Report, RuntimeState, StopReason, Supervisor, SupervisorConfig, ThreadClaim,
};
use regatta_core::port::Clock;
use regatta_core::time::Instant;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use worker::Worker;

/// The most components of a program.
pub const MOST: usize = 16;

/// How long the end waits for fences to say what is left. A fence waits for nothing but a CPU, so it takes
/// as long only if something is wrong with it.
pub const FENCE_GRACE: std::time::Duration = std::time::Duration::from_millis(500);

/// Says whether the threads of the process are those of the census.
pub type Audit = Box<dyn Fn(&Census) -> bool + Send + Sync>;

/// What the lock guards.
struct State {
    supervisor: Supervisor<MOST>,
    /// The components that no hook has in hand, by id. One that has stopped is gone.
    components: Vec<Option<Box<dyn Component>>>,
    workers: Vec<Worker>,
    /// A stop that was asked for before anything started.
    early: Option<StopReason>,
    /// Whether a signal has come.
    signalled: bool,
    /// Who lost something before its start had answered.
    lost: ComponentSet,
    /// What fences found left, by id: the last of them ends when the supervisor has closed its report.
    left: Vec<Option<Remaining>>,
}

impl State {
    /// Gives an input. One that nobody waits for is a fault of the program's, and changes nothing.
    fn give(&mut self, input: Input, now: Instant) -> Option<Reaction> {
        let taken = self.supervisor.handle(input, now);
        let refused = |error| tracing::error!("the supervisor refused: {error}");
        taken.map_err(refused).ok()
    }

    /// Asks for a stop, or remembers that it is asked for.
    fn stop(&mut self, reason: StopReason, now: Instant) {
        if self.supervisor.runtime() == RuntimeState::Idle {
            self.early.get_or_insert(reason);
        } else {
            self.give(Input::Stop(reason), now);
        }
    }

    fn report(&self) -> Option<Report<MOST>> {
        let mut report = self.supervisor.report()?;
        for (component, left) in report.components.iter_mut().zip(&self.left) {
            component.remaining = component.remaining.or(*left);
        }
        Some(report)
    }
}

/// What the driver, the workers and the handles share.
struct Inner {
    clock: MonotonicClock,
    census: Census,
    audit: Audit,
    /// By id.
    vitals: Vec<Arc<dyn Vitals>>,
    connects: Vec<Option<Arc<dyn Connect>>>,
    state: Mutex<State>,
    /// Something was answered, asked for, or a worker ended.
    changed: Condvar,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The supervisor changes whole or not at all, and no hook runs under the lock but what an attempt
        // installs, which comes last.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The platform's instant; one that is too far ahead to be stated is as good as an hour.
    fn std(&self, at: Instant) -> std::time::Instant {
        self.clock.to_std(at).unwrap_or_else(|| {
            let hour = std::time::Duration::from_hours(1);
            std::time::Instant::now() + hour
        })
    }

    fn probes(&self) -> Vec<Probe> {
        self.vitals.iter().map(|vitals| vitals.probe()).collect()
    }
}

/// The components of a program, about to run.
pub struct Runtime {
    inner: Arc<Inner>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    /// Checks the graph of `components` with the threads that they `claim`. `audit` says whether the
    /// process has the threads that `census` knows, and no others.
    pub fn new(
        components: Vec<Registered<'_>>,
        claims: &[ThreadClaim<'_>],
        config: SupervisorConfig,
        census: &Census,
        audit: Audit,
    ) -> Result<Self, Box<GraphError>> {
        let (mut specs, mut bodies, mut vitals, mut connects) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for registered in components {
            let connect = registered.component.connect();
            specs.push(ComponentSpec {
                reconnects: connect.is_some(),
                ..registered.spec
            });
            vitals.push(registered.component.vitals());
            connects.push(connect);
            bodies.push(Some(registered.component));
        }
        let graph = Graph::new(&specs, claims).map_err(Box::new)?;
        let left = vec![None; bodies.len()];
        Ok(Self {
            inner: Arc::new(Inner {
                clock: MonotonicClock::new(),
                census: census.clone(),
                audit,
                vitals,
                connects,
                state: Mutex::new(State {
                    supervisor: Supervisor::new(graph, config),
                    components: bodies,
                    workers: Vec::new(),
                    early: None,
                    signalled: false,
                    lost: ComponentSet::EMPTY,
                    left,
                }),
                changed: Condvar::new(),
            }),
        })
    }

    /// The way to ask for a stop, and to ask how things are, from any thread.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.inner))
    }

    /// Starts everything, waits until a stop is asked for or a start fails, and stops everything. Returns
    /// when nothing more is to be done, which is at the deadline at the latest, and [`FENCE_GRACE`] after it
    /// where somebody hangs.
    ///
    /// `changed` is told of each new state of the runtime, on this thread, and must be quick.
    #[must_use]
    pub fn run(self, mut changed: impl FnMut(RuntimeState)) -> Report<MOST> {
        self.begin();
        let (handle, mut told) = (self.handle(), RuntimeState::Idle);
        loop {
            let state = handle.state();
            if state != std::mem::replace(&mut told, state) {
                changed(state);
            }
            let actions = self.due();
            for action in &actions {
                worker::carry_out(&self.inner, *action);
            }
            if !actions.is_empty() {
                continue;
            }
            let state = self.inner.lock();
            if state.supervisor.runtime() == RuntimeState::Stopped {
                let state = self.fences_end(state);
                if let Some(report) = state.report() {
                    drop(state);
                    self.join();
                    return report;
                }
            } else {
                self.wait(state);
            }
        }
    }

    /// Starts, unless a stop was asked for already: then nothing does.
    fn begin(&self) {
        let mut state = self.inner.lock();
        let now = self.inner.now();
        state.give(Input::StartAll, now);
        if let Some(reason) = state.early.take() {
            state.stop(reason, now);
        }
    }

    /// What there is to do now.
    fn due(&self) -> Vec<Action> {
        let mut state = self.inner.lock();
        let now = self.inner.now();
        std::iter::from_fn(|| state.supervisor.poll_action(now)).collect()
    }

    /// Waits until something was answered or asked for, or until the supervisor's deadline.
    fn wait(&self, mut state: MutexGuard<'_, State>) {
        let now = self.inner.now();
        // Between the last look and this lock something may have come: it is looked for under the lock.
        if let Some(action) = state.supervisor.poll_action(now) {
            drop(state);
            worker::carry_out(&self.inner, action);
            return;
        }
        // That look may be what finds that the last answer has come: then nobody will wake us any more.
        if state.supervisor.runtime() == RuntimeState::Stopped {
            return;
        }
        match state.supervisor.next_deadline() {
            None => drop(
                self.inner
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            ),
            Some(due) => {
                let left = due.since(now);
                let waited = self.inner.changed.wait_timeout(state, left.into());
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Waits a moment for fences that are under way: what they say belongs into the report.
    fn fences_end<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let end = std::time::Instant::now() + FENCE_GRACE;
        while state.workers.iter().any(Worker::is_fencing) {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.inner.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    /// Joins the threads that have answered. They have nothing more to do.
    fn join(&self) {
        let workers = std::mem::take(&mut self.inner.lock().workers);
        let (answered, left): (Vec<_>, Vec<_>) =
            workers.into_iter().partition(Worker::has_answered);
        for worker in answered {
            worker.join();
        }
        self.inner.lock().workers = left;
    }
}

/// The name of a component.
fn name_of(inner: &Inner, id: ComponentId) -> &'static str {
    inner.lock().supervisor.graph().name(id)
}
