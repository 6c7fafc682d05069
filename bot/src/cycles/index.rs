//! From pools to the cycles through them.
//!
//! # Invariants
//! - The cost of a query follows the entries of the pools it names and the cycles it yields. No step
//!   goes over all cycles, not even to clear what the query before left behind.

use super::graph::CycleGraph;
use super::table::{CycleId, CycleTable};
use crate::market::PoolId;

/// The cycles of one pool whose ids lie in one block of 32.
///
/// A crawl gives neighbouring ids to cycles with the same beginning, so a block has two of a pool's
/// cycles on average: as large as their ids, and marked in one step.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The ids divided by 32.
    block: u32,
    /// Bit `n` stands for the id `32 · block + n`. Not zero.
    cycles: u32,
}

/// Which cycles run through each pool.
#[derive(Clone, Debug)]
pub struct CycleIndex {
    /// Where the entries of each pool of the market start; one more at the end.
    starts: Vec<usize>,
    /// Ascending within each pool.
    entries: Vec<Entry>,
    cycles: usize,
}

impl CycleIndex {
    /// The index of all cycles in `table`, which are cycles of `graph`.
    #[must_use]
    pub fn new(graph: &CycleGraph, table: &CycleTable) -> Self {
        let pools = graph.pools().last().map_or(0, |last| last.index() + 1);
        let hops = || {
            (0..).zip(table.cycles()).flat_map(|(id, cycle)| {
                cycle
                    .edges()
                    .iter()
                    .map(move |&edge| (id, graph.edge(edge).pool.index()))
            })
        };
        // One pass to count and one to fill; both see each pool's cycles in ascending order.
        let mut starts = vec![0; pools + 1];
        let mut last_block = vec![u32::MAX; pools];
        for (id, pool) in hops() {
            let block = block_of(id);
            if core::mem::replace(&mut last_block[pool], block) != block {
                starts[pool + 1] += 1;
            }
        }
        for pool in 0..pools {
            starts[pool + 1] += starts[pool];
        }
        let mut entries = vec![
            Entry {
                block: u32::MAX,
                cycles: 0
            };
            starts[pools]
        ];
        let mut next = starts.clone();
        for (id, pool) in hops() {
            let block = block_of(id);
            if next[pool] == starts[pool] || entries[next[pool] - 1].block != block {
                entries[next[pool]].block = block;
                next[pool] += 1;
            }
            entries[next[pool] - 1].cycles |= 1 << (id % 32);
        }
        Self {
            starts,
            entries,
            cycles: table.len(),
        }
    }

    fn entries_of(&self, pool: PoolId) -> &[Entry] {
        match self.starts.get(pool.index()..).unwrap_or_default() {
            [start, end, ..] => &self.entries[*start..*end],
            _ => &[],
        }
    }

    /// How many cycles run through `pool`.
    #[must_use]
    pub fn count_of(&self, pool: PoolId) -> usize {
        self.entries_of(pool)
            .iter()
            .map(|entry| entry.cycles.count_ones() as usize)
            .sum()
    }

    /// The cycles through any of `pools`, ascending and each once. They stay in `touched` until the
    /// next query. It allocates only if `touched` has not served an index this large before.
    pub fn touched<'t>(
        &self,
        pools: impl IntoIterator<Item = PoolId>,
        touched: &'t mut Touched,
    ) -> &'t [CycleId] {
        touched.grow(self.cycles);
        for pool in pools {
            for &entry in self.entries_of(pool) {
                touched.set.insert(entry);
            }
        }
        touched.count = touched.set.drain(&mut touched.ids);
        touched.ids()
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.entries.capacity() * size_of::<Entry>()
    }
}

/// The block that a cycle's id lies in.
const fn block_of(id: u32) -> u32 {
    id / 32
}

/// The answer to a query, and the memory that makes the next one cheap.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    set: LevelledSet,
    /// One place for each cycle, the first `count` of them taken.
    ids: Vec<CycleId>,
    count: usize,
}

impl Touched {
    /// Without memory; the first query gets it.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            set: LevelledSet { levels: Vec::new() },
            ids: Vec::new(),
            count: 0,
        }
    }

    /// The answer to the last query.
    #[must_use]
    pub fn ids(&self) -> &[CycleId] {
        &self.ids[..self.count]
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn memory(&self) -> usize {
        let words: usize = self.set.levels.iter().map(Vec::capacity).sum();
        words * size_of::<u64>() + self.ids.capacity() * size_of::<CycleId>()
    }

    /// Room for an index of `cycles` cycles.
    fn grow(&mut self, cycles: usize) {
        self.set.grow(cycles);
        if self.ids.len() < cycles {
            self.ids = vec![CycleId::new(0); cycles];
        }
    }
}

/// A set of numbers as a bit set with summaries: a bit of level `n + 1` says whether a word of level
/// `n` has any bit, up to a level of one word. It is read and cleared in order along set bits only.
///
/// # Invariants
/// - A bit above the lowest level is set iff its word is not zero.
#[derive(Clone, Debug, Default)]
struct LevelledSet {
    levels: Vec<Vec<u64>>,
}

impl LevelledSet {
    /// Makes room for the numbers below `count`. What is in the set stays only if there was room.
    fn grow(&mut self, count: usize) {
        let words = |bits: usize| bits.div_ceil(64).max(1);
        if self
            .levels
            .first()
            .is_some_and(|lowest| lowest.len() >= words(count))
        {
            return;
        }
        self.levels.clear();
        let mut bits = count;
        loop {
            let words = words(bits);
            self.levels.push(vec![0; words]);
            if words == 1 {
                return;
            }
            bits = words;
        }
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mut place = entry.block as usize / 2;
        let mut bits = u64::from(entry.cycles) << (32 * (entry.block % 2));
        for level in &mut self.levels {
            let word = &mut level[place];
            let was = *word;
            *word = was | bits;
            if was != 0 {
                return;
            }
            (place, bits) = (place / 64, 1 << (place % 64));
        }
    }

    /// Moves all numbers to the start of `ids`, ascending, and returns how many there were. `ids` has
    /// a place for each number the set has room for.
    fn drain(&mut self, ids: &mut [CycleId]) -> usize {
        let top = self.levels.len().checked_sub(1);
        top.map_or(0, |top| self.drain_word(top, 0, ids, 0))
    }

    /// Drains what is below one word into the places from `count` on; returns the new count.
    fn drain_word(
        &mut self,
        level: usize,
        place: usize,
        ids: &mut [CycleId],
        count: usize,
    ) -> usize {
        let mut count = count;
        let mut word = core::mem::take(&mut self.levels[level][place]);
        while word != 0 {
            let bit = place * 64 + word.trailing_zeros() as usize;
            word &= word - 1;
            if let Some(below) = level.checked_sub(1) {
                count = self.drain_word(below, bit, ids, count);
            } else {
                ids[count] = CycleId::from_index(bit);
                count += 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn one(id: u32) -> Entry {
        Entry {
            block: block_of(id),
            cycles: 1 << (id % 32),
        }
    }

    proptest! {
        #[test]
        fn a_levelled_set_is_a_sorted_set(
            count in 1_u32..3_000_000,
            rounds in prop::collection::vec(
                prop::collection::vec(prop::collection::btree_set(any::<u32>(), 0..100), 0..4), 1..4),
        ) {
            let mut set = LevelledSet::default();
            set.grow(count as usize);
            let mut ids = vec![CycleId::new(0); count as usize];
            for lists in rounds {
                let mut expected = BTreeSet::new();
                for list in lists {
                    let list: BTreeSet<_> = list.iter().map(|n| CycleId::new(n % count)).collect();
                    for id in &list { set.insert(one(id.number())); }
                    expected.extend(list);
                }
                let drained = set.drain(&mut ids);
                prop_assert_eq!(&ids[..drained], Vec::from_iter(expected));
                prop_assert!(set.levels.iter().flatten().all(|&word| word == 0));
            }
        }
    }

    /// What makes a query cheap: words without a summary bit are not looked at, so a bit planted
    /// behind the summaries' back stays where it is.
    #[test]
    fn draining_looks_at_nothing_but_what_is_set() {
        let mut set = LevelledSet::default();
        set.grow(1_000_000);
        let mut ids = vec![CycleId::new(0); 1_000_000];
        set.levels[0][500] = 1;
        set.levels[1][200] = 1;
        set.insert(one(7));
        set.insert(one(999_999));
        assert_eq!(set.drain(&mut ids), 2);
        assert_eq!((set.levels[0][500], set.levels[1][200]), (1, 1));
    }

    #[test]
    fn a_set_grows_to_whatever_is_asked_and_never_shrinks() {
        let mut set = LevelledSet::default();
        for (count, levels) in [(0, 1), (64, 1), (65, 2), (4096, 2), (4097, 3), (64, 3)] {
            set.grow(count);
            assert_eq!(set.levels.len(), levels, "for {count}");
        }
    }
}
