//! The threads on which hooks run, one for each while it runs.

use super::handle::refused;
use super::{Attempt, Came, Component, Context, Failed, Handle, Inner, State};
use crate::census::ThreadSpec;
use regatta_core::component::{
    Action, ComponentId, DrainCounts, ErrorCode, Generation, Input, Reaction, Remaining,
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
    let (of_thread, says) = (Arc::clone(inner), Arc::clone(&answered));
    let spec = |kernel_name: String, number: u32| ThreadSpec {
        kernel_name,
        name: format!("{owner}/life/{number}"),
        owner: owner.to_owned(),
        role: ROLE.to_owned(),
        sizing: "one while a hook runs".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let spawned = inner.census.spawn_numbered(PREFIX, spec, move || {
        call(&of_thread, &says, owner, action);
        says.store(true, Ordering::Release);
        of_thread.changed.notify_all();
    });
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

/// There is no thread to run the hook on.
fn unable(inner: &Inner, action: Action) {
    const CODE: ErrorCode = ErrorCode("no_thread");
    let result = Err(CODE);
    let remaining = |id: ComponentId| inner.vitals[id.index()].remaining();
    let input = match action {
        Action::Start { id, .. } => Input::StartFailed {
            id,
            error: CODE,
            remaining: remaining(id),
        },
        Action::Reconnect { id, generation, .. } => Input::AttemptFailed { id, generation },
        Action::Quiesce { id, .. } => Input::Quiesced { id, result },
        Action::Drain { id, .. } => Input::Drained {
            id,
            result,
            counts: DrainCounts::default(),
        },
        Action::Stop { id, .. } => Input::Stopped {
            id,
            result,
            remaining: remaining(id),
        },
        Action::Fence { id } => {
            // A fence waits for nothing; it may run here.
            inner.vitals[id.index()].fence();
            Input::Fenced {
                id,
                remaining: remaining(id),
            }
        }
    };
    answer(inner, &AtomicBool::new(false), input);
}

/// Gives the answer of the worker that `says` so: from then on it has nothing more to do.
fn answer(inner: &Inner, says: &AtomicBool, input: Input) -> Option<Reaction> {
    let mut state = inner.lock();
    // Under the lock: whoever is told of the answer finds the worker idle.
    says.store(true, Ordering::Release);
    let taken = state.supervisor.handle(input, inner.now());
    drop(state);
    inner.changed.notify_all();
    taken.map_err(|error| refused(&error)).ok()
}

/// Runs the hook of an action and gives its answer.
fn call(inner: &Arc<Inner>, says: &AtomicBool, owner: &'static str, action: Action) {
    match action {
        Action::Start { id, until } => start(inner, says, owner, (id, until)),
        Action::Reconnect {
            id,
            generation,
            until,
        } => reconnect(inner, owner, (id, generation), until),
        Action::Quiesce { id, until } => {
            let until = inner.std(until);
            let result = hook(inner, (owner, "quiesce"), id, |c| c.quiesce(until));
            answer(inner, says, Input::Quiesced { id, result });
        }
        Action::Drain { id, until } => {
            let until = inner.std(until);
            let drained = hook(inner, (owner, "drain"), id, |c| c.drain(until));
            let counts = drained.unwrap_or_default();
            let result = drained.map(|_| ());
            answer(inner, says, Input::Drained { id, result, counts });
        }
        Action::Stop { id, until } => {
            let at = inner.std(until);
            let result = hook(inner, (owner, "stop"), id, |c| c.stop(at));
            attempts_end(inner, id, at);
            let remaining = remaining(inner, id);
            answer(
                inner,
                says,
                Input::Stopped {
                    id,
                    result,
                    remaining,
                },
            );
        }
        Action::Fence { id } => {
            let vitals = &inner.vitals[id.index()];
            if catch_unwind(AssertUnwindSafe(|| vitals.fence())).is_err() {
                tracing::error!("{owner}: its fence panicked");
            }
            let remaining = remaining(inner, id);
            tracing::error!("{owner} was fenced: {}", Left(&remaining));
            answer(inner, says, Input::Fenced { id, remaining });
        }
    }
}

/// What a component still owns, with the threads of its hooks that hang.
fn remaining(inner: &Inner, id: ComponentId) -> Remaining {
    let mut remaining = inner.vitals[id.index()].remaining();
    let this = std::thread::current().id();
    let state = inner.lock();
    let hanging = state.workers.iter().filter(|worker| {
        worker.id == id && !worker.has_answered() && worker.thread.thread().id() != this
    });
    let hanging = u32::try_from(hanging.count()).unwrap_or(u32::MAX);
    remaining.threads = remaining.threads.saturating_add(hanging);
    remaining
}

/// Waits for the attempts of a component to end, which are refused what they bring by now.
fn attempts_end(inner: &Inner, id: ComponentId, until: std::time::Instant) {
    let mut state = inner.lock();
    let under_way = |state: &State| {
        let mut workers = state.workers.iter();
        workers
            .any(|worker| worker.id == id && worker.kind == Kind::Attempt && !worker.has_answered())
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

/// Calls a hook of the component, which nobody else has in hand meanwhile.
fn hook<T>(
    inner: &Inner,
    (owner, what): (&'static str, &'static str),
    id: ComponentId,
    call: impl FnOnce(&mut dyn Component) -> Result<T, Failed>,
) -> Result<T, ErrorCode> {
    let taken = inner.lock().components[id.index()].take();
    let Some(mut component) = taken else {
        tracing::error!("{owner}: {what} is asked for while another hook runs");
        return Err(ErrorCode("busy"));
    };
    let called = catch_unwind(AssertUnwindSafe(|| call(&mut *component)));
    inner.lock().components[id.index()] = Some(component);
    match called {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failed)) => {
            tracing::error!("{owner}: {what} failed: {failed}");
            Err(failed.code)
        }
        Err(_) => {
            tracing::error!("{owner}: {what} panicked");
            Err(ErrorCode("panicked"))
        }
    }
}

fn start(
    inner: &Arc<Inner>,
    says: &AtomicBool,
    owner: &'static str,
    (id, until): (ComponentId, Instant),
) {
    let context = Context {
        id,
        runtime: Handle::new(Arc::clone(inner)),
        until: inner.std(until),
    };
    let started = hook(inner, (owner, "start"), id, |c| c.start(context));
    let input = match started {
        Ok(came) => Input::Started {
            id,
            degraded: came == Came::Degraded,
        },
        Err(error) => Input::StartFailed {
            id,
            error,
            remaining: remaining(inner, id),
        },
    };
    if answer(inner, says, input) == Some(Reaction::CloseIt) {
        // After the end nobody else will, and nobody waits for it.
        let now = std::time::Instant::now();
        let closed = hook(inner, (owner, "stop"), id, |c| c.stop(now));
        tracing::warn!("{owner} came up after the end and was closed: {closed:?}");
    }
}

fn reconnect(
    inner: &Inner,
    owner: &'static str,
    (id, generation): (ComponentId, Generation),
    until: Instant,
) {
    let Some(connect) = &inner.connects[id.index()] else {
        attempt_failed(inner, id, generation);
        return;
    };
    let attempt = Attempt {
        inner,
        id,
        generation,
        until: inner.std(until),
    };
    let number = generation.number();
    match catch_unwind(AssertUnwindSafe(|| connect.attempt(&attempt))) {
        Ok(Ok(())) => tracing::info!("{owner}: attempt {number} installed"),
        Ok(Err(failed)) => {
            tracing::warn!("{owner}: attempt {number} failed: {failed}");
            attempt_failed(inner, id, generation);
        }
        Err(_) => {
            tracing::error!("{owner}: attempt {number} panicked");
            attempt_failed(inner, id, generation);
        }
    }
}

/// An attempt that is stale by now is nobody's failure.
fn attempt_failed(inner: &Inner, id: ComponentId, generation: Generation) {
    let mut state = inner.lock();
    let taken = state
        .supervisor
        .handle(Input::AttemptFailed { id, generation }, inner.now());
    drop(state);
    inner.changed.notify_all();
    if let Err(error) = taken {
        tracing::debug!("a stale attempt ended: {error}");
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
