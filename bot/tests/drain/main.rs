//! The drain: order, slow, hung and failing sinks, closing, and what a stall does to the process.
#![cfg(test)]

mod aborts;
mod closing;
mod order;
mod sinks;
mod writers;

use regatta_bot::drain::{Drain, DrainConfig, Item, Lines, Sink, Status};
use regatta_bot::market::UntrustedText;
use regatta_bot::report::{Format, MissedRecord, Record};
use regatta_bot::source::BlockHash;
use regatta_portable::Census;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Small bounds, no pause between attempts, and senders that wait for as long as it takes. A stall aborts the test.
fn small() -> DrainConfig {
    DrainConfig {
        queue: 2,
        spool: 2,
        patience: Duration::from_hours(1),
        pause: Duration::ZERO,
        ..DrainConfig::default()
    }
}

/// A deadline that no test reaches unless it fails.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

/// A record that is known by its number.
fn record(number: u64) -> Record {
    on_chain("test", number)
}

fn on_chain(chain: &str, number: u64) -> Record {
    Record::Missed(MissedRecord {
        chain: UntrustedText::with_limit(chain, usize::MAX),
        number,
        hash: BlockHash::new([7; 32]),
        covered_by: Some(number),
        orphaned: false,
    })
}

fn lines(out: impl Write + Send + 'static) -> Box<dyn Sink> {
    Box::new(Lines::new(Box::new(out), Format::Json))
}

fn start(sinks: Vec<(&str, Box<dyn Sink>)>, config: DrainConfig) -> Drain {
    let sinks = sinks
        .into_iter()
        .map(|(name, sink)| (name.to_owned(), sink))
        .collect();
    Drain::start(sinks, config, &Census::new()).unwrap()
}

/// Waits until the drainer has completed everything that was sent before.
fn drainer_is_through(drain: &Drain) {
    let (told, through) = channel();
    drain
        .send(Item::finalize(move || told.send(()).unwrap()))
        .unwrap();
    through.recv().unwrap();
}

/// Nothing is anywhere but where the counts say.
fn assert_accounted(status: &Status) {
    let in_hand = u64::from(status.in_hand.is_some());
    assert_eq!(
        status.accepted,
        status.completed + status.queued + in_hand,
        "{status}"
    );
    for sink in &status.sinks {
        assert_eq!(
            sink.taken,
            sink.written + sink.lost + sink.behind,
            "{status}"
        );
    }
}

/// Lets time pass: for what is to be seen is that nothing happens in it.
fn pass(time: Duration) {
    let (_never, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}
