//! The one deadline: where its parts lie, and that nothing moves any of them back.

use crate::component::Deadline;
use crate::time::{Duration, Instant};
use proptest::prelude::*;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

#[test]
fn ten_seconds_are_eight_to_drain_and_two_to_stop() {
    let deadline = Deadline::new(ms(1_000), Deadline::DEFAULT_BUDGET);
    assert_eq!(deadline.at(), ms(11_000));
    assert_eq!(deadline.drain_end(), ms(9_000));
    assert_eq!(deadline.fence_at(), ms(9_500));
    assert_eq!(deadline.left(ms(9_000)), Duration::from_secs(2));
    assert_eq!(deadline.left(ms(12_000)), Duration::ZERO);
}

#[test]
fn the_second_signal_leaves_the_reserve_and_the_third_takes_nothing_more_than_time_does() {
    let mut deadline = Deadline::new(ms(0), Duration::from_secs(10));
    deadline.shorten_to_safe_minimum(ms(1_000));
    assert_eq!(
        (deadline.drain_end(), deadline.at()),
        (ms(1_000), ms(3_000))
    );
    deadline.shorten_to_safe_minimum(ms(1_500));
    assert_eq!(deadline.at(), ms(3_000));
}

proptest! {
    #[test]
    fn no_call_moves_anything_to_a_later_time(
        now: u64, budget: u64, calls in prop::collection::vec((any::<bool>(), any::<u64>()), 0..8),
    ) {
        let mut deadline = Deadline::new(Instant::from_nanos(now), Duration::from_nanos(budget));
        for (safe, to) in calls {
            let before = deadline;
            let to = Instant::from_nanos(to);
            if safe {
                deadline.shorten_to_safe_minimum(to);
            } else {
                deadline.shorten(to);
            }
            let parts = |d: &Deadline| [d.drain_end(), d.fence_at(), d.at()];
            prop_assert!(parts(&deadline).iter().zip(parts(&before)).all(|(new, old)| *new <= old));
            prop_assert!(parts(&deadline).is_sorted());
        }
    }
}
