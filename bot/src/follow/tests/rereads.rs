//! The market read anew.

use super::reverts::{empty_block, refused, revert};
use super::*;
use crate::market::tests::{address, market_of};
use crate::pipeline::PumpError;
use regatta_core::posture::{Posture, ThrottleSample};
use regatta_core::role::WorkerRole;
use regatta_core::time;

fn reread(number: usize, reserves: Vec<ReserveUpdate>) -> Event {
    let Event::Block(block) = empty_block(number) else {
        panic!("a block is one");
    };
    let head = block.head();
    Event::Reread { head, reserves }
}

fn read(pool: u32, reserve0: u128) -> ReserveUpdate {
    ReserveUpdate {
        pool: PoolId::new(pool),
        reserve0,
        reserve1: 1000,
    }
}

/// A triangle around the base, which cycles run through, and pools that none does.
fn with_dead_pools(dead: u32) -> Generated {
    let mut pairs = vec![(0, 1), (1, 2), (2, 0)];
    pairs.extend((0..dead).map(|place| (1000 + place, 1001 + place)));
    Generated {
        market: market_of(&pairs),
        base: address(0),
    }
}

#[test]
fn a_reading_larger_than_any_window_is_applied_whole_and_only_what_differs_is_looked_at() {
    let made = with_dead_pools(9_000);
    let pools = u32::try_from(made.market.pools().len()).unwrap();
    // Every pool is read, most as they are; some twice, of which the last counts.
    let mut reserves: Vec<_> = (0..pools).map(|pool| read(pool, 1000)).collect();
    reserves[1] = read(1, 3000);
    reserves[8_000] = read(8_000, 77);
    reserves.extend([read(2, 5), read(2, 1000), read(8_500, 5), read(8_500, 6)]);
    let fleet = fleet_of(arbitrage(&made, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), true, &Unwatched).unwrap();
    let mut heard = Vec::new();
    let say = &mut |said: Said<'_>| {
        assert!(matches!(&said, Said::Block(_, record, _) if record.reread));
        hear(&mut heard, said);
        Ok(())
    };
    follower.take([reread(7, reserves)], say).unwrap();
    let [
        Heard::Block {
            moved,
            expected,
            winners,
            ..
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(moved, &[read(1, 3000), read(8_000, 77), read(8_500, 6)]);
    assert_eq!(*expected, 2, "the triangle in both directions");
    assert!(!winners.is_empty());
    let market = fleet.workload().world().market().clone();
    assert_eq!(market.pool(PoolId::new(8_500)).reserve0, 6);
    assert_eq!(market.pool(PoolId::new(2)).reserve0, 1000);
    let lane = &fleet.status().lanes[WorkerRole::PoolStateUpdater.id().index()];
    assert_eq!(lane.ledger.submitted, u64::from(pools).div_ceil(1024));
    drop(follower);
    assert_balanced(&fleet);
}

#[test]
fn a_block_that_is_read_anew_takes_back_what_was_published_for_it() {
    let made = with_dead_pools(0);
    let Event::Block(mut block) = empty_block(1) else {
        panic!("a block is one");
    };
    block.updates = vec![read(1, 3000)];
    let events = [Event::Block(block), reread(1, vec![read(1, 4000)])];
    let batches: Vec<_> = events.chunks(1).collect();
    let heard = follow(&made, true, &batches, |_, _, _| ());
    let [
        Heard::Block { winners: first, .. },
        Heard::Retract(retract),
        Heard::Block {
            winners: second, ..
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!(retract.path, first[0].0);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second);
    standing(&heard);
}

#[test]
fn blocks_before_a_reading_cannot_be_reverted_and_after_a_reverted_one_only_a_reading_comes() {
    let hash = hash_of(1);
    let read_at_2 = || reread(2, vec![read(1, 3000)]);
    assert_eq!(
        refused(&[empty_block(1), read_at_2(), revert(2), revert(1)]),
        WorldError::NotInJournal { hash }
    );
    assert_eq!(
        refused(&[read_at_2(), revert(2), empty_block(2)]),
        WorldError::NotRead
    );
    // The last is refused, and all before it are not.
    let last_hash = hash_of(6);
    assert_eq!(
        refused(&[
            read_at_2(),
            revert(2),
            reread(5, Vec::new()),
            empty_block(6),
            revert(1)
        ]),
        WorldError::NotTheLast {
            hash,
            last: 6,
            last_hash
        }
    );
}

#[test]
fn a_reading_of_what_no_pool_can_hold_or_of_no_pool_is_refused() {
    for wrong in [read(3, 1000), read(1, 1 << 112)] {
        let made = with_dead_pools(0);
        let fleet = fleet_of(arbitrage(&made, 3, BINS), BINS);
        crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
        let mut follower =
            Follower::new(&fleet, publishing(BINS, 3), the_chain(), true, &Unwatched).unwrap();
        let error = follower
            .take([reread(4, vec![wrong])], &mut |_| Ok(()))
            .unwrap_err();
        assert!(
            matches!(
                &error,
                RunError::Pump(PumpError::World {
                    number: 4,
                    error: WorldError::Apply(_)
                })
            ),
            "{error}"
        );
    }
}

/// Interrupts as soon as it is tended.
#[derive(Debug)]
struct Interrupts;

impl Watch for Interrupts {
    fn work(&self, _: bool) {}

    fn interrupted(&self) -> bool {
        true
    }

    fn tend(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }
}

#[test]
fn a_reading_that_a_cordon_holds_can_be_given_up() {
    let made = with_dead_pools(3_000);
    let fleet = fleet_of(arbitrage(&made, 3, BINS), BINS);
    crawl(&fleet, &Unwatched, |_| Next::Submit).unwrap();
    let mut follower =
        Follower::new(&fleet, publishing(BINS, 3), the_chain(), true, &Interrupts).unwrap();
    for nr_throttled in [0, 2] {
        fleet.posture().sample(ThrottleSample {
            at: fleet.posture().now(),
            nr_throttled: Some(nr_throttled),
            throttled: Some(time::Duration::ZERO),
        });
    }
    assert_eq!(fleet.posture().posture(), Posture::Cordoned);
    let reserves = (0..3_000).map(|pool| read(pool, 7)).collect();
    let error = follower
        .take([reread(4, reserves)], &mut |_| Ok(()))
        .unwrap_err();
    let RunError::Pump(PumpError::Interrupted {
        number: 4,
        given_up: 3,
    }) = error
    else {
        panic!("{error}");
    };
    // Nothing of it was applied.
    assert_eq!(fleet.workload().world().market(), &made.market);
    drop(follower);
    fleet.close(Duration::from_secs(10));
    assert_eq!(fleet.status().abandoned, 3);
}
