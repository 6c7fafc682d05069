//! Closing: intake ends, then everything that is still owed does.

use super::{CloseError, ClosePhase, Host};
use crate::guard::Guard;
use crate::lane::ProgressEvent;
use crate::seat::{SeatId, SlotPhase};
use crate::time::Instant;
use crate::unit::{Outcome, UnitId, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// Takes the next step of closing. A fence without a quiesce before it does both.
    pub fn close(
        &mut self,
        phase: ClosePhase,
        now: Instant,
        guard: &Guard,
    ) -> Result<(), CloseError> {
        if let Some(current) = self.closing
            && phase <= current
        {
            return Err(CloseError::NotForward {
                asked: phase,
                current,
            });
        }
        if self.closing.is_none() {
            self.quiesce();
        }
        if phase == ClosePhase::Fence {
            self.fence();
        }
        self.closing = Some(phase);
        self.settle(now, guard);
        Ok(())
    }

    fn quiesce(&mut self) {
        for role in self.table.0.ids() {
            let lane = &mut self.lanes[role.index()];
            // A faulted lane stays faulted: that it died is the stronger statement.
            if let Ok(closed) = lane.progress.on(ProgressEvent::Close) {
                lane.progress = closed;
                self.backed = self.backed.without(role);
            }
            self.end_backlog(role, Outcome::NotRun);
        }
    }

    fn fence(&mut self) {
        for role in self.table.0.ids() {
            self.end_waiting(role, Outcome::Closed);
        }
        for seat in SeatId::all(self.seats.len()) {
            if let Some((_, unit)) = self.seats[seat.index()].held() {
                self.end_in_flight(unit, Outcome::Closed);
                self.take_lease_back(seat, unit);
            }
            self.retire(seat);
            self.note_phase(seat);
        }
    }

    /// Frees a seat whose unit has not begun: no report of it will come, and its start must find the
    /// seat gone.
    fn take_lease_back(&mut self, seat: SeatId, unit: UnitId) {
        let seat = &mut self.seats[seat.index()];
        if seat.phase() == SlotPhase::Leased {
            let returned = seat.hand_back(unit);
            debug_assert!(returned.is_ok(), "a leased seat hands back: {returned:?}");
        }
    }

    /// Retires a seat that is parked; any other stays as it is.
    pub(super) fn retire(&mut self, seat: SeatId) {
        let seat = &mut self.seats[seat.index()];
        if matches!(seat.phase(), SlotPhase::Idle | SlotPhase::Pinned) {
            let retired = seat.retire();
            debug_assert!(retired.is_ok(), "a parked seat retires: {retired:?}");
        }
    }
}
