//! The follower against plain recomputation from scratch. What is here makes chains and reads records.

mod growth;
mod rereads;
mod reverts;

use super::*;
use crate::market::{Market, MarketBuilder, Pool, PoolId, ReserveUpdate};
use crate::pipeline::tests::{arbitrage, assert_balanced, fleet_of, made_up, publishing};
use crate::pipeline::{Next, Unwatched, World, WorldError, crawl};
use crate::source::BlockHash;
use crate::source::embedded::Generated;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

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
    /// The last block is reverted, if there is one that can be.
    Revert,
    /// So many blocks later the market is read anew, with these reserves.
    Reread(u8, Vec<(prop::sample::Index, u8)>),
}

fn op() -> impl Strategy<Value = Op> {
    let moves = || prop::collection::vec((any::<prop::sample::Index>(), 85_u8..115), 0..5);
    prop_oneof![
        10 => moves().prop_map(Op::Block),
        2 => Just(Op::Again),
        6 => Just(Op::Revert),
        1 => (1_u8..9, moves()).prop_map(|(later, moves)| Op::Reread(later, moves)),
    ]
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
    // Blocks that cannot be reverted any more.
    let mut kept = 0;
    let updates = |moves: &[(prop::sample::Index, u8)]| {
        let moves = moves.iter();
        moves
            .map(|(pool, hundredths)| moved(made, *pool, *hundredths))
            .collect::<Vec<_>>()
    };
    for (count, op) in (1..).zip(ops) {
        let parent = chain.last().map_or(hash_of(0), |last| last.hash);
        match op {
            Op::Block(moves) => chain.push(Block {
                number: chain.last().map_or(1, |last| last.number + 1),
                hash: hash_of(count),
                parent,
                timestamp: 0,
                base_fee: None,
                updates: updates(moves),
            }),
            Op::Reread(later, moves) => {
                let read = Block {
                    number: chain.last().map_or(0, |last| last.number) + u64::from(*later),
                    hash: hash_of(count),
                    parent: hash_of(count + 1_000_000),
                    timestamp: 0,
                    base_fee: None,
                    updates: updates(moves),
                };
                let (head, reserves) = (read.head(), read.updates.clone());
                events.push(Event::Reread { head, reserves });
                chain.push(read);
                kept = chain.len();
                continue;
            }
            Op::Again => {
                let Some(block) = orphans.pop_if(|block| block.parent == parent) else {
                    continue;
                };
                chain.push(block);
            }
            Op::Revert => {
                if chain.len() == kept {
                    continue;
                }
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

/// The events that others do not take back.
fn lasting(events: &[Event]) -> Vec<Event> {
    let mut lasting = Vec::new();
    for event in events {
        match event {
            Event::Reverted { .. } => drop(lasting.pop()),
            event => lasting.push(event.clone()),
        }
    }
    lasting
}

/// What came as a block; a reading is one that moves what was read.
fn as_block(event: &Event) -> Option<Block> {
    match event {
        Event::Block(block) => Some(block.clone()),
        Event::Reread { head, reserves } => Some(Block {
            number: head.number,
            hash: head.hash,
            parent: head.parent,
            timestamp: head.timestamp,
            base_fee: head.base_fee,
            updates: reserves.clone(),
        }),
        _ => None,
    }
}

/// The blocks that events leave.
fn chain_of(events: &[Event]) -> Vec<Block> {
    lasting(events).iter().filter_map(as_block).collect()
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
    Registered(RegisteredRecord),
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
        Said::Registered(record) => Heard::Registered(record),
        Said::Retract(record) => Heard::Retract(record),
    });
}

/// What a follower says of batches, and the fleet it leaves.
fn follow(
    made: &Generated,
    every: bool,
    batches: &[&[Event]],
    between: impl FnMut(usize, &World, &[Heard]),
) -> Vec<Heard> {
    follow_with(made, every, 3, batches, between)
}

/// The same, with so many winners a block.
fn follow_with(
    made: &Generated,
    every: bool,
    top: usize,
    batches: &[&[Event]],
    mut between: impl FnMut(usize, &World, &[Heard]),
) -> Vec<Heard> {
    let fleet = fleet_of(arbitrage(made, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower = Follower::new(
        &fleet,
        publishing(BINS, top),
        the_chain(),
        every,
        &Unwatched,
    )
    .unwrap();
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
    let given_up = follower.finish(say).unwrap();
    drop(follower);
    assert!(!every || given_up == 0);
    if given_up == 0 {
        assert_balanced(&fleet);
    } else {
        // What blocks did not wait for when the stream ended.
        let closed = fleet.close(Duration::from_secs(10));
        let status = fleet.status();
        assert!(closed.is_clean() && status.balanced(), "{status}");
        assert_eq!(status.abandoned, given_up);
    }
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
            Heard::Missed(_) | Heard::Registered(_) => {}
        }
    }
    standing
}

/// The first pools of a market.
fn first_of(whole: &Market, count: usize) -> Market {
    let mut builder = MarketBuilder::new();
    for exchange in whole.exchanges() {
        builder
            .exchange(exchange.name.clone(), exchange.fee)
            .unwrap();
    }
    for pool in &whole.pools()[..count] {
        let [token0, token1] = [pool.token0, pool.token1].map(|id| {
            let token = whole.token(id);
            let (address, decimals) = (token.address, token.decimals);
            builder.token(address, decimals, &token.symbol).unwrap()
        });
        builder
            .pool(Pool {
                token0,
                token1,
                ..*pool
            })
            .unwrap();
    }
    builder.build()
}
