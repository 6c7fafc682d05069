//! Sinks that are slow, hang, fail, panic, or whose reader has gone.

use super::writers::{Failing, Kept, gated};
use super::*;
use regatta_bot::drain::{Failure, Refusal, SinkError, SinkState};
use regatta_core::dispatch::StallRule;
use regatta_core::time::Duration as Span;
use std::io;

#[test]
fn a_full_spool_makes_the_drain_not_ready_until_half_of_it_is_free() {
    let kept = Kept::default();
    let (writer, gate) = gated(&kept);
    let config = DrainConfig {
        spool: 4,
        ..small()
    };
    let drain = start(vec![("out", lines(writer))], config);
    drain.send(Item::publish(record(0))).unwrap();
    gate.begun.recv().unwrap();
    for number in 1..=4 {
        assert_eq!(drain.probe(), Ok(()));
        drain.send(Item::publish(record(number))).unwrap();
        drainer_is_through(&drain);
    }
    let full = |behind| format!("sink out: spool full, {behind} records behind");
    assert_eq!(drain.probe(), Err(full(5)));
    gate.leave.send(()).unwrap();
    gate.begun.recv().unwrap();
    assert_eq!(drain.probe(), Err(full(4)));
    gate.leave.send(()).unwrap();
    gate.begun.recv().unwrap();
    assert_eq!(drain.probe(), Ok(()));
    drop(gate);
    assert_eq!(drain.drain(far()).remaining, 0);
    assert_eq!(kept.numbers(), [0, 1, 2, 3, 4]);
}

/// A pipe that nobody reads: the drain is not ready and says why, hands back what it cannot take, takes nobody
/// down with it, and names the thread that it cannot end. It is no stall, however long it lasts.
#[test]
fn a_pipe_that_nobody_reads_is_reported_and_owned_to_the_end() {
    let (reader, writer) = io::pipe().unwrap();
    let kept = Kept::default();
    let config = DrainConfig {
        patience: Duration::from_millis(20),
        rule: StallRule {
            window: Span::from_millis(50),
            interval: Span::from_millis(10),
            ..StallRule::default()
        },
        ..small()
    };
    let sinks = vec![("hung", lines(writer)), ("free", lines(kept.clone()))];
    let drain = start(sinks, config);
    // Longer than a pipe can be made without privileges: it does not get through.
    let long = on_chain(&"x".repeat(4 << 20), 0);
    drain.send(Item::publish(long)).unwrap();
    // The sink's hand, its spool, the drainer's hand and the queue hold six.
    let mut next = 1;
    while next < 6 || drain.status().sinks[0].behind < 3 {
        match drain.send(Item::publish(record(next))) {
            Ok(()) => next += 1,
            Err(refused) => assert!(matches!(refused.why, Refusal::Full { .. })),
        }
    }
    let refused = drain.send(Item::publish(record(next))).unwrap_err();
    assert!(
        matches!(&refused.item, Item::Publish(back) if matches!(&**back, Record::Missed(missed) if missed.number == next))
    );
    let Refusal::Full { because, .. } = refused.why else {
        panic!("{refused}")
    };
    // In the spool, in the sink's hand, and in the drainer's.
    assert_eq!(because, "sink hung: spool full, 4 records behind");
    assert_eq!(drain.probe(), Err(because));
    pass(Duration::from_millis(300));
    while drain.status().sinks[1].behind > 0 {
        pass(Duration::from_millis(1));
    }

    let drained = drain.drain(Instant::now());
    let [hung, free] = &drained.sinks[..] else {
        panic!("{drained:?}")
    };
    assert_eq!((drained.remaining, hung.written), (next, 0));
    // The item in the drainer's hand has come to the other, and those behind that one have not.
    assert_eq!((hung.taken, free.taken), (3, 4));
    assert_accounted(&drain.status());
    let stopped = drain.stop(Instant::now() + Duration::from_secs(1));
    assert_eq!(stopped.still_owned, ["regatta/bot/sink/hung"]);
    drop(reader);
    let stopped = drain.stop(far());
    assert!(stopped.still_owned.is_empty(), "{stopped:?}");
    assert_eq!(kept.numbers(), [0, 1, 2, 3]);
}

#[test]
fn a_drain_that_is_dropped_does_not_wait_for_a_sink_that_hangs() {
    let (writer, gate) = gated(&Kept::default());
    let drain = start(vec![("hung", lines(writer))], small());
    drain.send(Item::publish(record(0))).unwrap();
    gate.begun.recv().unwrap();
    drop(drain);
    drop(gate);
}

/// A failure in the middle of a record goes on at the byte where it stopped.
#[test]
fn a_sink_that_fails_now_and_then_loses_nothing_and_repeats_nothing() {
    let kept = Kept::default();
    let writer = Failing {
        calls: 0,
        piece: 40,
        fails: |call| call % 3 != 0,
        kept: kept.clone(),
    };
    let drain = start(vec![("out", lines(writer))], small());
    for number in 0..20 {
        drain.send(Item::publish(record(number))).unwrap();
    }
    let drained = drain.drain(far());
    assert_eq!(drained.remaining, 0);
    assert!(matches!(drained.sinks[0].state, SinkState::Open));
    assert_eq!(kept.numbers(), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_sink_that_keeps_failing_says_what_was_lost_and_the_others_go_on() {
    let (full, free) = (Kept::default(), Kept::default());
    let writer = Failing {
        calls: 0,
        piece: 100,
        fails: |call| call > 3,
        kept: full.clone(),
    };
    let sinks = vec![("full", lines(writer)), ("free", lines(free.clone()))];
    let drain = start(sinks, small());
    for number in 0..20 {
        drain.send(Item::publish(record(number))).unwrap();
    }
    let drained = drain.drain(far());
    assert_eq!(drained.remaining, 0);
    assert_eq!(free.numbers(), (0..20).collect::<Vec<_>>());
    let SinkState::Failed(error) = &drained.sinks[0].state else {
        panic!("{drained:?}");
    };
    let SinkError::Failed {
        sink,
        record,
        written,
        of,
        attempts,
        behind,
        source,
    } = &**error
    else {
        panic!("{error}");
    };
    // Records of 150 to 200 bytes: the first went out in two writes, of the second came one.
    assert_eq!((&**sink, *record, *written, *attempts), ("full", 2, 100, 3));
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert_eq!(full.writes().concat().len(), of + written);
    assert_eq!(drained.sinks[0].lost, behind + 1);
    assert_accounted(&drain.status());
}

#[test]
fn without_a_sink_left_senders_are_told_why() {
    let writer = Failing {
        calls: 0,
        piece: 100,
        fails: |_| true,
        kept: Kept::default(),
    };
    let drain = start(vec![("full", lines(writer))], small());
    let refused = (0..).find_map(|number| drain.send(Item::publish(record(number))).err());
    let Some(Refusal::SinkFailed(error)) = refused.map(|refused| refused.why) else {
        panic!("{:?}", drain.status());
    };
    assert_eq!(error.io().unwrap().kind(), io::ErrorKind::StorageFull);
    assert!(
        drain
            .probe()
            .unwrap_err()
            .starts_with("sink full: given up")
    );
    assert_eq!(drain.status().rejected, 1);
}

#[test]
fn a_reader_that_has_had_enough_is_an_orderly_end() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let drain = start(vec![("out", lines(writer))], small());
    let refused = (0..).find_map(|number| drain.send(Item::publish(record(number))).err());
    let why = refused.unwrap().why;
    assert!(matches!(&why, Refusal::ReaderGone { sink } if sink == "out"));
    assert_eq!(
        drain.probe(),
        Err("sink out: whoever read it is gone".to_owned())
    );
    let stopped = drain.stop(far());
    assert!(matches!(stopped.sinks[0].state, SinkState::ReaderGone));
    assert!(stopped.still_owned.is_empty());
}

/// Panics on the second record.
struct Panics(u64);

impl Sink for Panics {
    fn deliver(&mut self, _: &Record) -> Result<(), Failure> {
        self.0 += 1;
        assert!(self.0 < 2, "planted");
        Ok(())
    }
}

#[test]
fn a_sink_that_panics_is_given_up_and_the_others_go_on() {
    let kept = Kept::default();
    let sinks: Vec<(_, Box<dyn Sink>)> = vec![
        ("panics", Box::new(Panics(0))),
        ("free", lines(kept.clone())),
    ];
    let drain = start(sinks, small());
    for number in 0..20 {
        drain.send(Item::publish(record(number))).unwrap();
    }
    let drained = drain.drain(far());
    let SinkState::Failed(error) = &drained.sinks[0].state else {
        panic!("{drained:?}");
    };
    assert!(matches!(**error, SinkError::Panicked { record: 2, .. }));
    assert_eq!(kept.numbers(), (0..20).collect::<Vec<_>>());
    assert!(drain.stop(far()).still_owned.is_empty());
}
