//! Closing: intake ends, then everything that is still owed does, and what became of it is counted.

use super::{CloseError, ClosePhase, Host};
use crate::component::DrainCounts;
use crate::guard::Guard;
use crate::lane::{Lane, ProgressEvent};
use crate::seat::{SeatId, SlotPhase};
use crate::time::Instant;
use crate::unit::{Outcome, UnitId, UnitRow};

/// The sums over all lanes that the counts of a drain are differences of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Totals {
    owed: u64,
    resolved: u64,
    refused: u64,
}

/// What a drain began with, and what it ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Drain {
    /// As intake closed, before anything ended for that.
    before: Totals,
    /// Once what was held had ended.
    begun: Totals,
    /// Before the fence ended the rest.
    over: Option<Totals>,
}

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
            let before = self.totals();
            self.quiesce();
            self.drain.0 = Some(Drain {
                before,
                begun: self.totals(),
                over: None,
            });
        }
        if phase == ClosePhase::Fence {
            let over = Some(self.totals());
            self.drain.0 = self.drain.0.map(|drain| Drain { over, ..drain });
            self.fence();
        }
        self.closing = Some(phase);
        self.settle(now, guard);
        Ok(())
    }

    /// What became of the units that were owed when intake closed; `None` as long as it has not. Until
    /// the fence, what remains is what is owed now.
    #[must_use]
    pub fn drain_counts(&self) -> Option<DrainCounts> {
        let drain = self.drain.0?;
        let now = self.totals();
        let over = drain.over.unwrap_or(now);
        Some(DrainCounts {
            accepted_before_quiesce: drain.before.owed,
            not_run: drain.begun.resolved - drain.before.resolved,
            completed_during_drain: over.resolved - drain.begun.resolved,
            remaining_at_deadline: over.owed,
            handed_off: 0,
            rejected_after_quiesce: now.refused - drain.before.refused,
        })
    }

    fn totals(&self) -> Totals {
        let lanes = self.lanes.iter().map(Lane::ledger).zip(&self.lanes);
        lanes.fold(Totals::default(), |sum, (ledger, lane)| Totals {
            owed: sum.owed + ledger.in_flight + ledger.waiting(),
            resolved: sum.resolved + ledger.resolved,
            refused: sum.refused + lane.counters.0.refused_closed,
        })
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
