//! Seats and the slot state machine.
//!
//! A seat is one persistent execution resource. [`SlotPhase`] declares, once, which transitions are
//! legal; [`Seat`] keeps the data that goes with a phase and offers the transitions as methods.
//!
//! # Invariants
//! - A phase changes only through [`SlotPhase::on`]. A rejected transition returns a typed error and
//!   leaves the seat as it was.
//! - A pinned seat takes only units of its role and key, and keeps its key for life. Which key is at
//!   home on which seat is the host's map, and it changes at epoch boundaries only, after the seat
//!   that loses a key has released its pin.
//! - Only a pooled seat drains: a pinned walk is never shed.

use crate::fsm;
use crate::past::Past;
use crate::role::{RoleId, RoleMask, SeatKind};
use crate::time::Instant;
use crate::unit::{List, UnitId};
use thiserror::Error;

/// The most seats a host can hold; a seat mask has a bit for each.
pub const MAX_SEATS: usize = 64;

/// A seat, as its number in the host's seat table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeatId(u8);

impl SeatId {
    /// The seat with number `index`.
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The seat's number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The seat's number as it is stored.
    pub(crate) const fn raw(self) -> u8 {
        self.0
    }

    /// Every seat of a host with `count` seats.
    pub fn all(count: usize) -> impl Iterator<Item = Self> {
        (0_u8..).take(count).map(Self)
    }

    /// The members of a seat mask, in order.
    pub fn members(mut mask: u64) -> impl Iterator<Item = Self> {
        core::iter::from_fn(move || {
            let seat = u8::try_from(mask.trailing_zeros()).ok()?;
            // Empty: there is no lowest member to take away.
            mask &= mask.checked_sub(1)?;
            Some(Self(seat))
        })
    }

    /// The seat's bit in a mask.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// What a seat is for, fixed at boot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeatSpec {
    /// How it is leased.
    pub kind: SeatKind,
    /// The roles it serves. One role for a pinned seat.
    pub roles: RoleMask,
    /// The key of a [`SeatKind::KeyedPin`] seat; zero otherwise.
    pub key: u8,
}

fsm! {
    /// The phases of a seat.
    pub states SlotPhase {
        /// Parked, no lease.
        Idle,
        /// A unit or a claim was granted and not yet begun.
        Leased,
        /// Executing a unit.
        Running,
        /// Parked with a standing lease on its key.
        Pinned,
        /// Finishing its unit under a cordon or a shrunken quota; takes nothing new meanwhile.
        Draining,
        /// Its thread is gone.
        Dead,
        /// Closed in order.
        Retired,
    }
    /// What can happen to a seat.
    pub events SlotEvent {
        /// A grant to an idle seat.
        Lease,
        /// The seat begins its unit.
        Start,
        /// A unit of a keyed role ended; the pin stays.
        PinKey,
        /// A unit of the fixed role ended; the pin stays.
        PinFixed,
        /// A unit of a pooled role ended.
        Finish,
        /// A pinned seat takes the next unit.
        Resume,
        /// The unit becomes the seat's last for now.
        Shed,
        /// The draining unit ended.
        Drained,
        /// The pin is given up.
        Release,
        /// The guard refused at the last moment; the unit goes back.
        HandBack,
        /// The thread was lost.
        Die,
        /// The fleet closed.
        Retire,
    }
    /// A transition that the slot state machine does not have.
    pub error SlotError;
    transitions {
        "T1": Idle -- Lease --> Leased;
        "T2": Leased -- Start --> Running;
        "T3": Running -- PinKey --> Pinned;
        "T4": Running -- PinFixed --> Pinned;
        "T5": Running -- Finish --> Idle;
        "T6": Pinned -- Resume --> Running;
        "T7": Running -- Shed --> Draining;
        "T8": Draining -- Drained --> Idle;
        "T9": Pinned -- Release --> Idle;
        "T10": Leased -- HandBack --> Idle;
        "T11": Idle -- Die --> Dead;
        "T11": Leased -- Die --> Dead;
        "T11": Running -- Die --> Dead;
        "T11": Pinned -- Die --> Dead;
        "T11": Draining -- Die --> Dead;
        "T11": Retired -- Die --> Dead;
        "T12": Idle -- Retire --> Retired;
        "T12": Pinned -- Retire --> Retired;
    }
}

/// Why a seat refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeatError {
    /// The phase has no such transition.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// The seat does not serve the role.
    #[error("a seat that serves roles {serves:?} was offered role {role:?}")]
    Role {
        /// What it serves.
        serves: RoleMask,
        /// What it was offered.
        role: RoleId,
    },
    /// The seat executes another unit than the one named.
    #[error("unit {named:?} was named, and the seat holds {held:?}")]
    OtherUnit {
        /// The unit of the call.
        named: UnitId,
        /// The unit that the seat holds.
        held: UnitId,
    },
    /// A pinned seat cannot drain: its walk is never shed.
    #[error("a {0:?} seat is never shed; only pooled seats drain")]
    ShedPinned(SeatKind),
}

/// A seat's phase with its data, for reading.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SlotState {
    /// Parked, no lease.
    Idle,
    /// Granted and not yet begun.
    Leased {
        /// The role of the unit.
        role: RoleId,
        /// The unit.
        unit: UnitId,
    },
    /// Executing.
    Running {
        /// The role of the unit.
        role: RoleId,
        /// The unit.
        unit: UnitId,
    },
    /// Parked with a standing lease.
    Pinned {
        /// The role of the lease.
        role: RoleId,
        /// Its key; zero for the fixed pin.
        key: u8,
    },
    /// Finishing its last unit for now.
    Draining {
        /// The role of the unit.
        role: RoleId,
        /// The unit.
        unit: UnitId,
    },
    /// Its thread is gone.
    Dead,
    /// Closed in order.
    Retired,
}

/// One seat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seat {
    spec: SeatSpec,
    phase: SlotPhase,
    role: RoleId,
    unit: UnitId,
    /// When the current unit was leased; for gauges only.
    since: Past<Instant>,
    /// Waiting units of the keys that live here; empty unless the seat is a keyed pin.
    pub(crate) queue: List,
}

impl Seat {
    /// An idle seat.
    #[must_use]
    pub fn new(spec: SeatSpec) -> Self {
        Self {
            spec,
            phase: SlotPhase::Idle,
            role: first_role(spec),
            unit: UnitId::NONE,
            since: Past(Instant::ORIGIN),
            queue: List::EMPTY,
        }
    }

    /// What the seat is for.
    #[must_use]
    pub const fn spec(&self) -> SeatSpec {
        self.spec
    }

    /// The phase.
    #[must_use]
    pub const fn phase(&self) -> SlotPhase {
        self.phase
    }

    /// The key of a keyed seat: the one it is pinned to, or would claim.
    #[must_use]
    pub const fn key(&self) -> u8 {
        self.spec.key
    }

    /// The phase with its data.
    #[must_use]
    pub const fn state(&self) -> SlotState {
        let (role, unit) = (self.role, self.unit);
        match self.phase {
            SlotPhase::Idle => SlotState::Idle,
            SlotPhase::Leased => SlotState::Leased { role, unit },
            SlotPhase::Running => SlotState::Running { role, unit },
            SlotPhase::Pinned => SlotState::Pinned {
                role,
                key: self.spec.key,
            },
            SlotPhase::Draining => SlotState::Draining { role, unit },
            SlotPhase::Dead => SlotState::Dead,
            SlotPhase::Retired => SlotState::Retired,
        }
    }

    /// The role and unit that the seat holds, leased or executing.
    #[must_use]
    pub const fn held(&self) -> Option<(RoleId, UnitId)> {
        match self.phase {
            SlotPhase::Leased | SlotPhase::Running | SlotPhase::Draining => {
                Some((self.role, self.unit))
            }
            _ => None,
        }
    }

    /// The unit that the seat names, for who renames units.
    pub(crate) const fn unit_mut(&mut self) -> &mut UnitId {
        &mut self.unit
    }

    /// When the unit that the seat holds was leased.
    #[must_use]
    pub fn held_since(&self) -> Option<Instant> {
        self.held().map(|_| self.since.0)
    }

    /// T1: grants `unit` to an idle seat.
    pub fn lease(&mut self, role: RoleId, unit: UnitId, now: Instant) -> Result<(), SeatError> {
        self.take(SlotEvent::Lease, role, unit, now)
    }

    /// T6: a pinned seat takes its next unit.
    pub fn resume(&mut self, role: RoleId, unit: UnitId, now: Instant) -> Result<(), SeatError> {
        self.take(SlotEvent::Resume, role, unit, now)
    }

    fn take(
        &mut self,
        event: SlotEvent,
        role: RoleId,
        unit: UnitId,
        now: Instant,
    ) -> Result<(), SeatError> {
        if !self.spec.roles.contains(role) {
            return Err(SeatError::Role {
                serves: self.spec.roles,
                role,
            });
        }
        self.phase = self.phase.on(event)?;
        (self.role, self.unit, self.since) = (role, unit, Past(now));
        Ok(())
    }

    /// T2: begins the leased unit.
    pub fn start(&mut self, unit: UnitId) -> Result<(), SeatError> {
        self.check_unit(SlotEvent::Start, unit)?;
        Ok(self.step(SlotEvent::Start)?)
    }

    /// T10: gives the leased unit back.
    pub fn hand_back(&mut self, unit: UnitId) -> Result<(), SeatError> {
        self.check_unit(SlotEvent::HandBack, unit)?;
        Ok(self.step(SlotEvent::HandBack)?)
    }

    /// T3, T4, T5 or T8: the unit ended.
    pub fn finish(&mut self, unit: UnitId) -> Result<(), SeatError> {
        let event = match (self.phase, self.spec.kind) {
            (SlotPhase::Draining, _) => SlotEvent::Drained,
            (_, SeatKind::KeyedPin) => SlotEvent::PinKey,
            (_, SeatKind::FixedPin) => SlotEvent::PinFixed,
            (_, SeatKind::Pooled) => SlotEvent::Finish,
        };
        self.check_unit(event, unit)?;
        Ok(self.step(event)?)
    }

    /// T7: the unit becomes the seat's last for now.
    pub fn shed(&mut self) -> Result<(), SeatError> {
        if self.spec.kind != SeatKind::Pooled {
            return Err(SeatError::ShedPinned(self.spec.kind));
        }
        Ok(self.step(SlotEvent::Shed)?)
    }

    /// T9: gives up the pin.
    pub fn release(&mut self) -> Result<(), SeatError> {
        Ok(self.step(SlotEvent::Release)?)
    }

    /// T11: the thread is gone.
    pub fn die(&mut self) -> Result<(), SeatError> {
        Ok(self.step(SlotEvent::Die)?)
    }

    /// T12: closed in order.
    pub fn retire(&mut self) -> Result<(), SeatError> {
        Ok(self.step(SlotEvent::Retire)?)
    }

    fn step(&mut self, event: SlotEvent) -> Result<(), SlotError> {
        self.phase = self.phase.on(event)?;
        if self.held().is_none() {
            self.unit = UnitId::NONE;
            // What a seat ran before says nothing about what it will do: seats that are parked alike
            // compare alike.
            if self.phase != SlotPhase::Pinned {
                self.role = first_role(self.spec);
            }
        }
        Ok(())
    }

    fn check_unit(&self, event: SlotEvent, named: UnitId) -> Result<(), SeatError> {
        self.phase.on(event)?;
        if named == self.unit {
            Ok(())
        } else {
            Err(SeatError::OtherUnit {
                named,
                held: self.unit,
            })
        }
    }
}

fn first_role(spec: SeatSpec) -> RoleId {
    spec.roles.iter().next().unwrap_or(RoleId::new(0))
}

#[cfg(test)]
mod tests;
