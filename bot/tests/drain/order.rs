//! Every sink sees what was accepted, in order, whole.

use super::writers::{Kept, gated};
use super::*;

#[test]
fn every_sink_sees_each_senders_records_in_order_however_slow_one_is() {
    const SENDERS: u64 = 3;
    const EACH: u64 = 60;
    let (slow, fast) = (Kept::default(), Kept::default());
    let (writer, gate) = gated(&slow);
    let sinks = vec![("slow", lines(writer)), ("fast", lines(fast.clone()))];
    let drain = Arc::new(start(sinks, small()));
    let census = Census::new();
    let senders = (0..SENDERS).map(|sender| {
        let drain = Arc::clone(&drain);
        let send = move || {
            for i in 0..EACH {
                drain
                    .send(Item::publish(record(sender * EACH + i)))
                    .unwrap();
            }
        };
        let spec = |name, _| regatta_portable::census::ThreadSpec {
            kernel_name: name,
            ..regatta_portable::census::ThreadSpec::one("test", "sender")
        };
        census.spawn_numbered("sender-", spec, send).unwrap()
    });
    let senders: Vec<_> = senders.collect();
    // One at a time, so that the spool, and then the queue, are full nearly always.
    for _ in 0..SENDERS * EACH {
        gate.leave.send(()).unwrap();
    }
    for sender in senders {
        sender.join().unwrap();
    }
    let drained = drain.drain(far());
    assert_eq!((drained.accepted, drained.remaining), (SENDERS * EACH, 0));
    assert_eq!(slow.numbers(), fast.numbers());
    for sender in 0..SENDERS {
        let (from, to) = (sender * EACH, (sender + 1) * EACH);
        let mut of_sender = fast.numbers();
        of_sender.retain(|number| (from..to).contains(number));
        assert_eq!(of_sender, (from..to).collect::<Vec<_>>());
    }
    assert_accounted(&drain.status());
}

/// A reader that finds a whole line finds a whole record, as far as the writer's `write` is whole.
#[test]
fn a_record_of_any_length_is_one_write() {
    let kept = Kept::default();
    let drain = start(vec![("kept", lines(kept.clone()))], small());
    let long: &'static str = "x".repeat(100_000).leak();
    for number in 0..4 {
        drain.send(Item::publish(record(number))).unwrap();
        drain.send(Item::publish(on_chain(long, number))).unwrap();
    }
    drain.drain(far());
    let writes = kept.writes();
    assert_eq!(writes.len(), 8);
    for write in writes {
        assert_eq!(
            write.iter().position(|byte| *byte == b'\n'),
            Some(write.len() - 1)
        );
        serde_json::from_slice::<serde_json::Value>(&write).unwrap();
    }
}

/// What is finalized was handed to every sink before.
#[test]
fn a_finalizer_runs_in_its_place() {
    let kept = Kept::default();
    let (writer, gate) = gated(&kept);
    let drain = Arc::new(start(vec![("gated", lines(writer))], small()));
    let (told, seen) = channel();
    for number in 1..=3 {
        drain.send(Item::publish(record(number))).unwrap();
        let (told, of) = (told.clone(), Arc::downgrade(&drain));
        let look = move || {
            let status = of.upgrade().unwrap().status();
            told.send((status.sinks[0].taken, status.lag)).unwrap();
        };
        drain.send(Item::finalize(look)).unwrap();
        // The finalizer itself is owed too.
        assert_eq!(seen.recv().unwrap(), (number, number + 1));
    }
    assert!(drain.oldest_age().is_some());
    drop(gate);
    drain.drain(far());
    assert_eq!((drain.lag(), drain.oldest_age()), (0, None));
    assert_eq!(kept.numbers(), [1, 2, 3]);
}
