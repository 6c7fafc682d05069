//! What a program's long-lived parts are to the runtime.

use super::Handle;
use super::Inner;
use regatta_core::component::{
    CommitError, ComponentId, ComponentSpec, DrainCounts, ErrorCode, Generation, Input, Probe,
    Remaining,
};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

/// How a component came up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Came {
    /// With all that it needs.
    Up,
    /// Without something that it is to reconnect to.
    Degraded,
}

/// A hook did not do what it is for.
#[derive(Debug)]
pub struct Failed {
    /// A short name, for logs and metrics: lower case with underscores.
    pub code: ErrorCode,
    /// What happened, for people.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Failed {
    /// A failure with a name.
    pub fn new(code: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            code: ErrorCode(code),
            source: source.into(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.source)
    }
}

/// What a starting component is told.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its id.
    pub id: ComponentId,
    /// The runtime, to ask it for a stop or to tell it of a loss.
    pub runtime: Handle,
    /// Until when it may take to start.
    pub until: Instant,
}

/// What can be asked of a component, and done to it, while a hook of it runs, or hangs.
pub trait Vitals: Send + Sync {
    /// Whether it does what it is for. Does not block.
    fn probe(&self) -> Probe;

    /// Cuts it off: whatever it does from here on must have no effect. Does not wait for anything.
    fn fence(&self);

    /// What it still owns, as far as can be told at once. The thread of a hook that hangs is counted by
    /// the runtime, and a panic as one handle: nobody can vouch for it.
    fn remaining(&self) -> Remaining;
}

/// A long-lived part of a program.
///
/// A hook runs on a thread of its own and may block until the time that it is given; one that takes longer
/// is fenced and left behind. A hook that panics has failed. A component that has stopped, or whose start
/// has failed, is dropped by the same thread: what it owns is gone before it is counted.
pub trait Component: Send + 'static {
    /// What others may ask while a hook runs.
    fn vitals(&self) -> Arc<dyn Vitals>;

    /// What makes attempts to reconnect, if the component can.
    fn connect(&self) -> Option<Arc<dyn Connect>> {
        None
    }

    /// Starts it. A failure takes back what it began; what it could not take back is in its
    /// [`Vitals::remaining`].
    fn start(&mut self, context: Context) -> Result<Came, Failed>;

    /// Closes its intake.
    fn quiesce(&mut self, _until: Instant) -> Result<(), Failed> {
        Ok(())
    }

    /// Finishes what it accepted, or counts at `until` what it could not.
    fn drain(&mut self, _until: Instant) -> Result<DrainCounts, Failed> {
        Ok(DrainCounts::default())
    }

    /// Ends it. One that was not asked to quiesce does that too. What is left is in its
    /// [`Vitals::remaining`].
    fn stop(&mut self, until: Instant) -> Result<(), Failed>;
}

/// Makes attempts to reconnect, each on a thread of its own, whatever the component's hooks do meanwhile.
pub trait Connect: Send + Sync {
    /// Connects and installs what it brings by [`Attempt::install`]. What may not be installed is closed.
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<(), Failed>;
}

/// One attempt to reconnect.
pub struct Attempt<'a> {
    pub(super) inner: &'a Inner,
    pub(super) id: ComponentId,
    pub(super) generation: Generation,
    /// Until when it may take.
    pub until: Instant,
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("id", &self.id)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Attempt<'_> {
    /// Which attempt it is.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Calls `install` if the attempt is still the current one and the runtime is up. Whether it is cannot
    /// change before `install` has returned, which must be soon, and must not ask the runtime for anything.
    /// On an error what was to be installed is to be closed. What panics is lost.
    pub fn install(&self, install: impl FnOnce()) -> Result<(), CommitError> {
        let mut state = self.inner.lock();
        let now = self.inner.now();
        state.supervisor.commit(self.id, self.generation, now)?;
        let installed = catch_unwind(AssertUnwindSafe(install));
        if installed.is_err() {
            state.give(Input::Lost { id: self.id }, now);
        }
        drop(state);
        self.inner.changed.notify_all();
        installed.map_err(|panic| resume_unwind(panic))
    }
}

/// A component as it is registered. Whether it reconnects is seen from the component.
pub struct Registered<'a> {
    /// Name, dependencies, plane and policy.
    pub spec: ComponentSpec<'a>,
    /// The component.
    pub component: Box<dyn Component>,
}

impl fmt::Debug for Registered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}
