//! The pipes beside each other: what holds one up holds up no other.

use super::*;
use regatta_bot::dispatch::{Clock, Dispatch};
use regatta_bot::drain::{Drain, DrainConfig, Item, Lines, Refusal};
use regatta_bot::evm::EvmArena;
use regatta_bot::market::UntrustedText;
use regatta_bot::pipeline::{Feed, LiveFeed, Output, Unit};
use regatta_bot::report::{Format, MissedRecord, Record};
use regatta_portable::{Pin, UnitContext, Workload};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The bot's workload, whose first solver unit waits for a gate.
struct Gated {
    inner: Arbitrage,
    entered: Mutex<Option<Sender<()>>>,
    gate: Mutex<Receiver<()>>,
}

impl Workload for Gated {
    type Unit = Unit;
    type Output = Output;
    type Arena = EvmArena;

    fn arena(&self, _: Pin) -> EvmArena {
        EvmArena::default()
    }

    fn run(&self, unit: Unit, arena: &mut EvmArena, context: &UnitContext) -> Output {
        if matches!(unit, Unit::Solve(_))
            && let Some(entered) = self.entered.lock().unwrap().take()
        {
            entered.send(()).unwrap();
            // Until the gate is opened, which is by dropping its other end.
            let _ = self.gate.lock().unwrap().recv();
        }
        self.inner.run(unit, arena, context)
    }
}

impl Pipeline for Gated {
    fn arbitrage(&self) -> &Arbitrage {
        &self.inner
    }
}

/// The first solve lasts until the test ends it; every head of the chain arrives before that.
#[test]
fn heads_arrive_while_a_solve_goes_on() {
    const BLOCKS: u64 = 100;
    let made = market();
    let (entered, enters) = channel();
    let (gate, gated) = channel::<()>();
    let fleet = fleet_of(Gated {
        inner: arbitrage(&made),
        entered: Mutex::new(Some(entered)),
        gate: Mutex::new(gated),
    });
    let clock = Arc::new(Clock::new());
    let ticks = clock
        .subscribe("test", usize::try_from(BLOCKS).unwrap())
        .unwrap();
    let census = Census::new();
    let source = Box::new(source_of(&made, BLOCKS));
    let pace = Duration::from_millis(1);
    let (live, mut source) = LiveFeed::start(source, pace, Arc::clone(&clock), &census).unwrap();
    let solved = Arc::new(AtomicU64::new(0));
    let pump = spawn({
        let (fleet, solved) = (Arc::clone(&fleet), Arc::clone(&solved));
        move || {
            let mut feed = Feed::Live(live);
            let mut pump = Pump::new(&fleet, config(), &Unwatched).unwrap();
            let mut last = None;
            loop {
                let mut events = Vec::new();
                feed.next_batch(&mut events, &Unwatched).unwrap();
                let blocks: Vec<Block> = events
                    .into_iter()
                    .map(|event| match event {
                        Event::Block(block) => block,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                let Some(newest) = blocks.last() else {
                    return last;
                };
                last = Some(newest.number);
                pump.run(&blocks).unwrap();
                solved.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    enters.recv_timeout(FAR).unwrap();
    for (block, seq) in blocks_of(&made, BLOCKS).iter().zip(1..) {
        let tick = ticks.next(FAR).unwrap();
        assert_eq!((tick.seq, tick.head), (seq, block.head()));
    }
    assert_eq!(solved.load(Ordering::Relaxed), 0, "the solve goes on");
    drop(gate);
    assert_eq!(pump.join().unwrap(), Some(BLOCKS));
    assert!(source.stop(Instant::now() + FAR));
    assert_eq!(
        (clock.status().ticks, clock.status().cut_off),
        (BLOCKS, Vec::new())
    );
    assert_balanced(&fleet);
}

/// A writer that waits for a gate.
struct Blocked(Receiver<()>);

impl Write for Blocked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record(number: u64) -> Record {
    Record::Missed(MissedRecord {
        chain: UntrustedText::new("test"),
        number,
        hash: head(number).hash,
        covered_by: Some(number),
        orphaned: false,
    })
}

/// The drain is full and its sink hangs: heads and published blocks go their ways.
#[test]
fn a_full_drain_holds_up_neither_the_clock_nor_the_verifier() {
    let (gate, gated) = channel();
    let dispatch = Dispatch::new(true);
    let sink = Lines::new(Box::new(Blocked(gated)), Format::Json);
    let config = DrainConfig {
        queue: 1,
        spool: 1,
        patience: Duration::ZERO,
        ..DrainConfig::default()
    };
    let sinks = vec![("out".to_owned(), Box::new(sink) as _)];
    dispatch.set_drain(Drain::start(sinks, config, &Census::new()).unwrap());
    let drain = dispatch.drain().unwrap();
    // One in the sink's hand, one in its spool, one in the drainer's hand, one in the queue, in some order of time.
    let mut sent = 0;
    until("the drain is full", || {
        drain.lag() == 4 || { drain.send(Item::publish(record(0))).is_err() && drain.lag() == 4 }
    });
    for number in 1..=50 {
        match drain.send(Item::publish(record(number))) {
            Ok(()) => sent += 1,
            Err(refused) => assert!(matches!(refused.why, Refusal::Full { .. })),
        }
    }
    assert_eq!(sent, 0);
    let made = market();
    let ticks = dispatch.clock().subscribe("test", 50).unwrap();
    let pipe = dispatch.verifier().unwrap();
    for number in 1..=50 {
        dispatch.clock().tick(head(number));
        assert_eq!(ticks.next(FAR).unwrap().head.number, number);
        pipe.publish(head(number), &[], &made.market);
    }
    let status = dispatch.status();
    let verifier = status.verifier.unwrap();
    assert_eq!((verifier.published, verifier.skipped), (50, 49));
    assert_eq!(status.drain.unwrap().accepted, 4);
    drop(gate);
    assert_eq!(drain.drain(Instant::now() + FAR).remaining, 0);
}
