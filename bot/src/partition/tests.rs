//! Bounds against brute force, stickiness and determinism.

use proptest::prelude::*;

use super::*;

fn policy(bins: u16, min_gain_permille: u16) -> Policy {
    Policy {
        bins,
        min_gain_permille,
        smoothing: 0,
    }
}

fn makespan(costs: &[u64], bins: u16, bin_of: &[BinId]) -> u64 {
    let mut loads = vec![0; bins.into()];
    for (bin, cost) in bin_of.iter().zip(costs) {
        loads[usize::from(bin.0)] += cost;
    }
    loads.into_iter().max().unwrap()
}

fn placed(partition: &Partition) -> Vec<BinId> {
    (0..partition.groups())
        .map(|g| partition.bin_of(group(g)).unwrap())
        .collect()
}

fn group(index: usize) -> GroupId {
    GroupId(u32::try_from(index).unwrap())
}

/// The least makespan there is, by trying every placement.
fn optimum(costs: &[u64], bins: u16) -> u64 {
    fn go(costs: &[u64], loads: &mut [u64]) -> u64 {
        let Some((&cost, rest)) = costs.split_first() else {
            return loads.iter().copied().max().unwrap();
        };
        (0..loads.len())
            .map(|bin| {
                loads[bin] += cost;
                let best = go(rest, loads);
                loads[bin] -= cost;
                best
            })
            .min()
            .unwrap()
    }
    go(costs, &mut vec![0; bins.into()])
}

#[test]
fn a_known_case() {
    // Graham's worst case for two bins: LPT reaches 7 where 6 is possible.
    let partition = Partition::new(policy(2, 0), &[3, 3, 2, 2, 2]).unwrap();
    assert_eq!(placed(&partition), [0, 1, 0, 1, 0].map(BinId));
    assert_eq!(partition.loads(), [7, 5]);
    assert_eq!(
        partition.groups_of(BinId(0)).collect::<Vec<_>>(),
        [0, 2, 4].map(GroupId)
    );
    assert_eq!(optimum(&[3, 3, 2, 2, 2], 2), 6);
}

#[test]
fn bad_policies_and_groups_are_refused() {
    let message = |policy| Partition::new(policy, &[1]).unwrap_err().to_string();
    assert_eq!(
        message(policy(0, 0)),
        "groups cannot be placed in 0 bins; there must be at least 1"
    );
    assert_eq!(
        message(policy(1, 1001)),
        "a move cannot have to save 1001 thousandths of the makespan; it is from 0 to 1000"
    );
    assert_eq!(
        message(Policy {
            smoothing: 9,
            ..policy(1, 0)
        }),
        "a measurement cannot count for 2^-9 of a cost; the exponent is from 0 to 8"
    );
    let mut partition = Partition::new(policy(1, 0), &[1]).unwrap();
    assert_eq!(
        partition.observe(GroupId(1), 5).unwrap_err().to_string(),
        "group 1 is not in the partition, which has 1 groups"
    );
}

#[test]
fn a_cost_follows_measurements_and_settles_on_them() {
    let mut partition = Partition::new(
        Policy {
            smoothing: 3,
            ..policy(1, 0)
        },
        &[5],
    )
    .unwrap();
    let mut observe = |cost| {
        partition.observe(GroupId(0), cost).unwrap();
        partition.cost(GroupId(0)).unwrap()
    };
    assert_eq!(observe(800), 800);
    assert_eq!(observe(0), 700);
    // Differences smaller than the divisor are not lost for ever.
    assert_eq!((0..60).map(|_| observe(703)).last(), Some(703));
    assert_eq!((0..60).map(|_| observe(700)).last(), Some(700));
    assert_eq!((0..200).map(|_| observe(0)).last(), Some(1));
    assert_eq!(
        (0..400).map(|_| observe(u64::MAX)).last(),
        Some((1 << 55) - 1)
    );
}

#[test]
fn groups_without_a_cost_are_spread_out() {
    let partition = Partition::new(policy(3, 0), &[0; 9]).unwrap();
    assert_eq!(partition.loads(), [3, 3, 3]);
}

#[test]
fn two_equally_full_bins_are_relieved_together() {
    // Bins 0 and 1 hold 60 each, bins 2 and 3 hold 20: no single move lowers the makespan.
    let mut partition = Partition::new(policy(4, 100), &[30, 30, 30, 30, 20, 20]).unwrap();
    partition.bin_of = [0, 0, 1, 1, 2, 3].map(BinId).to_vec();
    let done = partition.repartition();
    assert_eq!((done.before, done.after), (60, 50));
    let to = |g, from, to| Move {
        group: GroupId(g),
        from: BinId(from),
        to: BinId(to),
    };
    assert_eq!(done.moves, [to(0, 0, 2), to(2, 1, 3)]);
}

#[test]
fn a_group_does_not_move_for_nothing_beside_a_bin_that_cannot_be_relieved() {
    // Bin 0 is one group of 100; moving the 40 out of bin 1 would even out bins 1 and 2 only.
    let mut partition = Partition::new(policy(3, 0), &[100, 50, 40, 1]).unwrap();
    partition.bin_of = [0, 1, 1, 2].map(BinId).to_vec();
    let done = partition.repartition();
    assert_eq!((done.before, done.after, done.moves), (100, 100, vec![]));
}

/// Costs that collide often, and some that are far apart.
fn costs(groups: core::ops::Range<usize>) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![1_u64..6, 1_u64..1000], groups)
}

proptest! {
    #[test]
    fn a_fresh_partition_is_within_grahams_bound(costs in costs(1..9), bins in 1_u16..5) {
        let partition = Partition::new(policy(bins, 0), &costs).unwrap();
        let reached = makespan(&costs, bins, &placed(&partition));
        let bins = u64::from(bins);
        prop_assert!(reached * 3 * bins <= optimum(&costs, u16::try_from(bins).unwrap()) * (4 * bins - 1));
    }

    #[test]
    fn every_group_is_in_exactly_one_bin_and_loads_are_their_sums(
        costs in costs(0..60), bins in 1_u16..7, changed in costs(60..61), gain in 0_u16..=1000,
    ) {
        let mut partition = Partition::new(policy(bins, gain), &costs).unwrap();
        for (index, &cost) in changed.iter().take(costs.len()).enumerate() {
            partition.observe(group(index), cost).unwrap();
        }
        partition.repartition();
        let mut seen: Vec<_> = (0..bins).flat_map(|b| partition.groups_of(BinId(b))).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..costs.len()).map(group).collect::<Vec<_>>());
        for (bin, load) in partition.loads().into_iter().enumerate() {
            let groups = partition.groups_of(BinId(u16::try_from(bin).unwrap()));
            prop_assert_eq!(load, groups.map(|g| changed[g.0 as usize]).sum::<u64>());
        }
    }

    #[test]
    fn nothing_moves_when_nothing_changed(
        costs in costs(1..60), bins in 1_u16..7, changed in costs(60..61), gain in 0_u16..=1000,
    ) {
        let mut partition = Partition::new(policy(bins, gain), &costs).unwrap();
        prop_assert_eq!(partition.repartition().moves, vec![]);
        for (index, &cost) in changed.iter().take(costs.len()).enumerate() {
            partition.observe(group(index), cost).unwrap();
        }
        partition.repartition();
        prop_assert_eq!(partition.repartition().moves, vec![]);
    }

    #[test]
    fn what_moved_saved_its_share_and_what_stayed_could_not(
        costs in costs(1..60), bins in 1_u16..7, changed in costs(60..61), gain in 0_u16..=1000,
    ) {
        let mut partition = Partition::new(policy(bins, gain), &costs).unwrap();
        for (index, &cost) in changed.iter().take(costs.len()).enumerate() {
            partition.observe(group(index), cost).unwrap();
        }
        let changed = &changed[..costs.len()];
        let old = placed(&partition);
        let done = partition.repartition();
        let new = placed(&partition);
        prop_assert_eq!(done.before, makespan(changed, bins, &old));
        prop_assert_eq!(done.after, makespan(changed, bins, &new));
        let moved: Vec<_> = (0..new.len())
            .filter(|&g| old[g] != new[g])
            .map(|g| Move { group: group(g), from: old[g], to: new[g] })
            .collect();
        prop_assert_eq!(&done.moves, &moved);
        let share = |makespan: u64| makespan * u64::from(gain);
        if !moved.is_empty() {
            prop_assert!(done.after < done.before);
            prop_assert!((done.before - done.after) * 1000 >= share(done.before));
        }
        let fresh = makespan(changed, bins, &lpt(changed, bins));
        prop_assert!(done.after <= fresh || (done.after - fresh) * 1000 < share(done.after));
    }

    #[test]
    fn two_runs_agree(costs in costs(1..60), bins in 1_u16..7, rounds in prop::collection::vec(costs(60..61), 0..4)) {
        let run = || {
            let mut partition = Partition::new(Policy::with_bins(bins), &costs).unwrap();
            let mut done = Vec::new();
            for round in &rounds {
                for (index, &cost) in round.iter().take(costs.len()).enumerate() {
                    partition.observe(group(index), cost).unwrap();
                }
                done.push(partition.repartition());
            }
            (done, placed(&partition))
        };
        prop_assert_eq!(run(), run());
    }
}

proptest! {
    /// New groups go longest first into the emptiest bin; the others stay where they are.
    #[test]
    fn new_groups_are_placed_and_the_others_stay(
        old in prop::collection::vec(1_u64..1000, 0..20),
        new in prop::collection::vec(1_u64..2001, 0..20),
        bins in 1_u16..6,
    ) {
        let mut partition = Partition::new(policy(bins, 50), &old).unwrap();
        let before = placed(&partition);
        partition.extend(&new).unwrap();
        let after = placed(&partition);
        prop_assert_eq!(&after[..old.len()], &before[..]);
        // Plainly, over the costs that the groups are taken to have.
        let costs: Vec<u64> = (0..after.len()).map(|g| partition.cost(group(g)).unwrap()).collect();
        let mean = if old.is_empty() { 1000 } else { old.iter().sum::<u64>() / old.len() as u64 };
        for (cost, permille) in costs[old.len()..].iter().zip(&new) {
            prop_assert_eq!(*cost, (mean * permille / 1000).max(1));
        }
        let mut loads = vec![0; bins.into()];
        for (bin, cost) in before.iter().zip(&costs) {
            loads[usize::from(bin.0)] += cost;
        }
        let mut order: Vec<usize> = (old.len()..costs.len()).collect();
        order.sort_by_key(|place| (Reverse(costs[*place]), *place));
        for place in order {
            let emptiest = (0..loads.len()).min_by_key(|bin| (loads[*bin], *bin)).unwrap();
            prop_assert_eq!(usize::from(after[place].0), emptiest);
            loads[emptiest] += costs[place];
        }
        prop_assert_eq!(partition.loads(), loads);
    }
}
