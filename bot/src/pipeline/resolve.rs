//! Resolve: which cycles a block touched, and which bin each goes to.

use super::solve::BinJob;
use super::world::World;
use super::{GROUP, GROUP_WORDS};
use crate::cycles::{CycleId, Touched};
use crate::market::PoolId;
use crate::partition::{BinId, GroupId, Partition};

/// What a resolve unit works on, and what it yields.
#[derive(Debug)]
pub struct ResolveJob {
    /// In: the pools that moved.
    pub(crate) pools: Vec<PoolId>,
    /// Out: the cycles over them.
    pub(crate) touched: Touched,
    /// Out: what the merge is to expect, per group that has any.
    pub(crate) expected: Vec<Expected>,
    /// Out: the cycles of each bin.
    pub(crate) bins: Vec<BinJob>,
}

/// Cycles of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupSet {
    pub(crate) group: GroupId,
    pub(crate) set: [u64; GROUP_WORDS],
}

/// The touched cycles of a group, and the bin that has to give their outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Expected {
    pub(crate) bin: BinId,
    pub(crate) cycles: GroupSet,
}

/// The group of a cycle.
pub(crate) const fn group_of(id: CycleId) -> GroupId {
    GroupId(id.number() / GROUP)
}

/// The word and the bit of a cycle in its group's set.
pub(crate) const fn place_in_group(id: CycleId) -> (usize, u64) {
    let place = id.number() % GROUP;
    ((place / 64) as usize, 1 << (place % 64))
}

impl ResolveJob {
    /// A job for bins `0..bins`.
    pub(crate) fn new(bins: u8) -> Self {
        Self {
            pools: Vec::new(),
            touched: Touched::new(),
            expected: Vec::new(),
            bins: (0..bins).map(BinJob::new).collect(),
        }
    }

    pub(crate) fn run(&mut self, world: &World, partition: &Partition) {
        self.expected.clear();
        for bin in &mut self.bins {
            bin.clear();
        }
        let ids = world
            .index()
            .touched(self.pools.iter().copied(), &mut self.touched);
        for run in ids.chunk_by(|a, b| group_of(*a) == group_of(*b)) {
            let Some(first) = run.first() else { continue };
            let group = group_of(*first);
            let mut set = [0; GROUP_WORDS];
            for id in run {
                let (place, bit) = place_in_group(*id);
                set[place] |= bit;
            }
            let bin = partition.bin_of(group).unwrap_or(BinId(0));
            let cycles = GroupSet { group, set };
            self.expected.push(Expected { bin, cycles });
            // Without such a bin the cycles get no outcome, and the fuse says so.
            if let Some(bin) = self.bins.get_mut(usize::from(bin.0)) {
                bin.ids.extend_from_slice(run);
            }
        }
    }
}
