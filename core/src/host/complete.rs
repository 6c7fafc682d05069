//! Completion: a seat reports, outcomes are read, rows are released.

use super::{ClosePhase, Host, Reaction, Resolved, SeatDoneError};
use crate::guard::Guard;
use crate::role::RoleId;
use crate::seat::SeatId;
use crate::time::Instant;
use crate::unit::{Outcome, Place, RunResult, StaleUnit, UnitId, UnitRow};

/// What the release of a row means for the lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Released {
    /// The lane.
    pub role: RoleId,
    /// Whether the lane was full before, so that someone may be waiting for room.
    pub was_full: bool,
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// A seat finished the unit it held.
    pub fn seat_done(
        &mut self,
        seat: SeatId,
        unit: UnitId,
        result: RunResult,
        now: Instant,
        guard: &Guard,
    ) -> Result<Reaction, SeatDoneError> {
        let seats = self.seats.len();
        let Some(holder) = self.seats.get_mut(seat.index()) else {
            return Err(SeatDoneError::UnknownSeat { seat, seats });
        };
        let state = holder.state();
        holder.finish(unit).map_err(|source| SeatDoneError::Seat {
            seat,
            unit,
            state,
            source,
        })?;
        let outcome = match result {
            RunResult::Done => Outcome::Done,
            RunResult::Panicked => Outcome::Panicked,
        };
        let reaction = if self.end_in_flight(unit, outcome) {
            Reaction::Finished
        } else {
            self.counters.0.late += 1;
            Reaction::Late
        };
        if self.closing == Some(ClosePhase::Fence) {
            self.retire(seat);
        }
        self.note_phase(seat);
        self.settle(now, guard);
        Ok(reaction)
    }

    /// Ends a unit that is with a seat; `false` if something else ended it before.
    pub(super) fn end_in_flight(&mut self, unit: UnitId, outcome: Outcome) -> bool {
        let Ok(row) = self.units.find(unit, |place| place == Place::InFlight) else {
            return false;
        };
        let role = row.role;
        let lane = &mut self.lanes[role.index()];
        lane.running -= 1;
        self.in_use -= 1;
        if lane.keyed {
            self.keyed_in_use -= 1;
        }
        self.end(role, unit.index, outcome);
        true
    }

    /// The next unit that ended, in the order in which they ended.
    pub fn poll_resolved(&mut self) -> Option<Resolved> {
        let index = self.units.pop_front(&mut self.resolved)?;
        let unit = self.units.id(index);
        let row = self.units.collect(index);
        Some(Resolved {
            unit,
            role: row.role,
            outcome: row.outcome,
        })
    }

    /// Gives back the row of a unit that [`poll_resolved`](Self::poll_resolved) has returned. No id
    /// of the unit is current after this.
    pub fn release(&mut self, unit: UnitId) -> Result<Released, StaleUnit> {
        let role = self
            .units
            .find(unit, |place| place == Place::Collected)?
            .role;
        let lane = &mut self.lanes[role.index()];
        let was_full = lane.free.is_empty();
        self.units.free(&mut lane.free, unit.index);
        Ok(Released { role, was_full })
    }
}
