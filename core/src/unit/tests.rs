//! The lists against deques, and ids against the lives of their rows.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

const ROWS: u32 = 12;
const PLACES: [Place; 3] = [Place::Free, Place::Queue, Place::Backlog];

/// Three lists over one table and the deques that they must equal.
struct Model {
    table: UnitTable<Vec<UnitRow>>,
    lists: [List; 3],
    want: [VecDeque<u32>; 3],
    /// Generation of each row, and every id that was ever current.
    generation: Vec<u32>,
    ids: Vec<UnitId>,
}

impl Model {
    fn new() -> Self {
        let mut model = Self {
            table: UnitTable::new(vec![UnitRow::FREE; ROWS as usize]),
            lists: [List::EMPTY; 3],
            want: Default::default(),
            generation: vec![0; ROWS as usize],
            ids: Vec::new(),
        };
        for index in 0..ROWS {
            model.table.push_back(&mut model.lists[0], index, PLACES[0]);
            model.want[0].push_back(index);
            model.ids.push(model.table.id(index));
        }
        model
    }

    fn step(&mut self, op: u8, from: usize, to: usize) {
        match op {
            0 | 1 => {
                let got = self.table.pop_front(&mut self.lists[from]);
                assert_eq!(got, self.want[from].pop_front());
                let Some(index) = got else { return };
                if op == 0 {
                    self.table.push_back(&mut self.lists[to], index, PLACES[to]);
                    self.want[to].push_back(index);
                } else {
                    self.table
                        .push_front(&mut self.lists[to], index, PLACES[to]);
                    self.want[to].push_front(index);
                }
            }
            2 if from != to => {
                let (mut a, mut b) = (self.lists[to], self.lists[from]);
                self.table.append(&mut a, &mut b);
                (self.lists[to], self.lists[from]) = (a, b);
                let moved = std::mem::take(&mut self.want[from]);
                self.want[to].extend(moved);
            }
            3 => {
                let Some(index) = self.table.pop_front(&mut self.lists[from]) else {
                    return;
                };
                assert_eq!(self.want[from].pop_front(), Some(index));
                let before = self.table.id(index);
                self.table.free(&mut self.lists[0], index);
                self.want[0].push_front(index);
                self.generation[index as usize] += 1;
                let after = self.table.id(index);
                assert_eq!(after.generation(), before.generation().wrapping_add(1));
                self.ids.push(after);
            }
            _ => {}
        }
    }

    fn check(&mut self) {
        for (list, want) in self.lists.iter().zip(&self.want) {
            assert_eq!(list.len() as usize, want.len());
            assert_eq!(list.is_empty(), want.is_empty());
        }
        // Read through a copy: a walk that takes everything out is the plainest.
        let mut copy = self.table.clone();
        for (list, want) in self.lists.iter().zip(&self.want) {
            let mut list = *list;
            let walked: Vec<u32> = std::iter::from_fn(|| copy.pop_front(&mut list)).collect();
            assert!(walked.iter().eq(want.iter()), "{walked:?} is not {want:?}");
            assert_eq!(list, List::EMPTY);
        }
        for id in self.ids.clone() {
            let current = self.generation[id.index()];
            assert_eq!(
                self.table.find(id, |_| true).is_ok(),
                id.generation() == current,
                "{id:?} with its row at generation {current}"
            );
        }
    }
}

proptest! {
    #[test]
    fn lists_are_deques(
        script in proptest::collection::vec((0_u8..4, 0_usize..3, 0_usize..3), 0..200)
    ) {
        let mut model = Model::new();
        for (op, from, to) in script {
            model.step(op, from, to);
            model.check();
        }
    }
}

#[test]
fn an_append_to_and_of_an_empty_list_keeps_the_rest() {
    for (first, second) in [(0, 0), (0, 3), (3, 0), (3, 3), (1, 1)] {
        let mut table = UnitTable::new([UnitRow::FREE; 8]);
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        (0..first).for_each(|i| table.push_back(&mut a, i, Place::Queue));
        (first..first + second).for_each(|i| table.push_back(&mut b, i, Place::Queue));
        table.append(&mut a, &mut b);
        assert!(b.is_empty() && a.len() == first + second);
        table.push_back(&mut a, 7, Place::Queue);
        let all: Vec<u32> = std::iter::from_fn(|| table.pop_front(&mut a)).collect();
        assert!(all.into_iter().eq((0..first + second).chain([7])));
    }
}

#[test]
fn an_id_matches_only_in_the_places_asked_for() {
    let mut table = UnitTable::new([UnitRow::FREE; 2]);
    let (mut free, mut queue, mut resolved) = (List::EMPTY, List::EMPTY, List::EMPTY);
    let unit = table.id(1);
    table.push_back(&mut queue, 1, Place::Queue);
    assert!(table.find(unit, |place| place == Place::Queue).is_ok());
    let refused = table
        .find(unit, |place| place == Place::InFlight)
        .unwrap_err();
    assert_eq!(
        refused,
        StaleUnit {
            unit,
            current: Some(0),
            place: Place::Queue
        }
    );
    table.pop_front(&mut queue);
    table.set_in_flight(1);
    assert!(table.find(unit, |place| place == Place::InFlight).is_ok());
    table.resolve(&mut resolved, 1, Outcome::Panicked);
    assert_eq!(table.pop_front(&mut resolved), Some(1));
    let row = table.collect(1);
    assert_eq!(
        (row.place, row.outcome),
        (Place::Collected, Outcome::Panicked)
    );
    table.free(&mut free, 1);
    assert!(table.find(unit, |_| true).is_err());
    assert!(
        table
            .find(table.id(1), |place| place == Place::Free)
            .is_ok()
    );
}

#[test]
fn an_id_of_no_row_is_stale_and_does_not_panic() {
    let mut table = UnitTable::new([UnitRow::FREE; 2]);
    let beyond = UnitTable::new([UnitRow::FREE; 9]).id(8);
    for unit in [UnitId::NONE, beyond] {
        let refused = table.find(unit, |_| true).unwrap_err();
        assert_eq!(refused.current, None);
        assert!(refused.to_string().contains("names no current unit"));
    }
}

#[test]
fn a_generation_goes_round_and_not_to_a_panic() {
    let mut table = UnitTable::new([UnitRow {
        generation: 5,
        ..UnitRow::FREE
    }]);
    assert_eq!(
        table.id(0).generation(),
        0,
        "a table starts from fresh rows"
    );
    table.row_mut(0).generation = u32::MAX;
    let last = table.id(0);
    table.free(&mut List::EMPTY.clone(), 0);
    assert_eq!(table.id(0).generation(), 0);
    assert!(table.find(last, |_| true).is_err());
}

#[test]
fn a_row_that_is_free_or_with_a_seat_remembers_nothing_of_the_lists_it_was_in() {
    let mut table = UnitTable::new([UnitRow::FREE; 3]);
    let (mut free, mut queue, mut resolved) = (List::EMPTY, List::EMPTY, List::EMPTY);
    for index in 0..3 {
        table.push_back(&mut queue, index, Place::Queue);
    }
    table.fill(0, RoleId::new(4), 2);
    table.pop_front(&mut queue);
    table.set_in_flight(0);
    assert_eq!(table.rows()[0].next, NIL);
    table.resolve(&mut resolved, 0, Outcome::Panicked);
    table.pop_front(&mut resolved);
    table.free(&mut free, 0);
    let fresh = UnitRow {
        generation: 1,
        ..UnitRow::FREE
    };
    assert_eq!(table.rows()[0], fresh);
}
