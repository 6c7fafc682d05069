//! The arenas of a seat, each with the pin it belongs to.
//!
//! # Invariants
//! - An arena is built, used and dropped on its seat's thread.
//! - A pinned seat's arena lives and dies with the pin: what a released pin leaves is dropped, and the
//!   next pin has one of its own. The one that was built at boot is the first pin's.

use crate::seats::discard;
use crate::workload::{Pin, Workload};
use regatta_core::host::Grant;
use regatta_core::role::{RoleId, SeatKind};
use regatta_core::seat::SeatSpec;

/// The arenas of one seat.
pub(crate) enum Arenas<A> {
    /// One per role and key, by both.
    Pooled(Vec<Vec<A>>),
    /// One, or none between two pins.
    Pinned {
        /// Whose it is.
        pin: Pin,
        /// The arena.
        arena: Option<A>,
        /// Whether a unit has run under the present pin.
        used: bool,
    },
}

impl<A> Arenas<A> {
    /// The arenas of a seat whose roles have so many keys each.
    pub(crate) fn build<W: Workload<Arena = A>>(workload: &W, spec: SeatSpec, keys: &[u8]) -> Self {
        let of = |role: RoleId| keys.get(role.index()).copied().unwrap_or(0);
        if spec.kind == SeatKind::Pooled {
            let roles = (0_u8..).map(RoleId::new).take(keys.len());
            let arenas = roles.map(|role| {
                let keys = if spec.roles.contains(role) {
                    of(role)
                } else {
                    0
                };
                (0..keys)
                    .map(|key| workload.arena(Pin { role, key }))
                    .collect()
            });
            return Self::Pooled(arenas.collect());
        }
        let role = spec.roles.iter().next().unwrap_or(RoleId::new(0));
        let pin = Pin {
            role,
            key: spec.key,
        };
        Self::Pinned {
            pin,
            // A lane without rows never has a unit.
            arena: (of(role) > 0).then(|| workload.arena(pin)),
            used: false,
        }
    }

    /// The arena for a granted unit; `claims` if the grant is a new pin. `None` if the seat has none for
    /// it, which no configuration leads to.
    pub(crate) fn get<W: Workload<Arena = A>>(
        &mut self,
        workload: &W,
        grant: Grant,
        claims: bool,
    ) -> Option<&mut A> {
        match self {
            Self::Pooled(arenas) => arenas
                .get_mut(grant.role.index())?
                .get_mut(usize::from(grant.key)),
            Self::Pinned { pin, arena, used } => {
                if std::mem::replace(used, true)
                    && claims
                    && let Some(stale) = arena.take()
                {
                    discard(stale);
                }
                Some(arena.get_or_insert_with(|| workload.arena(*pin)))
            }
        }
    }

    /// The pin has been released: what it leaves is dropped.
    pub(crate) fn release(&mut self) {
        if let Self::Pinned { arena, used, .. } = self
            && std::mem::replace(used, false)
            && let Some(stale) = arena.take()
        {
            discard(stale);
        }
    }

    /// Whether the seat is a pinned one.
    pub(crate) const fn is_pinned(&self) -> bool {
        matches!(self, Self::Pinned { .. })
    }

    /// Whether there is something for [`release`](Self::release) to drop.
    pub(crate) const fn used(&self) -> bool {
        matches!(self, Self::Pinned { used: true, .. })
    }

    /// Drops them all.
    pub(crate) fn discard(self) {
        match self {
            Self::Pooled(arenas) => arenas.into_iter().flatten().for_each(discard),
            Self::Pinned { arena, .. } => arena.into_iter().for_each(discard),
        }
    }
}
