//! One small error type per input, and their sum for [`Host::handle`](super::Host::handle).

use super::ClosePhase;
use crate::lane::HoldReason;
use crate::role::RoleId;
use crate::seat::{SeatError, SeatId, SlotState};
use crate::unit::UnitId;
use thiserror::Error;

/// Why a unit was not accepted. It was not counted as submitted and nothing was lost: the payload is
/// still the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EnqueueError {
    /// The role table has no such row.
    #[error("role {role:?}: the table has {roles} roles")]
    UnknownRole {
        /// The role named.
        role: RoleId,
        /// How many there are.
        roles: usize,
    },
    /// The lane has fewer keys.
    #[error("key {key} of role {role:?}: keys are 0 to {}", keys.saturating_sub(1))]
    UnknownKey {
        /// The role.
        role: RoleId,
        /// The key named.
        key: u8,
        /// How many keys the lane has.
        keys: u8,
    },
    /// Every row of the lane is taken; try again when a receipt of the lane has been collected.
    #[error("the intake of role {role:?} is full: all {rows} rows are taken")]
    IntakeFull {
        /// The role.
        role: RoleId,
        /// Rows reserved for the lane.
        rows: u32,
    },
    /// The fleet is closing.
    #[error("role {role:?} takes no more units: the fleet is closing")]
    Closed {
        /// The role.
        role: RoleId,
    },
    /// The lane died; this lasts until a new process.
    #[error(
        "role {role:?} takes no more units: its lane is dead until the process is started anew"
    )]
    Faulted {
        /// The role.
        role: RoleId,
    },
}

/// Why a leased unit did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StartError {
    /// The guard refused at the last moment. The unit is back at the head of its lane, or has ended
    /// as [`LaneDeath`](crate::unit::Outcome::LaneDeath) if the lane died meanwhile, and the seat is
    /// idle: do not run it.
    #[error("the guard took the unit back: {}", .0.label())]
    HandedBack(HoldReason),
    /// No such seat.
    #[error("seat {seat:?}: the host has {seats} seats")]
    UnknownSeat {
        /// The seat named.
        seat: SeatId,
        /// How many there are.
        seats: usize,
    },
    /// The seat does not hold this unit as a lease: the call came twice, or the seat died or the fence
    /// took the lease back, and the unit has ended. Do not run it.
    #[error("seat {seat:?} cannot start {unit:?}: {source}")]
    Seat {
        /// The seat.
        seat: SeatId,
        /// The unit.
        unit: UnitId,
        /// What the seat says.
        source: SeatError,
    },
}

/// Why a report of a seat was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeatDoneError {
    /// No such seat.
    #[error("seat {seat:?}: the host has {seats} seats")]
    UnknownSeat {
        /// The seat named.
        seat: SeatId,
        /// How many there are.
        seats: usize,
    },
    /// The seat is not executing this unit: a report that came twice, or after the seat died.
    #[error("seat {seat:?} reported {unit:?} and is {state:?}: {source}")]
    Seat {
        /// The seat.
        seat: SeatId,
        /// The unit reported.
        unit: UnitId,
        /// The seat's state.
        state: SlotState,
        /// What the seat says.
        source: SeatError,
    },
}

/// Why an epoch boundary was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EpochError {
    /// A unit of a keyed role is with a seat: the epoch is not over.
    #[error("the epoch is not over: {units} units of keyed roles are in flight")]
    KeyedInFlight {
        /// How many.
        units: u16,
    },
    /// Epochs are ordered by their sequence number.
    #[error("epoch {seq} does not follow epoch {current}")]
    NotNewer {
        /// The epoch named.
        seq: u64,
        /// The current epoch.
        current: u64,
    },
}

/// Why a death was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeatDiedError {
    /// No such seat.
    #[error("seat {seat:?}: the host has {seats} seats")]
    UnknownSeat {
        /// The seat named.
        seat: SeatId,
        /// How many there are.
        seats: usize,
    },
    /// The seat is dead already.
    #[error("seat {seat:?} cannot die: {source}")]
    Seat {
        /// The seat.
        seat: SeatId,
        /// What the seat says.
        source: SeatError,
    },
}

/// Why a resize was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ResizeError {
    /// A keyed role needs a pin.
    #[error("0 pins: a keyed role keeps at least 1")]
    NoPins,
}

/// Why a step of closing was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CloseError {
    /// Closing goes forward only, and each step once.
    #[error("{asked:?} does not follow {current:?}")]
    NotForward {
        /// The step asked for.
        asked: ClosePhase,
        /// The step that was taken last.
        current: ClosePhase,
    },
}

/// Why an input was not taken; the state is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum InputError {
    /// See [`EnqueueError`].
    #[error(transparent)]
    Enqueue(#[from] EnqueueError),
    /// See [`SeatDoneError`].
    #[error(transparent)]
    SeatDone(#[from] SeatDoneError),
    /// See [`EpochError`].
    #[error(transparent)]
    Epoch(#[from] EpochError),
    /// See [`SeatDiedError`].
    #[error(transparent)]
    SeatDied(#[from] SeatDiedError),
    /// See [`ResizeError`].
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// See [`CloseError`].
    #[error(transparent)]
    Close(#[from] CloseError),
}

/// What a recount of the rows found wrong. It should never be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AuditError {
    /// A counter of a lane and its rows disagree.
    #[error("role {role:?}: {counted} rows are {what}, and the lane says {stated}")]
    Count {
        /// The lane.
        role: RoleId,
        /// What was counted.
        what: &'static str,
        /// Rows found.
        counted: u64,
        /// What the lane says.
        stated: u64,
    },
    /// A seat holds a unit whose row is not in flight, or two seats hold one unit.
    #[error("seat {seat:?} holds {unit:?}, whose row is not in flight with it alone")]
    Seat {
        /// The seat.
        seat: SeatId,
        /// The unit.
        unit: UnitId,
    },
    /// A cached set and what it caches disagree.
    #[error("the set of {0} is not what the seats and lanes say")]
    Mask(&'static str),
}
