//! The posture owner under any samples and policies: what is live is always its view, each change of it has
//! one edge, a cordon has a cause, and what is not measured neither enters nor counts as clean.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_core::guard::PostureView;
use regatta_core::port::PosturePort;
use regatta_core::posture::{
    DutyPercent, Posture, PostureEvent, PostureOwner, PosturePolicy, PosturePolicyPatch,
    ThrottleSample,
};
use regatta_core::time::{Duration, Instant};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Default)]
struct Seen {
    view: Cell<PostureView>,
    stores: Cell<u32>,
    edges: Cell<u32>,
}

struct Port(Rc<Seen>);

impl PosturePort for Port {
    fn store(&self, view: PostureView) {
        self.0.view.set(view);
        self.0.stores.set(self.0.stores.get() + 1);
    }

    fn edge(&self, seq: u32) {
        self.0.edges.set(seq);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let seen = Rc::new(Seen::default());
    let width = bytes.first().copied().unwrap_or(1);
    let mut owner = PostureOwner::new(Port(Rc::clone(&seen)), PosturePolicy::DEFAULT, width.into());
    let mut at = Instant::from_nanos(1);
    let (mut periods, mut throttled) = (0_u64, Duration::ZERO);
    for op in bytes.chunks_exact(4).take(400) {
        let [kind, a, b, c] = [op[0], op[1], op[2], op[3]];
        let wide = u64::from(u16::from_le_bytes([b, c]));
        let before = owner.machine().view();
        let edges = seen.edges.get();
        match kind % 8 {
            0..=4 => {
                at = at + Duration::from_millis(u64::from(a) * 8);
                // Counters start anew now and then, or jump to the end of the word.
                periods = match kind >> 5 {
                    7 => 0,
                    6 => u64::MAX,
                    _ => periods.saturating_add(wide >> 12),
                };
                throttled = throttled + Duration::from_micros(wide * 64);
                let measured = kind % 8 < 4;
                let sample = ThrottleSample {
                    at,
                    nr_throttled: (measured && kind & 8 == 0).then_some(periods),
                    throttled: (measured && kind & 16 == 0).then_some(throttled),
                };
                let blind = sample.nr_throttled.is_none() && sample.throttled.is_none();
                if let Some(transition) = owner.sample(sample).transition {
                    let entered = transition.event == PostureEvent::Throttled;
                    assert!(!(blind && entered), "{transition:?} by {sample:?}");
                    assert!(
                        !(blind && transition.event == PostureEvent::Clean),
                        "{transition:?}"
                    );
                }
            }
            5 => {
                owner.lane_death(at);
            }
            6 => owner.set_width(wide as u16),
            _ => {
                let given = |bit: u8| a & 1 << bit != 0;
                let patch = PosturePolicyPatch {
                    enter_events: given(0).then_some(b.into()),
                    enter_window_ms: given(1).then_some(wide as u32),
                    duty_percent: given(2)
                        .then_some(DutyPercent::from_thousandths(wide as u32 * 3)),
                    duty_window_ms: given(3).then_some(wide as u32),
                    exit_clean_ms: given(4).then_some(wide as u32),
                    sim_intake_floor: given(5).then_some((c != 0).then_some(b.into())),
                };
                let policy = *owner.machine().policy();
                if owner.retune(&patch).is_err() {
                    assert_eq!(policy, *owner.machine().policy(), "refused, and applied");
                }
            }
        }
        let machine = owner.machine();
        assert_eq!(machine.view(), seen.view.get(), "what is live is the view");
        let changed = u32::from(machine.view() != before);
        assert_eq!(seen.edges.get(), edges + changed, "a change has one edge");
        let causes = machine.causes();
        let caused = causes.events || causes.duty || causes.lane_death;
        assert_eq!(machine.posture() == Posture::Cordoned, caused, "{causes:?}");
        assert!(machine.duty(at) <= 100_000);
        let _ = (
            machine.events(at),
            machine.cordoned_for(at),
            machine.sample_due(true),
        );
    }
});
