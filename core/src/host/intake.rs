//! Intake: a unit comes in.

use super::{EnqueueError, Host};
use crate::guard::Guard;
use crate::lane::{HoldReason, NO_HOME, Progress, admit, role_hold};
use crate::role::RoleId;
use crate::seat::SeatId;
use crate::time::Instant;
use crate::unit::{Outcome, Place, UnitId, UnitRow};

/// Where an accepted unit went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Accepted {
    /// It is admitted and waits for a seat.
    Queued(UnitId),
    /// It is kept and held, for this reason.
    Held(UnitId, HoldReason),
    /// No living seat could ever run it; it has ended as [`Outcome::LaneDeath`].
    Dead(UnitId),
}

impl Accepted {
    /// The unit.
    #[must_use]
    pub const fn unit(self) -> UnitId {
        match self {
            Self::Queued(unit) | Self::Held(unit, _) | Self::Dead(unit) => unit,
        }
    }
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// A unit of `role` and `key` comes in.
    ///
    /// The returned id's [`index`](UnitId::index) is a row that no other unit has until
    /// [`release`](Self::release), so a binding can keep the payload at that index.
    pub fn enqueue(
        &mut self,
        role: RoleId,
        key: u8,
        now: Instant,
        guard: &Guard,
    ) -> Result<Accepted, EnqueueError> {
        let roles = self.lanes.len();
        let Some(lane) = self.lanes.get_mut(role.index()) else {
            return Err(EnqueueError::UnknownRole { role, roles });
        };
        match lane.progress {
            Progress::Closed => {
                lane.counters.0.refused_closed += 1;
                return Err(EnqueueError::Closed { role });
            }
            Progress::Faulted => {
                lane.counters.0.refused_closed += 1;
                return Err(EnqueueError::Faulted { role });
            }
            Progress::Idle | Progress::Backed => {}
        }
        if key >= lane.keys {
            return Err(EnqueueError::UnknownKey {
                role,
                key,
                keys: lane.keys,
            });
        }
        let Some(index) = self.units.pop_front(&mut lane.free) else {
            lane.counters.0.refused_full += 1;
            return Err(EnqueueError::IntakeFull {
                role,
                rows: lane.rows,
            });
        };
        lane.counters.0.submitted += 1;
        self.units.fill(index, role, key);
        let unit = self.units.id(index);
        let dead = lane.seats & !self.dead == 0
            || lane
                .homes
                .get(usize::from(key))
                .is_some_and(|home| *home == NO_HOME);
        let accepted = if dead {
            self.end(role, index, Outcome::LaneDeath);
            Accepted::Dead(unit)
        } else {
            let hold = role_hold(role, lane.cordon, guard);
            let admitted = if lane.keyed {
                Ok(())
            } else {
                admit(lane.queued, lane.queue_cap, lane.backlog.len(), hold)
            };
            self.waiting = self.waiting.with(role);
            match admitted {
                Ok(()) => {
                    self.push_queue(role, index);
                    Accepted::Queued(unit)
                }
                Err(reason) => {
                    self.units
                        .push_back(&mut lane.backlog, index, Place::Backlog);
                    lane.counters.0.suppressed += 1;
                    Accepted::Held(unit, reason)
                }
            }
        };
        self.settle(now, guard);
        Ok(accepted)
    }

    /// Appends a row that is in no list to the queue where a seat will look for it.
    pub(super) fn push_queue(&mut self, role: RoleId, index: u32) {
        let lane = &mut self.lanes[role.index()];
        lane.queued += 1;
        if lane.keyed {
            let home = self.units.key_home(index, &lane.homes);
            self.loaded |= SeatId::new(home).bit();
            self.units.push_back(
                &mut self.seats[usize::from(home)].queue,
                index,
                Place::Queue,
            );
        } else {
            self.units.push_back(&mut lane.queue, index, Place::Queue);
        }
    }

    /// Ends a unit whose row is in no list.
    pub(super) fn end(&mut self, role: RoleId, index: u32, outcome: Outcome) {
        let lane = &mut self.lanes[role.index()];
        lane.counters.0.resolved += 1;
        lane.strikes.moved = true;
        self.units.resolve(&mut self.resolved, index, outcome);
    }
}
