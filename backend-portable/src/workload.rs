//! What a user of the fleet writes.

use regatta_core::host::Grant;
use regatta_core::role::RoleId;
use regatta_core::seat::SeatId;
use regatta_core::unit::UnitId;

/// Which arena: that of a role, or of one key of a role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pin {
    /// The role.
    pub role: RoleId,
    /// The key; zero for a role without keys.
    pub key: u8,
}

/// What a running unit may know of its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnitContext {
    /// The unit.
    pub unit: UnitId,
    /// Its role.
    pub role: RoleId,
    /// Its key.
    pub key: u8,
    /// The seat that runs it.
    pub seat: SeatId,
}

impl From<Grant> for UnitContext {
    fn from(grant: Grant) -> Self {
        Self {
            unit: grant.unit,
            role: grant.role,
            key: grant.key,
            seat: grant.seat,
        }
    }
}

/// A pipeline's work: what a unit is, what it yields, and how to run it.
///
/// Dispatch is static, units and outputs are kept in place in a table that is allocated at boot, and
/// an arena is built once per pin. The fleet allocates nothing per unit.
pub trait Workload: Send + Sync + 'static {
    /// One piece of CPU work. What waits is no unit: it is I/O that submits units.
    type Unit: Send + 'static;
    /// What a unit yields.
    type Output: Send + 'static;
    /// Scratch that stays warm from unit to unit of one pin. Built and dropped on its seat's thread.
    type Arena: 'static;

    /// Builds the arena of a pin: at boot, and again after a unit of the pin panicked.
    fn arena(&self, pin: Pin) -> Self::Arena;

    /// Runs a unit to its end, without blocking.
    ///
    /// A panic is caught: the unit's receipt says so, the arena is rebuilt, and the seat goes on.
    fn run(&self, unit: Self::Unit, arena: &mut Self::Arena, context: &UnitContext)
    -> Self::Output;
}
