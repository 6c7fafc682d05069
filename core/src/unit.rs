//! The unit table: every unit is a row in exactly one list.
//!
//! Rows are set at boot and reserved per lane, so a lane that is held cannot take room from another.
//! A unit's whole life is a walk of its row from list to list; conservation needs no bookkeeping
//! beside it, because a row that is somewhere is nowhere else.
//!
//! # Invariants
//! - [`UnitRow::place`](Place) says which kind of list holds the row; it changes only together with
//!   the list.
//! - A row's generation changes when it becomes free, so an id from before can never match again
//!   until the 32-bit generation of that one row has gone round.
//! - Lists are singly linked through the rows: every operation is O(1) and allocates nothing.

use crate::role::RoleId;
use thiserror::Error;

/// A unit: a row and the generation it had when the unit came in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct UnitId {
    pub(crate) index: u32,
    generation: u32,
}

impl UnitId {
    /// No unit.
    pub const NONE: Self = Self {
        index: u32::MAX,
        generation: 0,
    };

    /// The row; the same for every unit that ever used it. Useful as an index into a payload table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The generation of the row.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// Follows a unit whose row trades places with another.
    pub(crate) fn swap_rows(&mut self, a: u32, b: u32) {
        self.index = swapped(self.index, a, b);
    }

    /// Follows a generation of a row that gets another number.
    pub(crate) fn renumber(&mut self, row: usize, from: u32, to: u32) {
        if (self.index(), self.generation) == (row, from) {
            self.generation = to;
        }
    }
}

/// Where a reference to a row points after rows `a` and `b` have traded places.
const fn swapped(row: u32, a: u32, b: u32) -> u32 {
    if row == a {
        b
    } else if row == b {
        a
    } else {
        row
    }
}

/// How a unit ended, as a seat reports it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RunResult {
    /// `run` returned.
    Done,
    /// `run` panicked and the panic was caught.
    Panicked,
}

/// How a unit ended. Every accepted unit ends in exactly one of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// It ran to its end.
    Done,
    /// It ran and panicked; the seat lives.
    Panicked,
    /// The seat or the lane that would have run it is dead.
    LaneDeath,
    /// The fleet closed before it ended. It may have begun.
    Closed,
    /// The fleet closed before it could begin.
    NotRun,
}

/// Which list holds a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Place {
    /// Free.
    #[default]
    Free,
    /// Admitted, waiting for a seat.
    Queue,
    /// Accepted, held by the guard.
    Backlog,
    /// With a seat.
    InFlight,
    /// Ended, not yet read by [`poll_resolved`](crate::host::Host::poll_resolved).
    Resolved,
    /// Ended and read; the row waits for its receipt to be collected.
    Collected,
}

/// One row of the unit table. The storage is the caller's: `[UnitRow::FREE; N]`, a boxed slice, or a
/// mutable slice of either.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnitRow {
    next: u32,
    generation: u32,
    pub(crate) place: Place,
    pub(crate) role: RoleId,
    pub(crate) key: u8,
    pub(crate) outcome: Outcome,
}

impl UnitRow {
    /// A free row.
    pub const FREE: Self = Self {
        next: NIL,
        generation: 0,
        place: Place::Free,
        role: RoleId::new(0),
        key: 0,
        outcome: Outcome::Done,
    };

    pub(crate) const fn generation(&self) -> u32 {
        self.generation
    }
}

impl Default for UnitRow {
    fn default() -> Self {
        Self::FREE
    }
}

const NIL: u32 = u32::MAX;

/// An id that names no current unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{unit:?} names no current unit: its row is of generation {current:?} and {place:?}")]
pub struct StaleUnit {
    /// The id.
    pub unit: UnitId,
    /// The generation that the row has, or none if there is no such row.
    pub current: Option<u32>,
    /// Where the row is.
    pub place: Place,
}

/// A first-in, first-out list of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    pub(crate) const fn len(self) -> u32 {
        self.len
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) const fn first(self) -> Option<u32> {
        if self.is_empty() {
            None
        } else {
            Some(self.head)
        }
    }

    /// Follows two rows that trade places.
    pub(crate) fn swap_rows(&mut self, a: u32, b: u32) {
        self.head = swapped(self.head, a, b);
        self.tail = swapped(self.tail, a, b);
    }
}

/// The rows, in the caller's storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct UnitTable<R>(R);

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>> UnitTable<R> {
    pub(crate) fn new(mut rows: R) -> Self {
        rows.as_mut().fill(UnitRow::FREE);
        Self(rows)
    }

    pub(crate) fn rows(&self) -> &[UnitRow] {
        self.0.as_ref()
    }

    fn row_mut(&mut self, index: u32) -> &mut UnitRow {
        &mut self.0.as_mut()[index as usize]
    }

    pub(crate) fn id(&self, index: u32) -> UnitId {
        UnitId {
            index,
            generation: self.rows()[index as usize].generation,
        }
    }

    /// The row of `unit`, if the id is current and the row is in one of the places `want` accepts.
    pub(crate) fn find(
        &mut self,
        unit: UnitId,
        want: impl Fn(Place) -> bool,
    ) -> Result<&mut UnitRow, StaleUnit> {
        match self.0.as_mut().get_mut(unit.index()) {
            None => Err(StaleUnit {
                unit,
                current: None,
                place: Place::Free,
            }),
            Some(row) if row.generation == unit.generation && want(row.place) => Ok(row),
            Some(row) => Err(StaleUnit {
                unit,
                current: Some(row.generation),
                place: row.place,
            }),
        }
    }

    /// Appends a row, which must be in no list.
    pub(crate) fn push_back(&mut self, list: &mut List, index: u32, place: Place) {
        let row = self.row_mut(index);
        (row.next, row.place) = (NIL, place);
        if list.is_empty() {
            list.head = index;
        } else {
            self.row_mut(list.tail).next = index;
        }
        list.tail = index;
        list.len += 1;
    }

    /// Puts a row, which must be in no list, before the others.
    pub(crate) fn push_front(&mut self, list: &mut List, index: u32, place: Place) {
        let row = self.row_mut(index);
        (row.next, row.place) = (list.head, place);
        if list.is_empty() {
            list.tail = index;
        }
        list.head = index;
        list.len += 1;
    }

    /// Takes the first row. Its place is stale until the caller puts it somewhere.
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        if list.is_empty() {
            return None;
        }
        let index = list.head;
        list.head = core::mem::replace(&mut self.row_mut(index).next, NIL);
        list.len -= 1;
        if list.is_empty() {
            *list = List::EMPTY;
        }
        Some(index)
    }

    /// Moves all rows of `from` behind those of `to`, in O(1). Both lists must be of one place.
    pub(crate) fn append(&mut self, to: &mut List, from: &mut List) {
        if from.is_empty() {
            return;
        }
        if to.is_empty() {
            *to = *from;
        } else {
            self.row_mut(to.tail).next = from.head;
            to.tail = from.tail;
            to.len += from.len;
        }
        *from = List::EMPTY;
    }

    /// The row behind `index` in its list.
    pub(crate) fn after(&self, index: u32) -> Option<u32> {
        let next = self.rows()[index as usize].next;
        (next != NIL).then_some(next)
    }

    /// Two rows trade places. Whoever keeps lists or ids must follow.
    pub(crate) fn swap_rows(&mut self, a: u32, b: u32) {
        let rows = self.0.as_mut();
        rows.swap(a as usize, b as usize);
        for row in rows {
            row.next = swapped(row.next, a, b);
        }
    }

    /// Gives the generation `from` of a row the number `to`, if the row has it now.
    pub(crate) fn renumber(&mut self, row: usize, from: u32, to: u32) {
        let row = &mut self.0.as_mut()[row];
        if row.generation == from {
            row.generation = to;
        }
    }

    /// Whether `unit` names the unit of its row.
    pub(crate) fn is_current(&self, unit: UnitId) -> bool {
        let row = self.rows().get(unit.index());
        row.is_some_and(|row| row.generation == unit.generation)
    }

    /// Forgets of units that were read what nobody reads again.
    pub(crate) fn forget_read(&mut self) {
        let rows = self.0.as_mut().iter_mut();
        for row in rows.filter(|row| row.place == Place::Collected) {
            (row.key, row.outcome) = (UnitRow::FREE.key, UnitRow::FREE.outcome);
        }
    }

    /// Marks a row that is in no list as being with a seat.
    pub(crate) fn set_in_flight(&mut self, index: u32) {
        self.row_mut(index).place = Place::InFlight;
    }

    /// The seat where the key of a row is at home.
    pub(crate) fn key_home(&self, index: u32, homes: &[u8]) -> u8 {
        homes[usize::from(self.rows()[index as usize].key)]
    }

    /// Marks a row that was taken from the resolved list as read.
    pub(crate) fn collect(&mut self, index: u32) -> UnitRow {
        let row = self.row_mut(index);
        row.place = Place::Collected;
        *row
    }

    /// Fills a row for a unit that comes in.
    pub(crate) fn fill(&mut self, index: u32, role: RoleId, key: u8) {
        let row = self.row_mut(index);
        (row.role, row.key) = (role, key);
    }

    /// Frees a row: the generation moves on and no earlier id matches any more.
    pub(crate) fn free(&mut self, list: &mut List, index: u32) {
        let row = self.row_mut(index);
        *row = UnitRow {
            generation: row.generation.wrapping_add(1),
            ..UnitRow::FREE
        };
        // The row that was used last is the one whose memory is warm.
        self.push_front(list, index, Place::Free);
    }

    /// Ends a unit whose row is in no list.
    pub(crate) fn resolve(&mut self, resolved: &mut List, index: u32, outcome: Outcome) {
        self.row_mut(index).outcome = outcome;
        self.push_back(resolved, index, Place::Resolved);
    }
}

#[cfg(test)]
mod tests;
