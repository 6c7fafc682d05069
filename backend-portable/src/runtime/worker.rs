//! The threads on which hooks run, one for each while it runs.
//!
//! # Invariants
//! - A worker has answered from the moment in which its answer is given: both are done under one lock, so
//!   whoever acts upon the answer finds nothing hanging.

use super::{Attempt, Came, Component, Context, Failed, Handle, Inner, State};
use crate::census::ThreadSpec;
use regatta_core::component::{
    Action, ComponentId, ComponentSet, DrainCounts, ErrorCode, Generation, Input, Reaction,
    Remaining,
};
use regatta_core::plan::LaneBinding;
use regatta_core::time::Instant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

/// What the census says such a thread serves.
pub const ROLE: &str = "life";

/// How the kernel's names of these threads begin.
const PREFIX: &str = "life-";

/// What a panic is called in a report.
const PANICKED: ErrorCode = ErrorCode("panicked");

/// A thread that runs a hook.
pub(super) struct Worker {
    id: ComponentId,
    kind: Kind,
    answered: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hook,
    /// An attempt to reconnect, which runs beside the hooks.
    Attempt,
    /// So does a fence.
    Fence,
}

impl Worker {
    /// Whether it fences and has not answered.
    pub(super) fn is_fencing(&self) -> bool {
        self.kind == Kind::Fence && !self.has_answered()
    }

    /// Whether it has given its answer, so that nothing is left for it to do.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Joins it.
    pub(super) fn join(self) {
        // What panicked in it was caught and answered.
        let _ = self.thread.join();
    }
}

/// Has an action carried out.
pub(super) fn carry_out(inner: &Arc<Inner>, action: Action) {
    reap(inner);
    let (id, kind) = match action {
        Action::Start { id, .. }
        | Action::Quiesce { id, .. }
        | Action::Drain { id, .. }
        | Action::Stop { id, .. } => (id, Kind::Hook),
        Action::Fence { id } => (id, Kind::Fence),
        Action::Reconnect { id, .. } => (id, Kind::Attempt),
    };
    let owner = super::name_of(inner, id);
    let answered = Arc::new(AtomicBool::new(false));
    let duty = Duty {
        inner: Arc::clone(inner),
        owner,
        answered: Arc::clone(&answered),
    };
    let spec = |kernel_name: String, number: u32| ThreadSpec {
        kernel_name,
        name: format!("{owner}/life/{number}"),
        owner: owner.to_owned(),
        role: ROLE.to_owned(),
        sizing: "one while a hook runs".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let spawned = inner
        .census
        .spawn_numbered(PREFIX, spec, move || duty.carry_out(action));
    match spawned {
        Ok(thread) => inner.lock().workers.push(Worker {
            id,
            kind,
            answered,
            thread,
        }),
        Err(error) => {
            tracing::error!("{owner}: no thread for {action:?}: {error}");
            unable(inner, action);
        }
    }
}

/// Joins what has answered, so that a long life leaves no threads behind.
fn reap(inner: &Inner) {
    let mut state = inner.lock();
    let workers = std::mem::take(&mut state.workers);
    let (answered, left): (Vec<_>, Vec<_>) = workers.into_iter().partition(Worker::has_answered);
    state.workers = left;
    drop(state);
    answered.into_iter().for_each(Worker::join);
}

/// There is no thread to run the hook on. What cannot be told to stop is cut off at least.
fn unable(inner: &Inner, action: Action) {
    const CODE: ErrorCode = ErrorCode("no_thread");
    let result = Err(CODE);
    let input = match action {
        Action::Start { id, .. } => {
            let remaining = remaining(inner, id);
            let error = CODE;
            Input::StartFailed {
                id,
                error,
                remaining,
            }
        }
        Action::Reconnect { id, generation, .. } => Input::AttemptFailed { id, generation },
        Action::Quiesce { id, .. } => Input::Quiesced { id, result },
        Action::Drain { id, .. } => {
            let counts = DrainCounts::default();
            Input::Drained { id, result, counts }
        }
        Action::Stop { id, .. } => {
            let remaining = fence(inner, id);
            Input::Stopped {
                id,
                result,
                remaining,
            }
        }
        Action::Fence { id } => {
            let remaining = fence(inner, id);
            Input::Fenced { id, remaining }
        }
    };
    answer(inner, None, |_| input);
}

/// Gives an answer, and says in the same moment that it is given.
fn answer(
    inner: &Inner,
    answered: Option<&AtomicBool>,
    input: impl FnOnce(&mut State) -> Input,
) -> Option<Reaction> {
    let mut state = inner.lock();
    let input = input(&mut state);
    if let Input::Fenced { id, remaining } = input {
        state.left[id.index()] = Some(remaining);
    }
    let reaction = state.give(input, inner.now());
    if let Some(answered) = answered
        && reaction != Some(Reaction::CloseIt)
    {
        answered.store(true, Ordering::Release);
    }
    drop(state);
    inner.changed.notify_all();
    reaction
}

/// Cuts a component off, and says what is left of it. It waits for nothing, so it may be done anywhere.
fn fence(inner: &Inner, id: ComponentId) -> Remaining {
    let vitals = &inner.vitals[id.index()];
    if catch_unwind(AssertUnwindSafe(|| vitals.fence())).is_err() {
        tracing::error!("the fence of {} panicked", super::name_of(inner, id));
    }
    remaining(inner, id)
}

/// What one thread is there for.
struct Duty {
    inner: Arc<Inner>,
    owner: &'static str,
    answered: Arc<AtomicBool>,
}

impl Duty {
    /// Runs the hook of an action and gives its answer.
    fn carry_out(self, action: Action) {
        let inner = &*self.inner;
        match action {
            Action::Start { id, until } => self.start(id, until),
            Action::Reconnect {
                id,
                generation,
                until,
            } => self.reconnect(id, generation, until),
            Action::Quiesce { id, until } => {
                let until = inner.std(until);
                let result = self.hook("quiesce", id, |c| c.quiesce(until));
                self.answer(Input::Quiesced { id, result });
            }
            Action::Drain { id, until } => {
                let until = inner.std(until);
                let drained = self.hook("drain", id, |c| c.drain(until));
                let counts = drained.unwrap_or_default();
                let result = drained.map(|_| ());
                self.answer(Input::Drained { id, result, counts });
            }
            Action::Stop { id, until } => {
                let until = inner.std(until);
                let result = self.hook("stop", id, |c| c.stop(until));
                let result = result.and(self.end(id));
                beside_end(inner, id, until);
                let remaining = remaining(inner, id);
                self.answer(Input::Stopped {
                    id,
                    result,
                    remaining,
                });
            }
            Action::Fence { id } => {
                let remaining = fence(inner, id);
                tracing::error!("{} was fenced: {}", self.owner, Left(&remaining));
                self.answer(Input::Fenced { id, remaining });
            }
        }
        // An attempt that installed something had nothing to answer, and one that closed what came up too
        // late was not done with its answer.
        let state = inner.lock();
        self.answered.store(true, Ordering::Release);
        drop(state);
        inner.changed.notify_all();
    }

    fn answer(&self, input: Input) -> Option<Reaction> {
        answer(&self.inner, Some(&self.answered), |_| input)
    }

    /// Calls a hook of the component, which nobody else has in hand meanwhile.
    fn hook<T>(
        &self,
        what: &'static str,
        id: ComponentId,
        call: impl FnOnce(&mut dyn Component) -> Result<T, Failed>,
    ) -> Result<T, ErrorCode> {
        let owner = self.owner;
        let taken = self.inner.lock().components[id.index()].take();
        let Some(mut component) = taken else {
            tracing::error!("{owner}: {what} is asked for while another hook runs");
            return Err(ErrorCode("busy"));
        };
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut *component)));
        self.inner.lock().components[id.index()] = Some(component);
        match called {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failed)) => {
                tracing::error!("{owner}: {what} failed: {failed}");
                Err(failed.code)
            }
            Err(_) => {
                tracing::error!("{owner}: {what} panicked");
                Err(PANICKED)
            }
        }
    }

    /// Drops a component that no hook will be called of any more, with what it owns.
    fn end(&self, id: ComponentId) -> Result<(), ErrorCode> {
        let component = self.inner.lock().components[id.index()].take();
        catch_unwind(AssertUnwindSafe(|| drop(component))).map_err(|_| {
            tracing::error!("{}: dropping it panicked", self.owner);
            PANICKED
        })
    }

    fn start(&self, id: ComponentId, until: Instant) {
        let inner = &*self.inner;
        let context = Context {
            id,
            runtime: Handle::new(Arc::clone(&self.inner)),
            until: inner.std(until),
        };
        let reaction = match self.hook("start", id, |c| c.start(context)) {
            Ok(came) => answer(inner, Some(&self.answered), |state| {
                let lost = std::mem::replace(&mut state.lost, ComponentSet::EMPTY);
                let degraded = came == Came::Degraded || lost.contains(id);
                Input::Started { id, degraded }
            }),
            Err(error) => {
                let _ = self.end(id);
                let remaining = remaining(inner, id);
                self.answer(Input::StartFailed {
                    id,
                    error,
                    remaining,
                })
            }
        };
        if reaction == Some(Reaction::CloseIt) {
            // After the end nobody else will, and nobody waits for it.
            let now = std::time::Instant::now();
            let closed = self.hook("stop", id, |c| c.stop(now));
            let closed = closed.and(self.end(id));
            let owner = self.owner;
            tracing::warn!("{owner} came up after the end and was closed: {closed:?}");
        }
    }

    fn reconnect(&self, id: ComponentId, generation: Generation, until: Instant) {
        let (inner, owner) = (&*self.inner, self.owner);
        let attempt = Attempt {
            inner,
            id,
            generation,
            until: inner.std(until),
        };
        let connect = inner.connects[id.index()].as_deref();
        let attempted = catch_unwind(AssertUnwindSafe(|| {
            connect.map(|connect| connect.attempt(&attempt))
        }));
        // Of an attempt that has installed what it brought, and of one that is stale by now, this is
        // nobody's failure, and says nothing to the supervisor. One that only says that it is done has
        // failed.
        let reaction = self.answer(Input::AttemptFailed { id, generation });
        let (number, failed) = (generation.number(), reaction == Some(Reaction::Noted));
        match attempted {
            Ok(Some(Ok(()))) if !failed => tracing::info!("{owner}: attempt {number} ended"),
            Ok(Some(Ok(()))) => tracing::error!("{owner}: attempt {number} installed nothing"),
            Ok(Some(Err(error))) => tracing::warn!("{owner}: attempt {number} failed: {error}"),
            Ok(None) => tracing::error!("{owner}: nothing makes attempt {number}"),
            Err(_) => tracing::error!("{owner}: attempt {number} panicked"),
        }
    }
}

/// What a component still owns, with the threads of its hooks that hang.
fn remaining(inner: &Inner, id: ComponentId) -> Remaining {
    let vitals = &inner.vitals[id.index()];
    let said = catch_unwind(AssertUnwindSafe(|| vitals.remaining()));
    let mut remaining = said.unwrap_or(Remaining {
        handles: 1,
        ..Remaining::NONE
    });
    let this = std::thread::current().id();
    let state = inner.lock();
    let hanging = state.workers.iter().filter(|worker| {
        worker.id == id && !worker.has_answered() && worker.thread.thread().id() != this
    });
    let hanging = u32::try_from(hanging.count()).unwrap_or(u32::MAX);
    remaining.threads = remaining.threads.saturating_add(hanging);
    remaining
}

/// Waits for what runs beside the hooks of a component: attempts, which are refused what they bring by now,
/// and the fence of a start that came up after all.
fn beside_end(inner: &Inner, id: ComponentId, until: std::time::Instant) {
    let mut state = inner.lock();
    let under_way = |state: &State| {
        let mut workers = state.workers.iter();
        workers.any(|worker| worker.id == id && worker.kind != Kind::Hook && !worker.has_answered())
    };
    while under_way(&state) {
        let left = until.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        let waited = inner.changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// What is left, in words.
struct Left<'a>(&'a Remaining);

impl std::fmt::Display for Left<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Remaining {
            receipts,
            threads,
            handles,
        } = self.0;
        write!(
            f,
            "it still owns {receipts} units, {threads} threads and {handles} handles"
        )
    }
}
