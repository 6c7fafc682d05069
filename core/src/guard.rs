//! What may change without a message.
//!
//! Posture and its causes, permits, the quota ledger and the quota generation belong to owners
//! outside the host and change at any time. The host never keeps a copy: each call hands it a
//! [`Guard`], read from the [`GuardCell`] at that moment. A message that announces a change is only
//! a nudge to look again, so a lost or repeated one costs latency and nothing else.
//!
//! # Invariants
//! - Each word of the cell is one atomic, so a field is never torn. The words together may mix two
//!   moments; every field is judged on its own, so the mix is at worst one evaluation late.
//! - The cell has one writer per word: the posture owner, and whoever owns permits and the ledger.

use crate::role::{MAX_ROLES, RoleMask};
use crate::time::{Duration, Instant};
use core::sync::atomic::{AtomicU32, Ordering};

/// The live posture as the host reads it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PostureView {
    /// Whether any cause cordons.
    pub cordoned: bool,
    /// The lane-death cause: it cordons, and it never goes away in this process.
    pub lane_death: bool,
    /// How many units of a [`SimFloor`](crate::role::CordonClass::SimFloor) role may run under a
    /// cordon; `None` is half its slots.
    pub sim_floor: Option<u16>,
}

impl PostureView {
    const CORDONED: u32 = 1 << 31;
    const LANE_DEATH: u32 = 1 << 30;
    const FLOOR_SET: u32 = 1 << 29;

    /// The view as one word.
    const fn pack(self) -> u32 {
        let floor = match self.sim_floor {
            Some(n) => Self::FLOOR_SET | n as u32,
            None => 0,
        };
        floor
            | if self.cordoned { Self::CORDONED } else { 0 }
            | if self.lane_death { Self::LANE_DEATH } else { 0 }
    }

    const fn unpack(word: u32) -> Self {
        Self {
            cordoned: word & Self::CORDONED != 0,
            lane_death: word & Self::LANE_DEATH != 0,
            sim_floor: if word & Self::FLOOR_SET == 0 {
                None
            } else {
                Some((word & 0xffff) as u16)
            },
        }
    }
}

/// How many units may be runnable at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Permits {
    /// Units of all roles together.
    pub total: u16,
    /// Units of keyed roles, within `total`.
    pub keyed: u16,
    /// The quota fell below what the fleet needs: deferrable roles wait until it recovers.
    pub below_floor: bool,
}

impl Permits {
    const fn pack(self) -> u32 {
        (self.total as u32) << 16
            | (self.keyed & 0x7fff) as u32
            | if self.below_floor { 0x8000 } else { 0 }
    }

    const fn unpack(word: u32) -> Self {
        Self {
            total: (word >> 16) as u16,
            keyed: (word & 0x7fff) as u16,
            below_floor: word & 0x8000 != 0,
        }
    }
}

/// What the quota ledger says about starting work now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LedgerView {
    /// Roles that may not start a unit until the ledger has room again. Roles of class
    /// [`Never`](crate::role::CordonClass::Never) start all the same.
    pub holds: RoleMask,
    /// When the ledger will have room, as far as it can tell.
    pub refill_at: Option<Instant>,
}

/// Everything the host consults that it does not own, read at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Guard {
    /// The live posture.
    pub posture: PostureView,
    /// Permits.
    pub permits: Permits,
    /// The quota ledger.
    pub ledger: LedgerView,
    /// Which detection of the quota the permits come from.
    pub quota_generation: u32,
}

impl Guard {
    /// A guard that holds nothing back.
    #[must_use]
    pub const fn open(permits: u16) -> Self {
        Self {
            posture: PostureView {
                cordoned: false,
                lane_death: false,
                sim_floor: None,
            },
            permits: Permits {
                total: permits,
                keyed: permits,
                below_floor: false,
            },
            ledger: LedgerView {
                holds: RoleMask::EMPTY,
                refill_at: None,
            },
            quota_generation: 0,
        }
    }
}

/// The live guard, shared between its owners and whoever runs the host.
///
/// The refill instant is two words wide on a 32-bit target; it is stored as a delay that the reader
/// adds to its own `now`, rounded up to microseconds, which suits a hint that is checked on waking.
#[derive(Debug)]
pub struct GuardCell {
    posture: AtomicU32,
    permits: AtomicU32,
    ledger_holds: AtomicU32,
    refill_in_micros: AtomicU32,
    generation: AtomicU32,
}

/// The shortest refill delay: the hint is read anew at each look, and a shorter one would have the host
/// look at every guard more than a thousand times a second.
const LEAST_REFILL: Duration = Duration::from_millis(1);

const _: () = assert!(MAX_ROLES <= 32, "a role mask must fit the ledger word");

impl GuardCell {
    /// A cell that starts nominal with these permits.
    #[must_use]
    pub const fn new(permits: Permits) -> Self {
        Self {
            posture: AtomicU32::new(0),
            permits: AtomicU32::new(permits.pack()),
            ledger_holds: AtomicU32::new(0),
            refill_in_micros: AtomicU32::new(0),
            generation: AtomicU32::new(0),
        }
    }

    /// Reads every word. `now` dates the refill instant.
    #[must_use]
    pub fn read(&self, now: Instant) -> Guard {
        let holds = RoleMask::from_bits(self.ledger_holds.load(Ordering::Acquire));
        let refill = self.refill_in_micros.load(Ordering::Acquire);
        Guard {
            posture: PostureView::unpack(self.posture.load(Ordering::Acquire)),
            permits: Permits::unpack(self.permits.load(Ordering::Acquire)),
            ledger: LedgerView {
                holds,
                refill_at: (!holds.is_empty() && refill != 0)
                    .then(|| now + Duration::from_micros(u64::from(refill))),
            },
            quota_generation: self.generation.load(Ordering::Acquire),
        }
    }

    /// Replaces the posture. For the posture owner.
    pub fn set_posture(&self, view: PostureView) {
        self.posture.store(view.pack(), Ordering::Release);
    }

    /// Replaces permits after a detection of the quota. For the owner of the quota.
    pub fn set_permits(&self, permits: Permits, generation: u32) {
        self.permits.store(permits.pack(), Ordering::Release);
        self.generation.store(generation, Ordering::Release);
    }

    /// Replaces what the ledger says. For the owner of the ledger. `refill_in` is from now.
    pub fn set_ledger(&self, holds: RoleMask, refill_in: Option<Duration>) {
        let micros = refill_in.map_or(0, |d| {
            u32::try_from(d.max(LEAST_REFILL).as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX)
        });
        self.refill_in_micros.store(micros, Ordering::Release);
        self.ledger_holds.store(holds.bits(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::RoleId;

    #[test]
    fn what_is_stored_is_what_is_read() {
        let cell = GuardCell::new(Permits {
            total: 5,
            keyed: 3,
            below_floor: false,
        });
        let now = Instant::from_nanos(1_000_000);
        assert_eq!(cell.read(now).permits.total, 5);
        for bits in 0..16u16 {
            let view = PostureView {
                cordoned: bits & 1 != 0,
                lane_death: bits & 2 != 0,
                sim_floor: (bits & 4 != 0).then_some(bits * 4369),
            };
            cell.set_posture(view);
            let permits = Permits {
                total: bits * 4000,
                keyed: bits * 2000,
                below_floor: bits & 8 != 0,
            };
            cell.set_permits(permits, u32::from(bits));
            let guard = cell.read(now);
            assert_eq!((guard.posture, guard.permits), (view, permits));
            assert_eq!(guard.quota_generation, u32::from(bits));
        }
    }

    #[test]
    fn a_refill_instant_is_never_early_and_never_without_a_hold() {
        let cell = GuardCell::new(Permits {
            total: 1,
            keyed: 1,
            below_floor: false,
        });
        let now = Instant::from_nanos(7);
        let held = RoleMask::EMPTY.with(RoleId::new(3));
        cell.set_ledger(held, Some(Duration::from_nanos(1)));
        let ledger = cell.read(now).ledger;
        cell.set_ledger(held, Some(Duration::from_nanos(1_000_001)));
        let later = cell.read(now).ledger.refill_at;
        assert_eq!(later, Some(now + Duration::from_micros(1_001)));
        assert_eq!(
            (ledger.holds, ledger.refill_at),
            (held, Some(now + LEAST_REFILL))
        );
        cell.set_ledger(RoleMask::EMPTY, Some(Duration::from_secs(1)));
        assert_eq!(cell.read(now).ledger, LedgerView::default());
    }
}
