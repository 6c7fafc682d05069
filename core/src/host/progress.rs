//! Progress: what is held, when to look again, and the self-check.

use super::Host;
use crate::guard::Guard;
use crate::lane::{HoldReason, ProgressEvent, Strikes};
use crate::role::{CordonClass, RoleId, RoleMask};
use crate::seat::SlotPhase;
use crate::time::{Duration, Instant};
use crate::unit::UnitRow;

/// Something that must not be survived silently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Alarm {
    /// A lane could have moved and did not, for the stated number of ticks. It means that the host
    /// or its binding is at fault.
    Stuck {
        /// The lane.
        role: RoleId,
        /// Ticks without movement.
        ticks: u32,
        /// Time credited to them; a tick that came late counts at most twice its interval, so a
        /// stopped process is not mistaken for a stuck lane.
        credited: Duration,
    },
    /// The seat that drains the results is dead: what others send there is never read.
    StrandedPipe {
        /// The fixed role that lost its seat.
        role: RoleId,
    },
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// The backstop tick: looks at every guard anew and re-arms, and counts lanes that could have
    /// moved since the last tick and did not.
    pub fn backstop_tick(&mut self, now: Instant, guard: &Guard) {
        self.counters.0.ticks += 1;
        if self.backstop_at.is_some_and(|due| now >= due) {
            self.self_check(now, guard);
            self.last_tick = now;
            self.backstop_at = Some(now + self.backstop);
        }
        self.settle(now, guard);
    }

    /// Something in the guard may have changed.
    pub fn posture_edge(&mut self, now: Instant, guard: &Guard) {
        self.counters.0.edges += 1;
        self.settle(now, guard);
    }

    /// When the host wants a [`BackstopTick`](super::Input::BackstopTick), if nothing comes before.
    /// Without a deadline nothing is held and the caller may sleep until the next input.
    #[must_use]
    pub fn next_deadline(&self, guard: &Guard) -> Option<Instant> {
        let backstop = self.backstop_at?;
        let refill = guard.ledger.refill_at.filter(|_| {
            self.backed
                .iter()
                .any(|role| guard.ledger.holds.contains(role))
        });
        Some(refill.map_or(backstop, |refill| refill.min(backstop)))
    }

    fn self_check(&mut self, now: Instant, guard: &Guard) {
        let most = self.backstop.times(2);
        let credit = now.since(self.last_tick).min(most);
        for role in self.table.0.ids() {
            let could_move = self.ready(role) != 0
                && self.lanes[role.index()]
                    .may_start(role, self.load(role), guard)
                    .is_ok();
            let strikes = &mut self.lanes[role.index()].strikes;
            *strikes = if could_move && !strikes.moved {
                Strikes {
                    ticks: strikes.ticks.saturating_add(1),
                    credited: strikes.credited + credit,
                    moved: false,
                }
            } else {
                Strikes::default()
            };
            let limit = self.backstop.times(u64::from(self.stuck_ticks));
            if strikes.ticks >= self.stuck_ticks && strikes.credited >= limit {
                self.stuck = self.stuck.with(role);
            }
        }
    }

    /// Seats on which a waiting unit of `role` could start at once if the guard agrees.
    pub(super) fn ready(&self, role: RoleId) -> u64 {
        let lane = &self.lanes[role.index()];
        if lane.waiting() == 0 {
            return 0;
        }
        (self.idle | self.pinned) & lane.seats & if lane.keyed { self.loaded } else { u64::MAX }
    }

    /// Brings everything that follows from the state and the guard in line: the latch, draining
    /// seats, the progress of each lane, and the backstop. The last step of every entry point.
    pub(super) fn settle(&mut self, now: Instant, guard: &Guard) {
        if guard.posture.lane_death {
            self.latch();
        }
        if guard.posture.cordoned {
            self.shed_deferrable();
        }
        let mut armed = false;
        let mut backed = RoleMask::EMPTY;
        for role in self.waiting.iter() {
            if self.ready(role) == 0 {
                self.excuse(role);
                continue;
            }
            let hold = self.lanes[role.index()]
                .may_start(role, self.load(role), guard)
                .err();
            if hold.is_some() {
                self.excuse(role);
            }
            // A lane at its own slots waits for a unit of its own, whose end is an input.
            armed |= hold != Some(HoldReason::Slots);
            if hold.is_some_and(HoldReason::is_guard) {
                backed = backed.with(role);
            }
        }
        self.note_backed(backed);
        if !armed {
            (self.backstop_at, self.last_tick) = (None, Instant::ORIGIN);
        } else if self.backstop_at.is_none() {
            self.backstop_at = Some(now + self.backstop);
            self.last_tick = now;
            self.void_strikes();
        }
    }

    /// The count of ticks begins: what moved before, or did not, is of no account.
    fn void_strikes(&mut self) {
        for (role, lane) in self.table.0.ids().zip(&mut self.lanes) {
            // What an alarm has yet to tell stays as it was.
            if !self.stuck.contains(role) {
                lane.strikes = Strikes::default();
            }
        }
    }

    /// The lane cannot move now, whatever it could at the last tick: its strikes are void. A guard that
    /// says yes at each tick and no at each grant, or a seat that others take first, is no fault.
    fn excuse(&mut self, role: RoleId) {
        // What an alarm has yet to tell stays as it was.
        if !self.stuck.contains(role) {
            let strikes = &mut self.lanes[role.index()].strikes;
            (strikes.ticks, strikes.credited) = (0, Duration::ZERO);
        }
    }

    fn note_backed(&mut self, backed: RoleMask) {
        if backed == self.backed {
            return;
        }
        self.backed = backed;
        for role in self.table.0.ids() {
            let event = if backed.contains(role) {
                ProgressEvent::Hold
            } else {
                ProgressEvent::Clear
            };
            let lane = &mut self.lanes[role.index()];
            // Rejected where it says nothing new, or where the lane is closed or faulted.
            if let Ok(progress) = lane.progress.on(event) {
                lane.progress = progress;
            }
        }
    }

    /// Under a cordon a unit of a deferrable role is its seat's last for now.
    fn shed_deferrable(&mut self) {
        for seat in &mut self.seats {
            if seat.phase() == SlotPhase::Running
                && let Some((role, _)) = seat.held()
                && self.lanes[role.index()].cordon == CordonClass::Deferrable
            {
                let shed = seat.shed();
                debug_assert!(
                    shed.is_ok() || seat.spec().kind != crate::role::SeatKind::Pooled,
                    "a running pooled seat drains: {shed:?}"
                );
            }
        }
    }
}
