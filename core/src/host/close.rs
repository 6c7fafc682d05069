//! Closing: intake ends, then everything that is still owed does.

use super::{CloseError, ClosePhase, Host};
use crate::guard::Guard;
use crate::lane::ProgressEvent;
use crate::seat::{SeatId, SlotPhase};
use crate::time::Instant;
use crate::unit::{Outcome, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>> Host<R> {
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
            match self.seats[seat.index()].held() {
                Some((_, unit)) => {
                    self.end_in_flight(unit, Outcome::Closed);
                }
                None => self.retire(seat),
            }
            self.note_phase(seat);
        }
    }

    /// Retires a seat that is parked; one that is dead already stays so.
    pub(super) fn retire(&mut self, seat: SeatId) {
        let seat = &mut self.seats[seat.index()];
        if matches!(seat.phase(), SlotPhase::Idle | SlotPhase::Pinned) {
            let retired = seat.retire();
            debug_assert!(retired.is_ok(), "a parked seat retires: {retired:?}");
        }
    }
}
