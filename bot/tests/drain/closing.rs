//! Quiesce, drain, stop: counts that add up, and refusals that hand back.

use super::writers::{Kept, gated};
use super::*;
use regatta_bot::drain::{DrainError, Refusal};
use regatta_core::dispatch::StallRule;
use regatta_core::time::Duration as Span;
use regatta_portable::census::ThreadSpec;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn what_was_accepted_is_drained_and_what_comes_later_is_handed_back() {
    let kept = Kept::default();
    let (writer, gate) = gated(&kept);
    let drain = start(vec![("out", lines(writer))], small());
    drain.send(Item::publish(record(0))).unwrap();
    gate.begun.recv().unwrap();
    drain.send(Item::publish(record(1))).unwrap();
    gate.leave.send(()).unwrap();
    gate.begun.recv().unwrap();
    drain.send(Item::publish(record(2))).unwrap();
    drain.quiesce();
    assert_eq!(drain.probe(), Err("drain: closing".to_owned()));
    let refused = drain.send(Item::publish(record(3))).unwrap_err();
    assert!(matches!(refused.why, Refusal::Closing));
    let Item::Publish(back) = refused.item else {
        panic!("{refused:?}")
    };
    assert!(matches!(&*back, Record::Missed(missed) if missed.number == 3));

    let drained = drain.drain(Instant::now());
    assert_eq!((drained.accepted, drained.completed_since), (3, 0));
    assert_eq!((drained.rejected, drained.remaining), (1, 2));
    drop(gate);
    let drained = drain.drain(far());
    assert_eq!((drained.accepted, drained.completed_since), (3, 2));
    assert_eq!((drained.rejected, drained.remaining), (1, 0));
    assert_eq!(kept.numbers(), [0, 1, 2]);
    for _ in 0..2 {
        let stopped = drain.stop(far());
        assert!(stopped.still_owned.is_empty());
        assert_eq!(stopped.remaining, 0);
    }
}

#[test]
fn a_sender_that_waits_for_room_is_refused_when_the_drain_closes() {
    let (writer, gate) = gated(&Kept::default());
    let drain = Arc::new(start(vec![("out", lines(writer))], small()));
    let sender = Arc::clone(&drain);
    let (told, closing) = channel();
    // The sink's hand, its spool, the drainer's hand and the queue hold six; the seventh waits.
    let send = move || {
        for number in 0..7 {
            if number == 6 {
                told.send(()).unwrap();
            }
            if let Err(refused) = sender.send(Item::publish(record(number))) {
                return Some((number, refused.why));
            }
        }
        None
    };
    let census = Census::new();
    let sender = census.spawn(ThreadSpec::one("test", "sender"), send);
    closing.recv().unwrap();
    drain.quiesce();
    let refused = sender.unwrap().join().unwrap();
    assert!(
        matches!(refused, Some((6, Refusal::Closing))),
        "{refused:?}"
    );
    assert_eq!(drain.status().rejected, 1);
    drop(gate);
    assert_eq!(drain.drain(far()).remaining, 0);
}

/// A fence is checked where the item would take effect: one that is cut off while it waits for room gets none of
/// it, though room comes.
#[test]
fn a_sender_that_is_cut_off_while_it_waits_has_no_effect_any_more() {
    let (writer, gate) = gated(&Kept::default());
    let drain = Arc::new(start(vec![("out", lines(writer))], small()));
    let cut = Arc::new(AtomicBool::new(false));
    let (sender, of_thread) = (Arc::clone(&drain), Arc::clone(&cut));
    let (told, waiting) = channel();
    // The sink's hand, its spool, the drainer's hand and the queue hold six; the seventh waits.
    let send = move || {
        for number in 0..7 {
            if number == 6 {
                told.send(()).unwrap();
            }
            let wanted = || !of_thread.load(Ordering::Acquire);
            if let Err(refused) = sender.send_while(Item::publish(record(number)), wanted) {
                return Some((number, refused.why));
            }
        }
        None
    };
    let census = Census::new();
    let sender = census.spawn(ThreadSpec::one("test", "sender"), send);
    waiting.recv().unwrap();
    cut.store(true, Ordering::Release);
    drain.recheck();
    let accepted = drain.status().accepted;
    drop(gate);
    let refused = sender.unwrap().join().unwrap();
    assert!(
        matches!(refused, Some((6, Refusal::Withdrawn))),
        "{refused:?}"
    );
    assert_eq!((accepted, drain.status().accepted), (6, 6));
    assert_eq!(drain.drain(far()).remaining, 0);
}

/// Nothing that was not drained is forgotten.
#[test]
fn what_is_stopped_undrained_is_counted() {
    let (writer, gate) = gated(&Kept::default());
    let drain = start(vec![("out", lines(writer))], small());
    for number in 0..6 {
        drain.send(Item::publish(record(number))).unwrap();
    }
    gate.begun.recv().unwrap();
    assert_eq!(
        drain.stop(Instant::now()).remaining,
        6,
        "{}",
        drain.status()
    );
    drop(gate);
    let stopped = drain.stop(far());
    assert!(stopped.still_owned.is_empty());
    // The sink was let finish the record in its hand.
    assert_eq!((stopped.remaining, stopped.sinks[0].written), (5, 1));
    assert_accounted(&drain.status());
}

#[test]
fn a_drain_that_could_not_work_does_not_start() {
    let census = Census::new();
    let start = |names: &[&str], config| {
        let sinks = names
            .iter()
            .map(|name| ((*name).to_owned(), lines(Kept::default())));
        Drain::start(sinks.collect(), config, &census)
    };
    assert!(matches!(start(&[], small()), Err(DrainError::NoSink)));
    assert!(matches!(
        start(&["a", "b", "a"], small()),
        Err(DrainError::Duplicate { name }) if name == "a"
    ));
    let blind = DrainConfig {
        rule: StallRule {
            interval: Span::ZERO,
            ..StallRule::default()
        },
        ..small()
    };
    let refused = start(&["a"], blind);
    assert!(matches!(
        refused,
        Err(DrainError::Zero {
            key: "rule.interval"
        })
    ));
    // A second drain finds the name of the first one's drainer taken, and leaves no thread behind.
    let first = start(&["a"], small()).unwrap();
    assert!(matches!(start(&["a"], small()), Err(DrainError::Thread(_))));
    assert!(first.stop(far()).still_owned.is_empty());
    assert!(census.rows().iter().all(|row| !row.running));
}
