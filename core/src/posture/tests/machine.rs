//! The machine: a reference that keeps every sample, and each threshold one step to either side.

use super::super::*;
use proptest::prelude::*;
use std::vec::Vec;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

fn sample(ms: u64, events: u64, throttled_us: u64) -> ThrottleSample {
    ThrottleSample {
        at: at(ms),
        nr_throttled: Some(events),
        throttled: Some(Duration::from_micros(throttled_us)),
    }
}

fn machine() -> PostureMachine {
    PostureMachine::new(PosturePolicy::DEFAULT, 1)
}

fn patch(pairs: &[(&str, &str)]) -> PosturePolicyPatch {
    let mut patch = PosturePolicyPatch::default();
    for (key, text) in pairs {
        patch.set(key, text).unwrap();
    }
    patch
}

#[test]
fn the_first_sample_is_a_baseline_whatever_it_says() {
    let mut m = machine();
    assert_eq!(m.sample(sample(5, 1_000_000, 1_000_000_000)), None);
    assert_eq!((m.events(at(5)), m.duty(at(5))), (0, 0));
}

#[test]
fn a_counter_that_goes_backwards_is_a_new_baseline() {
    let mut m = machine();
    m.sample(sample(0, 100, 900_000));
    assert_eq!(m.sample(sample(250, 3, 10)), None);
    assert_eq!((m.events(at(250)), m.duty(at(250))), (0, 0));
    assert_eq!(m.sample(sample(500, 4, 10)), None);
    let entered = m.sample(sample(750, 5, 10)).unwrap();
    assert_eq!(
        (entered.event, entered.causes.events),
        (PostureEvent::Throttled, true)
    );
}

#[test]
fn two_events_cordon_within_the_window_and_not_a_step_outside() {
    // The first event is read at 100 ms, so it is gone when a window of 1 s ends at 1100 ms.
    for (second, enters) in [(1_099, true), (1_100, false)] {
        let mut m = machine();
        for (ms, events) in [(0, 0), (100, 1)] {
            assert_eq!(m.sample(sample(ms, events, 0)), None);
        }
        assert_eq!(m.sample(sample(second, 2, 0)).is_some(), enters, "{second}");
    }
}

#[test]
fn an_event_read_at_the_baselines_own_moment_leaves_the_window_with_that_moment() {
    for (second, enters) in [(999, true), (1_000, false)] {
        let mut m = machine();
        m.sample(sample(0, 0, 0));
        m.sample(sample(0, 1, 0));
        assert_eq!(m.sample(sample(second, 2, 0)).is_some(), enters, "{second}");
    }
}

#[test]
fn duty_must_exceed_the_percentage() {
    // 2 % of 5 s on one CPU are 100 ms.
    for (width, throttled_us, enters) in [
        (1, 100_000, false),
        (1, 100_001, true),
        (4, 400_000, false),
        (4, 400_001, true),
    ] {
        let mut m = PostureMachine::new(PosturePolicy::DEFAULT, width);
        m.sample(sample(0, 0, 0));
        let entered = m.sample(sample(250, 0, throttled_us));
        assert_eq!(
            entered.map(|t| t.causes.duty),
            enters.then_some(true),
            "{width} {throttled_us}"
        );
    }
}

#[test]
fn duty_is_never_more_than_all_of_it() {
    let mut m = machine();
    m.retune(&patch(&[("cordon_duty_percent", "100")])).unwrap();
    m.sample(sample(0, 0, 0));
    assert_eq!(
        m.sample(sample(250, 0, 60_000_000)),
        None,
        "100 % is not exceeded"
    );
    assert_eq!(m.duty(at(250)), 100_000);
}

#[test]
fn what_happened_over_an_hour_of_idleness_does_not_stand_for_the_last_second() {
    let mut m = machine();
    m.sample(sample(0, 0, 0));
    assert_eq!(m.sample(sample(3_600_000, 50, 1_000_000)), None);
    // 7200 events in an hour are two in some second at least.
    assert!(m.sample(sample(7_200_000, 7_250, 1_000_000)).is_some());
}

#[test]
fn a_cordon_ends_after_exactly_the_clean_time_and_one_bad_sample_starts_it_anew() {
    for bad_at in [None, Some(6_000)] {
        let mut m = machine();
        m.sample(sample(0, 0, 0));
        assert!(m.sample(sample(250, 2, 0)).is_some());
        let mut events = 2;
        let (mut left, mut ms) = (None, 500);
        while left.is_none() {
            if bad_at == Some(ms) {
                events += 2;
            }
            left = m.sample(sample(ms, events, 0)).map(|t| (ms, t.event));
            ms += 250;
        }
        // Events read at `t` are in the window until `t + 1 s`; the first clean sample is then.
        let clean_from = bad_at.unwrap_or(250) + 1_000;
        assert_eq!(left, Some((clean_from + 10_000, PostureEvent::Clean)));
        let counters = m.counters();
        assert_eq!(
            (counters.enters, counters.exits, counters.unmeasured_exits),
            (1, 1, 0)
        );
        assert_eq!(counters.cordoned, at(clean_from + 10_000).since(at(250)));
    }
}

#[test]
fn a_cordon_that_nobody_can_measure_ends_loudly_and_not_a_moment_early() {
    let mut m = machine();
    m.sample(sample(0, 0, 0));
    m.sample(sample(250, 2, 0));
    assert_eq!(m.sample(ThrottleSample::unmeasured(at(10_249))), None);
    let left = m.sample(ThrottleSample::unmeasured(at(10_250))).unwrap();
    assert_eq!(
        (left.event, left.to),
        (PostureEvent::Unmeasured, Posture::Nominal)
    );
    assert_eq!(m.counters().unmeasured_exits, 1);
}

#[test]
fn unmeasured_samples_are_neither_clean_nor_bad() {
    let mut m = machine();
    m.sample(sample(0, 0, 0));
    m.sample(sample(250, 2, 0));
    m.sample(sample(2_000, 2, 0));
    for ms in (2_250..11_750).step_by(250) {
        assert_eq!(m.sample(ThrottleSample::unmeasured(at(ms))), None, "{ms}");
    }
    let left = m.sample(sample(12_000, 2, 0)).unwrap();
    assert_eq!(left.event, PostureEvent::Clean);
}

#[test]
fn duty_alone_measures_and_absent_events_are_not_zero() {
    let only_duty = |ms, us| ThrottleSample {
        nr_throttled: None,
        ..sample(ms, 0, us)
    };
    let mut m = machine();
    m.sample(only_duty(0, 0));
    let entered = m.sample(only_duty(250, 200_000)).unwrap();
    assert_eq!((entered.causes.duty, entered.causes.events), (true, false));
    // Events come back after a gap: their first delta covers it, evenly.
    m.sample(sample(500, 7, 200_000));
    assert_eq!(m.events(at(500)), 0);
}

#[test]
fn a_dead_lane_cordons_for_good_while_throttling_comes_and_goes() {
    let mut m = machine();
    let died = m.lane_death(at(0)).unwrap();
    assert!(died.causes.lane_death);
    assert_eq!(m.sample_due(false), None, "no sample can end it");
    m.sample(sample(0, 0, 0));
    assert_eq!(m.sample(sample(250, 2, 0)), None, "cordoned already");
    assert!(m.causes().events);
    assert_eq!(m.sample_due(false), Some(at(250) + SAMPLE_PERIOD));
    assert_eq!(m.sample(sample(2_000, 2, 0)), None);
    assert_eq!(m.sample(sample(12_000, 2, 0)), None);
    let only_the_lane = Causes {
        lane_death: true,
        ..Causes::default()
    };
    assert_eq!(
        (m.causes(), m.posture()),
        (only_the_lane, Posture::Cordoned)
    );
    assert!(m.view().lane_death && m.view().cordoned);
    assert_eq!(m.sample_due(false), None);
    assert_eq!(m.counters().exits, 0);
}

#[test]
fn samples_are_due_while_working_or_cordoned_and_at_no_other_time() {
    let mut m = machine();
    assert_eq!(
        (m.sample_due(false), m.sample_due(true)),
        (None, Some(Instant::ORIGIN))
    );
    m.sample(sample(0, 0, 0));
    assert_eq!(
        (m.sample_due(false), m.sample_due(true)),
        (None, Some(at(250)))
    );
    m.sample(sample(100, 2, 0));
    assert_eq!(m.sample_due(false), Some(at(350)));
}

#[test]
fn a_retune_keeps_the_samples_and_the_next_one_is_judged_anew() {
    let mut m = machine();
    m.sample(sample(0, 0, 0));
    m.sample(sample(2_000, 1, 0));
    m.sample(sample(3_500, 2, 0));
    assert_eq!(m.posture(), Posture::Nominal);
    m.retune(&patch(&[("cordon_enter_window_ms", "3000")]))
        .unwrap();
    assert_eq!(m.events(at(3_500)), 2);
    assert!(m.sample(sample(3_750, 2, 0)).is_some());
    let refused = m.retune(&patch(&[
        ("cordon_enter_window_ms", "1"),
        ("cordon_enter_events", "0"),
    ]));
    assert!(refused.is_err() && m.policy().enter_window() == Duration::from_secs(3));
}

#[test]
fn time_that_goes_backwards_stands_still() {
    let mut m = machine();
    m.sample(sample(1_000, 0, 0));
    m.sample(sample(500, 1, 0));
    let entered = m.sample(sample(0, 2, 0)).unwrap();
    assert_eq!(entered.at, at(1_000));
}

/// Every sample, the formulas, and nothing else.
#[derive(Default)]
struct Reference {
    samples: Vec<ThrottleSample>,
    cordoned: bool,
    clean_since: Option<u64>,
    measured: u64,
}

impl Reference {
    /// What the counter grew by within the window, each delta spread over the time since the sample
    /// before that read it.
    fn grown(
        &self,
        now: u64,
        window: u64,
        up: bool,
        of: impl Fn(&ThrottleSample) -> Option<u64>,
    ) -> u64 {
        let read: Vec<(u64, u64)> = self
            .samples
            .iter()
            .filter_map(|s| Some((s.at.as_nanos(), of(s)?)))
            .collect();
        let from = i128::from(now) - i128::from(window);
        let mut sum = 0;
        for pair in read.windows(2) {
            let ((start, before), (end, after)) = (pair[0], pair[1]);
            let amount = i128::from(after.saturating_sub(before));
            let inside = i128::from(end) - from.max(i128::from(start));
            if i128::from(end) <= from {
                continue;
            }
            let span = i128::from(end - start);
            sum += if inside == span {
                amount
            } else if up {
                (amount * inside + span - 1) / span
            } else {
                amount * inside / span
            };
        }
        u64::try_from(sum).unwrap()
    }

    fn take(&mut self, sample: ThrottleSample, width: u64) {
        self.samples.push(sample);
        let now = sample.at.as_nanos();
        if sample.nr_throttled.is_none() && sample.throttled.is_none() {
            if self.cordoned && now - self.measured >= 10_000 * MS {
                (self.cordoned, self.clean_since) = (false, None);
            }
            return;
        }
        self.measured = now;
        let events = self.grown(now, 1_000 * MS, true, |s| s.nr_throttled);
        let throttled = self.grown(now, 5_000 * MS, false, |s| {
            s.throttled.map(Duration::as_nanos)
        });
        if events >= 2 || throttled > 100 * MS * width {
            (self.cordoned, self.clean_since) = (true, None);
        } else if self.cordoned {
            let since = *self.clean_since.get_or_insert(now);
            if now - since >= 10_000 * MS {
                (self.cordoned, self.clean_since) = (false, None);
            }
        }
    }
}

/// Milliseconds since the last sample, and what the counters did, if they were read.
fn steps(
    gap: core::ops::Range<u64>,
) -> impl Strategy<Value = Vec<(u64, Option<i64>, Option<i64>)>> {
    let events = prop::option::weighted(
        0.9,
        prop_oneof![8 => Just(0i64), 2 => 1i64..4, 1 => Just(-50)],
    );
    let throttled = prop::option::weighted(
        0.9,
        prop_oneof![6 => Just(0i64), 4 => 0i64..60_000_000, 1 => Just(-900_000_000)],
    );
    let blind = prop_oneof![9 => Just(false), 1 => Just(true)];
    prop::collection::vec(
        (gap, events, throttled, blind).prop_map(|(ms, events, throttled, blind)| {
            if blind {
                (ms, None, None)
            } else {
                (ms, events, throttled)
            }
        }),
        1..200,
    )
}

fn play(steps: &[(u64, Option<i64>, Option<i64>)]) -> Vec<ThrottleSample> {
    let (mut ms, mut events, mut throttled) = (0, 100u64, 1_000_000_000u64);
    let mut samples = Vec::new();
    for &(gap, more_events, more_throttled) in steps {
        ms += gap;
        events = events.saturating_add_signed(more_events.unwrap_or(0));
        throttled = throttled.saturating_add_signed(more_throttled.unwrap_or(0));
        samples.push(ThrottleSample {
            at: at(ms),
            nr_throttled: more_events.map(|_| events),
            throttled: more_throttled.map(|_| Duration::from_nanos(throttled)),
        });
    }
    samples
}

proptest! {
    /// Samples at least 1/64 of the longer window apart are never joined, so nothing may differ.
    #[test]
    fn the_machine_is_the_reference_where_no_sample_is_joined(
        steps in steps(79..900), width in 1u16..5,
    ) {
        let mut m = PostureMachine::new(PosturePolicy::DEFAULT, width);
        let mut reference = Reference::default();
        for sample in play(&steps) {
            let before = m.posture();
            let transition = m.sample(sample);
            reference.take(sample, u64::from(width));
            let want = if reference.cordoned { Posture::Cordoned } else { Posture::Nominal };
            prop_assert_eq!(m.posture(), want, "at {:?}", sample.at);
            prop_assert_eq!(transition.map(|t| t.to), (before != want).then_some(want));
            let now = sample.at.as_nanos();
            prop_assert_eq!(m.events(sample.at), reference.grown(now, 1_000 * MS, true, |s| s.nr_throttled));
        }
    }

    /// Far above 100 Hz a total stays between what is surely inside and what may be.
    #[test]
    fn a_joined_total_is_within_the_stated_resolution(
        steps in steps(0..6), window in 100u64..2_000, later in 100u64..2_000,
    ) {
        let mut m = PostureMachine::new(PosturePolicy::DEFAULT, 1);
        m.retune(&patch(&[("cordon_enter_window_ms", &window.to_string())])).unwrap();
        let mut reference = Reference::default();
        let samples = play(&steps);
        for (index, sample) in samples.iter().enumerate() {
            // A change of window in the middle joins what was kept, and loses nothing.
            let window = if index < samples.len() / 2 { window } else { window.max(later) };
            m.retune(&patch(&[("cordon_enter_window_ms", &window.to_string())])).unwrap();
            m.sample(*sample);
            reference.samples.push(*sample);
            let now = sample.at.as_nanos();
            let part = window * MS / 64 + 1;
            let total = m.events(sample.at);
            let sure = reference.grown(now, window * MS - part, false, |s| s.nr_throttled);
            let may = reference.grown(now, window * MS + part, true, |s| s.nr_throttled);
            prop_assert!(sure <= total && total <= may, "{sure} {total} {may}");
        }
    }
}

#[test]
fn a_minute_at_a_hundred_samples_a_second_is_still_covered() {
    let mut m = machine();
    m.retune(&patch(&[
        ("cordon_enter_window_ms", "60000"),
        ("cordon_enter_events", "4000000000"),
    ]))
    .unwrap();
    for tick in 0..=12_000u64 {
        m.sample(sample(tick * 10, tick, 0));
    }
    let total = m.events(at(120_000));
    assert!((5_999..=6_001).contains(&total), "{total}");
}
