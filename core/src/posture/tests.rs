//! The machine against a plain reference, its thresholds at their edges, and the owner's edges.

mod machine;
mod policy;

use super::*;
use core::cell::RefCell;
use proptest::prelude::*;
use std::vec::Vec;

/// Records what an owner makes live.
#[derive(Default)]
struct Log(RefCell<Vec<(PostureView, Option<u32>)>>);

impl PosturePort for &Log {
    fn store(&self, view: PostureView) {
        self.0.borrow_mut().push((view, None));
    }
    fn edge(&self, seq: u32) {
        let mut log = self.0.borrow_mut();
        let last = log.last_mut().unwrap();
        assert_eq!(last.1, None, "an edge follows a store");
        last.1 = Some(seq);
    }
}

#[test]
fn half_the_slots_rounded_up_and_never_none() {
    let halves: Vec<u16> = (0..=7).map(|slots| sim_cap(slots, None)).collect();
    assert_eq!(halves, [1, 1, 1, 2, 2, 3, 3, 4]);
    assert_eq!(
        (
            sim_cap(4, Some(3)),
            sim_cap(4, Some(9)),
            sim_cap(4, Some(0))
        ),
        (3, 9, 1)
    );
    assert_eq!(sim_cap(u16::MAX, None), 32_768);
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Sample(u64, Option<u64>, Option<u64>),
    LaneDeath,
    Floor(Option<u16>),
    Width(u16),
}

fn op() -> impl Strategy<Value = Op> {
    let count = prop::option::of(0u64..4);
    prop_oneof![
        12 => (0u64..9000, count.clone(), prop::option::of(0u64..400))
            .prop_map(|(ms, events, throttled)| Op::Sample(ms, events, throttled)),
        1 => Just(Op::LaneDeath),
        1 => prop::option::of(0u16..3).prop_map(Op::Floor),
        1 => (0u16..9).prop_map(Op::Width),
    ]
}

proptest! {
    #[test]
    fn what_is_live_is_always_the_view_and_every_change_of_it_has_one_edge(
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let log = Log::default();
        let mut owner = PostureOwner::new(&log, PosturePolicy::DEFAULT, 1);
        let (mut now, mut events, mut throttled) = (Instant::ORIGIN, 0, Duration::ZERO);
        for op in ops {
            match op {
                Op::Sample(ms, more_events, more_throttled) => {
                    now = now + Duration::from_millis(ms);
                    events += more_events.unwrap_or(0);
                    throttled = throttled + Duration::from_millis(more_throttled.unwrap_or(0));
                    owner.sample(ThrottleSample {
                        at: now,
                        nr_throttled: more_events.map(|_| events),
                        throttled: more_throttled.map(|_| throttled),
                    });
                }
                Op::LaneDeath => {
                    owner.lane_death(now);
                }
                Op::Floor(floor) => {
                    let patch = PosturePolicyPatch {
                        sim_intake_floor: Some(floor),
                        ..PosturePolicyPatch::default()
                    };
                    prop_assert_eq!(owner.retune(&patch).is_err(), floor == Some(0));
                }
                Op::Width(width) => owner.set_width(width),
            }
            prop_assert_eq!(log.0.borrow().last().unwrap().0, owner.machine().view());
        }
        let log = log.0.into_inner();
        for (index, pair) in log.windows(2).enumerate() {
            prop_assert_ne!(pair[0].0, pair[1].0, "no store without a change");
            prop_assert_eq!(pair[1].1, u32::try_from(index + 1).ok(), "edges count up");
        }
        prop_assert_eq!(log[0].1, None, "nobody waits for the first view");
    }
}

#[test]
fn an_outcome_tells_the_transition_and_the_edge() {
    let log = Log::default();
    let mut owner = PostureOwner::new(&log, PosturePolicy::DEFAULT, 1);
    let died = owner.lane_death(Instant::ORIGIN);
    assert_eq!(died.edge, Some(1));
    assert_eq!(
        died.transition.map(|t| t.event),
        Some(PostureEvent::LaneDied)
    );
    let again = owner.lane_death(Instant::ORIGIN);
    assert_eq!((again.edge, again.transition), (None, None));
}
