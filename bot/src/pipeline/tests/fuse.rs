//! The merge closes the outcome ledger, or trips.

use super::super::GROUP;
use super::super::merge::MergeJob;
use super::super::resolve::{Expected, GroupSet, ResolveJob, place_in_group};
use super::*;
use crate::partition::{Partition, Policy};
use proptest::prelude::*;
use regatta_core::outcome::{FuseTrip, Tally};

const BINS: u8 = 4;

/// A merge of what a block's bins gave, all in order.
fn merge_of(seed: u64, touch: &[prop::sample::Index]) -> (MergeJob, Tally) {
    let made = made_up(seed, 64);
    let world = world_of(&made, 4);
    let groups = world.table().len().div_ceil(GROUP as usize);
    let partition = Partition::new(Policy::with_bins(BINS.into()), &vec![1; groups]).unwrap();
    let mut all: Vec<PoolId> = made.market.pool_ids().collect();
    all.retain(|pool| world.index().count_of(*pool) > 0);
    let mut resolve = ResolveJob::new(BINS);
    resolve.pools = touch.iter().map(|index| *index.get(&all)).collect();
    resolve.run(&world, &partition);
    let mut merge = MergeJob::new(world.table().len(), BINS);
    merge.expected.clone_from(&resolve.expected);
    let mut tally = Tally::default();
    for mut bin in resolve.bins {
        bin.run(&world);
        tally.expected += bin.ids.len() as u64;
        tally.solved += count(&bin.solved);
        tally.suppressed += count(&bin.suppressed);
        merge.bins.push(bin);
    }
    (merge, tally)
}

fn count(sets: &[GroupSet]) -> u64 {
    let words = sets.iter().flat_map(|group| group.set);
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// The set of a kind in which the bin has the cycle, and its bit.
fn outcome_of(merge: &mut MergeJob, bin: usize, id: CycleId) -> (&mut u64, u64) {
    let (word, bit) = place_in_group(id);
    let group = super::super::resolve::group_of(id);
    let bin = &mut merge.bins[bin];
    let sets = bin.solved.iter_mut().chain(&mut bin.suppressed);
    let mut places = sets
        .filter(|set| set.group == group)
        .map(|set| &mut set.set[word]);
    let place = places.find(|place| **place & bit != 0).unwrap();
    (place, bit)
}

/// A bin that has cycles, and one of them.
fn some_cycle(merge: &MergeJob, pick: prop::sample::Index) -> (usize, CycleId) {
    let all: Vec<_> = (0..)
        .zip(&merge.bins)
        .flat_map(|(place, bin)| bin.ids.iter().map(move |id| (place, *id)))
        .collect();
    *pick.get(&all)
}

fn touches() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_touched_cycle_is_counted_once(seed in 0_u64..1 << 40, touch in touches()) {
        let (mut merge, tally) = merge_of(seed, &touch);
        prop_assert_eq!(merge.run(), Ok(tally));
        let expected: usize = merge.bins.iter().map(|bin| bin.candidates.len()).sum();
        prop_assert_eq!(merge.candidates.len(), expected);
        // The same again: a cycle leaves nothing behind.
        prop_assert_eq!(merge.run(), Ok(tally));
        prop_assert_eq!(merge.candidates.len(), expected);
    }

    /// A count would still add up.
    #[test]
    fn a_duplicate_and_an_omission_do_not_cancel(
        seed in 0_u64..1 << 40,
        touch in touches(),
        omit in any::<prop::sample::Index>(),
        again in any::<prop::sample::Index>(),
    ) {
        let (mut merge, _) = merge_of(seed, &touch);
        let (from, omitted) = some_cycle(&merge, omit);
        let (bin, doubled) = some_cycle(&merge, again);
        prop_assume!(omitted != doubled);
        let (place, bit) = outcome_of(&mut merge, from, omitted);
        *place &= !bit;
        // The other bin, and another kind, gives it a second outcome.
        let (word, bit) = place_in_group(doubled);
        let mut set = GroupSet { group: super::super::resolve::group_of(doubled), set: [0; super::super::GROUP_WORDS] };
        set.set[word] = bit;
        let other = (bin + 1) % merge.bins.len();
        merge.bins[other].suppressed.push(set);
        let trip = merge.run().unwrap_err();
        prop_assert!(matches!(trip, FuseTrip::Duplicate { id, .. } if id == u64::from(doubled.number())), "{}", trip);
        // A tripped fuse stays so.
        prop_assert_eq!(merge.run(), Err(trip));
    }

    #[test]
    fn an_omission_trips(seed in 0_u64..1 << 40, touch in touches(), omit in any::<prop::sample::Index>()) {
        let (mut merge, _) = merge_of(seed, &touch);
        let (bin, omitted) = some_cycle(&merge, omit);
        let (place, bit) = outcome_of(&mut merge, bin, omitted);
        *place &= !bit;
        let trip = merge.run().unwrap_err();
        prop_assert!(
            matches!(trip, FuseTrip::Omitted { first, count: 1, .. } if first == u64::from(omitted.number())),
            "{}", trip
        );
    }

    #[test]
    fn an_outcome_that_nobody_waits_for_trips(
        seed in 0_u64..1 << 40,
        touch in touches(),
        forget in any::<prop::sample::Index>(),
    ) {
        let (mut merge, _) = merge_of(seed, &touch);
        let (_, id) = some_cycle(&merge, forget);
        let (word, bit) = place_in_group(id);
        let group = super::super::resolve::group_of(id);
        for Expected { cycles, .. } in merge.expected.iter_mut().filter(|e| e.cycles.group == group) {
            cycles.set[word] &= !bit;
        }
        let trip = merge.run().unwrap_err();
        prop_assert!(
            matches!(trip, FuseTrip::Unexpected { id: found, .. } if found == u64::from(id.number())),
            "{}", trip
        );
    }

    /// A lost bin's cycles have failed, and only they: the rest is accounted for as ever.
    #[test]
    fn a_lost_bin_fails_its_own_cycles(
        seed in 0_u64..1 << 40,
        touch in touches(),
        pick in any::<prop::sample::Index>(),
        omit in any::<prop::sample::Index>(),
    ) {
        let (mut merge, mut tally) = merge_of(seed, &touch);
        let (lost, _) = some_cycle(&merge, pick);
        let bin = merge.bins.remove(lost);
        merge.lost.push(bin.bin);
        tally.solved -= count(&bin.solved);
        tally.suppressed -= count(&bin.suppressed);
        tally.failed = bin.ids.len() as u64;
        prop_assert_eq!(merge.run(), Ok(tally));
        prop_assert!(merge.lost.is_empty(), "the next cycle starts with every bin");

        // Another bin's omission is not covered by it.
        if merge.bins.iter().any(|bin| !bin.ids.is_empty()) {
            merge.lost.push(bin.bin);
            let (other, omitted) = some_cycle(&merge, omit);
            let (place, bit) = outcome_of(&mut merge, other, omitted);
            *place &= !bit;
            let trip = merge.run().unwrap_err();
            prop_assert!(matches!(trip, FuseTrip::Omitted { count: 1, .. }), "{}", trip);
        }
    }

    #[test]
    fn a_bin_that_is_lost_and_there_trips(seed in 0_u64..1 << 40, touch in touches(), pick in any::<prop::sample::Index>()) {
        let (mut merge, _) = merge_of(seed, &touch);
        let (bin, _) = some_cycle(&merge, pick);
        merge.lost.push(merge.bins[bin].bin);
        let trip = merge.run().unwrap_err();
        prop_assert!(matches!(trip, FuseTrip::Duplicate { .. }), "{}", trip);
    }
}
