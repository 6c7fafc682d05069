//! The follower against plain recomputation from scratch. What is here makes chains and reads records.

mod reverts;

use super::*;
use crate::market::{Market, PoolId, ReserveUpdate};
use crate::pipeline::tests::{arbitrage, assert_balanced, fleet_of, made_up, publishing};
use crate::pipeline::{Next, Unwatched, World, WorldError, crawl};
use crate::source::BlockHash;
use crate::source::embedded::Generated;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The name of the chain in these tests.
fn the_chain() -> UntrustedText {
    UntrustedText::new("test")
}

const BINS: u8 = 2;

/// What a source may do next.
#[derive(Clone, Debug)]
enum Op {
    /// A block comes that moves these pools, each to so many hundredths of its reserves at the start.
    Block(Vec<(prop::sample::Index, u8)>),
    /// The block that was reverted last comes again, if it still fits.
    Again,
    /// The last block is reverted, if there is one.
    Revert,
}

fn op() -> impl Strategy<Value = Op> {
    let moves = prop::collection::vec((any::<prop::sample::Index>(), 85_u8..115), 0..5);
    prop_oneof![5 => moves.prop_map(Op::Block), 1 => Just(Op::Again), 3 => Just(Op::Revert)]
}

fn hash_of(count: usize) -> BlockHash {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&(count as u64).to_be_bytes());
    BlockHash::new(bytes)
}

fn moved(made: &Generated, pool: prop::sample::Index, hundredths: u8) -> ReserveUpdate {
    let pools = made.market.pools();
    let place = pool.index(pools.len());
    ReserveUpdate {
        pool: PoolId::new(u32::try_from(place).unwrap()),
        reserve0: pools[place].reserve0 * u128::from(hundredths) / 100,
        reserve1: pools[place].reserve1,
    }
}

/// What a source says that does this.
fn events_of(made: &Generated, ops: &[Op]) -> Vec<Event> {
    let mut chain: Vec<Block> = Vec::new();
    let mut orphans: Vec<Block> = Vec::new();
    let mut events = Vec::new();
    for (count, op) in (1..).zip(ops) {
        let parent = chain.last().map_or(hash_of(0), |last| last.hash);
        match op {
            Op::Block(moves) => chain.push(Block {
                number: chain.len() as u64 + 1,
                hash: hash_of(count),
                parent,
                timestamp: 0,
                base_fee: None,
                updates: moves
                    .iter()
                    .map(|(pool, hundredths)| moved(made, *pool, *hundredths))
                    .collect(),
            }),
            Op::Again => {
                let Some(block) = orphans.pop_if(|block| block.parent == parent) else {
                    continue;
                };
                chain.push(block);
            }
            Op::Revert => {
                let Some(block) = chain.pop() else { continue };
                let (number, hash) = (block.number, block.hash);
                events.push(Event::Reverted { number, hash });
                orphans.push(block);
                continue;
            }
        }
        events.extend(chain.last().cloned().map(Event::Block));
    }
    events
}

/// The blocks that events leave.
fn chain_of(events: &[Event]) -> Vec<Block> {
    let mut chain = Vec::new();
    for event in events {
        match event {
            Event::Block(block) => chain.push(block.clone()),
            Event::Reverted { .. } => drop(chain.pop()),
            other => panic!("no script has {other:?}"),
        }
    }
    chain
}

/// A market after blocks.
fn market_after(start: &Market, chain: &[Block]) -> Market {
    let mut market = start.clone();
    for update in chain.iter().flat_map(|block| &block.updates) {
        market.apply(update).unwrap();
    }
    market
}

/// What was said, without what depends on timing.
#[derive(Clone, PartialEq, Debug)]
enum Heard {
    Block {
        number: u64,
        hash: BlockHash,
        winners: Vec<(String, u128, u128)>,
        moved: Vec<ReserveUpdate>,
        expected: u64,
    },
    Missed(MissedRecord),
    Retract(RetractRecord),
}

fn hear(heard: &mut Vec<Heard>, said: Said<'_>) {
    heard.push(match said {
        Said::Block(_, record, result) => Heard::Block {
            number: record.number,
            hash: record.hash,
            winners: record
                .winners
                .iter()
                .map(|w| (w.path.clone(), w.input, w.profit))
                .collect(),
            moved: result.moved.clone(),
            expected: result.tally.expected,
        },
        Said::Distrust(record) => panic!("no bytecode is run here: {record:?}"),
        Said::Missed(record) => Heard::Missed(record),
        Said::Retract(record) => Heard::Retract(record),
    });
}

/// What a follower says of batches, and the fleet it leaves.
fn follow(
    made: &Generated,
    every: bool,
    batches: &[&[Event]],
    mut between: impl FnMut(usize, &World, &[Heard]),
) -> Vec<Heard> {
    let fleet = fleet_of(arbitrage(made, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), every, &Unwatched).unwrap();
    let mut heard = Vec::new();
    for (place, batch) in batches.iter().enumerate() {
        let before = heard.len();
        let say = &mut |said: Said<'_>| {
            hear(&mut heard, said);
            Ok(())
        };
        follower.take(batch.iter().cloned(), say).unwrap();
        between(place, &fleet.workload().world(), &heard[before..]);
    }
    let say = &mut |said: Said<'_>| {
        hear(&mut heard, said);
        Ok(())
    };
    follower.finish(say).unwrap();
    drop(follower);
    assert_balanced(&fleet);
    heard
}

/// What was published and not retracted, by key; each key is published and retracted in turns.
fn standing(heard: &[Heard]) -> BTreeMap<(BlockHash, String), (u128, u128)> {
    let mut standing = BTreeMap::new();
    for heard in heard {
        match heard {
            Heard::Block { hash, winners, .. } => {
                for (path, input, profit) in winners {
                    let key = (*hash, path.clone());
                    assert_eq!(standing.insert(key, (*input, *profit)), None);
                }
            }
            Heard::Retract(retract) => {
                assert_eq!(retract.kind, "opportunity");
                let key = (retract.hash, retract.path.clone());
                assert!(standing.remove(&key).is_some(), "{retract:?}");
            }
            Heard::Missed(_) => {}
        }
    }
    standing
}
