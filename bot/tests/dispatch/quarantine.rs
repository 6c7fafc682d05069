//! What a wrong reserve does: to its pool, and to nothing else.

use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

const BLOCKS: u64 = 60;

/// The block from which on the source says otherwise.
const FROM: usize = 20;

/// The pool that is in the most winners of a run, and in how many of its blocks from `FROM` on.
fn favourite(made: &Generated, blocks: &[Block]) -> (PoolId, usize) {
    let rig = Rig::new(made, through(made, BLOCKS, |_, _: &[Address], read| read));
    let mut pump = rig.pump();
    let mut counts = BTreeMap::<_, usize>::new();
    for block in blocks {
        let result = rig.run(&mut pump, block);
        if block.number > FROM as u64 {
            let mut pools = traded(&result, &rig.fleet.workload().world());
            pools.sort_unstable();
            pools.dedup();
            for pool in pools {
                *counts.entry(pool).or_default() += 1;
            }
        }
    }
    drop(pump);
    rig.end();
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap()
}

/// A reader that is one unit off for one pool while it is told to be.
fn liar(made: &Generated, pool: PoolId, lies: &Arc<AtomicBool>) -> impl ReserveReader + use<> {
    let victim = made.market.pool(pool).address;
    let lies = Arc::clone(lies);
    through(made, BLOCKS, move |_, pools: &[Address], read: Reserves| {
        let mut read = read?;
        for (pool, read) in pools.iter().zip(&mut read) {
            if *pool == victim
                && lies.load(Ordering::Relaxed)
                && let Some((_, reserve1)) = read
            {
                *reserve1 -= 1;
            }
        }
        Ok(read)
    })
}

/// One reserve that is one unit off takes exactly its pool out of trade, for good: from the next block on the run is
/// that of a world without the pool.
#[test]
fn a_wrong_reserve_takes_its_pool_out_of_trade() {
    let made = market();
    let blocks = blocks_of(&made, BLOCKS);
    let (victim, wins) = favourite(&made, &blocks);
    assert!(wins > 5, "{wins} winners would miss it");
    let lies = Arc::new(AtomicBool::new(false));
    let rig = Rig::new(&made, liar(&made, victim, &lies));
    let mut pump = rig.pump();
    let without = fleet_of(arbitrage(&made));
    let mut reference = Pump::new(&without, config(), &Unwatched).unwrap();
    let (mut found, mut compared) = (false, 0);
    for block in &blocks {
        lies.store(block.number >= FROM as u64 && !found, Ordering::Relaxed);
        if found {
            without.workload().world_mut().quarantine(victim);
        }
        let result = rig.run(&mut pump, block);
        rig.settled();
        let expected = reference.run(std::slice::from_ref(block)).unwrap();
        assert_eq!(
            (&result.winners, result.tally),
            (&expected.winners, expected.tally)
        );
        if found {
            compared += 1;
            let world = rig.fleet.workload().world();
            assert!(!traded(&result, &world).contains(&victim));
            assert_eq!(world.quarantined().iter().collect::<Vec<_>>(), [&victim]);
            // The world is kept up all the same.
            assert_eq!(world.market(), without.workload().world().market());
        }
        found = rig.pipe.status().found_out == 1;
    }
    assert!(compared > 20, "found out {compared} blocks before the end");
    assert_eq!(rig.pipe.status().found_out, 1);
    drop((pump, reference));
    rig.end();
    assert_balanced(&without);
}

/// A finding about a block that is no longer part of the chain has no effect, wherever it was on its way: with the
/// reader, waiting to be taken by the verifier, or waiting to be taken by the pump.
#[test]
fn a_finding_about_a_reverted_block_is_dropped() {
    let made = market();
    let blocks = blocks_of(&made, 3);
    let (asked, asks) = channel();
    let (word, words) = channel::<()>();
    let words = std::sync::Mutex::new(words);
    let readings = AtomicU64::new(0);
    let rig = Rig::new(
        &made,
        through(&made, 3, move |block, _: &[Address], read: Reserves| {
            // The second reading of a block confirms the first, and goes on with it.
            if readings.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                asked.send(block).unwrap();
                words.lock().unwrap().recv().unwrap();
            }
            // Wrong about every pool.
            read.map(|read| read.iter().map(|_| Some((1, 1))).collect())
        }),
    );
    let mut pump = rig.pump();
    let findings = || {
        let mut findings = Vec::new();
        rig.pipe.take_findings(&mut findings);
        findings
    };
    // With the reader.
    rig.run(&mut pump, &blocks[0]);
    assert_eq!(asks.recv_timeout(FAR), Ok(blocks[0].hash));
    // Waiting for the verifier: the reader is never asked.
    rig.run(&mut pump, &blocks[1]);
    rig.pipe.reverted(blocks[1].hash);
    rig.pipe.reverted(blocks[0].hash);
    word.send(()).unwrap();
    rig.settled();
    assert!(findings().is_empty());
    let status = rig.pipe.status();
    assert_eq!(
        (status.reverted, status.verified, status.found_out),
        (2, 0, 0)
    );
    // Waiting for the pump.
    let moved = rig.run(&mut pump, &blocks[2]).moved;
    assert_eq!(asks.recv_timeout(FAR), Ok(blocks[2].hash));
    word.send(()).unwrap();
    rig.settled();
    let found = rig.pipe.status().found_out;
    assert!(found > 1);
    rig.pipe.reverted(blocks[1].hash);
    assert_eq!(rig.pipe.status().found_out, found, "that was another block");
    rig.pipe.reverted(blocks[2].hash);
    assert!(findings().is_empty());
    let status = rig.pipe.status();
    assert_eq!((status.findings_dropped, status.found_out), (found, 0));
    // The pools are compared again, and found out again.
    let market = rig.fleet.workload().world().market().clone();
    rig.pipe.publish(blocks[2].head(), &moved, &market);
    asks.recv_timeout(FAR).unwrap();
    word.send(()).unwrap();
    rig.settled();
    let again: Vec<_> = findings().iter().map(|finding| finding.pool).collect();
    assert!(!moved.is_empty() && moved.iter().all(|update| again.contains(&update.pool)));
    drop(pump);
    rig.end();
}

/// What a source says once and not again is no finding: a node may answer from a block that it is just making.
#[test]
fn what_is_not_said_twice_is_no_finding() {
    let made = market();
    let blocks = blocks_of(&made, BLOCKS);
    for settles in [true, false] {
        let asked = AtomicU64::new(0);
        let reader = through(&made, BLOCKS, move |_, _: &[Address], read: Reserves| {
            let nth = asked.fetch_add(1, Ordering::Relaxed);
            let mut read = read?;
            // Every other reading is right, or every one is wrong in another way.
            if !settles || nth.is_multiple_of(2) {
                for (_, reserve1) in read.iter_mut().flatten() {
                    *reserve1 -= 1 + u128::from(nth % 2);
                }
            }
            Ok(read)
        });
        let rig = Rig::new(&made, reader);
        let mut pump = rig.pump();
        for block in &blocks {
            rig.run(&mut pump, block);
            rig.settled();
        }
        let status = rig.pipe.status();
        assert_eq!(
            (status.found_out, status.verified),
            (0, BLOCKS),
            "{status:?}"
        );
        drop(pump);
        rig.end();
    }
}
