//! What changes without a message, and the nudge that says so.

use crate::clock::MonotonicClock;
use regatta_core::guard::{GuardCell, Permits, PostureView};
use regatta_core::port::{Clock, Park, PosturePort, Wake};
use regatta_core::posture::{PolicyChanges, PolicyError, PosturePolicy, PosturePolicyPatch};
use regatta_core::posture::{Posture, PostureOutcome, PostureOwner, ThrottleSample};
use regatta_core::time::Instant;
use regatta_core::wake::WakeWord;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// Whether posture edges reach the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EdgeDelivery {
    /// Each edge wakes the host.
    #[default]
    Deliver,
    /// Every edge is lost. A fault to inject: the fleet must get on by its backstop alone.
    Suppress,
}

/// The live guard and the way to wake whoever runs the host.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) guard: GuardCell,
    pub(crate) clock: MonotonicClock,
    word: WakeWord,
    sleeper: OnceLock<Thread>,
    /// Counts inputs, so that the sleeper can tell whether one came since it last looked.
    inputs: AtomicU32,
    edge: AtomicU32,
    delivery: EdgeDelivery,
}

impl Live {
    pub(crate) fn new(permits: Permits, delivery: EdgeDelivery) -> Self {
        Self {
            guard: GuardCell::new(permits),
            clock: MonotonicClock::new(),
            word: WakeWord::new(),
            sleeper: OnceLock::new(),
            inputs: AtomicU32::new(0),
            edge: AtomicU32::new(0),
            delivery,
        }
    }

    /// Says which thread [`sleep`](Self::sleep)s; the first call holds. Whoever boots the fleet says it
    /// before anybody can announce: the word does not order a store of the sleeper's before a wake.
    pub(crate) fn set_sleeper(&self, sleeper: &Thread) {
        self.sleeper.get_or_init(|| sleeper.clone());
    }

    /// Announces an input that has been stored.
    pub(crate) fn announce(&self) {
        // Release: whoever sees the count sees the input, an edge or a new view of the guard.
        self.inputs.fetch_add(1, Ordering::Release);
        self.word.notify(self);
    }

    pub(crate) fn inputs(&self) -> u32 {
        self.inputs.load(Ordering::Acquire)
    }

    pub(crate) fn edge(&self) -> u32 {
        self.edge.load(Ordering::Relaxed)
    }

    /// Blocks until an input is announced that `seen` does not count, or until `deadline`.
    pub(crate) fn sleep(&self, seen: u32, deadline: Option<Instant>) {
        self.word.wait(self, deadline, || self.inputs() != seen);
    }
}

impl Wake for Live {
    fn wake(&self) {
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
    }
}

impl Park for Live {
    fn park(&self, deadline: Option<Instant>) {
        match deadline {
            None => std::thread::park(),
            Some(at) => std::thread::park_timeout(at.since(self.clock.now()).into()),
        }
    }
}

/// The port of the posture owner.
#[derive(Clone, Debug)]
pub(crate) struct LivePort(pub(crate) Arc<Live>);

impl PosturePort for LivePort {
    fn store(&self, view: PostureView) {
        self.0.guard.set_posture(view);
    }

    fn edge(&self, seq: u32) {
        if self.0.delivery == EdgeDelivery::Deliver {
            self.0.edge.store(seq, Ordering::Relaxed);
            self.0.announce();
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
