//! The kernel's throttling, the owner of the posture, and what happens to its edges.

use crate::coverage::Event;
use crate::thread::Bring;
use crate::world::World;
use regatta_core::guard::{GuardCell, PostureView};
use regatta_core::port::PosturePort;
use regatta_core::posture::{
    DutyPercent, PostureEvent, PostureOutcome, PostureOwner, PosturePolicy, PosturePolicyPatch,
    ThrottleSample,
};
use regatta_core::time::{Duration, Instant};
use std::cell::Cell;
use std::rc::Rc;

/// What becomes of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Delivered,
    Lost,
    Twice,
    Late(Duration),
}

/// The port of the posture owner: the live guard, and a count of edges.
#[derive(Debug)]
pub(crate) struct Port {
    guard: Rc<GuardCell>,
    edges: Rc<Cell<u32>>,
}

impl PosturePort for Port {
    fn store(&self, view: PostureView) {
        self.guard.set_posture(view);
    }

    fn edge(&self, seq: u32) {
        self.edges.set(seq);
    }
}

/// Whoever samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) owner: PostureOwner<Port>,
    edges: Rc<Cell<u32>>,
    sent: u32,
    periods: u64,
    throttled: Duration,
    pub(crate) blind: bool,
    pub(crate) gap_until: Instant,
    pub(crate) fate: Fate,
}

impl Sampler {
    pub(crate) fn new(guard: &Rc<GuardCell>, width: u16) -> Self {
        let edges = Rc::new(Cell::new(0));
        let port = Port {
            guard: Rc::clone(guard),
            edges: Rc::clone(&edges),
        };
        Self {
            owner: PostureOwner::new(port, PosturePolicy::DEFAULT, width),
            edges,
            sent: 0,
            periods: 0,
            throttled: Duration::ZERO,
            blind: false,
            gap_until: Instant::ORIGIN,
            fate: Fate::Delivered,
        }
    }

    pub(crate) fn throttle(&mut self, periods: u8, ms: u16) {
        self.periods += u64::from(periods);
        self.throttled = self.throttled + Duration::from_millis(ms.into());
    }
}

/// A few policies.
fn policy(which: u8) -> PosturePolicyPatch {
    let empty = PosturePolicyPatch::default();
    match which % 5 {
        0 => PosturePolicy::DEFAULT.whole(),
        1 => PosturePolicyPatch {
            exit_clean_ms: Some(600),
            ..empty
        },
        2 => PosturePolicyPatch {
            enter_events: Some(1),
            sim_intake_floor: Some(Some(1)),
            ..empty
        },
        3 => PosturePolicyPatch {
            duty_percent: Some(DutyPercent::from_thousandths(50_000)),
            exit_clean_ms: Some(1_500),
            ..empty
        },
        _ => PosturePolicyPatch {
            sim_intake_floor: Some(Some(3)),
            duty_window_ms: Some(1_000),
            ..empty
        },
    }
}

impl World<'_> {
    /// When the next sample is due.
    pub(crate) fn sample_due(&self) -> Option<Instant> {
        let machine = self.sampler.owner.machine();
        let due = machine.sample_due(!self.host.is_idle());
        due.map(|due| due.max(self.sampler.gap_until))
    }

    pub(crate) fn sample(&mut self) {
        let mut sample = ThrottleSample::unmeasured(self.time.now);
        if !self.sampler.blind {
            sample.nr_throttled = Some(self.sampler.periods);
            sample.throttled = Some(self.sampler.throttled);
        }
        let outcome = self.sampler.owner.sample(sample);
        self.posture_changed(outcome);
    }

    pub(crate) fn lane_death(&mut self) {
        let outcome = self.sampler.owner.lane_death(self.time.now);
        self.posture_changed(outcome);
    }

    pub(crate) fn retune(&mut self, which: u8) {
        if self.sampler.owner.retune(&policy(which)).is_ok() {
            self.cover.event(Event::Retuned);
        }
        self.send_edges();
    }

    fn posture_changed(&mut self, outcome: PostureOutcome) {
        if let Some(transition) = outcome.transition {
            match transition.event {
                PostureEvent::Throttled if transition.causes.events => {
                    self.cover.event(Event::ByEvents);
                }
                PostureEvent::Throttled => self.cover.event(Event::ByDuty),
                PostureEvent::LaneDied => self.cover.event(Event::ByDeath),
                PostureEvent::Clean => self.cover.event(Event::ExitClean),
                PostureEvent::Unmeasured => self.cover.event(Event::ExitUnmeasured),
            }
        }
        self.send_edges();
    }

    /// The edges of the owner go their ways.
    pub(crate) fn send_edges(&mut self) {
        let last = self.sampler.edges.get();
        let now = self.time.now;
        while self.sampler.sent != last {
            self.sampler.sent = self.sampler.sent.wrapping_add(1);
            let edge = Bring::Edge(self.sampler.sent);
            match self.sampler.fate {
                Fate::Delivered => self.bring(edge, now),
                Fate::Lost => {}
                Fate::Twice => {
                    self.bring(edge, now);
                    self.bring(edge, now);
                }
                Fate::Late(time) => self.bring(edge, now + time),
            }
        }
    }
}
