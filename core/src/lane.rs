//! Lanes: one role's logical intake.
//!
//! A lane has reserved rows, a queue of admitted units, a backlog of units that the guard holds, and
//! a progress state. It names who owns receipts and outcomes, never which thread runs.
//!
//! # Invariants
//! - `submitted = in flight + waiting + resolved`, where waiting is queue and backlog
//!   ([`LaneLedger::balanced`]).
//! - Admission is a pure predicate (`admit`) over lengths and the guard; the reason of a refusal is
//!   its return value.

use crate::fsm;
use crate::guard::Guard;
use crate::past::Past;
use crate::posture::sim_cap;
use crate::role::{CordonClass, RoleId};
use crate::time::Duration;
use crate::unit::List;
use heapless::Vec;

fsm! {
    /// How a lane gets on.
    pub states Progress {
        /// Nothing is held: what waits, waits for a seat.
        Idle,
        /// Something waits, a seat could take it, and the guard holds it.
        Backed,
        /// The lane can never run again: intake is refused and what was held has ended, typed.
        Faulted,
        /// The fleet is closing: intake is refused.
        Closed,
    }
    /// What can happen to a lane.
    pub events ProgressEvent {
        /// The guard holds a unit that a seat could take.
        Hold,
        /// Nothing is held any more.
        Clear,
        /// The lane-death latch reached the lane.
        Fault,
        /// The fleet closes.
        Close,
    }
    /// A transition that the progress state machine does not have.
    pub error ProgressError;
    transitions {
        "hold": Idle -- Hold --> Backed;
        "clear": Backed -- Clear --> Idle;
        "fault": Idle -- Fault --> Faulted;
        "fault": Backed -- Fault --> Faulted;
        "fault": Closed -- Fault --> Faulted;
        "close": Idle -- Close --> Closed;
        "close": Backed -- Close --> Closed;
    }
}

/// Why a waiting unit does not run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum HoldReason {
    /// A cordon holds new leases of the role.
    Cordoned,
    /// A cordon floors the role and the floor is reached.
    SimFloor,
    /// The quota fell below what the fleet needs; only critical roles go on.
    BelowFloor,
    /// The quota ledger has no room for the role in this period.
    Ledger,
    /// Every permit is taken.
    Permits,
    /// Every permit for keyed roles is taken.
    KeyedPermits,
    /// The role's own slots are all in use.
    Slots,
    /// The queue is full; the unit waits in the backlog behind it.
    QueueFull,
    /// Earlier units of the lane are held.
    Behind,
    /// No seat that serves the role is idle.
    NoSeat,
}

impl HoldReason {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::Cordoned,
        Self::SimFloor,
        Self::BelowFloor,
        Self::Ledger,
        Self::Permits,
        Self::KeyedPermits,
        Self::Slots,
        Self::QueueFull,
        Self::Behind,
        Self::NoSeat,
    ];

    /// Whether the guard is what holds. The others end with an input that is bound to come: a unit of
    /// the lane ends, or a seat becomes idle.
    #[must_use]
    pub const fn is_guard(self) -> bool {
        matches!(
            self,
            Self::Cordoned
                | Self::SimFloor
                | Self::BelowFloor
                | Self::Ledger
                | Self::Permits
                | Self::KeyedPermits
        )
    }

    /// The label value in metrics and JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cordoned => "cordoned",
            Self::SimFloor => "sim_floor",
            Self::BelowFloor => "below_floor",
            Self::Ledger => "ledger",
            Self::Permits => "permits",
            Self::KeyedPermits => "keyed_permits",
            Self::Slots => "slots",
            Self::QueueFull => "queue_full",
            Self::Behind => "behind",
            Self::NoSeat => "no_seat",
        }
    }
}

/// What the host knows of a lane when it asks whether one more unit may start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StartLoad {
    /// Units of the role with a seat, without the one in question.
    pub(crate) running: u16,
    /// Units of all roles with a seat, without the one in question.
    pub(crate) in_use: u16,
    /// Units of keyed roles with a seat, without the one in question; `None` if the role is not keyed.
    pub(crate) keyed_in_use: Option<u16>,
}

/// What of the guard holds a role as a whole, whatever is running.
pub(crate) fn role_hold(
    role: RoleId,
    cordon: CordonClass,
    guard: &Guard,
) -> Result<(), HoldReason> {
    if cordon == CordonClass::Deferrable {
        if guard.posture.cordoned {
            return Err(HoldReason::Cordoned);
        }
        if guard.permits.below_floor {
            return Err(HoldReason::BelowFloor);
        }
    }
    // The ledger shapes the intake of what can wait; a critical role is held by permits at most.
    if cordon != CordonClass::Never && guard.ledger.holds.contains(role) {
        return Err(HoldReason::Ledger);
    }
    Ok(())
}

/// Whether a unit that comes in joins the queue; if not, why it goes to the backlog.
pub(crate) fn admit(
    queue_len: u32,
    queue_cap: u32,
    backlog_len: u32,
    hold: Result<(), HoldReason>,
) -> Result<(), HoldReason> {
    hold?;
    if backlog_len > 0 {
        return Err(HoldReason::Behind);
    }
    if queue_len >= queue_cap {
        return Err(HoldReason::QueueFull);
    }
    Ok(())
}

/// Counts of one lane; `submitted = in_flight + waiting + resolved` at every step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LaneLedger {
    /// Units accepted so far.
    pub submitted: u64,
    /// Units that are with a seat.
    pub in_flight: u64,
    /// Admitted units that wait for a seat.
    pub queued: u64,
    /// Accepted units that the guard holds.
    pub backlog: u64,
    /// Units that ended, in one way or another.
    pub resolved: u64,
    /// Ended units whose rows have not been released.
    pub uncollected: u64,
}

impl LaneLedger {
    /// Units accepted and not granted.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.queued + self.backlog
    }

    /// Whether every unit is accounted for.
    #[must_use]
    pub const fn balanced(&self) -> bool {
        self.submitted == self.in_flight + self.waiting() + self.resolved
    }
}

/// Totals of one lane since boot, for metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LaneCounters {
    /// Units accepted.
    pub submitted: u64,
    /// Units that ended.
    pub resolved: u64,
    /// Units that were put in the backlog on arrival.
    pub suppressed: u64,
    /// Leases that the guard took back before the unit began.
    pub handed_back: u64,
    /// Submissions refused because every row of the lane was taken.
    pub refused_full: u64,
    /// Submissions refused because the lane was closed or faulted.
    pub refused_closed: u64,
}

/// How a lane is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneConfig {
    /// Rows reserved: units that may be in the lane at once, from acceptance to the release of their
    /// receipt.
    pub rows: u32,
    /// Units that may be admitted and waiting at once; further ones wait in the backlog. A keyed lane
    /// has no backlog and ignores this: one key must not wait behind another, so the guard holds its
    /// units where they are queued.
    pub queue: u32,
    /// Distinct keys, numbered from zero; one for a role without keys.
    pub keys: u8,
    /// Units that may be with a seat at once, if fewer than seats and permits allow.
    pub slots: Option<u16>,
}

/// The home of a key whose seat is dead, until the next epoch boundary.
pub(crate) const NO_HOME: u8 = u8::MAX;

/// One lane of the host.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lane<const SEATS: usize> {
    pub(crate) cordon: CordonClass,
    pub(crate) owns_receipts: bool,
    /// Whether seats pin to the lane's keys.
    pub(crate) keyed: bool,
    pub(crate) rows: u32,
    pub(crate) queue_cap: u32,
    pub(crate) keys: u8,
    /// Units that may be with a seat at once; the number of its seats unless configured.
    pub(crate) slots: u16,
    /// Seats that serve the role, living or dead.
    pub(crate) seats: u64,
    /// The seat where each key is at home, or [`NO_HOME`]; empty unless the lane is keyed.
    pub(crate) homes: Vec<u8, SEATS>,
    pub(crate) free: List,
    /// Admitted units; those of a keyed lane are in their seats' queues.
    pub(crate) queue: List,
    pub(crate) backlog: List,
    /// Admitted units, wherever their list is.
    pub(crate) queued: u32,
    pub(crate) running: u16,
    pub(crate) progress: Progress,
    /// Where the search for a pinned seat begins, so that no pin is always last.
    pub(crate) cursor: u8,
    pub(crate) strikes: Strikes,
    pub(crate) counters: Past<LaneCounters>,
}

/// Ticks in which a lane could have moved and did not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Strikes {
    pub(crate) ticks: u32,
    pub(crate) credited: Duration,
    /// Whether the lane had a grant or a completion since the last tick.
    pub(crate) moved: bool,
}

impl<const SEATS: usize> Lane<SEATS> {
    pub(crate) fn waiting(&self) -> u32 {
        self.queued + self.backlog.len()
    }

    /// Whether one more unit of the lane may start, given what else has a seat.
    pub(crate) fn may_start(
        &self,
        role: RoleId,
        load: StartLoad,
        guard: &Guard,
    ) -> Result<(), HoldReason> {
        role_hold(role, self.cordon, guard)?;
        if load.running >= self.slots {
            return Err(HoldReason::Slots);
        }
        if self.cordon == CordonClass::SimFloor
            && guard.posture.cordoned
            && load.running >= sim_cap(self.slots, guard.posture.sim_floor)
        {
            return Err(HoldReason::SimFloor);
        }
        if load.in_use >= guard.permits.total {
            return Err(HoldReason::Permits);
        }
        if load
            .keyed_in_use
            .is_some_and(|keyed| keyed >= guard.permits.keyed)
        {
            return Err(HoldReason::KeyedPermits);
        }
        Ok(())
    }

    pub(crate) fn ledger(&self) -> LaneLedger {
        let counters = self.counters.0;
        let in_use = u64::from(self.rows - self.free.len());
        let in_flight = u64::from(self.running);
        let (queued, backlog) = (u64::from(self.queued), u64::from(self.backlog.len()));
        LaneLedger {
            submitted: counters.submitted,
            in_flight,
            queued,
            backlog,
            resolved: counters.resolved,
            uncollected: in_use.saturating_sub(in_flight + queued + backlog),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of lengths at the edges against the sentence in the documentation.
    #[test]
    fn admission_is_the_stated_predicate() {
        for queue_len in 0..4 {
            for queue_cap in 1..4 {
                for backlog in 0..2 {
                    for hold in [Ok(()), Err(HoldReason::Cordoned)] {
                        let joins = hold.is_ok() && backlog == 0 && queue_len < queue_cap;
                        assert_eq!(admit(queue_len, queue_cap, backlog, hold).is_ok(), joins);
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_ledger_holds_what_can_wait_and_no_critical_role() {
        let mut guard = Guard::open(1);
        let role = RoleId::new(3);
        guard.ledger.holds = guard.ledger.holds.with(role);
        for cordon in [CordonClass::Deferrable, CordonClass::SimFloor] {
            assert_eq!(role_hold(role, cordon, &guard), Err(HoldReason::Ledger));
            assert_eq!(role_hold(RoleId::new(2), cordon, &guard), Ok(()));
        }
        assert_eq!(role_hold(role, CordonClass::Never, &guard), Ok(()));
    }

    #[test]
    fn a_cordon_holds_the_deferrable_class_and_no_other() {
        let mut guard = Guard::open(1);
        guard.posture.cordoned = true;
        let role = RoleId::new(0);
        assert_eq!(
            role_hold(role, CordonClass::Deferrable, &guard),
            Err(HoldReason::Cordoned)
        );
        assert_eq!(role_hold(role, CordonClass::Never, &guard), Ok(()));
        assert_eq!(role_hold(role, CordonClass::SimFloor, &guard), Ok(()));
    }
}
