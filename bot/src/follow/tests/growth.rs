//! A market that grows while it is followed.

use super::reverts::{empty_block, revert};
use super::*;
use crate::cycles::{CycleGraph, CycleId};
use crate::market::{Address, MarketBuilder, Pool};
use crate::pipeline::tests::world_of;
use crate::pipeline::{Feed, FeedNext, LiveFeed};
use crate::source::{BlockSource, NewPool, SourceError};
use regatta_core::posture::{Posture, PosturePolicyPatch, ThrottleSample};
use regatta_core::role::WorkerRole;
use regatta_core::time;
use regatta_portable::Census;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};

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

/// As many of the first pools as it takes for a cycle, and at least so many.
fn start_of(whole: &Generated, at_least: usize) -> Generated {
    let counts = at_least..=whole.market.pools().len();
    let mut starts = counts.map(|count| Generated {
        market: first_of(&whole.market, count),
        base: whole.base,
    });
    let has_cycle = |made: &Generated| CycleGraph::new(&made.market, made.base, 3).is_ok();
    starts.find(has_cycle).unwrap()
}

/// The pool of that number as one that comes.
fn coming(market: &Market, number: usize) -> NewPool {
    let pool = market.pools()[number];
    NewPool {
        address: pool.address,
        exchange: pool.exchange,
        token0: market.token(pool.token0).clone(),
        token1: market.token(pool.token1).clone(),
        reserve0: pool.reserve0,
        reserve1: pool.reserve1,
    }
}

/// The pools of every registered cycle in their order, by id.
fn paths(world: &World) -> Vec<Vec<Address>> {
    let path = |cycle: &crate::cycles::Cycle| {
        let edges = cycle.edges().iter();
        let pools = edges.map(|edge| world.graph().edge(*edge).pool);
        pools
            .map(|pool| world.market().pool(pool).address)
            .collect()
    };
    world.table().cycles().iter().map(path).collect()
}

/// The world is the one that is built of its market: each cycle once, and what is known of each.
fn assert_whole(world: &World, base: Address) {
    let market = world.market().clone();
    let fresh = world_of(&Generated { market, base }, 3);
    let known = |world: &World| -> BTreeMap<_, _> {
        let ids = (0..).map(CycleId::new);
        let known = ids.zip(world.table().cycles()).map(|(id, cycle)| {
            let rates = world.rates_of(*cycle).0.map(f64::to_bits);
            (
                rates,
                world.hops_of(id),
                world
                    .index()
                    .count_of(world.graph().edge(cycle.edges()[0]).pool),
            )
        });
        paths(world).into_iter().zip(known).collect()
    };
    assert_eq!(paths(world).len(), fresh.table().len());
    assert!(known(world) == known(&fresh));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// A market that comes pool by pool ends with the cycles of the whole one, under ids that stay, and later
    /// blocks come to the same.
    #[test]
    fn pool_by_pool_is_all_at_once(
        seed in 0_u64..1 << 40,
        at_least in 2_usize..20,
        sizes in prop::collection::vec(1_usize..6, 40),
        ops in prop::collection::vec(op(), 2..8),
    ) {
        let whole = made_up(seed, 14);
        let start = start_of(&whole, at_least);
        let count = whole.market.pools().len();
        let mut events = Vec::new();
        let mut known = start.market.pools().len();
        for size in sizes {
            let end = (known + size).min(count);
            events.push(empty_block(events.len() + 1));
            events.push(Event::Pools((known..end).map(|n| coming(&whole.market, n)).collect()));
            known = end;
            if known == count {
                break;
            }
        }
        prop_assume!(known == count);
        let growing = events.len();
        let blocks: Vec<_> = events_of(&whole, &ops).into_iter().filter(|event| matches!(event, Event::Block(_))).collect();
        events.extend(blocks.clone());
        let batches: Vec<_> = events.chunks(1).collect();
        let mut before: Vec<Vec<Address>> = Vec::new();
        let grown = follow_with(&start, true, 1000, &batches, |place, world, heard| {
            let now = paths(world);
            assert_eq!(&now[..before.len()], before);
            match (&events[place], heard) {
                (Event::Pools(pools), [Heard::Registered(record)]) => {
                    assert_eq!((record.pools, record.skipped), (pools.len(), 0));
                    assert_eq!(record.cycles, now.len() - before.len());
                    assert_eq!(record.total, now.len());
                    assert_eq!(record.after, Some(place as u64));
                    assert_eq!(record.refused, None);
                }
                (Event::Block(block), [Heard::Block { hash, .. }]) => assert_eq!(block.hash, *hash),
                other => panic!("{other:?}"),
            }
            if place + 1 >= growing {
                assert_whole(world, start.base);
            }
            before = now;
        });
        // The first block after the growth looks at the pools that came last, too.
        let mut blocks = blocks;
        if let (Some(Event::Block(first)), Event::Pools(last)) = (blocks.first_mut(), &events[growing - 1]) {
            for new in last {
                let pool = whole.market.pool_by_address(new.address).unwrap();
                let (reserve0, reserve1) = (new.reserve0, new.reserve1);
                first.updates.insert(0, ReserveUpdate { pool, reserve0, reserve1 });
            }
        }
        let batches: Vec<_> = blocks.chunks(1).collect();
        let at_once = follow_with(&whole, true, 1000, &batches, |_, _, _| ());
        prop_assert_eq!(sorted(&grown[growing..]), sorted(&at_once));
    }

    /// Whatever comes, the market is what comes of it one after the other, and once nothing is outstanding the world
    /// is that of its market.
    #[test]
    fn a_growing_world_is_a_fresh_one(
        seed in 0_u64..1 << 40,
        steps in prop::collection::vec((0_u8..8, any::<prop::sample::Index>(), 85_u8..115), 1..16),
        cuts in prop::collection::vec(1_usize..5, 16),
    ) {
        let whole = made_up(seed, 12);
        let start = start_of(&whole, 6);
        // The market, and the market before each block.
        let mut market = start.market.clone();
        let mut chain: Vec<(u64, BlockHash, Market)> = Vec::new();
        let mut events = Vec::new();
        let mut after = Vec::new();
        for (count, (kind, pick, hundredths)) in (1..).zip(steps) {
            let pools = market.pools().len();
            match kind {
                0..4 => {
                    chain.push((count as u64, hash_of(count), market.clone()));
                    let made = Generated { market: first_of(&whole.market, pools), base: whole.base };
                    let update = moved(&made, pick, hundredths);
                    market.apply(&update).unwrap();
                    let Event::Block(mut block) = empty_block(count) else { panic!("a block is one") };
                    block.updates = vec![update];
                    events.push(Event::Block(block));
                }
                4..6 => {
                    let Some((number, hash, before)) = chain.pop() else { continue };
                    // What it did not know has no reserves.
                    let (known, all) = (before.pools().len(), market.pools().len());
                    for number in 0..all {
                        let pool = PoolId::new(u32::try_from(number).unwrap());
                        let old = (number < known).then(|| before.pool(pool));
                        let (reserve0, reserve1) = old.map_or((0, 0), |pool| (pool.reserve0, pool.reserve1));
                        market.apply(&ReserveUpdate { pool, reserve0, reserve1 }).unwrap();
                    }
                    events.push(Event::Reverted { number, hash });
                }
                _ => {
                    if pools == whole.market.pools().len() {
                        continue;
                    }
                    let new = coming(&whole.market, pools);
                    let pool = market.extend(&new).unwrap();
                    let (reserve0, reserve1) = (new.reserve0, new.reserve1);
                    market.apply(&ReserveUpdate { pool, reserve0, reserve1 }).unwrap();
                    events.push(Event::Pools(vec![new]));
                }
            }
            after.push(market.clone());
        }
        for every in [true, false] {
            let batches: Vec<_> = if every { events.chunks(1).collect() } else { reverts::cut(&events, &cuts) };
            let mut came = 0;
            follow_with(&start, every, 3, &batches, |place, world, _| {
                came += batches[place].len();
                assert!(world.market() == &after[came - 1]);
                if every {
                    assert_whole(world, start.base);
                }
            });
        }
    }
}

/// What was said of blocks, whatever the numbers of cycles.
fn sorted(heard: &[Heard]) -> Vec<Heard> {
    let mut heard = heard.to_vec();
    for heard in &mut heard {
        if let Heard::Block { winners, .. } = heard {
            winners.sort();
        }
    }
    heard
}

/// A source that says what it is given.
struct Given(Receiver<Event>);

impl BlockSource for Given {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        Ok(self.0.recv().ok())
    }
}

fn sample(fleet: &Fleet<Arbitrage>, nr_throttled: u64) {
    fleet.posture().sample(ThrottleSample {
        at: fleet.posture().now(),
        nr_throttled: Some(nr_throttled),
        throttled: Some(time::Duration::ZERO),
    });
}

/// A made-up market with more cycles than a window holds behind the pools that are to come.
fn large() -> (Generated, Generated) {
    let whole = made_up(5, 40);
    let start = start_of(&whole, whole.market.pools().len() / 2);
    (whole, start)
}

/// Takes what a feed has, as often as it takes to hear what is wanted.
fn until(
    follower: &mut Follower<'_>,
    feed: &mut Feed,
    heard: &mut Vec<Heard>,
    wanted: impl Fn(&Heard) -> bool,
) {
    let mut events = Vec::new();
    while !heard.iter().any(&wanted) {
        let came = feed
            .next(&mut events, &Unwatched, follower.is_growing())
            .unwrap();
        assert_ne!(came, FeedNext::End);
        let say = &mut |said: Said<'_>| {
            hear(heard, said);
            Ok(())
        };
        follower.take(events.drain(..), say).unwrap();
    }
}

fn live_fleet(
    start: &Generated,
) -> (
    Fleet<Arbitrage>,
    Feed,
    Sender<Event>,
    crate::pipeline::LiveSource,
) {
    let fleet = fleet_of(arbitrage(start, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let (send, receive) = channel();
    let source = Box::new(Given(receive));
    let (feed, source) = LiveFeed::start(
        source,
        Duration::ZERO,
        std::sync::Arc::default(),
        &Census::new(),
    )
    .unwrap();
    (fleet, Feed::Live(feed), send, source)
}

#[test]
fn blocks_go_on_while_a_cordon_holds_registrations_and_these_go_on_after() {
    let (whole, start) = large();
    let (fleet, mut feed, send, source) = live_fleet(&start);
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), false, &Unwatched).unwrap();
    follower.wake(feed.waker());
    let mut patch = PosturePolicyPatch::default();
    patch.set("cordon_exit_clean_ms", "5").unwrap();
    patch.set("cordon_enter_window_ms", "5").unwrap();
    fleet.posture().retune(&patch).unwrap();
    sample(&fleet, 0);
    sample(&fleet, 2);
    assert_eq!(fleet.posture().posture(), Posture::Cordoned);

    let known = start.market.pools().len();
    let new = (known..whole.market.pools().len()).map(|number| coming(&whole.market, number));
    send.send(Event::Pools(new.collect())).unwrap();
    let mut heard = Vec::new();
    let before = fleet.workload().world().table().len();
    // Blocks move old pools and new ones.
    for number in 1..=5 {
        let Event::Block(mut block) = empty_block(number) else {
            panic!("a block is one");
        };
        let places = [number, known + number];
        block.updates = places
            .map(|place| {
                let mut market = fleet.workload().world().market().clone();
                if place >= market.pools().len() {
                    market = whole.market.clone();
                }
                let pool = market.pools()[place];
                ReserveUpdate {
                    pool: PoolId::new(u32::try_from(place).unwrap()),
                    reserve0: pool.reserve0 * 11 / 10,
                    reserve1: pool.reserve1,
                }
            })
            .to_vec();
        send.send(Event::Block(block)).unwrap();
        until(
            &mut follower,
            &mut feed,
            &mut heard,
            |heard| matches!(heard, Heard::Block { number: ran, .. } if *ran == number as u64),
        );
        let lane = &fleet.status().lanes[WorkerRole::Registrar.id().index()];
        assert_eq!(lane.ledger.backlog, 32, "a window of them is held");
        assert_eq!(fleet.workload().world().table().len(), before);
        let moved = fleet.workload().world().market().pools()[known + number];
        assert_eq!(
            moved.reserve0,
            whole.market.pools()[known + number].reserve0 * 11 / 10
        );
    }
    assert!(follower.is_growing());
    while fleet.posture().posture() == Posture::Cordoned {
        sample(&fleet, 2);
    }
    // No block comes: what ends wakes who waits for one.
    until(&mut follower, &mut feed, &mut heard, |heard| {
        matches!(heard, Heard::Registered(_))
    });
    assert!(!follower.is_growing());
    let world = fleet.workload().world();
    assert!(world.table().len() > before + 32, "{}", world.table().len());
    assert_whole(&world, start.base);
    drop(world);
    // The next block looks at all of the new pools.
    send.send(empty_block(6)).unwrap();
    until(&mut follower, &mut feed, &mut heard, |heard| {
        matches!(heard, Heard::Block { number: 6, .. })
    });
    let Some(Heard::Block { moved, .. }) = heard.last() else {
        panic!("{heard:?}");
    };
    assert_eq!(moved.len(), whole.market.pools().len() - known);
    drop(send);
    drop((follower, feed, source));
    assert_balanced(&fleet);
}

#[test]
fn what_is_held_at_the_end_is_given_up_and_counted() {
    let (whole, start) = large();
    let fleet = fleet_of(arbitrage(&start, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), false, &Unwatched).unwrap();
    sample(&fleet, 0);
    sample(&fleet, 2);
    let known = start.market.pools().len();
    let new = (known..whole.market.pools().len()).map(|number| coming(&whole.market, number));
    follower
        .take([Event::Pools(new.collect())], &mut |_| Ok(()))
        .unwrap();
    assert_eq!(follower.finish(&mut |_| Ok(())).unwrap(), 32);
    assert_eq!(fleet.status().abandoned, 32);
}

#[test]
fn a_pool_of_a_reverted_block_has_no_reserves_until_it_moves_again() {
    let whole = made_up(9, 12);
    let start = start_of(&whole, 6);
    let place = start.market.pools().len();
    let pool = PoolId::new(u32::try_from(place).unwrap());
    let new = coming(&whole.market, place);
    let Event::Block(mut again) = empty_block(1) else {
        panic!("a block is one");
    };
    again.hash = hash_of(7);
    again.updates = vec![ReserveUpdate {
        pool,
        reserve0: new.reserve0,
        reserve1: new.reserve1,
    }];
    let events = [
        empty_block(1),
        Event::Pools(vec![new.clone()]),
        revert(1),
        Event::Block(again),
    ];
    let batches: Vec<_> = events.chunks(1).collect();
    let mut registered = Vec::new();
    follow_with(&start, true, 3, &batches, |place, world, _| {
        registered.push(world.table().len());
        if place > 0 {
            assert_eq!(world.market().pool(pool).is_usable(), place != 2);
        }
        assert_whole(world, start.base);
    });
    assert_eq!(registered[1..], [registered[1]; 3]);
}

#[test]
fn pools_that_the_market_refuses_are_skipped_and_counted() {
    let whole = made_up(9, 12);
    let start = start_of(&whole, 6);
    let place = start.market.pools().len();
    let good = coming(&whole.market, place);
    let known = coming(&whole.market, 0);
    let with = |change: fn(&mut NewPool)| {
        let mut pool = good.clone();
        pool.address = crate::market::tests::address(77);
        change(&mut pool);
        pool
    };
    let wrong = [
        known,
        with(|pool| pool.reserve1 = 1 << 112),
        with(|pool| pool.token1 = pool.token0.clone()),
        with(|pool| pool.token0.decimals ^= 1),
    ];
    let skipped = wrong.len();
    let events = [
        Event::Pools(wrong.to_vec()),
        Event::Pools([wrong.to_vec(), vec![good]].concat()),
    ];
    let batches: Vec<_> = events.chunks(1).collect();
    let mut tokens = BTreeSet::new();
    let heard = follow_with(&start, true, 3, &batches, |_, world, _| {
        tokens.insert(world.market().tokens().len());
    });
    let [Heard::Registered(none), Heard::Registered(one)] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((none.pools, none.skipped, none.cycles), (0, skipped, 0));
    assert_eq!((one.pools, one.skipped), (1, skipped));
    assert!(tokens.len() <= 2 && none.total == one.total - one.cycles);
}
