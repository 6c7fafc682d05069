//! Epoch boundaries and quota changes: where keys find new homes.

use super::{EpochError, Host, ResizeError};
use crate::guard::Guard;
use crate::lane::NO_HOME;
use crate::role::{RoleId, SeatKind};
use crate::seat::{MAX_SEATS, SeatId, SlotPhase};
use crate::time::Instant;
use crate::unit::{List, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// The work of an epoch is over: its fuse has closed and no unit of a keyed role is with a seat.
    ///
    /// This is the only place where a key changes its home. A pin beyond the current number is
    /// released, a key without a living seat moves to the living pin that is home to the fewest, ties
    /// to the lowest seat.
    pub fn epoch_boundary(
        &mut self,
        seq: u64,
        now: Instant,
        guard: &Guard,
    ) -> Result<(), EpochError> {
        let units = self
            .table
            .0
            .roles
            .iter()
            .zip(&self.lanes)
            .filter(|(spec, _)| spec.seat == SeatKind::KeyedPin)
            .map(|(_, lane)| lane.running)
            .sum();
        if units > 0 {
            return Err(EpochError::KeyedInFlight { units });
        }
        if seq <= self.epoch {
            return Err(EpochError::NotNewer {
                seq,
                current: self.epoch,
            });
        }
        self.epoch = seq;
        for role in self.table.0.ids() {
            if self.lanes[role.index()].keyed {
                self.rehome(role);
            }
        }
        self.settle(now, guard);
        Ok(())
    }

    /// The quota was detected anew: from the next epoch boundary on, each keyed role keeps `pins` of
    /// its living seats. Units beyond the permits of the guard drain.
    pub fn resize(&mut self, pins: u8, now: Instant, guard: &Guard) -> Result<(), ResizeError> {
        if pins == 0 {
            return Err(ResizeError::NoPins);
        }
        self.pins = pins;
        // Those that drain already are on their way: the same quota twice drains no more.
        let mut excess = self.in_use.saturating_sub(guard.permits.total);
        for seat in &self.seats {
            if seat.phase() == SlotPhase::Draining {
                excess = excess.saturating_sub(1);
            }
        }
        for seat in self.seats.iter_mut().rev() {
            if excess == 0 {
                break;
            }
            if seat.phase() == SlotPhase::Running && seat.shed().is_ok() {
                excess -= 1;
            }
        }
        self.settle(now, guard);
        Ok(())
    }

    fn rehome(&mut self, role: RoleId) {
        let living = self.lanes[role.index()].seats & !self.dead;
        let mut kept = 0_u64;
        for seat in SeatId::members(living).take(usize::from(self.pins)) {
            kept |= seat.bit();
        }
        for seat in SeatId::members(living & !kept) {
            let parting = &mut self.seats[seat.index()];
            if parting.phase() == SlotPhase::Pinned {
                let released = parting.release();
                debug_assert!(released.is_ok(), "a pinned seat releases: {released:?}");
            }
            self.parked |= seat.bit();
            self.note_phase(seat);
        }
        for seat in SeatId::members(kept) {
            self.parked &= !seat.bit();
            self.note_phase(seat);
        }

        let mut load = [0_u8; MAX_SEATS];
        let lane = &mut self.lanes[role.index()];
        let homes_before = lane.homes.clone();
        for (key, home) in (0_u8..).zip(lane.homes.iter_mut()) {
            *home = NO_HOME;
            if let Some(seat) =
                SeatId::members(kept).find(|seat| self.seats[seat.index()].key() == key)
            {
                *home = seat.raw();
                load[seat.index()] += 1;
            }
        }
        for home in lane.homes.iter_mut().filter(|home| **home == NO_HOME) {
            if let Some(seat) = SeatId::members(kept).min_by_key(|seat| load[seat.index()]) {
                *home = seat.raw();
                load[seat.index()] += 1;
            }
        }
        // Boundaries come with every epoch and moves with a death or a resize: only those pay for the
        // units that wait.
        if lane.homes != homes_before {
            self.requeue_keys(role);
        }
    }

    /// Moves the units that wait on a seat to where their keys are at home now.
    fn requeue_keys(&mut self, role: RoleId) {
        let members = self.lanes[role.index()].seats & self.loaded;
        let mut all = List::EMPTY;
        for seat in SeatId::members(members) {
            self.units
                .append(&mut all, &mut self.seats[seat.index()].queue);
            self.loaded &= !seat.bit();
        }
        self.lanes[role.index()].queued -= all.len();
        while let Some(index) = self.units.pop_front(&mut all) {
            self.push_queue(role, index);
        }
    }
}
