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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::UnitContext;
    use regatta_core::role::RoleMask;
    use regatta_core::seat::SeatId;
    use regatta_core::unit::UnitId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Numbers its arenas, and counts those that live.
    #[derive(Default)]
    struct Numbered {
        built: AtomicU32,
        living: Arc<AtomicU32>,
    }

    struct Arena(u32, Arc<AtomicU32>);

    impl Drop for Arena {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Workload for Numbered {
        type Unit = ();
        type Output = ();
        type Arena = Arena;
        fn arena(&self, _: Pin) -> Arena {
            self.living.fetch_add(1, Ordering::Relaxed);
            let number = self.built.fetch_add(1, Ordering::Relaxed);
            Arena(number, Arc::clone(&self.living))
        }
        fn run(&self, (): (), _: &mut Arena, _: &UnitContext) {}
    }

    const ROLE: RoleId = RoleId::new(0);

    fn seat(kind: SeatKind) -> SeatSpec {
        SeatSpec {
            kind,
            roles: RoleMask::EMPTY.with(ROLE),
            key: 1,
        }
    }

    fn number(arenas: &mut Arenas<Arena>, workload: &Numbered, key: u8, claims: bool) -> u32 {
        let grant = Grant {
            unit: UnitId::NONE,
            seat: SeatId::new(0),
            role: ROLE,
            key,
            pin: Some(1),
        };
        arenas.get(workload, grant, claims).unwrap().0
    }

    #[test]
    fn a_pins_arena_lives_and_dies_with_the_pin() {
        let workload = Numbered::default();
        let living = || workload.living.load(Ordering::Relaxed);
        let mut arenas = Arenas::build(&workload, seat(SeatKind::KeyedPin), &[3]);
        assert_eq!(living(), 1);
        // The first pin has the one that was built at boot, whatever key it runs for.
        assert_eq!(number(&mut arenas, &workload, 1, true), 0);
        for key in [1, 2, 1] {
            assert_eq!(number(&mut arenas, &workload, key, false), 0);
        }
        arenas.release();
        assert_eq!((living(), arenas.used()), (0, false));
        assert_eq!(number(&mut arenas, &workload, 1, true), 1);
        // Released and claimed again before the seat looked.
        assert_eq!(number(&mut arenas, &workload, 1, true), 2);
        assert_eq!(living(), 1);
        arenas.discard();
        assert_eq!(living(), 0);
    }

    /// A lease that was handed back began no pin.
    #[test]
    fn what_was_never_used_is_kept() {
        let workload = Numbered::default();
        let mut arenas = Arenas::build(&workload, seat(SeatKind::KeyedPin), &[3]);
        arenas.release();
        assert_eq!(number(&mut arenas, &workload, 1, true), 0);
    }

    #[test]
    fn a_pooled_seat_has_one_for_each_key_and_keeps_it() {
        let workload = Numbered::default();
        let mut arenas = Arenas::build(&workload, seat(SeatKind::Pooled), &[2, 5]);
        for claims in [true, false] {
            for key in 0..2 {
                assert_eq!(number(&mut arenas, &workload, key, claims), u32::from(key));
            }
        }
        arenas.release();
        assert_eq!(workload.living.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_lane_without_rows_has_none() {
        let workload = Numbered::default();
        drop(Arenas::build(&workload, seat(SeatKind::KeyedPin), &[0]));
        drop(Arenas::build(&workload, seat(SeatKind::Pooled), &[0]));
        assert_eq!(workload.built.load(Ordering::Relaxed), 0);
    }
}
