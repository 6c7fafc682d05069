//! Reading the host: getters and the audit.

use super::{AuditError, ClosePhase, Host, HostCounters};
use crate::guard::Guard;
use crate::lane::{HoldReason, Lane, LaneCounters, LaneLedger, Progress};
use crate::role::{RoleId, RoleTable};
use crate::seat::{Seat, SeatId, SlotPhase};
use crate::time::{Duration, Instant};
use crate::unit::{Place, UnitId, UnitRow};

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// The role table.
    #[must_use]
    pub const fn table(&self) -> &'static RoleTable {
        self.table.0
    }

    /// The seats, in order. The pin view is rendered from these; there is no other record of pins.
    #[must_use]
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The pins: seat and key of every seat with a standing lease, in seat order.
    pub fn pins(&self) -> impl Iterator<Item = (SeatId, RoleId, u8)> {
        (0_u8..)
            .zip(&self.seats)
            .filter_map(|(index, seat)| match seat.state() {
                crate::seat::SlotState::Pinned { role, key } => {
                    Some((SeatId::new(index), role, key))
                }
                _ => None,
            })
    }

    /// The counts of a lane.
    #[must_use]
    pub fn ledger(&self, role: RoleId) -> Option<LaneLedger> {
        self.lanes.get(role.index()).map(Lane::ledger)
    }

    /// The totals of a lane.
    #[must_use]
    pub fn lane_counters(&self, role: RoleId) -> Option<LaneCounters> {
        self.lanes.get(role.index()).map(|lane| lane.counters.0)
    }

    /// The totals of the host.
    #[must_use]
    pub const fn counters(&self) -> HostCounters {
        self.counters.0
    }

    /// The progress of a lane.
    #[must_use]
    pub fn progress(&self, role: RoleId) -> Option<Progress> {
        self.lanes.get(role.index()).map(|lane| lane.progress)
    }

    /// How far closing has come.
    #[must_use]
    pub const fn closing(&self) -> Option<ClosePhase> {
        self.closing
    }

    /// The current epoch.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Rows of a lane that are free: how many units it would accept now.
    #[must_use]
    pub fn room(&self, role: RoleId) -> u32 {
        self.lanes
            .get(role.index())
            .map_or(0, |lane| lane.free.len())
    }

    /// Why the first waiting unit of a lane does not run, if one waits.
    #[must_use]
    pub fn hold(&self, role: RoleId, guard: &Guard) -> Option<HoldReason> {
        let lane = self.lanes.get(role.index())?;
        if lane.waiting() == 0 {
            return None;
        }
        match lane.may_start(role, self.load(role), guard) {
            Err(reason) => Some(reason),
            Ok(()) if self.ready(role) == 0 => Some(HoldReason::NoSeat),
            Ok(()) => None,
        }
    }

    /// How long the oldest unit of a role has been with its seat. A seat that is stuck in a unit is
    /// seen here; nothing aborts it.
    #[must_use]
    pub fn oldest_running(&self, role: RoleId, now: Instant) -> Option<Duration> {
        self.seats
            .iter()
            .filter(|seat| seat.held().is_some_and(|(held, _)| held == role))
            .filter_map(Seat::held_since)
            .map(|since| now.since(since))
            .max()
    }

    /// Whether nothing waits, runs, or is yet to be read.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_use == 0 && self.resolved.is_empty()
    }

    /// Recounts everything from the rows and the seats and compares it with what is kept. O(rows);
    /// for tests, explorers and the dump of an alarm.
    pub fn audit(&self) -> Result<(), AuditError> {
        for role in self.table.0.ids() {
            self.audit_lane(role)?;
        }
        self.audit_seats()?;
        self.audit_masks()
    }

    fn audit_lane(&self, role: RoleId) -> Result<(), AuditError> {
        let Some(ledger) = self.ledger(role) else {
            return Ok(());
        };
        let count = |place: Place| {
            self.units
                .rows()
                .iter()
                .filter(|row| row.role == role && row.place == place)
                .count() as u64
        };
        let uncollected = count(Place::Resolved) + count(Place::Collected);
        for (what, counted, stated) in [
            ("queued", count(Place::Queue), ledger.queued),
            ("in the backlog", count(Place::Backlog), ledger.backlog),
            ("in flight", count(Place::InFlight), ledger.in_flight),
            ("uncollected", uncollected, ledger.uncollected),
            (
                "accounted for",
                ledger.in_flight + ledger.waiting() + ledger.resolved,
                ledger.submitted,
            ),
        ] {
            if counted != stated {
                return Err(AuditError::Count {
                    role,
                    what,
                    counted,
                    stated,
                });
            }
        }
        Ok(())
    }

    fn audit_seats(&self) -> Result<(), AuditError> {
        let fenced = self.closing == Some(ClosePhase::Fence);
        let mut held: u64 = 0;
        for (index, seat) in (0_u8..).zip(&self.seats) {
            let Some((role, unit)) = seat.held() else {
                continue;
            };
            let alone = self
                .seats
                .iter()
                .filter(|other| other.held() == Some((role, unit)))
                .count()
                == 1;
            if self.in_flight(unit) && alone {
                held += 1;
            } else if !fenced {
                return Err(AuditError::Seat {
                    seat: SeatId::new(index),
                    unit,
                });
            }
        }
        let rows = self
            .units
            .rows()
            .iter()
            .filter(|row| row.place == Place::InFlight)
            .count() as u64;
        if rows == held && held == u64::from(self.in_use) {
            Ok(())
        } else {
            Err(AuditError::Mask("units with a seat"))
        }
    }

    fn in_flight(&self, unit: UnitId) -> bool {
        self.units
            .rows()
            .get(unit.index())
            .is_some_and(|row| row.place == Place::InFlight)
            && self.units.id(unit.index) == unit
    }

    fn audit_masks(&self) -> Result<(), AuditError> {
        let of = |pick: &dyn Fn(&Seat) -> bool| {
            self.seats
                .iter()
                .enumerate()
                .filter(|(_, seat)| pick(seat))
                .fold(0_u64, |m, (i, _)| m | 1 << i)
        };
        let phase = |want: SlotPhase| of(&move |seat: &Seat| seat.phase() == want);
        for (what, found, kept) in [
            (
                "idle seats",
                phase(SlotPhase::Idle) & !self.parked,
                self.idle,
            ),
            ("pinned seats", phase(SlotPhase::Pinned), self.pinned),
            ("dead seats", phase(SlotPhase::Dead), self.dead),
            (
                "seats with a queue",
                of(&|seat| !seat.queue.is_empty()),
                self.loaded,
            ),
            ("parked pins", self.pinned & self.parked, 0),
        ] {
            if found != kept {
                return Err(AuditError::Mask(what));
            }
        }
        let waiting = self
            .table
            .0
            .ids()
            .filter(|role| self.lanes[role.index()].waiting() > 0)
            .collect();
        if self.waiting == waiting {
            Ok(())
        } else {
            Err(AuditError::Mask("waiting lanes"))
        }
    }
}
