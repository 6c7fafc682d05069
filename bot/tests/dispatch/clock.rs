//! The clock against its plain description, at every small size.

use super::*;
use regatta_bot::dispatch::{Clock, CutOff, TickError};
use std::sync::Mutex;

/// A subscriber who takes nothing before head `takes_at` is given what its bound holds and then cut off, typed; who
/// takes all gets all; and a tick returns whoever is behind.
#[test]
fn who_falls_behind_is_cut_off_at_its_bound_and_nobody_else_is() {
    for bound in 1..=4_usize {
        for takes_after in 0..=6_u64 {
            let clock = Clock::new();
            let slow = clock.subscribe("slow", bound).unwrap();
            let prompt = clock.subscribe("prompt", 1).unwrap();
            let mut got = Vec::new();
            for number in 1..=8 {
                clock.tick(head(number));
                let tick = prompt.next(FAR).unwrap();
                assert_eq!((tick.seq, tick.head), (number, head(number)));
                if number > takes_after {
                    while let Ok(tick) = slow.next(Duration::ZERO) {
                        got.push(tick.head.number);
                    }
                }
            }
            // It takes after the tick, so one more waits by then.
            let lost = takes_after >= bound as u64;
            let all = if lost { bound as u64 } else { 8 };
            assert!(
                got.iter().copied().eq(1..=all),
                "{bound}, {takes_after}: {got:?}"
            );
            let status = clock.status();
            let why = CutOff::Behind {
                name: "slow",
                bound,
                number: bound as u64 + 1,
            };
            if lost {
                assert_eq!(slow.next(FAR), Err(TickError::CutOff(why.clone())));
                assert_eq!(
                    (status.cut_off, status.subscribers),
                    (vec![why], vec!["prompt"])
                );
            } else {
                assert_eq!(slow.next(Duration::ZERO), Err(TickError::TimedOut));
                assert!(status.cut_off.is_empty() && status.subscribers.len() == 2);
            }
            clock.stop();
            assert_eq!(prompt.next(FAR), Err(TickError::Over));
        }
    }
}

#[test]
fn a_subscriber_gets_what_comes_after_it_and_the_queued_before_the_end() {
    let clock = Clock::new();
    clock.tick(head(1));
    let late = clock.subscribe("late", 4).unwrap();
    for number in 2..=4 {
        clock.tick(head(number));
    }
    clock.stop();
    for number in 2..=4 {
        assert_eq!(late.next(FAR).unwrap().head, head(number));
    }
    assert_eq!(late.next(FAR), Err(TickError::Over));
    assert_eq!(
        clock.subscribe("after", 1).unwrap().next(FAR),
        Err(TickError::Over)
    );
    assert_eq!(clock.status().ticks, 4);
}

#[test]
fn who_waits_is_woken_by_a_tick_and_by_the_end() {
    let clock = Arc::new(Clock::new());
    let ticks = clock.subscribe("waits", 1).unwrap();
    let thread = spawn(move || (ticks.next(FAR), ticks.next(FAR)));
    clock.tick(head(1));
    // The bound is one, so the first has to be taken before the end is told; a tick more would cut it off.
    clock.stop();
    let (first, second) = thread.join().unwrap();
    assert_eq!(first.unwrap().head, head(1));
    assert_eq!(second, Err(TickError::Over));
}

#[test]
fn who_leaves_is_forgotten_and_is_no_cut_off() {
    let clock = Clock::new();
    drop(clock.subscribe("leaves", 1).unwrap());
    clock.tick(head(1));
    clock.tick(head(2));
    let status = clock.status();
    assert!(status.cut_off.is_empty() && status.subscribers.is_empty());
}

#[test]
fn a_call_that_panics_is_cut_off_and_the_others_get_the_head() {
    let clock = Clock::new();
    let calls = Arc::new(Mutex::new(Vec::new()));
    clock.call("fails", |tick| assert!(tick.head.number < 2, "planted"));
    clock.call("holds", {
        let calls = Arc::clone(&calls);
        move |tick| calls.lock().unwrap().push(tick.head.number)
    });
    for number in 1..=3 {
        clock.tick(head(number));
    }
    assert_eq!(*calls.lock().unwrap(), [1, 2, 3]);
    let why = CutOff::Panicked {
        name: "fails",
        number: 2,
    };
    assert_eq!(clock.status().cut_off, [why]);
}

#[test]
fn a_queue_without_room_is_refused() {
    let refused = Clock::new().subscribe("none", 0).unwrap_err();
    assert_eq!(refused.name, "none");
}
