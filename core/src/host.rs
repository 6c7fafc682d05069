//! The host: the state machine that owns lanes, seats and ledgers.
//!
//! The host is written like a sans-I/O protocol. Inputs come in through [`Host::handle`] (or the
//! method of the single input), each with an explicit `now` and the live [`Guard`]; what follows is
//! read with [`Host::poll_grant`], [`Host::poll_resolved`] and [`Host::poll_alarm`]; and
//! [`Host::next_deadline`] is its only timer. It knows no thread, no clock and no allocator.
//!
//! ```text
//! handle(Enqueue) ─► queue or backlog ─► poll_grant ─► start ─► handle(SeatDone) ─► poll_resolved ─► release
//!                        ▲                   │ guard refuses
//!                        └──── hand-back ────┘
//! ```
//!
//! A binding calls, after each input, `poll_grant` until it returns nothing, then waits for the next
//! input or until `next_deadline`, whichever comes first. One input at a time; no order among
//! threads is assumed.
//!
//! # Invariants
//! - Conservation: each unit is a row in exactly one list, and after every call each lane has
//!   `submitted = in flight + waiting + resolved` ([`Host::audit`] recounts it from the rows).
//! - The guard is never kept. Each decision uses the one that came with the call.
//! - The backstop is armed exactly while a waiting unit has an idle seat that could take it and its
//!   lane is not merely at its own slots, whose end is an input: after `poll_grant` has returned
//!   nothing, only the guard can be what holds such a unit.
//! - Every accepted unit ends in exactly one [`Outcome`], whatever dies or closes.
//! - No call costs more than O(1) amortised in the number of units; a grant looks at each role and at
//!   no unit but the one it takes.

mod boot;
mod close;
mod complete;
mod death;
mod epoch;
mod error;
mod grant;
mod intake;
mod normal;
mod progress;
mod query;

pub use boot::{HostConfig, HostError, Window};
pub use complete::Released;
pub use error::{
    AuditError, CloseError, EnqueueError, EpochError, InputError, ResizeError, SeatDiedError,
    SeatDoneError, StartError,
};
pub use grant::Grant;
pub use intake::Accepted;
pub use progress::Alarm;

use crate::guard::Guard;
use crate::lane::Lane;
use crate::past::Past;
use crate::role::{MAX_ROLES, RoleId, RoleMask, RoleTable};
use crate::seat::{MAX_SEATS, Seat, SeatId};
use crate::time::{Duration, Instant};
use crate::unit::{List, Outcome, RunResult, UnitId, UnitRow, UnitTable};
use heapless::Vec;

/// The closed input alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Input {
    /// A unit comes in.
    Enqueue {
        /// Its role.
        role: RoleId,
        /// Its key; zero for a role without keys.
        key: u8,
    },
    /// A seat finished the unit it held.
    SeatDone {
        /// The seat.
        seat: SeatId,
        /// The unit.
        unit: UnitId,
        /// How it ended.
        result: RunResult,
    },
    /// The deadline that [`Host::next_deadline`] gave has come. Early, late or doubled ones are
    /// harmless.
    BackstopTick,
    /// Something in the guard may have changed. Carries a sequence number and no value; lost, late,
    /// doubled or reordered, it changes nothing but latency.
    PostureEdge {
        /// The owner's count of changes.
        seq: u32,
    },
    /// The work of an epoch is over and the next one may begin: dead keys are re-homed and the number
    /// of pins may change.
    EpochBoundary {
        /// The new epoch; greater than the last.
        seq: u64,
    },
    /// The thread of a seat is gone.
    SeatDied {
        /// The seat.
        seat: SeatId,
    },
    /// The quota was detected anew. The permits themselves are in the guard.
    Resize {
        /// Pins to keep per keyed role from the next epoch boundary on; at least one.
        pins: u8,
    },
    /// The fleet closes.
    Close(ClosePhase),
}

/// The two steps of closing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ClosePhase {
    /// Intake closes and held backlog ends as [`Outcome::NotRun`]; queued units still run.
    Quiesce,
    /// The drain is over: what is still owed ends as [`Outcome::Closed`], and a seat that reports
    /// later is too late.
    Fence,
}

/// What an input did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reaction {
    /// The unit was accepted.
    Accepted(Accepted),
    /// The unit ended as its seat reported.
    Finished,
    /// The seat is free again; its unit had been ended by a fence.
    Late,
    /// The input was taken.
    Noted,
}

/// A unit that ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Resolved {
    /// The unit. Its row stays taken until [`Host::release`].
    pub unit: UnitId,
    /// Its role.
    pub role: RoleId,
    /// How it ended.
    pub outcome: Outcome,
}

/// Totals of the whole host since boot, for metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HostCounters {
    /// Backstop ticks handled.
    pub ticks: u64,
    /// Posture edges handled.
    pub edges: u64,
    /// Reports of seats whose unit a fence had ended.
    pub late: u64,
}

/// The host. See the [module documentation](self).
///
/// `R` is the storage of the unit table: `[UnitRow; N]`, `Box<[UnitRow]>`, `&mut [UnitRow]`, or
/// anything else that lends a slice. `SEATS` and `ROLES` bound how many of each it has room for; a
/// microcontroller or an explorer of states takes fewer. Two hosts compare equal if they will behave alike: counters and
/// time stamps for gauges take no part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Host<R, const SEATS: usize = MAX_SEATS, const ROLES: usize = MAX_ROLES> {
    table: Past<&'static RoleTable>,
    /// Δ: a held unit is looked at again at least this often.
    backstop: Duration,
    /// K: so many ticks without movement that could have been are a fault.
    stuck_ticks: u32,
    units: UnitTable<R>,
    lanes: Vec<Lane<SEATS>, ROLES>,
    seats: Vec<Seat, SEATS>,
    resolved: List,
    /// Seats in phase Idle that are not parked.
    idle: u64,
    /// Seats in phase Pinned.
    pinned: u64,
    /// Keyed seats with waiting units.
    loaded: u64,
    /// Seats in phase Dead.
    dead: u64,
    /// Keyed seats beyond the current number of pins: no key is at home there.
    parked: u64,
    /// Lanes with waiting units.
    waiting: RoleMask,
    /// Units with a seat.
    in_use: u16,
    /// Units of keyed roles with a seat.
    keyed_in_use: u16,
    backstop_at: Option<Instant>,
    last_tick: Instant,
    /// Some lane died, or the posture owner says so.
    latched: bool,
    closing: Option<ClosePhase>,
    /// How the drain began and, once it is over, what was left.
    drain: Past<Option<close::Drain>>,
    epoch: u64,
    /// Pins per keyed role from the next boundary on.
    pins: u8,
    /// Lanes in progress Backed.
    backed: RoleMask,
    stuck: RoleMask,
    stranded: RoleMask,
    counters: Past<HostCounters>,
}

impl<R: AsRef<[UnitRow]> + AsMut<[UnitRow]>, const SEATS: usize, const ROLES: usize>
    Host<R, SEATS, ROLES>
{
    /// Takes one input. The same as the method of that input; an error leaves the state as it was.
    pub fn handle(
        &mut self,
        input: Input,
        now: Instant,
        guard: &Guard,
    ) -> Result<Reaction, InputError> {
        match input {
            Input::Enqueue { role, key } => {
                Ok(Reaction::Accepted(self.enqueue(role, key, now, guard)?))
            }
            Input::SeatDone { seat, unit, result } => {
                Ok(self.seat_done(seat, unit, result, now, guard)?)
            }
            Input::BackstopTick => {
                self.backstop_tick(now, guard);
                Ok(Reaction::Noted)
            }
            Input::PostureEdge { seq: _ } => {
                self.posture_edge(now, guard);
                Ok(Reaction::Noted)
            }
            Input::EpochBoundary { seq } => {
                self.epoch_boundary(seq, now, guard)?;
                Ok(Reaction::Noted)
            }
            Input::SeatDied { seat } => {
                self.seat_died(seat, now, guard)?;
                Ok(Reaction::Noted)
            }
            Input::Resize { pins } => {
                self.resize(pins, now, guard)?;
                Ok(Reaction::Noted)
            }
            Input::Close(phase) => {
                self.close(phase, now, guard)?;
                Ok(Reaction::Noted)
            }
        }
    }
}

#[cfg(test)]
mod tests;
