//! Runs of the pump against runs that must come to the same, and against looking at everything.

use super::*;
use crate::market::ReserveUpdate;
use crate::partition::GroupId;
use crate::solver::{Cycle, optimum, optimum_least_input};
use crate::source::SplitMix64;
use proptest::prelude::*;
use regatta_core::role::WorkerRole;
use std::cmp::Reverse;

/// Plainly: the proved optimum of every touched cycle, sorted, and the smallest input of the best.
fn best_of(
    world: &World,
    touched: &[CycleId],
    top: usize,
    min_profit: u128,
) -> Vec<(u128, CycleId, u128)> {
    let solve = |id: CycleId| {
        let hops = world.hops_of(id)?;
        let cycle = Cycle::new(hops.as_slice()).unwrap();
        let profit = optimum(&cycle).ok()??.profit;
        Some((profit, id))
    };
    let mut all: Vec<_> = touched.iter().filter_map(|id| solve(*id)).collect();
    all.retain(|(profit, _)| *profit >= min_profit);
    all.sort_by_key(|(profit, id)| (Reverse(*profit), *id));
    all.truncate(top);
    all.into_iter()
        .map(|(profit, id)| {
            let hops = world.hops_of(id).unwrap();
            let cycle = Cycle::new(hops.as_slice()).unwrap();
            let smallest = optimum_least_input(&cycle).ok().flatten();
            let input = smallest.or(optimum(&cycle).unwrap()).unwrap().input;
            (profit, id, input)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// What is published is what one gets by solving every touched cycle exactly.
    #[test]
    fn the_winners_are_the_best_of_all_touched_cycles(
        seed in 0_u64..1 << 40,
        top in 1_usize..6,
        bins in 1_u8..7,
        min_profit in prop_oneof![Just(0_u128), Just(1), 1_u128 << 50..1 << 60],
    ) {
        let made = made_up(seed, 40);
        let mut world = world_of(&made, 4);
        let fleet = fleet_of(arbitrage(&made, 4, bins), bins);
        crawl(&fleet, &crate::pipeline::Unwatched, |_| crate::pipeline::Next::Submit).unwrap();
        let config = PumpConfig { bins, top, min_profit };
        let mut pump = Pump::new(&fleet, config, &crate::pipeline::Unwatched).unwrap();
        for block in blocks_of(&made, seed, 2) {
            let mut changed = Vec::new();
            world.apply(&block.updates, &mut changed).unwrap();
            let touched = touched_by(&world, &changed);
            let result = pump.run(&[block]).unwrap();
            let winners: Vec<_> = result
                .winners
                .iter()
                .map(|w| (w.trade.optimum.profit, w.id, w.trade.optimum.input))
                .collect();
            prop_assert_eq!(result.tally.expected, touched.len() as u64);
            prop_assert_eq!(winners, best_of(&world, &touched, top, min_profit));
            prop_assert!(result.simulated <= touched.len());
            for winner in &result.winners {
                let amounts = winner.trade.amounts();
                prop_assert_eq!(amounts[0], winner.trade.optimum.input);
                prop_assert_eq!(amounts.last(), Some(&winner.trade.optimum.output));
            }
        }
        drop(pump);
        assert_balanced(&fleet);
    }

    /// Blocks that are run together count as one block with all their updates.
    #[test]
    fn coalesced_blocks_are_their_union(seed in 0_u64..1 << 40, sizes in prop::collection::vec(1_usize..5, 1..5)) {
        let made = made_up(seed, 64);
        let blocks = blocks_of(&made, seed, sizes.iter().sum::<usize>() as u64);
        let (together, apart) = (
            fleet_of(arbitrage(&made, 4, 3), 3),
            fleet_of(arbitrage(&made, 4, 3), 3),
        );
        let mut rest = &blocks[..];
        let mut unions = Vec::new();
        for fleet in [&together, &apart] {
            crawl(fleet, &crate::pipeline::Unwatched, |_| crate::pipeline::Next::Submit).unwrap();
        }
        let mut pump = Pump::new(&together, publishing(3, 3), &crate::pipeline::Unwatched).unwrap();
        for size in sizes {
            let (batch, later) = rest.split_at(size);
            rest = later;
            unions.push((pump.run(batch).unwrap(), block(
                batch[size - 1].number,
                batch.iter().flat_map(|block| block.updates.clone()).collect(),
            )));
        }
        drop(pump);
        let mut pump = Pump::new(&apart, publishing(3, 3), &crate::pipeline::Unwatched).unwrap();
        for (coalesced, union) in unions {
            let mut pools: Vec<_> = union.updates.iter().map(|update| update.pool).collect();
            pools.sort_unstable();
            pools.dedup();
            let result = pump.run(&[union]).unwrap();
            prop_assert_eq!(timeless(&coalesced), timeless(&result));
            prop_assert!(coalesced.moved.iter().map(|moved| moved.pool).eq(pools));
        }
        drop(pump);
        let worlds = (together.workload().world(), apart.workload().world());
        prop_assert_eq!(worlds.0.market(), worlds.1.market());
    }
}

#[test]
fn neither_bins_nor_costs_nor_repartitions_change_a_result() {
    let made = made_up(3, 128);
    let blocks = blocks_of(&made, 4, 70);
    let one = fleet_of(arbitrage(&made, 4, 1), 1);
    let expected: Vec<_> = run_all(&one, publishing(1, 1), &blocks, |_| ())
        .iter()
        .map(timeless)
        .collect();
    // In the last, some bins have no group at all.
    for (bins, may_move) in [(2, true), (5, true), (32, false)] {
        let fleet = fleet_of(arbitrage(&made, 4, bins), bins);
        let mut rng = SplitMix64::new(bins.into());
        let mut dear = Vec::new();
        let (mut placed, mut moves) = (Vec::new(), 0);
        let results = run_all(&fleet, publishing(bins, 1), &blocks, |fleet| {
            let mut partition = fleet.workload().partition_mut();
            let groups: Vec<GroupId> = (0..).map(GroupId).take(partition.groups()).collect();
            let now: Vec<_> = groups.iter().map(|g| partition.bin_of(*g)).collect();
            moves += usize::from(!placed.is_empty() && placed != now);
            placed = now;
            // Costs that no machine would measure, others from time to time, are a reason to move.
            if rng.percent(6) || dear.is_empty() {
                dear = groups.iter().map(|_| rng.percent(50)).collect();
            }
            for (group, dear) in groups.into_iter().zip(&dear) {
                let cost = if *dear { 1 << 40 } else { 1 << 20 };
                partition.observe(group, cost).unwrap();
            }
        });
        assert_eq!(moves > 0, may_move, "{moves} moves in {bins} bins");
        let results: Vec<_> = results.iter().map(timeless).collect();
        assert_eq!(results, expected, "{bins} bins");
        // The ledger is published too, so units may not depend on where groups are.
        let status = fleet.status();
        let lane = &status.lanes[WorkerRole::Solver.id().index()];
        assert_eq!(lane.ledger.submitted, blocks.len() as u64 * u64::from(bins));
    }
}

#[test]
fn a_pool_that_runs_dry_takes_its_cycles_with_it_and_brings_them_back() {
    let made = made_up(3, 64);
    let world = world_of(&made, 4);
    // The pool that the most cycles run through.
    let busiest = made
        .market
        .pool_ids()
        .max_by_key(|pool| world.index().count_of(*pool))
        .unwrap();
    let state = *made.market.pool(busiest);
    let through = world.index().count_of(busiest) as u64;
    let fleet = fleet_of(arbitrage(&made, 4, 2), 2);
    let set = |reserve0, reserve1| {
        let pool = busiest;
        let update = ReserveUpdate {
            pool,
            reserve0,
            reserve1,
        };
        block(1, vec![update])
    };
    // Off its price, so that there is something to gain.
    let full = set(state.reserve0, state.reserve1 / 2);
    let blocks = [
        full.clone(),
        set(0, state.reserve1 / 2),
        set(state.reserve0, 0),
        set(0, 0),
        full,
    ];
    let results = run_all(&fleet, publishing(2, 3), &blocks, |_| ());
    for (result, dry) in results.iter().zip([false, true, true, true, false]) {
        assert_eq!(result.tally.expected, through);
        assert_eq!(
            result.tally.suppressed == through,
            dry,
            "{:?}",
            result.tally
        );
        assert!(!dry || result.winners.is_empty() && result.simulated == 0);
    }
    assert!(!results[0].winners.is_empty());
    assert_eq!(timeless(&results[0]), timeless(&results[4]));
}

#[test]
fn a_block_that_moves_nothing_has_a_result_with_nothing() {
    let made = made_up(3, 16);
    let fleet = fleet_of(arbitrage(&made, 4, 2), 2);
    let results = run_all(&fleet, publishing(2, 3), &[block(1, Vec::new())], |_| ());
    assert_eq!(timeless(&results[0]), BlockResult::default());
}

#[test]
fn a_block_of_another_market_is_refused_by_number_and_pool() {
    let made = made_up(3, 16);
    let fleet = fleet_of(arbitrage(&made, 4, 2), 2);
    crawl(&fleet, &crate::pipeline::Unwatched, |_| {
        crate::pipeline::Next::Submit
    })
    .unwrap();
    let mut pump = Pump::new(&fleet, publishing(2, 3), &crate::pipeline::Unwatched).unwrap();
    let update = ReserveUpdate {
        pool: PoolId::new(9_999),
        reserve0: 1,
        reserve1: 1,
    };
    let error = pump
        .run(&[block(41, vec![update])])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("block 41") && error.contains("9999"),
        "{error}"
    );
}
