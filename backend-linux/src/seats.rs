//! The threads of seats on Linux: what they sleep in and on which CPUs they run.
//!
//! With this platform a fleet may have the pinned binding: a thread for each seat, woken by the cheapest
//! means that the kernel has, on the CPUs that the core's rule gives it.
//!
//! # Invariants
//! - A thread that may run on every allowed CPU is left as it is: a mask of its own would keep it from
//!   CPUs that its group is given later.

use crate::affinity;
use crate::cgroup::CpuSet;
use crate::wake::{self, WakeKind};
use regatta_core::affinity::SeatAffinity;
use regatta_core::plan::Bindings;
use regatta_core::seat::SeatId;
use regatta_portable::clock::MonotonicClock;
use regatta_portable::platform::{PlatformError, SeatPlatform, Sleeper};

/// The bindings that a fleet may have on Linux.
pub const BINDINGS: Bindings = Bindings { pinned: true };

/// Linux, for the seats of one fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinuxSeats {
    wake: WakeKind,
    affinity: SeatAffinity,
    allowed: Option<CpuSet>,
}

impl LinuxSeats {
    /// Seats that are woken by `wake` and run on every CPU that the process may use.
    #[must_use]
    pub const fn new(wake: WakeKind) -> Self {
        Self {
            wake,
            affinity: SeatAffinity::AllowedSet,
            allowed: None,
        }
    }

    /// Binds seats as `affinity` says, on these CPUs. With more seats than CPUs, those that are one CPU
    /// each share them in turn.
    #[must_use]
    pub fn bind(mut self, affinity: SeatAffinity, allowed: CpuSet) -> Self {
        self.affinity = affinity;
        self.allowed = Some(allowed);
        self
    }

    /// How the seats are woken.
    #[must_use]
    pub const fn wake(&self) -> WakeKind {
        self.wake
    }

    /// The CPUs of a seat, if it is to have other ones than the thread that spawns it.
    fn cpus(&self, seat: SeatId) -> Option<CpuSet> {
        let allowed = self.allowed.as_ref().filter(|set| set.count() > 0)?;
        Some(match self.affinity {
            SeatAffinity::AllowedSet => allowed.clone(),
            SeatAffinity::OneCpuEach => {
                let turn = seat.index() % allowed.count() as usize;
                allowed.iter().nth(turn).map(CpuSet::of)?
            }
        })
    }
}

impl SeatPlatform for LinuxSeats {
    fn bindings(&self) -> Bindings {
        BINDINGS
    }

    fn sleeper(&self, seat: SeatId, clock: MonotonicClock) -> Result<Sleeper, PlatformError> {
        let cpus = self.cpus(seat);
        let wake::Sleeper { waker, parker } = wake::sleeper(self.wake, clock)?;
        let enter = move || {
            if let Some(cpus) = cpus.filter(|cpus| affinity::mask().as_ref() != Some(cpus)) {
                affinity::set_mask(&cpus)?;
            }
            Ok(parker()?)
        };
        Ok(Sleeper {
            waker,
            enter: Box::new(enter),
        })
    }
}
