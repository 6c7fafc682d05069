//! Lane death: the thread of a seat is gone.
//!
//! Each unit the seat still owed ends typed, the latch is set for good, and lanes that can never run
//! again stop taking units. The process lives; only a stranded result pipe is an alarm.

use super::{Alarm, ClosePhase, Host, SeatDiedError};
use crate::guard::Guard;
use crate::lane::{NO_HOME, ProgressEvent};
use crate::role::{CordonClass, RoleId, SeatKind};
use crate::seat::SeatId;
use crate::time::Instant;
use crate::unit::{List, Outcome, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// The thread of `seat` is gone.
    ///
    /// The unit it held ends as [`Outcome::LaneDeath`]. The keys at home there are dead until the
    /// next epoch boundary: their units, waiting and new, end the same way. The lane of the unit, a
    /// lane without a living seat, and a lane that the sticky cordon would hold for ever fault if
    /// someone waits on their receipts.
    pub fn seat_died(
        &mut self,
        seat: SeatId,
        now: Instant,
        guard: &Guard,
    ) -> Result<(), SeatDiedError> {
        let seats = self.seats.len();
        let Some(victim) = self.seats.get_mut(seat.index()) else {
            return Err(SeatDiedError::UnknownSeat { seat, seats });
        };
        let held = victim.held();
        victim
            .die()
            .map_err(|source| SeatDiedError::Seat { seat, source })?;
        let spec = victim.spec();
        let mut queue = core::mem::replace(&mut victim.queue, List::EMPTY);
        self.note_phase(seat);
        self.loaded &= !seat.bit();

        if let Some((_, unit)) = held {
            self.end_in_flight(unit, Outcome::LaneDeath);
        }
        if spec.kind == SeatKind::KeyedPin {
            for role in spec.roles.iter() {
                let lane = &mut self.lanes[role.index()];
                lane.queued -= queue.len();
                for home in lane
                    .homes
                    .iter_mut()
                    .filter(|home| usize::from(**home) == seat.index())
                {
                    *home = NO_HOME;
                }
                self.end_list(role, &mut queue, Outcome::LaneDeath);
                self.note_waiting(role);
            }
        }
        // After the seat's own queue: a fault counts what still waits in the lane as none.
        if let Some((role, _)) = held
            && self.lanes[role.index()].owns_receipts
        {
            self.fault(role);
        }
        for role in spec.roles.iter() {
            if self.lanes[role.index()].seats & !self.dead == 0 {
                self.strand(role);
            }
        }
        self.latch();
        self.settle(now, guard);
        Ok(())
    }

    /// Sets the fleet's lane-death latch. Its cordon never lifts, so a deferrable lane that someone
    /// waits on can never run again.
    pub(super) fn latch(&mut self) {
        if core::mem::replace(&mut self.latched, true) {
            return;
        }
        for role in self.table.0.ids() {
            let lane = &self.lanes[role.index()];
            if lane.owns_receipts && lane.cordon == CordonClass::Deferrable {
                self.fault(role);
            }
        }
    }

    /// No living seat serves `role`.
    fn strand(&mut self, role: RoleId) {
        if self.lanes[role.index()].owns_receipts {
            self.fault(role);
        } else {
            self.end_waiting(role, Outcome::LaneDeath);
        }
        // A pipe that nobody writes to, or that closed in order, strands nothing.
        let spec = self.table.0.get(role);
        let pipe = spec.is_some_and(|spec| spec.seat == SeatKind::FixedPin);
        if pipe && self.lanes[role.index()].rows > 0 && self.closing != Some(ClosePhase::Fence) {
            self.stranded = self.stranded.with(role);
        }
    }

    fn fault(&mut self, role: RoleId) {
        let lane = &mut self.lanes[role.index()];
        // A lane faults once; the machine has no second fault, and that is what it means.
        if let Ok(faulted) = lane.progress.on(ProgressEvent::Fault) {
            lane.progress = faulted;
            self.backed = self.backed.without(role);
            self.end_waiting(role, Outcome::LaneDeath);
        }
    }

    /// Ends everything that waits in a lane.
    pub(super) fn end_waiting(&mut self, role: RoleId, outcome: Outcome) {
        self.end_backlog(role, outcome);
        let lane = &mut self.lanes[role.index()];
        lane.queued = 0;
        let mut queue = core::mem::replace(&mut lane.queue, List::EMPTY);
        let (keyed, seats) = (lane.keyed, lane.seats);
        self.end_list(role, &mut queue, outcome);
        if keyed {
            for index in 0..self.seats.len() {
                let bit = 1 << index;
                if seats & bit != 0 {
                    let mut queue = core::mem::replace(&mut self.seats[index].queue, List::EMPTY);
                    self.end_list(role, &mut queue, outcome);
                    self.loaded &= !bit;
                }
            }
        }
        self.note_waiting(role);
    }

    /// Ends what the guard holds in a lane.
    pub(super) fn end_backlog(&mut self, role: RoleId, outcome: Outcome) {
        let mut backlog = core::mem::replace(&mut self.lanes[role.index()].backlog, List::EMPTY);
        self.end_list(role, &mut backlog, outcome);
        self.note_waiting(role);
    }

    fn end_list(&mut self, role: RoleId, list: &mut List, outcome: Outcome) {
        while let Some(index) = self.units.pop_front(list) {
            self.end(role, index, outcome);
        }
    }

    /// The next thing that must not be survived silently. A binding reports it loudly and ends the
    /// process.
    pub fn poll_alarm(&mut self) -> Option<Alarm> {
        if let Some(role) = self.stranded.iter().next() {
            self.stranded = self.stranded.without(role);
            return Some(Alarm::StrandedPipe { role });
        }
        let role = self.stuck.iter().next()?;
        self.stuck = self.stuck.without(role);
        let strikes = self.lanes[role.index()].strikes;
        Some(Alarm::Stuck {
            role,
            ticks: strikes.ticks,
            credited: strikes.credited,
        })
    }
}
