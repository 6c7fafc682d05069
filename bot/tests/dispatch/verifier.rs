//! The verifier's pipe and thread: the newest wins, honest sources are silent, and what cannot be read is no finding.

use super::*;
use regatta_bot::dispatch::VerifierStatus;
use regatta_bot::verify::{MOST, ROTATING, VerifyJob};
use regatta_core::posture::{Posture, ThrottleSample};
use regatta_core::time::Duration as Span;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Tells what it is asked for, and waits for a word before it answers.
struct Held {
    asked: Sender<BlockHash>,
    words: Mutex<Receiver<()>>,
}

fn held(
    made: &Generated,
    blocks: u64,
) -> (impl ReserveReader + use<>, Receiver<BlockHash>, Sender<()>) {
    let (asked, asks) = channel();
    let (word, words) = channel();
    let held = Held {
        asked,
        words: Mutex::new(words),
    };
    let reader = through(made, blocks, move |block, _: &[Address], read| {
        held.asked.send(block).unwrap();
        held.words.lock().unwrap().recv().unwrap();
        read
    });
    (reader, asks, word)
}

/// While one block is being verified the pump publishes many; exactly the newest of them is next.
#[test]
fn the_newest_wins_and_the_pump_never_waits() {
    let made = market();
    let (reader, asks, word) = held(&made, 30);
    let rig = Rig::new(&made, reader);
    let blocks = blocks_of(&made, 30);
    let mut pump = rig.pump();
    rig.run(&mut pump, &blocks[0]);
    assert_eq!(asks.recv_timeout(FAR), Ok(blocks[0].hash));
    // This thread is the pump's: had it to wait for the verifier, it would wait for ever.
    for block in &blocks[1..] {
        rig.run(&mut pump, block);
    }
    assert_eq!((rig.pipe.pending(), rig.pipe.status().skipped), (2, 28));
    word.send(()).unwrap();
    assert_eq!(asks.recv_timeout(FAR), Ok(blocks[29].hash));
    word.send(()).unwrap();
    rig.settled();
    assert!(asks.try_recv().is_err(), "no block between");
    let status = rig.pipe.status();
    assert_eq!(
        (
            status.published,
            status.skipped,
            status.verified,
            status.found_out
        ),
        (30, 28, 2, 0)
    );
    drop(pump);
    rig.end();
}

/// Every block is verified, every pool in its turn, those that moved at once; and nothing is said.
#[test]
fn an_honest_source_is_silent() {
    const BLOCKS: u64 = 200;
    let made = market();
    let (asked, asks) = channel();
    let rig = Rig::new(
        &made,
        through(&made, BLOCKS, move |block, pools: &[Address], read| {
            asked.send((block, pools.to_vec())).unwrap();
            read
        }),
    );
    let mut pump = rig.pump();
    let mut asked_for = Vec::new();
    for block in blocks_of(&made, BLOCKS) {
        let result = rig.run(&mut pump, &block);
        rig.settled();
        let (hash, pools) = asks.recv_timeout(FAR).unwrap();
        assert_eq!(hash, block.hash);
        let all: BTreeSet<_> = pools.iter().copied().collect();
        assert_eq!(all.len(), pools.len(), "each pool once");
        assert!(pools.len() <= result.moved.len() + ROTATING as usize);
        for update in &result.moved {
            assert!(all.contains(&made.market.pool(update.pool).address));
        }
        asked_for.push(all);
    }
    // Whichever blocks one looks at, so many in a row take the turn through the whole market.
    let pools = made.market.pools().len();
    let turn = pools.div_ceil(ROTATING as usize);
    assert!(turn > 1, "{pools} pools are no turn");
    for blocks in asked_for.windows(turn) {
        let seen: BTreeSet<_> = blocks.iter().flatten().collect();
        assert_eq!(seen.len(), pools);
    }
    let status = rig.pipe.status();
    assert_eq!(
        (status.verified, status.skipped, status.found_out),
        (BLOCKS, 0, 0)
    );
    assert!(
        status.compared > BLOCKS * 32 && status.unread == 0,
        "{status:?}"
    );
    drop(pump);
    rig.end();
}

/// Whatever goes wrong with reading is counted by its kind, and is no finding.
#[test]
fn what_is_not_read_is_no_finding() {
    let made = market();
    let blocks = blocks_of(&made, 5);
    let hashes: Vec<_> = blocks.iter().map(|block| block.hash).collect();
    let rig = Rig::new(
        &made,
        through(&made, 5, move |block, _: &[Address], read| {
            match hashes.iter().position(|hash| *hash == block) {
                Some(0) => Err(ReadError::TimedOut(FAR)),
                Some(1) => Err(ReadError::Failed("planted".into())),
                // One too few, which would put every answer to a wrong pool.
                Some(2) => read.map(|mut read| {
                    read.remove(0);
                    read
                }),
                Some(3) => read.map(|read| read.iter().map(|_| None).collect()),
                _ => read,
            }
        }),
    );
    let mut pump = rig.pump();
    for block in &blocks {
        rig.run(&mut pump, block);
        rig.settled();
    }
    let status = rig.pipe.status();
    let expected = VerifierStatus {
        published: 5,
        verified: 2,
        read_failed: 2,
        read_timed_out: 1,
        compared: status.compared,
        unread: status.unread,
        ..VerifierStatus::default()
    };
    assert_eq!(status, expected);
    assert!(status.compared > 0 && status.unread > 0);
    drop(pump);
    assert!(rig.fleet.workload().world().quarantined().is_empty());
    rig.end();
}

/// A reader that does not return keeps its thread and nothing else: what it says later has no effect.
#[test]
fn a_reader_that_hangs_is_cut_off() {
    let made = market();
    let (reader, asks, word) = held(&made, 2);
    let rig = Rig::new(&made, reader);
    let mut pump = rig.pump();
    let blocks = blocks_of(&made, 2);
    rig.run(&mut pump, &blocks[0]);
    asks.recv_timeout(FAR).unwrap();
    rig.run(&mut pump, &blocks[1]);
    rig.pipe.fence();
    drop(pump);
    // The fleet closes, balanced, although the reader has not come back.
    assert_balanced(&rig.fleet);
    assert_eq!(rig.pipe.pending(), 2);
    word.send(()).unwrap();
    rig.thread.join().unwrap();
    let status = rig.pipe.status();
    assert_eq!((status.verified, status.found_out), (0, 0));
    assert!(asks.try_recv().is_err(), "nothing more is read");
}

/// A unit that the fleet does not run any more is counted, and its block was not verified.
#[test]
fn a_fleet_that_takes_no_unit_is_no_finding() {
    let made = market();
    let rig = Rig::new(&made, through(&made, 1, |_, _: &[Address], read| read));
    let block = &blocks_of(&made, 1)[0];
    assert_balanced(&rig.fleet);
    rig.pipe.publish(block.head(), &[], &made.market);
    rig.settled();
    let status = rig.pipe.status();
    assert_eq!((status.not_run, status.verified), (1, 0));
    rig.end();
}

/// A block that moves more pools than fit is compared in part, and that is counted.
#[test]
fn a_comparison_has_its_bound() {
    let made = generate(&MarketConfig {
        tokens: 1200,
        ..MarketConfig::with_seed(1)
    })
    .unwrap();
    let pools = made.market.pools().len();
    assert!(pools > MOST, "{pools} pools are no load");
    let moved: Vec<_> = made
        .market
        .pool_ids()
        .map(|pool| {
            let state = made.market.pool(pool);
            regatta_bot::market::ReserveUpdate {
                pool,
                reserve0: state.reserve0,
                reserve1: state.reserve1,
            }
        })
        .collect();
    let pipe = VerifierPipe::new();
    pipe.publish(head(1), &moved, &made.market);
    assert_eq!(pipe.status().left_out, (pools - MOST) as u64);
    let mut job = VerifyJob::default();
    job.fill(head(1), &moved, &made.market, 0, &BTreeSet::new());
    assert_eq!(job.checks().len(), MOST);
}

/// The fleet's posture as two throttled periods leave it.
fn cordon(fleet: &Fleet<Arbitrage>) {
    for throttled in [0, 2] {
        let posture = fleet.posture();
        posture.sample(ThrottleSample {
            at: posture.now(),
            nr_throttled: Some(throttled),
            throttled: Some(Span::from_millis(10 * throttled)),
        });
    }
    assert_eq!(fleet.posture().posture(), Posture::Cordoned);
}

/// Under a cordon comparing is held, and neither the pump nor the end waits for it: the unit is given up, and counted.
#[test]
fn a_comparison_that_a_cordon_holds_is_given_up_at_the_end() {
    for fences in [false, true] {
        let made = market();
        let (asked, asks) = channel();
        let rig = Rig::new(
            &made,
            through(&made, 3, move |block, _: &[Address], read| {
                asked.send(block).unwrap();
                read
            }),
        );
        cordon(&rig.fleet);
        let mut pump = rig.pump();
        let blocks = blocks_of(&made, 3);
        for block in &blocks {
            rig.run(&mut pump, block);
        }
        drop(pump);
        asks.recv_timeout(FAR).unwrap();
        until("the unit is held", || {
            rig.fleet
                .status()
                .lanes
                .iter()
                .any(|lane| lane.role == "verifier" && lane.ledger.waiting() == 1)
        });
        assert!(rig.pipe.is_comparing());
        if fences {
            rig.pipe.fence();
        } else {
            // What waits is taken too, and held for as long.
            rig.pipe.close();
        }
        rig.thread.join().unwrap();
        let status = rig.pipe.status();
        assert_eq!((status.verified, status.found_out), (0, 0), "{status:?}");
        assert!((1..=2).contains(&status.given_up), "{status:?}");
        // What comes after the fence has no effect on anything.
        assert_eq!(status.not_run == 0, fences, "{status:?}");
        assert!(rig.fleet.close(FAR).is_clean());
        let fleet = rig.fleet.status();
        assert!(
            fleet.balanced() && fleet.abandoned == status.given_up,
            "{fleet}"
        );
    }
}
