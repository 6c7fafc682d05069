//! Granting: which waiting unit gets which idle seat.
//!
//! The order is the role table's. One call looks at each step once and at no unit but the one it
//! takes, so granting is O(roles).

use super::{Host, StartError};
use crate::guard::Guard;
use crate::lane::{Progress, StartLoad, role_hold};
use crate::role::{GrantStep, RoleId, SeatKind};
use crate::seat::{SeatId, SlotPhase};
use crate::time::Instant;
use crate::unit::{Outcome, Place, UnitId, UnitRow};

/// A lease: this seat is to run this unit, once [`Host::start`] has agreed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Grant {
    /// The unit.
    pub unit: UnitId,
    /// The seat.
    pub seat: SeatId,
    /// The unit's role.
    pub role: RoleId,
    /// The unit's key.
    pub key: u8,
    /// The key that the seat is pinned to, if it is a keyed seat. It differs from `key` after a dead
    /// key was re-homed here. The arena to use is that of the pin.
    pub pin: Option<u8>,
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// The next grant, if any waiting unit may start on an idle seat. Call it after each input until
    /// it returns nothing.
    pub fn poll_grant(&mut self, now: Instant, guard: &Guard) -> Option<Grant> {
        let grant = if self.waiting.is_empty() {
            None
        } else {
            self.next_grant(now, guard)
        };
        self.settle(now, guard);
        grant
    }

    fn next_grant(&mut self, now: Instant, guard: &Guard) -> Option<Grant> {
        let order = self.table.0.order;
        order.iter().find_map(|step| {
            if self.waiting.contains(step.role()) {
                self.grant_step(*step, now, guard)
            } else {
                None
            }
        })
    }

    fn grant_step(&mut self, step: GrantStep, now: Instant, guard: &Guard) -> Option<Grant> {
        let role = step.role();
        self.promote(role, guard);
        let lane = &self.lanes[role.index()];
        if lane.queued == 0 {
            return None;
        }
        let free = match step {
            GrantStep::Pinned(_) => self.pinned,
            GrantStep::Pooled(_) | GrantStep::Claim(_) => self.idle,
        };
        let candidates = free & lane.seats & if lane.keyed { self.loaded } else { u64::MAX };
        if candidates == 0 || lane.may_start(role, self.load(role), guard).is_err() {
            return None;
        }
        let seat = first_from(candidates, lane.cursor);
        let lane = &mut self.lanes[role.index()];
        let index = if lane.keyed {
            lane.cursor = (seat.raw() + 1) % 64;
            let queue = &mut self.seats[seat.index()].queue;
            let index = self.units.pop_front(queue)?;
            if queue.is_empty() {
                self.loaded &= !seat.bit();
            }
            index
        } else {
            self.units.pop_front(&mut lane.queue)?
        };
        let unit = self.units.id(index);
        let taken = match step {
            GrantStep::Pinned(_) => self.seats[seat.index()].resume(role, unit, now),
            GrantStep::Pooled(_) | GrantStep::Claim(_) => {
                self.seats[seat.index()].lease(role, unit, now)
            }
        };
        debug_assert!(
            taken.is_ok(),
            "the masks offered {seat:?} for {unit:?}: {taken:?}"
        );
        lane.queued -= 1;
        lane.running += 1;
        lane.strikes.moved = true;
        self.in_use += 1;
        if lane.keyed {
            self.keyed_in_use += 1;
        }
        let pin = lane.keyed.then(|| self.seats[seat.index()].key());
        self.units.set_in_flight(index);
        self.note_phase(seat);
        self.note_waiting(role);
        Some(Grant {
            unit,
            seat,
            role,
            key: self.units.rows()[unit.index()].key,
            pin,
        })
    }

    /// Begins a granted unit, unless the guard has changed its mind since the grant: then the unit
    /// goes back to the head of its lane (or ends, if the lane has died meanwhile), the seat is idle
    /// again, and the unit must not be run.
    ///
    /// A seat that was pinned already runs without a lease and has nothing to hand back.
    pub fn start(
        &mut self,
        seat: SeatId,
        unit: UnitId,
        now: Instant,
        guard: &Guard,
    ) -> Result<(), StartError> {
        let seats = self.seats.len();
        let Some(holder) = self.seats.get_mut(seat.index()) else {
            return Err(StartError::UnknownSeat { seat, seats });
        };
        let of_seat = |source| StartError::Seat { seat, unit, source };
        let Some((role, held)) = holder.held() else {
            return holder.start(unit).map_err(of_seat);
        };
        if holder.phase() == SlotPhase::Running
            && held == unit
            && holder.spec().kind != SeatKind::Pooled
        {
            return Ok(());
        }
        let load = self.load(role);
        let lane = &self.lanes[role.index()];
        let others = StartLoad {
            running: load.running.saturating_sub(1),
            in_use: load.in_use.saturating_sub(1),
            keyed_in_use: load.keyed_in_use.map(|n| n.saturating_sub(1)),
        };
        let verdict = lane.may_start(role, others, guard);
        let holder = &mut self.seats[seat.index()];
        match verdict {
            Ok(()) => {
                holder.start(unit).map_err(of_seat)?;
                self.settle(now, guard);
                Ok(())
            }
            Err(reason) => {
                holder.hand_back(unit).map_err(of_seat)?;
                let lane = &mut self.lanes[role.index()];
                lane.counters.0.handed_back += 1;
                if lane.progress == Progress::Faulted {
                    // What waited in the lane has ended already; nothing would ever end this one.
                    self.end_in_flight(unit, Outcome::LaneDeath);
                } else {
                    self.return_to_queue(role, unit, seat);
                }
                self.note_phase(seat);
                self.settle(now, guard);
                Err(StartError::HandedBack(reason))
            }
        }
    }

    fn return_to_queue(&mut self, role: RoleId, unit: UnitId, seat: SeatId) {
        let lane = &mut self.lanes[role.index()];
        lane.running -= 1;
        lane.queued += 1;
        self.in_use -= 1;
        let list = if lane.keyed {
            self.keyed_in_use -= 1;
            self.loaded |= seat.bit();
            &mut self.seats[seat.index()].queue
        } else {
            &mut lane.queue
        };
        self.units.push_front(list, unit.index, Place::Queue);
        self.waiting = self.waiting.with(role);
    }

    /// Moves held units to the queue as far as the guard and the queue's length allow.
    fn promote(&mut self, role: RoleId, guard: &Guard) {
        let lane = &mut self.lanes[role.index()];
        if lane.backlog.is_empty() || role_hold(role, lane.cordon, guard).is_err() {
            return;
        }
        while lane.queued < lane.queue_cap {
            let Some(index) = self.units.pop_front(&mut lane.backlog) else {
                break;
            };
            lane.queued += 1;
            self.units.push_back(&mut lane.queue, index, Place::Queue);
        }
    }

    /// What has a seat now, as the start predicate of `role` sees it.
    pub(super) fn load(&self, role: RoleId) -> StartLoad {
        let lane = &self.lanes[role.index()];
        StartLoad {
            running: lane.running,
            in_use: self.in_use,
            keyed_in_use: lane.keyed.then_some(self.keyed_in_use),
        }
    }

    /// Brings the seat masks in line with the phase of `seat`.
    pub(super) fn note_phase(&mut self, seat: SeatId) {
        let bit = seat.bit();
        let phase = self.seats[seat.index()].phase();
        let with = |mask: u64, member: bool| if member { mask | bit } else { mask & !bit };
        self.idle = with(
            self.idle,
            phase == SlotPhase::Idle && self.parked & bit == 0,
        );
        self.pinned = with(self.pinned, phase == SlotPhase::Pinned);
        self.dead = with(self.dead, phase == SlotPhase::Dead);
    }

    /// Brings the set of waiting lanes in line with `role`.
    pub(super) fn note_waiting(&mut self, role: RoleId) {
        self.waiting = if self.lanes[role.index()].waiting() == 0 {
            self.waiting.without(role)
        } else {
            self.waiting.with(role)
        };
    }
}

/// The first member of `mask` at or after `from`, going round. The mask must not be empty.
pub(super) fn first_from(mask: u64, from: u8) -> SeatId {
    let ahead = mask.rotate_right(u32::from(from)).trailing_zeros();
    let index = (ahead + u32::from(from)) % u64::BITS;
    SeatId::new(u8::try_from(index).unwrap_or(0))
}
