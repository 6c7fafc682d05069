//! Posture: whether the kernel's throttling, or a dead lane, makes the fleet hold back new work.
//!
//! A [`PostureMachine`] is the pure part: samples of the throttle counters in, state out. A
//! [`PostureOwner`] makes each change of it live and nudges the host. Posture shapes only when work
//! starts, never what it yields, and it never touches shares.
//!
//! # Invariants
//! - Every mutation goes through one function of the owner that compares the view before and after,
//!   so no site can change the view and forget the edge.
//! - "Unmeasured" is never "zero": a counter that was not read neither enters nor counts as clean.
//! - All arithmetic is on integers.

mod machine;
mod policy;
mod window;

pub use machine::{Causes, PostureCounters, PostureMachine, PostureTransition, SAMPLE_PERIOD};
pub use policy::{
    DutyPercent, PolicyChange, PolicyChanges, PolicyError, PolicyKey, PolicyValue, PosturePolicy,
    PosturePolicyPatch,
};

use crate::guard::PostureView;
use crate::port::PosturePort;
use crate::time::{Duration, Instant};

crate::fsm! {
    /// Whether new work is held back.
    pub states Posture {
        /// Nothing is held by posture.
        Nominal,
        /// Deferrable roles wait and simulation is held to its floor.
        Cordoned,
    }
    /// What moves the posture.
    pub events PostureEvent {
        /// The kernel throttles more than the policy allows.
        Throttled,
        /// No sample was over the policy for as long as it asks.
        Clean,
        /// No counter could be read for as long as a clean exit takes.
        Unmeasured,
        /// A lane died. The cause stays until the process ends.
        LaneDied,
    }
    /// A posture does not take an event.
    pub error PostureStepError;
    transitions {
        "enter": Nominal -- Throttled --> Cordoned;
        "enter for a dead lane": Nominal -- LaneDied --> Cordoned;
        "exit": Cordoned -- Clean --> Nominal;
        "exit unmeasured": Cordoned -- Unmeasured --> Nominal;
    }
}

impl Posture {
    /// The name in metrics and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nominal => "nominal",
            Self::Cordoned => "cordoned",
        }
    }
}

/// One reading of the throttle counters. Both count from a start of their own; `None` is unmeasured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ThrottleSample {
    /// When it was read.
    pub at: Instant,
    /// Periods in which the group was throttled.
    pub nr_throttled: Option<u64>,
    /// For how long its run queues were throttled, summed over CPUs.
    pub throttled: Option<Duration>,
}

impl ThrottleSample {
    /// A sample at which nothing could be read, and a look at the clock.
    #[must_use]
    pub const fn unmeasured(at: Instant) -> Self {
        Self {
            at,
            nr_throttled: None,
            throttled: None,
        }
    }
}

/// How many units of a role with `slots` slots may run under a cordon: the policy's `floor`, else half
/// the slots rounded up; never less than one, since a cordon slows simulation and does not stop it.
#[must_use]
pub const fn sim_cap(slots: u16, floor: Option<u16>) -> u16 {
    let cap = match floor {
        Some(floor) => floor,
        None => slots.div_ceil(2),
    };
    if cap == 0 { 1 } else { cap }
}

/// What a mutation of the owner did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostureOutcome {
    /// The change of posture, if there was one.
    pub transition: Option<PostureTransition>,
    /// The number of the edge, if the view changed.
    pub edge: Option<u32>,
}

/// The one owner of the live posture.
#[derive(Debug)]
pub struct PostureOwner<P> {
    port: P,
    machine: PostureMachine,
    seq: u32,
}

impl<P: PosturePort> PostureOwner<P> {
    /// An owner that starts nominal and makes that live. `width` is the number of CPUs that can be
    /// throttled at once; see [`PostureMachine::new`].
    pub fn new(port: P, policy: PosturePolicy, width: u16) -> Self {
        let machine = PostureMachine::new(policy, width);
        port.store(machine.view());
        Self {
            port,
            machine,
            seq: 0,
        }
    }

    /// The state, for reading: policy, posture, causes, counters, the next sample's deadline.
    #[must_use]
    pub const fn machine(&self) -> &PostureMachine {
        &self.machine
    }

    /// Takes a sample. Also the clock's tick: an unmeasured sample lets a cordon that nobody can
    /// measure end.
    pub fn sample(&mut self, sample: ThrottleSample) -> PostureOutcome {
        let (transition, edge) = self.mutate(|machine| machine.sample(sample));
        PostureOutcome { transition, edge }
    }

    /// Latches the death of a lane.
    pub fn lane_death(&mut self, now: Instant) -> PostureOutcome {
        let (transition, edge) = self.mutate(|machine| machine.lane_death(now));
        PostureOutcome { transition, edge }
    }

    /// Changes the policy, whole or not at all, and says what changed. The history of samples stays,
    /// and the next sample is judged by the new policy.
    pub fn retune(&mut self, patch: &PosturePolicyPatch) -> Result<PolicyChanges, PolicyError> {
        self.mutate(|machine| machine.retune(patch)).0
    }

    /// Changes the number of CPUs that can be throttled at once, after a resize.
    pub fn set_width(&mut self, width: u16) {
        self.mutate(|machine| machine.set_width(width));
    }

    /// The one way to the machine: whatever changes the view becomes live and is announced.
    fn mutate<R>(&mut self, f: impl FnOnce(&mut PostureMachine) -> R) -> (R, Option<u32>) {
        let before: PostureView = self.machine.view();
        let result = f(&mut self.machine);
        let after = self.machine.view();
        if before == after {
            return (result, None);
        }
        self.port.store(after);
        self.seq = self.seq.wrapping_add(1);
        self.port.edge(self.seq);
        (result, Some(self.seq))
    }
}

#[cfg(test)]
mod tests;
