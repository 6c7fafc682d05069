//! Frozen is told from slow, stopped and busy; the newest value wins.

use super::*;
use proptest::prelude::*;
use std::vec::Vec;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn pipe(accepted: u64, completed: u64) -> PipeProgress {
    PipeProgress {
        accepted,
        completed,
        closed: false,
    }
}

/// Looks at every deadline until the watch trips, and says when.
fn trips_at(watch: &mut StallWatch, owed: PipeProgress) -> Instant {
    loop {
        let now = watch.next_deadline().expect("armed");
        if watch.look(now, owed).is_err() {
            return now;
        }
    }
}

#[test]
fn a_frozen_consumer_is_told_after_exactly_the_window() {
    let mut watch = StallWatch::new(StallRule::default());
    watch.look(at(500), pipe(2, 0)).unwrap();
    assert_eq!(trips_at(&mut watch, pipe(2, 0)), at(30_500));
}

#[test]
fn one_item_in_hand_may_take_for_ever_and_arms_no_timer() {
    let mut watch = StallWatch::new(StallRule::default());
    for hour in 0..100 {
        watch.look(at(hour * 3_600_000), pipe(1, 0)).unwrap();
        assert_eq!(watch.next_deadline(), None);
    }
}

#[test]
fn an_hour_without_work_is_not_held_against_the_first_items() {
    let mut watch = StallWatch::new(StallRule::default());
    watch.look(at(0), pipe(0, 0)).unwrap();
    watch.look(at(3_600_000), pipe(2, 0)).unwrap();
    assert_eq!(trips_at(&mut watch, pipe(2, 0)), at(3_630_000));
}

#[test]
fn slow_but_progressing_is_never_frozen() {
    let mut watch = StallWatch::new(StallRule::default());
    for second in 0..10_000u64 {
        // One completion in 29 seconds, and the backlog only grows.
        watch
            .look(at(second * 1_000), pipe(2 + second, second / 29))
            .unwrap();
    }
}

#[test]
fn a_process_that_was_stopped_has_not_stalled() {
    let mut watch = StallWatch::new(StallRule::default());
    watch.look(at(0), pipe(2, 0)).unwrap();
    // An hour between two looks, ten times: each counts as two seconds.
    for hour in 1..=10u64 {
        watch.look(at(hour * 3_600_000), pipe(2, 0)).unwrap();
    }
    assert_eq!(trips_at(&mut watch, pipe(2, 0)), at(36_000_000 + 10_000));
}

#[test]
fn any_number_of_looks_and_items_at_one_moment_counts_nothing() {
    let mut watch = StallWatch::new(StallRule::default());
    for look in 0..100_000u64 {
        watch.look(at(7), pipe(2 + look, 0)).unwrap();
    }
    assert_eq!(trips_at(&mut watch, pipe(200_000, 0)), at(30_007));
}

#[test]
fn a_clock_that_steps_back_neither_fires_nor_freezes_the_watch() {
    let mut watch = StallWatch::new(StallRule::default());
    watch.look(at(10_000), pipe(2, 0)).unwrap();
    watch.look(at(0), pipe(2, 0)).unwrap();
    assert_eq!(trips_at(&mut watch, pipe(2, 0)), at(40_000));
}

#[test]
fn a_closed_pipe_is_told_at_once() {
    let mut watch = StallWatch::new(StallRule::default());
    let closed = PipeProgress {
        closed: true,
        ..pipe(1, 0)
    };
    assert_eq!(
        watch.look(at(0), closed),
        Err(Stalled::Closed { backlog: 1 })
    );
}

proptest! {
    /// The rule in plain words: sum the time between looks, each cut to twice the interval, since the
    /// backlog was last below the floor or a completion was last seen.
    #[test]
    fn the_watch_is_the_sum_of_credited_time(
        steps in prop::collection::vec((0u64..5_000, 0u64..3, 0u64..2), 1..300),
        floor in 1u64..4,
    ) {
        let rule = StallRule { floor, window: Duration::from_secs(20), interval: Duration::from_secs(1) };
        let mut watch = StallWatch::new(rule);
        let (mut now, mut accepted, mut completed) = (0, 0, 0);
        let mut credits: Vec<u64> = Vec::new();
        let mut armed = false;
        for (gap, more, done) in steps {
            now += gap;
            accepted += more;
            let done = done.min(accepted - completed);
            completed += done;
            if accepted - completed < floor {
                armed = false;
            } else if !armed || done > 0 {
                armed = true;
                credits.clear();
            } else {
                credits.push(gap.min(2_000));
            }
            let want = armed && credits.iter().sum::<u64>() >= 20_000;
            prop_assert_eq!(watch.look(at(now), pipe(accepted, completed)).is_err(), want);
            prop_assert_eq!(watch.next_deadline().is_some(), armed);
            if want {
                break;
            }
            let due = watch.next_deadline().map(|d| d.since(at(now)));
            prop_assert!(due.is_none_or(|d| d > Duration::ZERO && d <= rule.interval));
        }
    }

    #[test]
    fn the_newest_value_is_taken_once_and_an_older_one_never_after_it(
        ops in prop::collection::vec(prop::option::of(0u64..20), 1..80),
    ) {
        let mut cell = LatestWins::new();
        let (mut newest, mut waiting): (Option<u64>, Option<u64>) = (None, None);
        for op in ops {
            if let Some(seq) = op {
                let want = if newest.is_some_and(|n| seq <= n) {
                    Offered::Stale(seq)
                } else {
                    newest = Some(seq);
                    waiting.replace(seq).map_or(Offered::Held, Offered::Replaced)
                };
                prop_assert_eq!(cell.offer(seq, seq), want);
            } else {
                prop_assert_eq!(cell.take(), waiting.take().map(|seq| (seq, seq)));
            }
        }
    }
}
