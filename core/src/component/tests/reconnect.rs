//! Backoff and generations.

use super::rig::{A, Rig, at, reconnecting};
use crate::component::{
    Backoff, BackoffError, BackoffPolicy, CommitError, ComponentState, Generation, Input, Limit,
    Reaction, Reconnect, RuntimeState,
};
use crate::time::{Duration, Instant};
use proptest::prelude::*;
use std::vec::Vec;

const POLICY: BackoffPolicy = BackoffPolicy {
    initial: Duration::from_secs(1),
    factor: 3,
    cap: Duration::from_secs(20),
    jitter_percent: 0,
    limit: Limit::Attempts(5),
    attempt: Duration::from_secs(2),
    stable: Duration::from_secs(10),
};

fn delays(policy: BackoffPolicy, seed: u64) -> Vec<Option<u64>> {
    let mut backoff = Backoff::new(policy, seed);
    let delay = |_| backoff.next_delay(at(0)).map(Duration::as_millis);
    (0..7).map(delay).collect()
}

#[test]
fn delays_grow_to_the_cap_and_end() {
    let grown = [1_000, 3_000, 9_000, 20_000, 20_000].map(Some);
    assert_eq!(delays(POLICY, 1), [&grown[..], &[None, None]].concat());
}

#[test]
fn a_window_ends_the_series_by_time() {
    let within = BackoffPolicy {
        limit: Limit::Within(Duration::from_secs(5)),
        ..POLICY
    };
    let mut backoff = Backoff::new(within, 0);
    assert!(backoff.next_delay(at(0)).is_some());
    // An attempt would begin at 4, then at 13.
    assert!(backoff.next_delay(at(1)).is_some());
    assert_eq!(backoff.next_delay(at(4)), None);
    backoff.reset();
    assert!(backoff.next_delay(at(100)).is_some());
}

proptest! {
    #[test]
    fn jitter_takes_its_share_and_no_more(seed: u64, percent in 0u8..=100) {
        let policy = BackoffPolicy { jitter_percent: percent, ..POLICY };
        for (delay, whole) in delays(policy, seed).into_iter().zip(delays(POLICY, seed)) {
            let least = whole.map(|whole| whole * u64::from(100 - percent) / 100);
            prop_assert!(delay >= least && delay <= whole, "{delay:?} of {whole:?}");
        }
        prop_assert_eq!(delays(policy, seed), delays(policy, seed));
    }
}

#[test]
fn components_do_not_return_to_a_peer_in_step() {
    let policy = BackoffPolicy {
        jitter_percent: 50,
        ..POLICY
    };
    let firsts: std::collections::BTreeSet<_> =
        (0..100).map(|seed| delays(policy, seed)[0]).collect();
    assert!(firsts.len() > 80, "{}", firsts.len());
}

#[test]
fn a_policy_that_would_ask_without_end_is_refused() {
    assert_eq!(BackoffPolicy::DEFAULT.check(), Ok(()));
    let zero = Duration::ZERO;
    for policy in [
        BackoffPolicy {
            initial: zero,
            ..POLICY
        },
        BackoffPolicy {
            attempt: zero,
            ..POLICY
        },
        BackoffPolicy {
            stable: zero,
            ..POLICY
        },
        BackoffPolicy {
            limit: Limit::Attempts(0),
            ..POLICY
        },
        BackoffPolicy {
            limit: Limit::Within(zero),
            ..POLICY
        },
    ] {
        assert!(matches!(policy.check(), Err(BackoffError::Zero { .. })));
    }
    let low = BackoffPolicy {
        cap: Duration::from_millis(999),
        ..POLICY
    };
    assert!(matches!(low.check(), Err(BackoffError::Cap { .. })));
    let jitter = BackoffPolicy {
        jitter_percent: 101,
        ..POLICY
    };
    assert_eq!(jitter.check(), Err(BackoffError::Jitter { percent: 101 }));
}

/// Loses at `now`, waits, and returns the attempt.
fn attempt(reconnect: &mut Reconnect, now: Instant) -> (Generation, Instant) {
    assert!(reconnect.lost(now));
    let begins = reconnect.next_deadline().unwrap();
    assert_eq!(reconnect.poll(begins - Duration::from_nanos(1)), None);
    (reconnect.poll(begins).unwrap().0, begins)
}

#[test]
fn only_the_current_attempt_is_installed_and_once() {
    let mut reconnect = Reconnect::new(POLICY, 0, at(0));
    let (first, _) = attempt(&mut reconnect, at(0));
    // It takes too long, and the next one is on its way when it comes.
    let over = reconnect.next_deadline().unwrap();
    assert!(reconnect.expire(over));
    let again = reconnect.next_deadline().unwrap();
    let (second, _) = reconnect.poll(again).unwrap();
    assert!(second > first);
    let stale = reconnect.commit(first, again).unwrap_err();
    assert_eq!((stale.offered, stale.current), (first, second));
    assert!(reconnect.failed(first, again).is_err());
    assert_eq!(reconnect.commit(second, again), Ok(()));
    assert!(reconnect.commit(second, again).is_err());
}

#[test]
fn a_peer_that_accepts_and_drops_runs_out_of_attempts() {
    let mut reconnect = Reconnect::new(POLICY, 0, at(0));
    let mut now = at(0);
    for _ in 0..5 {
        let (generation, begins) = attempt(&mut reconnect, now);
        reconnect.commit(generation, begins).unwrap();
        now = begins + Duration::from_secs(9);
    }
    assert!(reconnect.lost(now));
    assert!(reconnect.gave_up());
    assert_eq!(reconnect.next_deadline(), None);
}

#[test]
fn attempts_count_anew_after_a_stable_period() {
    let mut reconnect = Reconnect::new(POLICY, 0, at(0));
    let mut now = at(0);
    for _ in 0..20 {
        let (generation, begins) = attempt(&mut reconnect, now);
        assert_eq!(reconnect.attempts(), 1);
        reconnect.commit(generation, begins).unwrap();
        now = begins + Duration::from_secs(10);
    }
}

#[test]
fn a_fence_ends_what_waits_and_outdates_what_runs() {
    let mut waiting = Reconnect::new(POLICY, 0, at(0));
    waiting.lost(at(0));
    waiting.fence();
    assert_eq!(
        (waiting.next_deadline(), waiting.poll(at(99))),
        (None, None)
    );
    let mut running = Reconnect::new(POLICY, 0, at(0));
    let (generation, begins) = attempt(&mut running, at(0));
    running.fence();
    assert!(running.commit(generation, begins).is_err());
    assert!(!running.lost(begins));
}

#[test]
fn a_component_goes_from_degraded_over_attempts_to_running_or_failed() {
    let mut rig = Rig::up(&[reconnecting("feed", POLICY)]);
    rig.ok(Input::Lost { id: A });
    assert_eq!(rig.input(Input::Lost { id: A }), Ok(Reaction::Already));
    assert_eq!(rig.poll(), []);
    assert_eq!(rig.supervisor.next_deadline(), Some(at(1)));
    assert_eq!(rig.pass(1), [('R', A)]);
    assert_eq!(rig.state(A), ComponentState::Reconnecting);
    let first = generation(&rig);
    let failed = Input::AttemptFailed {
        id: A,
        generation: first,
    };
    rig.ok(failed);
    assert_eq!(rig.state(A), ComponentState::Degraded);
    let late = rig.input(failed);
    assert_eq!(late, Ok(Reaction::Late));
    assert_eq!(rig.pass(3), [('R', A)]);
    // This one never answers: two seconds later it counts as failed.
    let hung = generation(&rig);
    assert_eq!(rig.pass(2), []);
    assert_eq!(rig.pass(9), [('R', A)]);
    let now = rig.now;
    assert!(matches!(
        rig.supervisor.commit(A, hung, now),
        Err(CommitError::Stale(_))
    ));
    let current = generation(&rig);
    rig.supervisor.commit(A, current, now).unwrap();
    assert_eq!(rig.state(A), ComponentState::Running);
    rig.ok(Input::Lost { id: A });
    for _ in 0..2 {
        assert_eq!(rig.pass(20), [('R', A)]);
        assert_eq!(rig.pass(2), []);
    }
    assert_eq!(rig.state(A), ComponentState::Failed);
    assert_eq!(rig.supervisor.runtime(), RuntimeState::Running);
    // It has what it started with, so it stops as all do.
    rig.stop();
    assert_eq!(rig.poll(), [('Q', A)]);
}

fn generation(rig: &Rig) -> Generation {
    rig.supervisor.connection(A).unwrap().generation()
}

#[test]
fn a_component_may_come_up_without_its_peer() {
    let mut rig = Rig::new(&[reconnecting("feed", POLICY)]);
    rig.ok(Input::StartAll);
    assert_eq!(rig.poll(), [('S', A)]);
    rig.ok(Input::Started {
        id: A,
        degraded: true,
    });
    assert_eq!(rig.supervisor.runtime(), RuntimeState::Running);
    assert_eq!(rig.pass(1), [('R', A)]);
}

#[test]
fn nothing_is_installed_once_a_stop_has_begun() {
    let mut rig = Rig::up(&[reconnecting("feed", POLICY)]);
    rig.ok(Input::Lost { id: A });
    rig.pass(1);
    let current = generation(&rig);
    rig.stop();
    let now = rig.now;
    assert_eq!(
        rig.supervisor.commit(A, current, now),
        Err(CommitError::NotUp(RuntimeState::Stopping))
    );
    let late = rig.input(Input::AttemptFailed {
        id: A,
        generation: current,
    });
    assert_eq!(late, Ok(Reaction::Late));
    assert_eq!(rig.poll(), [('Q', A)]);
}
