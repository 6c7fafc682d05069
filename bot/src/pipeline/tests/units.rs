//! What a resolve and a solver unit yield.

use super::super::resolve::{GroupSet, ResolveJob, group_of, place_in_group};
use super::super::solve::BinJob;
use super::super::{GROUP, GROUP_WORDS};
use super::*;
use crate::partition::{BinId, GroupId, Partition, Policy};
use crate::solver::{Cycle, HOPS_MAX, bound, may_profit, rate};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The cycles of group sets, which must be of distinct groups.
fn members(sets: impl IntoIterator<Item = GroupSet>) -> BTreeSet<CycleId> {
    let mut ids = BTreeSet::new();
    for GroupSet { group, set } in sets {
        for place in (0..GROUP).filter(|n| set[*n as usize / 64] >> (n % 64) & 1 == 1) {
            assert!(ids.insert(CycleId::new(group.0 * GROUP + place)), "twice");
        }
    }
    ids
}

/// A partition of the world's groups whose costs are as given.
fn partition_of(world: &World, bins: u16, costs: &[u64]) -> Partition {
    let groups = world.table().len().div_ceil(GROUP as usize);
    let costs: Vec<u64> = costs.iter().copied().cycle().take(groups).collect();
    Partition::new(Policy::with_bins(bins), &costs).unwrap()
}

#[test]
fn a_cycle_has_one_place_in_one_group() {
    let places: BTreeSet<_> = (0..3 * GROUP)
        .map(CycleId::new)
        .map(|id| (group_of(id), place_in_group(id)))
        .collect();
    assert_eq!(places.len(), 3 * GROUP as usize);
    for (group, (word, bit)) in places {
        assert!(group.0 < 3 && word < GROUP_WORDS && bit.is_power_of_two());
    }
    let (word, bit) = place_in_group(CycleId::new(GROUP + 65));
    assert_eq!(
        (group_of(CycleId::new(GROUP + 65)), word, bit),
        (GroupId(1), 1, 2)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Each touched cycle is in the bin of its group and nowhere else, and is expected from there; the
    /// job has nothing left of what it resolved before.
    #[test]
    fn resolve_puts_each_touched_cycle_in_one_bin(
        seed in 0_u64..1 << 40,
        bins in 1_u8..9,
        costs in prop::collection::vec(1_u64..1000, 1..12),
        rounds in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..9), 1..4),
    ) {
        let made = made_up(seed, 64);
        let world = world_of(&made, 4);
        let partition = partition_of(&world, bins.into(), &costs);
        let mut job = ResolveJob::new(bins);
        let all: Vec<PoolId> = made.market.pool_ids().collect();
        for round in rounds {
            job.pools = round.iter().map(|index| *index.get(&all)).collect();
            job.run(&world, &partition);
            let touched = touched_by(&world, &job.pools);

            let mut in_bins: BTreeMap<CycleId, BinId> = BTreeMap::new();
            for (bin, job) in (0..).map(BinId).zip(&job.bins) {
                prop_assert_eq!(u16::from(job.bin), bin.0);
                prop_assert!(job.ids.is_sorted());
                for id in &job.ids {
                    prop_assert_eq!(in_bins.insert(*id, bin), None, "{:?} is in two bins", id);
                }
            }
            prop_assert!(in_bins.keys().eq(&touched));
            for (id, bin) in in_bins {
                prop_assert_eq!(partition.bin_of(group_of(id)), Some(bin));
            }
            for expected in &job.expected {
                prop_assert_eq!(partition.bin_of(expected.cycles.group), Some(expected.bin));
            }
            let expected = members(job.expected.iter().map(|expected| expected.cycles));
            prop_assert!(expected.into_iter().eq(touched));
        }
    }

    /// Solved and suppressed are a partition of the bin by the screen alone; the candidates are the
    /// solved ones whose bound is of interest. Pools that cannot be traded through count as screened.
    #[test]
    fn solve_gives_each_cycle_of_a_bin_one_outcome(
        seed in 0_u64..1 << 40,
        empty in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        rounds in prop::collection::vec((any::<u64>(), prop_oneof![Just(1.0), 1e12..1e19]), 1..4),
    ) {
        let mut made = made_up(seed, 48);
        let all: Vec<PoolId> = made.market.pool_ids().collect();
        let blocks = blocks_of(&made, seed, 2);
        let emptied = empty.iter().map(|index| ReserveUpdate { pool: *index.get(&all), reserve0: 0, reserve1: 9 });
        for update in blocks.iter().flat_map(|block| block.updates.iter().copied()).chain(emptied) {
            made.market.apply(&update).unwrap();
        }
        let world = world_of(&made, 4);
        let mut job = BinJob::new(3);
        for (pick, at_least) in rounds {
            job.clear();
            job.at_least = at_least;
            job.ids = (0..u32::try_from(world.table().len()).unwrap())
                .filter(|n| pick.rotate_left(n % 61) & 1 == 1)
                .map(CycleId::new)
                .collect();
            job.run(&world);

            let (mut solved, mut suppressed, mut candidates) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
            for id in &job.ids {
                let hops = world.hops_of(*id);
                let rates = hops.map_or([0.0; HOPS_MAX], |hops| {
                    let mut rates = [1.0; HOPS_MAX];
                    rates.iter_mut().zip(hops.as_slice()).for_each(|(r, hop)| *r = rate(hop));
                    rates
                });
                if !may_profit(&rates) {
                    suppressed.insert(*id);
                    continue;
                }
                solved.insert(*id);
                let hops = hops.unwrap();
                let bound = bound(&Cycle::new(hops.as_slice()).unwrap());
                if let Some(bound) = bound.map(|b| b.profit_at_most).filter(|b| *b >= at_least) {
                    candidates.push(Candidate { bound, id: *id });
                }
            }
            prop_assert_eq!(members(job.solved.iter().copied()), solved);
            prop_assert_eq!(members(job.suppressed.iter().copied()), suppressed);
            prop_assert_eq!(&job.candidates, &candidates);
        }
    }
}

#[test]
fn a_bin_without_cycles_takes_no_time() {
    let mut job = BinJob::new(0);
    job.run(&world_of(&made_up(1, 12), 3));
    assert!(job.walk.is_zero() && job.solved.is_empty() && job.suppressed.is_empty());
}
