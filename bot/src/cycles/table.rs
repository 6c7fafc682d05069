//! Cycles and their register.

use super::graph::EdgeId;

/// A cycle: its edges in the order in which they are traded. Only a crawl makes one, and a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cycle([EdgeId; 4]);

impl Cycle {
    /// Two to four edges, the rest [`EdgeId::NONE`].
    pub(crate) const fn from_edges(edges: [EdgeId; 4]) -> Self {
        Self(edges)
    }

    /// How many hops it has, 2 to 4.
    #[must_use]
    pub fn hops(&self) -> usize {
        2 + usize::from(self.0[2] != EdgeId::NONE) + usize::from(self.0[3] != EdgeId::NONE)
    }

    /// Its edges.
    #[must_use]
    pub fn edges(&self) -> &[EdgeId] {
        &self.0[..self.hops()]
    }
}

/// A registered cycle by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CycleId(u32);

impl CycleId {
    /// The id with this number. Whether a table has such a cycle is for the table to say.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The id of row `index` of a table of cycles.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a table has at most 2³² - 1 rows"
    )]
    pub(super) const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    /// The number, for output.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The place in a table with one row per cycle.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Ids have run out: no more than 2³² − 1 cycles can be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} cycles are registered, the most there can be; allow fewer hops or list fewer pools",
    u32::MAX
)]
pub struct TableFull;

/// The cycles of a graph under ids, which follow the order of registration.
///
/// Eight bytes a cycle. That each is registered once is the caller's part: a crawl yields each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CycleTable {
    cycles: Vec<Cycle>,
}

impl CycleTable {
    /// A table without cycles.
    #[must_use]
    pub const fn new() -> Self {
        Self { cycles: Vec::new() }
    }

    /// A table without cycles and with room for `capacity`. A table that grows by itself may end with
    /// twice the memory it needs.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            cycles: Vec::with_capacity(capacity),
        }
    }

    /// Adds a cycle.
    pub fn register(&mut self, cycle: Cycle) -> Result<CycleId, TableFull> {
        let id = u32::try_from(self.cycles.len())
            .ok()
            .filter(|&id| id != u32::MAX)
            .ok_or(TableFull)?;
        self.cycles.push(cycle);
        Ok(CycleId(id))
    }

    /// The cycles with the edges that `edges` has in the places of theirs, and with room for `more`. Ids stay.
    ///
    /// # Panics
    /// If an edge has no place in `edges`.
    #[must_use]
    pub(crate) fn with_edges(&self, edges: &[EdgeId], more: usize) -> Self {
        let mut table = Self::with_capacity(self.cycles.len() + more);
        let renamed = self.cycles.iter().map(|cycle| {
            let edge = |id: EdgeId| match id {
                EdgeId::NONE => EdgeId::NONE,
                id => edges[id.index()],
            };
            Cycle(cycle.0.map(edge))
        });
        table.cycles.extend(renamed);
        table
    }

    /// The cycle of that id, if it is registered.
    #[must_use]
    pub fn get(&self, id: CycleId) -> Option<&Cycle> {
        self.cycles.get(id.index())
    }

    /// All cycles, by id.
    #[must_use]
    pub fn cycles(&self) -> &[Cycle] {
        &self.cycles
    }

    /// How many are registered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cycles.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cycles.is_empty()
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.cycles.capacity() * size_of::<Cycle>()
    }
}
