//! The runtime from outside: asking for a stop, telling of a loss, asking how things are.

use super::{Inner, MOST, State};
use regatta_core::component::{
    ComponentId, ComponentState, Input, Liveness, Readiness, Report, RuntimeState, StopReason,
};
use regatta_core::time::Instant;
use std::fmt;
use std::sync::Arc;

/// A handle on a runtime. Clones are of the same one.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) const fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// Does something under the lock, and wakes who carries out what follows.
    fn with<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = self.inner.lock();
        let done = change(&mut state, self.inner.now());
        drop(state);
        self.inner.changed.notify_all();
        done
    }

    /// Asks everything to stop. A runtime that stops already goes on with its first reason, and one that
    /// has not begun to start will not.
    pub fn stop(&self, reason: StopReason) {
        self.with(|state, now| state.stop(reason, now));
    }

    /// A signal that asks to stop. The first begins the stop, also before and during the start, and changes
    /// nothing about a stop that has another reason; another one ends the drain and leaves the safe minimum.
    /// Returns whether it was another one.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn signal(&self, number: u8) -> bool {
        self.with(|state, now| {
            let again = std::mem::replace(&mut state.signalled, true);
            if again {
                state.give(Input::SecondSignal, now);
            } else {
                state.stop(StopReason::Signal(number), now);
            }
            again
        })
    }

    /// The component has failed and the program cannot go on without it.
    pub fn failed(&self, id: ComponentId) {
        let name = super::name_of(&self.inner, id);
        self.stop(StopReason::ComponentFailed(name));
    }

    /// The component lost something that it needs. Any number of threads may notice the same loss, also
    /// before its start has answered. Nothing says which connection is meant: a loss is told after what was
    /// lost had been installed, and before anything is installed in its place.
    pub fn lost(&self, id: ComponentId) {
        self.with(|state, now| {
            if state.supervisor.state(id) == Some(ComponentState::Starting) {
                state.lost = state.lost.with(id);
            } else {
                state.give(Input::Lost { id }, now);
            }
        });
    }

    /// A component without a reconnect policy has again what it had lost.
    pub fn recovered(&self, id: ComponentId) {
        self.with(|state, now| {
            if state.supervisor.state(id) == Some(ComponentState::Starting) {
                state.lost = state.lost.without(id);
            } else {
                state.give(Input::Recovered { id }, now);
            }
        });
    }

    /// Where the runtime is in its life.
    #[must_use]
    pub fn state(&self) -> RuntimeState {
        self.inner.lock().supervisor.runtime()
    }

    /// Whether the process is ready: what every required component says of itself, and whether its threads
    /// are those that it knows.
    #[must_use]
    pub fn readiness(&self) -> Readiness<MOST> {
        // Probes are the program's code: not under the lock.
        let probes = self.inner.probes();
        let reconciled = (self.inner.audit)(&self.inner.census);
        let state = self.inner.lock();
        state.supervisor.readiness(&probes, reconciled)
    }

    /// Whether the process is alive. `stalled` is what the rules about stalls say of its work.
    #[must_use]
    pub fn liveness(&self, stalled: bool) -> Liveness {
        let state = self.inner.lock();
        state.supervisor.liveness(stalled, self.inner.now())
    }

    /// The report, once everything has stopped.
    #[must_use]
    pub fn report(&self) -> Option<Report<MOST>> {
        self.inner.lock().report()
    }

    /// Until when the stop may take, once it has begun; a second signal makes it earlier.
    #[must_use]
    pub fn deadline(&self) -> Option<std::time::Instant> {
        let deadline = self.inner.lock().supervisor.deadline()?;
        Some(self.inner.std(deadline.at()))
    }
}
