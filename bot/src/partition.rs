//! Which group of paths is solved in which bin.
//!
//! A cycle takes as long as its fullest bin (the makespan), so groups are spread by what they cost:
//! the longest first, each into the emptiest bin (LPT, longest processing time first). What a group
//! costs is measured and fed back. A bin keeps its groups' data warm, so a group stays where it is
//! unless moving it pays: see [`Partition::repartition`].
//!
//! # Invariants
//! - Every group is in exactly one bin.
//! - The outcome follows from the costs and the placement before. Ties go to the lower id of a group,
//!   then of a bin, and all arithmetic is in integers.
//! - Groups move only in [`Partition::repartition`], and only if the makespan falls by at least the
//!   stated share.
//! - After it, the makespan is above that of a fresh LPT by less than that share of itself. A fresh LPT is
//!   at most 4/3 − 1/(3·bins) times the optimum (R. Graham, "Bounds on multiprocessing timing anomalies",
//!   1969).

use core::cmp::Reverse;

/// A group of paths by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u32);

/// A bin by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BinId(pub u16);

/// When groups move and how fast costs follow what is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How many bins there are.
    pub bins: u16,
    /// What share of the makespan a move has to save, in thousandths: from 0 (anything at all) to 1000.
    pub min_gain_permille: u16,
    /// A measurement counts for 2^-`smoothing` of a group's cost, the rest being what was known before.
    /// From 0 (only the last one counts) to [`Policy::MAX_SMOOTHING`].
    pub smoothing: u8,
}

impl Policy {
    /// The most smoothing: a measurement counts for 1/256.
    pub const MAX_SMOOTHING: u8 = 8;

    /// Five per cent and a quarter: moving a group costs its new bin about one cold pass over it, and
    /// single measurements differ by more than that from one another.
    #[must_use]
    pub const fn with_bins(bins: u16) -> Self {
        Self {
            bins,
            min_gain_permille: 50,
            smoothing: 2,
        }
    }
}

/// Why a partition was refused or left as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// There are no bins.
    #[error("groups cannot be placed in 0 bins; there must be at least 1")]
    NoBins,
    /// The share is none.
    #[error(
        "a move cannot have to save {permille} thousandths of the makespan; it is from 0 to 1000"
    )]
    MinGain {
        /// The share.
        permille: u16,
    },
    /// The smoothing is too much.
    #[error(
        "a measurement cannot count for 2^-{smoothing} of a cost; the exponent is from 0 to {}",
        Policy::MAX_SMOOTHING
    )]
    Smoothing {
        /// The exponent.
        smoothing: u8,
    },
    /// More groups than ids.
    #[error("{groups} groups cannot be placed; there can be at most {}", u32::MAX)]
    TooManyGroups {
        /// How many there are.
        groups: usize,
    },
    /// There is no such group.
    #[error("group {} is not in the partition, which has {groups} groups", group.0)]
    UnknownGroup {
        /// The group.
        group: GroupId,
        /// How many there are.
        groups: usize,
    },
}

/// A group that changed its bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The group.
    pub group: GroupId,
    /// Where it was.
    pub from: BinId,
    /// Where it is.
    pub to: BinId,
}

/// What a repartition did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repartition {
    /// The groups that moved, by id.
    pub moves: Vec<Move>,
    /// The makespan of the placement before, at the costs of now.
    pub before: u64,
    /// The makespan of the placement after.
    pub after: u64,
}

/// A cost that follows measurements: an exponentially weighted mean in integers.
///
/// Kept times 2^smoothing, so that small differences add up instead of being rounded away.
#[derive(Clone, Copy, Debug)]
struct Cost {
    scaled: u64,
    measured: bool,
}

impl Cost {
    /// The largest cost, 2⁵⁵ − 1 (a year in nanoseconds): its scaled form fits for every smoothing.
    const MAX: u64 = (1 << 55) - 1;

    fn estimate(cost: u64, smoothing: u8) -> Self {
        Self {
            scaled: cost.min(Self::MAX) << smoothing,
            measured: false,
        }
    }

    /// The first measurement replaces the estimate, which may be in another unit.
    fn observe(&mut self, cost: u64, smoothing: u8) {
        let cost = cost.min(Self::MAX);
        self.scaled = if self.measured {
            self.scaled - (self.scaled >> smoothing) + cost
        } else {
            cost << smoothing
        };
        self.measured = true;
    }

    /// The mean, at least 1: groups of no cost at all would all go to one bin.
    fn value(self, smoothing: u8) -> u64 {
        (self.scaled >> smoothing).max(1)
    }
}

/// Groups in bins.
#[derive(Clone, Debug)]
pub struct Partition {
    policy: Policy,
    costs: Vec<Cost>,
    bin_of: Vec<BinId>,
}

impl Partition {
    /// Places groups `0..estimates.len()` by estimates of their costs, in any unit as long as it is the
    /// same for all: a group's first measurement replaces its estimate.
    pub fn new(policy: Policy, estimates: &[u64]) -> Result<Self, PartitionError> {
        if policy.bins == 0 {
            return Err(PartitionError::NoBins);
        }
        if policy.min_gain_permille > 1000 {
            return Err(PartitionError::MinGain {
                permille: policy.min_gain_permille,
            });
        }
        if policy.smoothing > Policy::MAX_SMOOTHING {
            return Err(PartitionError::Smoothing {
                smoothing: policy.smoothing,
            });
        }
        if u32::try_from(estimates.len()).is_err() {
            return Err(PartitionError::TooManyGroups {
                groups: estimates.len(),
            });
        }
        let costs = estimates
            .iter()
            .map(|&cost| Cost::estimate(cost, policy.smoothing))
            .collect();
        let mut partition = Self {
            policy,
            costs,
            bin_of: Vec::new(),
        };
        partition.bin_of = lpt(&partition.values(), policy.bins);
        Ok(partition)
    }

    /// Adds groups by estimates of their costs, each in the share of what a group costs on average, in thousandths:
    /// longest first, each into the emptiest bin. The others stay where they are.
    pub fn extend(&mut self, permille: &[u64]) -> Result<(), PartitionError> {
        let groups = self.costs.len() + permille.len();
        if u32::try_from(groups).is_err() {
            return Err(PartitionError::TooManyGroups { groups });
        }
        let known = self.values();
        let sum: u128 = known.iter().map(|&cost| u128::from(cost)).sum();
        // With no group to compare with, any unit will do.
        let mean = sum.checked_div(known.len() as u128).unwrap_or(1000);
        for &permille in permille {
            let cost = u64::try_from(mean * u128::from(permille) / 1000).unwrap_or(u64::MAX);
            self.costs.push(Cost::estimate(cost, self.policy.smoothing));
        }
        let costs = self.values();
        let mut placement = Placement::new(&costs, self.policy.bins, self.bin_of.clone());
        placement.bin_of.resize(costs.len(), BinId(0));
        let new = longest_first(&costs);
        for group in new
            .into_iter()
            .filter(|group| group.0 as usize >= known.len())
        {
            let bin = placement.emptiest();
            placement.put(group, bin);
        }
        self.bin_of = placement.bin_of;
        Ok(())
    }

    /// Feeds back what solving a group took, in a unit that is the same for all groups.
    pub fn observe(&mut self, group: GroupId, cost: u64) -> Result<(), PartitionError> {
        let groups = self.costs.len();
        self.costs
            .get_mut(group.0 as usize)
            .ok_or(PartitionError::UnknownGroup { group, groups })?
            .observe(cost, self.policy.smoothing);
        Ok(())
    }

    /// Moves groups where that pays, at an epoch boundary.
    ///
    /// Two ways are tried in turn until neither pays, and each counts only if it lowers the makespan by
    /// the policy's share: moving single groups out of the fullest bin, which moves few; then what a
    /// fresh LPT would do, with its bins named so that most of the cost stays, and with each group sent
    /// home again that makes no difference.
    pub fn repartition(&mut self) -> Repartition {
        let costs = self.values();
        let mut last = Placement::new(&costs, self.policy.bins, self.bin_of.clone());
        let before = last.makespan();
        // Each round lowers the makespan; one is usual and more than two are rare.
        loop {
            last = self.relieved(last);
            let repacked = repacked(&last);
            if !self.pays(last.makespan(), repacked.makespan()) {
                break;
            }
            last = repacked;
        }
        let moves = (0..).map(GroupId).zip(self.bin_of.iter().zip(&last.bin_of));
        let moves = moves.filter(|(_, (from, to))| from != to);
        let moves = moves
            .map(|(group, (&from, &to))| Move { group, from, to })
            .collect();
        let after = last.makespan();
        self.bin_of = last.bin_of;
        Repartition {
            moves,
            before,
            after,
        }
    }

    /// `kept` after moves of single groups out of the fullest bin. Where several bins are equally full, a
    /// move pays only together with those that follow it: so moves are made in batches that end when the
    /// makespan has fallen enough, and the last, unfinished batch is dropped.
    fn relieved<'c>(&self, mut kept: Placement<'c>) -> Placement<'c> {
        let mut trial = kept.clone();
        // Each move makes the sorted list of loads smaller, so a batch would end by itself; one move a
        // group bounds its time.
        let mut left = self.costs.len();
        while left > 0 && trial.relieve_fullest() {
            left -= 1;
            if self.pays(kept.makespan(), trial.makespan()) {
                kept = trial.clone();
                left = self.costs.len();
            }
        }
        kept
    }

    /// Whether the step from one makespan to the other saves the policy's share of the first.
    fn pays(&self, from: u64, to: u64) -> bool {
        let saved = u128::from(from.saturating_sub(to)) * 1000;
        saved > 0 && saved >= u128::from(from) * u128::from(self.policy.min_gain_permille)
    }

    fn values(&self) -> Vec<u64> {
        self.costs
            .iter()
            .map(|cost| cost.value(self.policy.smoothing))
            .collect()
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.bin_of.len()
    }

    /// The bin of a group, if there is such a group.
    #[must_use]
    pub fn bin_of(&self, group: GroupId) -> Option<BinId> {
        self.bin_of.get(group.0 as usize).copied()
    }

    /// The groups of a bin, ascending.
    pub fn groups_of(&self, bin: BinId) -> impl Iterator<Item = GroupId> {
        (0..)
            .map(GroupId)
            .zip(&self.bin_of)
            .filter(move |&(_, &b)| b == bin)
            .map(|(group, _)| group)
    }

    /// What a group is taken to cost now, if there is such a group.
    #[must_use]
    pub fn cost(&self, group: GroupId) -> Option<u64> {
        self.costs
            .get(group.0 as usize)
            .map(|cost| cost.value(self.policy.smoothing))
    }

    /// What each bin is taken to cost now.
    #[must_use]
    pub fn loads(&self) -> Vec<u64> {
        Placement::new(&self.values(), self.policy.bins, self.bin_of.clone()).loads
    }
}

/// The groups by falling cost, then by rising id.
fn longest_first(costs: &[u64]) -> Vec<GroupId> {
    let mut order: Vec<_> = (0..).map(GroupId).zip(costs).collect();
    order.sort_unstable_by_key(|&(group, &cost)| (Reverse(cost), group));
    order.into_iter().map(|(group, _)| group).collect()
}

/// A fresh placement: each group, longest first, into the emptiest bin.
fn lpt(costs: &[u64], bins: u16) -> Vec<BinId> {
    let mut placement = Placement::new(costs, bins, Vec::new());
    placement.bin_of = vec![BinId(0); costs.len()];
    for group in longest_first(costs) {
        let bin = placement.emptiest();
        placement.put(group, bin);
    }
    placement.bin_of
}

/// Loads are sums of at most 2³² costs below 2⁵⁵, so they may saturate in theory; at a year per group it
/// makes no difference where it goes.
#[derive(Clone, Debug)]
struct Placement<'c> {
    costs: &'c [u64],
    bin_of: Vec<BinId>,
    loads: Vec<u64>,
}

impl<'c> Placement<'c> {
    fn new(costs: &'c [u64], bins: u16, bin_of: Vec<BinId>) -> Self {
        let mut loads = vec![0_u64; bins.into()];
        for (bin, &cost) in bin_of.iter().zip(costs) {
            let load = &mut loads[usize::from(bin.0)];
            *load = load.saturating_add(cost);
        }
        Self {
            costs,
            bin_of,
            loads,
        }
    }

    fn makespan(&self) -> u64 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    fn bins(&self) -> impl Iterator<Item = (BinId, u64)> {
        (0..).map(BinId).zip(self.loads.iter().copied())
    }

    fn emptiest(&self) -> BinId {
        self.bins()
            .min_by_key(|&(bin, load)| (load, bin))
            .map_or(BinId(0), |(bin, _)| bin)
    }

    fn cost(&self, group: GroupId) -> u64 {
        self.costs[group.0 as usize]
    }

    fn load(&self, bin: BinId) -> u64 {
        self.loads[usize::from(bin.0)]
    }

    /// Places a group that is in no bin.
    fn put(&mut self, group: GroupId, bin: BinId) {
        self.bin_of[group.0 as usize] = bin;
        let load = &mut self.loads[usize::from(bin.0)];
        *load = load.saturating_add(self.costs[group.0 as usize]);
    }

    fn shift(&mut self, group: GroupId, to: BinId) {
        let from = self.bin_of[group.0 as usize];
        self.loads[usize::from(from.0)] -= self.cost(group);
        self.put(group, to);
    }

    /// Moves the group out of the fullest bin into the emptiest that leaves the fuller of the two the
    /// least full. Whether there is one that helps.
    fn relieve_fullest(&mut self) -> bool {
        let fullest = self.bins().max_by_key(|&(bin, load)| (load, Reverse(bin)));
        let Some((fullest, full)) = fullest else {
            return false;
        };
        let emptiest = self.emptiest();
        let empty = self.load(emptiest);
        let inside = (0..)
            .map(GroupId)
            .zip(&self.bin_of)
            .filter(|&(_, &bin)| bin == fullest);
        let best = inside
            .map(|(group, _)| {
                let cost = self.cost(group);
                ((full - cost).max(empty.saturating_add(cost)), group)
            })
            .min();
        match best {
            Some((fuller, group)) if fuller < full => {
                self.shift(group, emptiest);
                true
            }
            _ => false,
        }
    }
}

/// A fresh placement that is as close to `current` as it can be at no loss.
fn repacked<'c>(current: &Placement<'c>) -> Placement<'c> {
    let bins = u16::try_from(current.loads.len()).unwrap_or(u16::MAX);
    let fresh = lpt(current.costs, bins);
    let names = names(current, &fresh);
    let bin_of = fresh.iter().map(|bin| names[usize::from(bin.0)]).collect();
    let mut placement = Placement::new(current.costs, bins, bin_of);
    let makespan = placement.makespan();
    for group in longest_first(current.costs) {
        let home = current.bin_of[group.0 as usize];
        let away = placement.bin_of[group.0 as usize] != home;
        if away && placement.load(home).saturating_add(placement.cost(group)) <= makespan {
            placement.shift(group, home);
        }
    }
    placement
}

/// Which current bin each fresh bin is to be: pairs that share the most cost first.
fn names(current: &Placement<'_>, fresh: &[BinId]) -> Vec<BinId> {
    let bins = current.loads.len();
    let mut shared = vec![0_u64; bins * bins];
    for ((fresh, now), &cost) in fresh.iter().zip(&current.bin_of).zip(current.costs) {
        let cell = &mut shared[usize::from(fresh.0) * bins + usize::from(now.0)];
        *cell = cell.saturating_add(cost);
    }
    let mut pairs: Vec<_> = (0..)
        .map(BinId)
        .take(bins)
        .flat_map(|fresh| (0..).map(BinId).take(bins).map(move |now| (fresh, now)))
        .zip(shared)
        .collect();
    pairs.sort_unstable_by_key(|&(pair, shared)| (Reverse(shared), pair));
    let mut names = vec![None; bins];
    let mut taken = vec![false; bins];
    for ((fresh, now), _) in pairs {
        let (name, taken) = (
            &mut names[usize::from(fresh.0)],
            &mut taken[usize::from(now.0)],
        );
        if name.is_none() && !*taken {
            (*name, *taken) = (Some(now), true);
        }
    }
    // All pairs were there, so each bin has got its name.
    names
        .into_iter()
        .map(|name| name.unwrap_or(BinId(0)))
        .collect()
}

#[cfg(test)]
mod tests;
