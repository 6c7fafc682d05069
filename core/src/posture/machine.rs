//! The pure part of the posture: what a sample, a dead lane or a new policy does.

use super::policy::{PolicyChanges, PolicyError, PosturePolicy, PosturePolicyPatch};
use super::window::{Rounding, Trailing};
use super::{Posture, PostureEvent, ThrottleSample};
use crate::guard::PostureView;
use crate::time::{Duration, Instant};

/// The longest time between two samples while the fleet works or a cordon has to end: four a second.
pub const SAMPLE_PERIOD: Duration = Duration::from_millis(250);

/// What cordons.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Causes {
    /// Throttled periods reached the policy's number.
    pub events: bool,
    /// Throttled time exceeded the policy's share.
    pub duty: bool,
    /// A lane died; it stays.
    pub lane_death: bool,
}

impl Causes {
    /// Whether the kernel's throttling is among them.
    #[must_use]
    pub const fn throttled(self) -> bool {
        self.events || self.duty
    }
}

/// A change of posture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostureTransition {
    /// When.
    pub at: Instant,
    /// Why.
    pub event: PostureEvent,
    /// The posture since.
    pub to: Posture,
    /// On entering what cordons, on leaving what did.
    pub causes: Causes,
}

/// What happened since the machine was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostureCounters {
    /// Times a cordon was entered.
    pub enters: u64,
    /// Times one was left.
    pub exits: u64,
    /// Those of `exits` that happened because nothing could be measured.
    pub unmeasured_exits: u64,
    /// Time spent in cordons that are over; see [`PostureMachine::cordoned_for`].
    pub cordoned: Duration,
}

/// Samples in, posture out; see the [module documentation](super).
///
/// It has no port, so recorded samples replay through it under another policy.
#[derive(Clone, Debug)]
pub struct PostureMachine {
    policy: PosturePolicy,
    width: u16,
    state: Posture,
    causes: Causes,
    events: Trailing,
    throttled: Trailing,
    last_sample: Option<Instant>,
    last_measured: Option<Instant>,
    clean_since: Option<Instant>,
    entered: Option<Instant>,
    counters: PostureCounters,
}

impl PostureMachine {
    /// A machine that starts nominal and has measured nothing.
    ///
    /// Throttled time is summed over run queues, so up to `width` seconds of it fit in one second:
    /// the smaller of the allowed CPUs and the plan's threads. Zero is taken as one.
    #[must_use]
    pub fn new(policy: PosturePolicy, width: u16) -> Self {
        Self {
            policy,
            width,
            state: Posture::Nominal,
            causes: Causes::default(),
            events: Trailing::new(policy.enter_window()),
            throttled: Trailing::new(policy.duty_window()),
            last_sample: None,
            last_measured: None,
            clean_since: None,
            entered: None,
            counters: PostureCounters::default(),
        }
    }

    /// The policy in force.
    #[must_use]
    pub const fn policy(&self) -> &PosturePolicy {
        &self.policy
    }

    /// The posture.
    #[must_use]
    pub const fn posture(&self) -> Posture {
        self.state
    }

    /// What cordons: everything that was over the policy since the cordon was entered.
    #[must_use]
    pub const fn causes(&self) -> Causes {
        self.causes
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> PostureCounters {
        self.counters
    }

    /// Time spent cordoned, up to `now`.
    #[must_use]
    pub fn cordoned_for(&self, now: Instant) -> Duration {
        let current = self.entered.map_or(Duration::ZERO, |at| now.since(at));
        self.counters.cordoned + current
    }

    /// What the host reads.
    #[must_use]
    pub const fn view(&self) -> PostureView {
        PostureView {
            cordoned: matches!(self.state, Posture::Cordoned),
            lane_death: self.causes.lane_death,
            sim_floor: self.policy.sim_intake_floor(),
        }
    }

    /// Throttled periods in the trailing window that ends at `now`.
    #[must_use]
    pub fn events(&self, now: Instant) -> u64 {
        self.events.total(now, Rounding::Up)
    }

    /// Throttled time in the trailing window that ends at `now`, as thousandths of a percent of
    /// the time that could have been throttled; at most 100,000, rounded down.
    #[must_use]
    pub fn duty(&self, now: Instant) -> u32 {
        let (throttled, whole) = self.throttled_of(now);
        u32::try_from(throttled * 100_000 / whole).unwrap_or(100_000)
    }

    /// When the next sample is due, given whether the fleet works: a period after the last one, and at
    /// once when there was none. `None` when there is nothing to watch: idle and nominal, or idle
    /// with only a dead lane left, which no sample ends.
    ///
    /// The edges between working and idle want a sample of their own.
    #[must_use]
    pub fn sample_due(&self, working: bool) -> Option<Instant> {
        (working || self.causes.throttled()).then(|| {
            self.last_sample
                .map_or(Instant::ORIGIN, |at| at + SAMPLE_PERIOD)
        })
    }

    /// Takes a sample.
    pub fn sample(&mut self, sample: ThrottleSample) -> Option<PostureTransition> {
        let now = self
            .last_sample
            .map_or(sample.at, |last| last.max(sample.at));
        self.last_sample = Some(now);
        if let Some(count) = sample.nr_throttled {
            self.events.read(now, count);
        }
        if let Some(time) = sample.throttled {
            self.throttled.read(now, time.as_nanos());
        }
        if sample.nr_throttled.is_none() && sample.throttled.is_none() {
            return self.unmeasured(now);
        }
        self.last_measured = Some(now);
        let events = self.events(now) >= u64::from(self.policy.enter_events());
        let duty = self.over_duty(now);
        if events || duty {
            self.clean_since = None;
            self.causes.events |= events;
            self.causes.duty |= duty;
            return self.step(PostureEvent::Throttled, now);
        }
        if !self.causes.throttled() {
            return None;
        }
        let since = *self.clean_since.get_or_insert(now);
        if now.since(since) < self.policy.exit_clean() {
            return None;
        }
        self.unthrottle(PostureEvent::Clean, now)
    }

    /// Latches the death of a lane.
    pub fn lane_death(&mut self, now: Instant) -> Option<PostureTransition> {
        self.causes.lane_death = true;
        self.step(PostureEvent::LaneDied, now)
    }

    /// Changes the policy, whole or not at all.
    pub fn retune(&mut self, patch: &PosturePolicyPatch) -> Result<PolicyChanges, PolicyError> {
        let (policy, changes) = self.policy.patched(patch)?;
        self.policy = policy;
        self.events.set_window(policy.enter_window());
        self.throttled.set_window(policy.duty_window());
        Ok(changes)
    }

    /// Changes the number of CPUs that can be throttled at once.
    pub fn set_width(&mut self, width: u16) {
        self.width = width;
    }

    fn unmeasured(&mut self, now: Instant) -> Option<PostureTransition> {
        let blind = self
            .last_measured
            .map_or(Duration::ZERO, |at| now.since(at));
        if self.causes.throttled() && blind >= self.policy.exit_clean() {
            self.unthrottle(PostureEvent::Unmeasured, now)
        } else {
            None
        }
    }

    /// Ends the throttle causes. A dead lane goes on cordoning.
    fn unthrottle(&mut self, event: PostureEvent, now: Instant) -> Option<PostureTransition> {
        self.clean_since = None;
        let transition = if self.causes.lane_death {
            None
        } else {
            self.step(event, now)
        };
        self.causes = Causes {
            lane_death: self.causes.lane_death,
            ..Causes::default()
        };
        transition
    }

    /// Moves the state, if it takes the event: a cordoned machine takes no second reason to enter.
    fn step(&mut self, event: PostureEvent, now: Instant) -> Option<PostureTransition> {
        let to = self.state.on(event).ok()?;
        self.state = to;
        match to {
            Posture::Cordoned => {
                self.counters.enters += 1;
                self.entered = Some(now);
            }
            Posture::Nominal => {
                self.counters.exits += 1;
                self.counters.unmeasured_exits += u64::from(event == PostureEvent::Unmeasured);
                self.counters.cordoned = self.cordoned_for(now);
                self.entered = None;
            }
        }
        Some(PostureTransition {
            at: now,
            event,
            to,
            causes: self.causes,
        })
    }

    /// `duty > percent`, by cross-multiplication so that nothing is rounded.
    fn over_duty(&self, now: Instant) -> bool {
        let (throttled, whole) = self.throttled_of(now);
        throttled * 100_000 > u128::from(self.policy.duty_percent().thousandths()) * whole
    }

    /// Throttled time in the window and the time that could have been throttled, in nanoseconds, the
    /// first at most the second. The whole window counts, also where no sample covers its
    /// beginning: what was not seen is not taken for throttled.
    fn throttled_of(&self, now: Instant) -> (u128, u128) {
        let window = u128::from(self.policy.duty_window().as_nanos());
        let whole = window * u128::from(self.width.max(1));
        let throttled = self.throttled.total(now, Rounding::Down);
        (u128::from(throttled).min(whole), whole)
    }
}
