//! Reverted blocks: in the world, in what is looked at, and in what is said.

use super::*;
use crate::pipeline::tests::{touched_by, world_of};
use crate::pipeline::{JOURNAL_DEPTH, PumpError};
use std::collections::BTreeSet;

/// All that was said of one run equals what the plain model says of it.
fn one_by_one(events: &[Event]) -> Vec<&[Event]> {
    events.chunks(1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Where every block runs, what stands in the end is what a run over the final chain publishes, and
    /// nothing is said of a reverted block but its retracts.
    #[test]
    fn what_stands_is_what_the_final_chain_alone_publishes(
        seed in 0_u64..1 << 40,
        ops in prop::collection::vec(op(), 1..24),
    ) {
        let made = made_up(seed, 24);
        let events = events_of(&made, &ops);
        let mut retracted = Vec::new();
        let mut said: Vec<(BlockHash, Vec<String>)> = Vec::new();
        let heard = follow(&made, true, &one_by_one(&events), |place, _, heard| {
            match (&events[place], heard) {
                (event @ (Event::Block(_) | Event::Reread { .. }), [Heard::Block { number, hash, winners, .. }]) => {
                    let block = as_block(event).unwrap();
                    assert_eq!((block.number, block.hash), (*number, *hash));
                    said.push((*hash, winners.iter().map(|(path, ..)| path.clone()).collect()));
                }
                (Event::Reverted { number, hash }, retracts) => {
                    // In the order of publication, and no others.
                    let (last, paths) = said.pop().unwrap();
                    assert_eq!(last, *hash);
                    let expected: Vec<_> = paths.into_iter().map(|path| Heard::Retract(RetractRecord {
                        chain: the_chain(), number: *number, hash: *hash, path, kind: "opportunity",
                    })).collect();
                    assert_eq!(retracts, expected);
                    retracted.extend(expected);
                }
                other => panic!("{other:?}"),
            }
        });
        let chain = lasting(&events);
        let alone = follow(&made, true, &one_by_one(&chain), |_, _, _| ());
        prop_assert_eq!(standing(&heard), standing(&alone));
    }

    /// After any batch the world is the one that is built of the market that the chain leads to.
    #[test]
    fn the_world_is_that_of_the_chain(
        seed in 0_u64..1 << 40,
        ops in prop::collection::vec(op(), 1..30),
        cuts in prop::collection::vec(1_usize..5, 30),
    ) {
        let made = made_up(seed, 12);
        let events = events_of(&made, &ops);
        let batches = cut(&events, &cuts);
        let mut came = 0;
        follow(&made, false, &batches, |place, world, _| {
            came += batches[place].len();
            let market = market_after(&made.market, &chain_of(&events[..came]));
            let fresh = world_of(&Generated { market, base: made.base }, 3);
            assert_eq!(world.market(), fresh.market());
            for id in (0..).map(crate::cycles::CycleId::new).take(fresh.table().len()) {
                assert_eq!(world.hops_of(id), fresh.hops_of(id));
            }
        });
    }

    /// A batch runs the block it ends with, on everything that differs from the last look that still counts;
    /// every other block that came is missed once.
    #[test]
    fn a_batch_runs_its_last_block_and_the_others_are_missed(
        seed in 0_u64..1 << 40,
        ops in prop::collection::vec(op(), 1..30),
        cuts in prop::collection::vec(1_usize..6, 30),
    ) {
        let made = made_up(seed, 16);
        let plain = world_of(&made, 3);
        let events = events_of(&made, &ops);
        let batches = cut(&events, &cuts);
        let mut came = 0;
        // What waits; what is owed, and what was owed before each block of the chain; which blocks ran.
        let mut waiting: Vec<MissedRecord> = Vec::new();
        let mut owed: BTreeSet<PoolId> = BTreeSet::new();
        let mut chain: Vec<(Block, BTreeSet<PoolId>)> = Vec::new();
        let market_of = |chain: &[(Block, BTreeSet<PoolId>)]| {
            let blocks: Vec<Block> = chain.iter().map(|(block, _)| block.clone()).collect();
            market_after(&made.market, &blocks)
        };
        let mut ran: Vec<BlockHash> = Vec::new();
        let heard = follow(&made, false, &batches, |place, _, heard| {
            came += batches[place].len();
            for event in batches[place] {
                match event {
                    event @ (Event::Block(_) | Event::Reread { .. }) => {
                        let block = as_block(event).unwrap();
                        let before = market_of(&chain);
                        chain.push((block.clone(), owed.clone()));
                        let after = market_of(&chain);
                        // A reading touches what it changes, a block what it says.
                        let is_block = matches!(event, Event::Block(_));
                        let pools = block.updates.iter().map(|update| update.pool);
                        owed.extend(pools.filter(|pool| is_block || before.pool(*pool) != after.pool(*pool)));
                        let (number, hash) = (block.number, block.hash);
                        waiting.push(MissedRecord { chain: the_chain(), number, hash, covered_by: None, orphaned: false });
                    }
                    Event::Reverted { hash, .. } => {
                        let (block, before) = chain.pop().unwrap();
                        owed.extend(before);
                        owed.extend(block.updates.iter().map(|update| update.pool));
                        ran.retain(|ran| ran != hash);
                        let mut last = waiting.iter_mut().rev().filter(|w| w.hash == *hash && !w.orphaned);
                        if let Some(waiting) = last.next() {
                            waiting.orphaned = true;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
            let heard: Vec<_> = heard.iter().filter(|heard| !matches!(heard, Heard::Retract(_))).collect();
            let Some(last) = batches[place].last().and_then(as_block) else {
                assert!(heard.is_empty(), "{heard:?}");
                return;
            };
            let blocks: Vec<Block> = chain.iter().map(|(block, _)| block.clone()).collect();
            let market = market_after(&made.market, &blocks);
            let looked: Vec<PoolId> = owed.iter().copied().collect();
            // Independently of how that is kept: all that differs from the last block that ran and still counts.
            let counts = blocks.iter().rposition(|block| ran.contains(&block.hash));
            let then = market_after(&made.market, &blocks[..counts.map_or(0, |place| place + 1)]);
            for pool in market.pool_ids().filter(|pool| market.pool(*pool) != then.pool(*pool)) {
                assert!(owed.contains(&pool), "{pool:?} was not looked at");
            }
            waiting.pop();
            let mut expected: Vec<_> = waiting.drain(..).map(|missed| Heard::Missed(MissedRecord {
                covered_by: Some(last.number), ..missed
            })).collect();
            let Some(Heard::Block { winners, .. }) = heard.last() else { panic!("{heard:?}") };
            expected.push(Heard::Block {
                number: last.number,
                hash: last.hash,
                winners: winners.clone(),
                moved: looked.iter().map(|pool| {
                    let state = market.pool(*pool);
                    ReserveUpdate { pool: *pool, reserve0: state.reserve0, reserve1: state.reserve1 }
                }).collect(),
                expected: touched_by(&plain, &looked).len() as u64,
            });
            assert!(heard.into_iter().eq(&expected), "not {expected:?}");
            ran.push(last.hash);
            owed.clear();
        });
        let left: Vec<_> = heard.iter().rev().take(waiting.len()).rev().cloned().collect();
        prop_assert_eq!(left, waiting.into_iter().map(Heard::Missed).collect::<Vec<_>>());
        let standing = standing(&heard);
        let blocks = chain_of(&events);
        prop_assert!(standing.keys().all(|(hash, _)| blocks.iter().any(|block| block.hash == *hash)));
    }
}

pub(super) fn cut<'e>(events: &'e [Event], cuts: &[usize]) -> Vec<&'e [Event]> {
    let mut rest = events;
    let mut batches = Vec::new();
    for size in cuts {
        let (batch, later) = rest.split_at((*size).min(rest.len()));
        if !batch.is_empty() {
            batches.push(batch);
        }
        rest = later;
    }
    batches
}

/// What ends a run over these events.
pub(super) fn refused(events: &[Event]) -> WorldError {
    let made = made_up(1, 12);
    let fleet = fleet_of(arbitrage(&made, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), true, &Unwatched).unwrap();
    let refused = events
        .iter()
        .find_map(|event| follower.take([event.clone()], &mut |_| Ok(())).err());
    match refused {
        Some(RunError::Pump(PumpError::World { error, .. })) => error,
        other => panic!("{other:?}"),
    }
}

pub(super) fn empty_block(number: usize) -> Event {
    Event::Block(Block {
        number: number as u64,
        hash: hash_of(number),
        parent: hash_of(number - 1),
        timestamp: 0,
        base_fee: None,
        updates: Vec::new(),
    })
}

pub(super) fn revert(number: usize) -> Event {
    Event::Reverted {
        number: number as u64,
        hash: hash_of(number),
    }
}

#[test]
fn as_many_blocks_can_be_reverted_as_the_journal_holds_and_no_more() {
    let blocks = JOURNAL_DEPTH + 3;
    let mut events: Vec<_> = (1..=blocks).map(empty_block).collect();
    events.extend((4..=blocks).rev().map(revert));
    // And all of them again.
    events.extend((4..=blocks).map(empty_block));
    events.extend((4..=blocks).rev().map(revert));
    events.push(revert(3));
    let hash = hash_of(3);
    assert_eq!(refused(&events), WorldError::NotInJournal { hash });
}

#[test]
fn only_the_last_block_is_reverted() {
    let hash = hash_of(1);
    let (last, last_hash) = (2, hash_of(2));
    assert_eq!(
        refused(&[empty_block(1), empty_block(2), revert(1)]),
        WorldError::NotTheLast {
            hash,
            last,
            last_hash
        }
    );
    assert_eq!(refused(&[revert(1)]), WorldError::NotInJournal { hash });
}

#[test]
fn a_source_that_only_reverts_is_not_remembered_without_end() {
    let made = made_up(1, 12);
    let pair = [empty_block(1), revert(1)];
    let batches = vec![&pair[..]; WAITING + 1];
    let heard = follow(&made, false, &batches, |place, _, heard| {
        assert_eq!(heard.is_empty(), place < WAITING, "at {place}");
    });
    let missed = MissedRecord {
        chain: the_chain(),
        number: 1,
        hash: hash_of(1),
        covered_by: None,
        orphaned: true,
    };
    assert_eq!(heard, vec![Heard::Missed(missed); WAITING + 1]);
}
