//! What changes without a message, and the nudge that says so.

use crate::clock::MonotonicClock;
use regatta_core::guard::{GuardCell, Permits, PostureView};
use regatta_core::port::{Clock, PosturePort};
use regatta_core::posture::{PolicyChanges, PolicyError, PosturePolicy, PosturePolicyPatch};
use regatta_core::posture::{Posture, PostureOutcome, PostureOwner, ThrottleSample};
use regatta_core::time::Instant;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Whether posture edges reach the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EdgeDelivery {
    /// Each edge reaches the host.
    #[default]
    Deliver,
    /// Every edge is lost. A fault to inject: the fleet must get on by its backstop alone.
    Suppress,
}

/// Runs the host when something in the guard may have changed.
pub(crate) trait Nudge: Send + Sync {
    /// Gives the host a posture edge, and carries out what follows.
    fn posture_edge(&self);
}

/// The live guard, the clock, and the way to whoever runs the host.
pub(crate) struct Live {
    pub(crate) guard: GuardCell,
    pub(crate) clock: MonotonicClock,
    host: OnceLock<Weak<dyn Nudge>>,
    delivery: EdgeDelivery,
}

impl Live {
    pub(crate) fn new(permits: Permits, delivery: EdgeDelivery) -> Self {
        Self {
            guard: GuardCell::new(permits),
            clock: MonotonicClock::new(),
            host: OnceLock::new(),
            delivery,
        }
    }

    /// Says where edges go; the first call holds.
    pub(crate) fn set_host(&self, host: Weak<dyn Nudge>) {
        self.host.get_or_init(|| host);
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// The port of the posture owner.
#[derive(Clone, Debug)]
pub(crate) struct LivePort(pub(crate) Arc<Live>);

impl PosturePort for LivePort {
    fn store(&self, view: PostureView) {
        self.0.guard.set_posture(view);
    }

    fn edge(&self, _: u32) {
        // Whoever brings the edge runs the host; the number is for logs. Before boot and after the end
        // of the fleet there is no host to tell.
        if self.0.delivery == EdgeDelivery::Deliver
            && let Some(host) = self.0.host.get().and_then(Weak::upgrade)
        {
            host.posture_edge();
        }
    }
}

/// The one owner of the fleet's posture, for whoever samples throttling or tunes the policy.
#[derive(Debug)]
pub struct PostureControl {
    owner: Mutex<PostureOwner<LivePort>>,
    live: Arc<Live>,
}

impl PostureControl {
    pub(crate) fn new(live: &Arc<Live>, policy: PosturePolicy, width: u16) -> Self {
        Self {
            owner: Mutex::new(PostureOwner::new(LivePort(Arc::clone(live)), policy, width)),
            live: Arc::clone(live),
        }
    }

    /// The time on the clock by which samples are dated.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.live.clock.now()
    }

    /// Takes a sample of the throttle counters.
    pub fn sample(&self, sample: ThrottleSample) -> PostureOutcome {
        let outcome = self.lock().sample(sample);
        report(&outcome);
        outcome
    }

    /// Latches the death of a lane: a cordon that lasts until a new process.
    pub fn lane_death(&self) -> PostureOutcome {
        let outcome = self.lock().lane_death(self.now());
        report(&outcome);
        outcome
    }

    /// Changes the policy of the running process, whole or not at all, and says what changed.
    pub fn retune(&self, patch: &PosturePolicyPatch) -> Result<PolicyChanges, PolicyError> {
        let changes = self.lock().retune(patch)?;
        for change in &changes {
            tracing::warn!("posture policy changed: {change}");
        }
        Ok(changes)
    }

    /// Changes the number of CPUs that can be throttled at once, after the CPUs or the threads changed.
    pub fn set_width(&self, width: u16) {
        self.lock().set_width(width);
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> PosturePolicy {
        *self.lock().machine().policy()
    }

    /// The posture now.
    #[must_use]
    pub fn posture(&self) -> Posture {
        self.lock().machine().posture()
    }

    /// When the next sample is due, given whether the fleet works; see
    /// [`PostureMachine::sample_due`](regatta_core::posture::PostureMachine::sample_due).
    #[must_use]
    pub fn sample_due(&self, working: bool) -> Option<Instant> {
        self.lock().machine().sample_due(working)
    }

    fn lock(&self) -> MutexGuard<'_, PostureOwner<LivePort>> {
        // The owner changes its state before it tells anybody, so it is whole whenever the lock is free.
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report(outcome: &PostureOutcome) {
    if let Some(transition) = &outcome.transition {
        tracing::warn!("posture changed: {transition:?}");
    }
}
