//! The normal form: what tells hosts apart and decides nothing, made the same.
//!
//! Whoever compares hosts by the million, as an explorer of states does, wants those equal that will
//! behave alike. Three things are names in a host: the origin of its clock, the number of its epoch,
//! and the row and generation by which it knows a unit. And some of what it keeps is never read again.

use super::Host;
use super::grant::first_from;
use crate::lane::Strikes;
use crate::seat::Seat;
use crate::time::Duration;
use crate::unit::{List, UnitId, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// Renames the host: its clock is set back by `elapsed`, its epoch becomes zero, rows are numbered
    /// in the order in which the lists, the seats and then `ids` lead to them, and the generations of a
    /// row become the smallest numbers in the same order. What is never read again takes its first value:
    /// the key and outcome of a unit that was read, the strikes of a lane that has moved since the last
    /// tick, and those of every lane while no tick is due. A search for a seat begins at one.
    ///
    /// `ids` must hold every id that the caller will use again, and is renamed along: a current id
    /// stays current, and two current ones that differ still differ. Ids that name no unit any more, which
    /// none of them ever will again, all become the same. No instant that the host keeps may be less
    /// than `elapsed` after the origin.
    ///
    /// Towards a caller who takes the new names the host behaves as before, as long as no generation
    /// goes round. O(rows² + rows·ids).
    pub fn normalise(&mut self, elapsed: Duration, ids: &mut [UnitId]) {
        self.backstop_at = self.backstop_at.map(|due| due - elapsed);
        self.last_tick = self.last_tick - elapsed;
        self.epoch = 0;
        self.forget_strikes();
        for lane in &mut self.lanes {
            if lane.seats != 0 {
                lane.cursor = first_from(lane.seats, lane.cursor).raw();
            }
        }
        self.units.forget_read();
        for id in ids.iter_mut() {
            let held = |seat: &Seat| seat.held().is_some_and(|(_, unit)| unit == *id);
            if !self.units.is_current(*id) && !self.seats.iter().any(held) {
                *id = UnitId::NONE;
            }
        }
        self.number_rows(ids);
        for row in 0..self.units.rows().len() {
            self.number_generations(row, ids);
        }
    }

    fn forget_strikes(&mut self) {
        for (role, lane) in self.table.0.ids().zip(&mut self.lanes) {
            // An alarm that was not read yet tells of them.
            if self.stuck.contains(role) {
                continue;
            }
            let moved = lane.strikes.moved && self.backstop_at.is_some();
            if moved || self.backstop_at.is_none() {
                lane.strikes = Strikes {
                    moved,
                    ..Strikes::default()
                };
            }
        }
    }

    fn number_rows(&mut self, ids: &mut [UnitId]) {
        let mut next = 0;
        for lane in 0..self.lanes.len() {
            self.number_list(&mut next, self.lanes[lane].queue, ids);
            self.number_list(&mut next, self.lanes[lane].backlog, ids);
        }
        for seat in 0..self.seats.len() {
            self.number_list(&mut next, self.seats[seat].queue, ids);
            if let Some((_, unit)) = self.seats[seat].held() {
                self.number(&mut next, unit.index, ids);
            }
        }
        self.number_list(&mut next, self.resolved, ids);
        for at in 0..ids.len() {
            self.number(&mut next, ids[at].index, ids);
        }
        for lane in 0..self.lanes.len() {
            self.number_list(&mut next, self.lanes[lane].free, ids);
        }
    }

    fn number_list(&mut self, next: &mut u32, list: List, ids: &mut [UnitId]) {
        let mut row = list.first();
        for _ in 0..list.len() {
            let Some(index) = row else {
                return;
            };
            let index = self.number(next, index, ids);
            row = self.units.after(index);
        }
    }

    /// Gives a row the next number, unless it has been given one.
    fn number(&mut self, next: &mut u32, row: u32, ids: &mut [UnitId]) -> u32 {
        if row < *next || row == UnitId::NONE.index {
            return row;
        }
        let number = core::mem::replace(next, *next + 1);
        if row != number {
            self.swap_rows(row, number, ids);
        }
        number
    }

    fn swap_rows(&mut self, a: u32, b: u32, ids: &mut [UnitId]) {
        self.units.swap_rows(a, b);
        self.resolved.swap_rows(a, b);
        for lane in &mut self.lanes {
            for list in [&mut lane.free, &mut lane.queue, &mut lane.backlog] {
                list.swap_rows(a, b);
            }
        }
        for seat in &mut self.seats {
            seat.queue.swap_rows(a, b);
            seat.unit_mut().swap_rows(a, b);
        }
        for id in ids {
            id.swap_rows(a, b);
        }
    }

    /// Makes the generations by which `row` is known the numbers from zero, in the same order.
    fn number_generations(&mut self, row: usize, ids: &mut [UnitId]) {
        let mut number = 0;
        loop {
            let known = self.seats.iter_mut().map(|seat| *seat.unit_mut());
            let known = known.chain(ids.iter().copied());
            let known = known.filter(|id| id.index() == row);
            let lowest = known
                .map(UnitId::generation)
                .chain([self.units.rows()[row].generation()])
                .filter(|generation| *generation >= number)
                .min();
            let Some(lowest) = lowest else {
                return;
            };
            for id in self
                .seats
                .iter_mut()
                .map(Seat::unit_mut)
                .chain(ids.iter_mut())
            {
                id.renumber(row, lowest, number);
            }
            self.units.renumber(row, lowest, number);
            number += 1;
        }
    }
}
