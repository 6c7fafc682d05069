//! A state: the shipped host, the guard, and what the outside world remembers.
//!
//! # Invariants
//! - The clock stands at the origin. Time passes in a tick only, and the host's clock is then set back.
//! - Every id in a state is in its [`Env`], so that [`State::normalise`] renames them all.

use crate::rule::{Rule, Violation};
use crate::world::{ALL_PINS, ROLES, ROWS, SEATS, Size, World};
use heapless::Vec as Few;
use regatta_core::guard::Guard;
use regatta_core::host::Host;
use regatta_core::role::{RoleId, RoleMask, SeatKind};
use regatta_core::seat::{Seat, SeatId, SlotPhase};
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{UnitId, UnitRow};

/// The host at the size of the explorer.
pub type SmallHost = Host<[UnitRow; ROWS], SEATS, ROLES>;

/// No seat is the home of a key.
pub(crate) const NOWHERE: u8 = u8::MAX;

/// A state of the walk.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The host.
    pub host: SmallHost,
    /// Everything else.
    pub env: Env,
}

/// The guard, as levels of a [`Size`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GuardState {
    /// Some cause other than a death cordons.
    pub cordoned: bool,
    /// The posture's owner knows of a death.
    pub lane_death: bool,
    /// Index into [`Size::permits`].
    pub permits: u8,
    /// Index into [`Size::ledgers`].
    pub ledger: u8,
}

/// A unit that was accepted and has no outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Open {
    /// The unit.
    pub unit: UnitId,
    /// Its role.
    pub role: RoleId,
    /// Its key.
    pub key: u8,
}

/// What is outside the host.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Env {
    /// The live guard.
    pub guard: GuardState,
    /// Whether grants were polled to the end since the last input.
    pub pumped: bool,
    /// Accepted, without an outcome.
    pub open: Few<Open, ROWS>,
    /// Ended, in this order, and the outcome not read.
    pub ended: Few<(RoleId, UnitId), ROWS>,
    /// Outcome read, receipt not collected: role and unit.
    pub read: Few<(RoleId, UnitId), ROWS>,
    /// Reports that are out of date and still on their way.
    pub stale: Few<(SeatId, UnitId), 2>,
    /// Seats that died.
    pub deaths: u8,
    /// Pins per keyed role from the next boundary on.
    pub pins: u8,
    /// Where each key should be at home.
    pub homes: Few<u8, SEATS>,
    /// Keyed seats that should be without a key, as bits.
    pub parked: u8,
}

impl GuardState {
    /// The guard that the host is shown.
    #[must_use]
    pub fn view(self, size: &Size) -> Guard {
        let mut guard = Guard::open(0);
        guard.posture.cordoned = self.cordoned || self.lane_death;
        guard.posture.lane_death = self.lane_death;
        if let Some(permits) = size.permits.get(usize::from(self.permits)) {
            guard.permits = *permits;
        }
        let (holds, refills) = size.ledger(self.ledger);
        guard.ledger.holds = holds;
        guard.ledger.refill_at = refills.then_some(Instant::from_nanos(1));
        guard
    }

    /// The same after the guard has opened as far as it ever will.
    #[must_use]
    pub fn opened(self) -> Self {
        Self {
            lane_death: self.lane_death,
            ..Self::default()
        }
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_open(self) -> bool {
        self == Self::default()
    }
}

impl State {
    /// The state after boot.
    pub fn initial(world: &World) -> Result<Self, Violation> {
        let seats = world.seat_specs();
        let host = Host::sized(&world.config(&seats), [UnitRow::FREE; ROWS]);
        let host = host.map_err(|error| Violation::new(Rule::Inert, error.to_string()))?;
        let homes = seats.iter().zip(0_u8..);
        let homes = homes.filter(|(seat, _)| seat.kind == SeatKind::KeyedPin);
        Ok(Self {
            host,
            env: Env {
                guard: GuardState::default(),
                pumped: true,
                open: Few::new(),
                ended: Few::new(),
                read: Few::new(),
                stale: Few::new(),
                deaths: 0,
                pins: ALL_PINS,
                homes: homes.map(|(_, index)| index).collect(),
                parked: 0,
            },
        })
    }

    /// Renames what is only a name; see [`Host::normalise`]. `names` are further ids, which change
    /// nothing but are renamed along. A report of a unit that is `gone` is taken off its way: that it is
    /// refused whenever it comes is checked in every state.
    pub fn normalise(&mut self, elapsed: Duration, gone: UnitId, names: &mut [UnitId]) {
        let env = &mut self.env;
        let mut ids: Few<UnitId, { 2 * ROWS + 2 }> = Few::new();
        ids.extend(env.stale.iter().map(|(_, unit)| *unit));
        ids.extend(env.read.iter().map(|(_, unit)| *unit));
        ids.extend(env.ended.iter().map(|(_, unit)| *unit));
        ids.extend(env.open.iter().map(|open| open.unit));
        if names.is_empty() {
            self.host.normalise(elapsed, &mut ids);
        } else {
            let mut all: Vec<UnitId> = ids.iter().chain(names.iter()).copied().collect();
            self.host.normalise(elapsed, &mut all);
            let (ours, theirs) = all.split_at(ids.len());
            ids.copy_from_slice(ours);
            names.copy_from_slice(theirs);
        }
        let stale = env.stale.iter_mut().map(|(_, unit)| unit);
        let read = env.read.iter_mut().map(|(_, unit)| unit);
        let ended = env.ended.iter_mut().map(|(_, unit)| unit);
        let open = env.open.iter_mut().map(|open| &mut open.unit);
        for (kept, renamed) in stale.chain(read).chain(ended).chain(open).zip(ids) {
            *kept = renamed;
        }
        env.stale.retain(|(_, unit)| *unit != gone);
        env.open.sort_unstable();
        env.read.sort_unstable();
    }

    /// Units from acceptance to the release of their receipts.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.env.open.len() + self.env.ended.len() + self.env.read.len()
    }

    /// Units that wait.
    #[must_use]
    pub fn waiting(&self, world: &World) -> u64 {
        self.ledgers(world).map(|ledger| ledger.waiting()).sum()
    }

    /// Whether some lane has a backlog.
    #[must_use]
    pub fn has_backlog(&self, world: &World) -> bool {
        self.ledgers(world).any(|ledger| ledger.backlog > 0)
    }

    fn ledgers(&self, world: &World) -> impl Iterator<Item = regatta_core::lane::LaneLedger> {
        world.table.ids().filter_map(|role| self.host.ledger(role))
    }

    /// When the backstop is due, whatever the ledger says of its refill.
    #[must_use]
    pub fn backstop(&self, size: &Size) -> Option<Instant> {
        let mut guard = self.env.guard.view(size);
        guard.ledger.refill_at = None;
        self.host.next_deadline(&guard)
    }

    /// The unit that a seat holds.
    #[must_use]
    pub fn held(&self, seat: usize) -> Option<(RoleId, UnitId)> {
        self.host.seats().get(seat).and_then(Seat::held)
    }

    /// Whether a unit is accepted and without an outcome.
    #[must_use]
    pub fn is_open(&self, unit: UnitId) -> bool {
        self.env.open.iter().any(|open| open.unit == unit)
    }

    /// The phase of a seat; `Dead` if there is no such seat.
    #[must_use]
    pub fn phase(&self, seat: usize) -> SlotPhase {
        let seat = self.host.seats().get(seat);
        seat.map_or(SlotPhase::Dead, Seat::phase)
    }

    /// The phase of every seat; `Dead` where there is none.
    pub(crate) fn phases(&self) -> [SlotPhase; SEATS] {
        let mut phases = [SlotPhase::Dead; SEATS];
        for (phase, seat) in phases.iter_mut().zip(self.host.seats()) {
            *phase = seat.phase();
        }
        phases
    }

    /// Where keys should be at home after a boundary: on their own seat if it lives and is kept, else
    /// on the kept seat with the fewest keys, the lowest first.
    pub(crate) fn rehome(&mut self, world: &World) {
        let keyed = world.seats.iter().zip(0_u8..);
        let keyed = keyed.filter(|((kind, ..), _)| *kind == SeatKind::KeyedPin);
        let seats: Few<(u8, u8), SEATS> = keyed.map(|((.., key), seat)| (*key, seat)).collect();
        let lives = |seat: u8| self.phase(seat.into()) != SlotPhase::Dead;
        let living = seats.iter().copied().filter(|(_, seat)| lives(*seat));
        let kept: Few<(u8, u8), SEATS> = living.clone().take(self.env.pins.into()).collect();
        let parked = living.skip(self.env.pins.into());
        let parked = parked.fold(0, |mask, (_, seat)| mask | 1 << seat);
        let mut homes: Few<u8, SEATS> = (0_u8..)
            .zip(&self.env.homes)
            .map(|(key, _)| kept.iter().find(|(own, _)| *own == key))
            .map(|own| own.map_or(NOWHERE, |(_, seat)| *seat))
            .collect();
        for at in 0..homes.len() {
            if homes[at] == NOWHERE {
                let load = |seat: u8| homes.iter().map(|home| usize::from(*home == seat)).sum();
                let home = kept.iter().min_by_key::<usize, _>(|(_, seat)| load(*seat));
                homes[at] = home.map_or(NOWHERE, |(_, seat)| *seat);
            }
        }
        (self.env.homes, self.env.parked) = (homes, parked);
    }

    /// The roles of a seat.
    pub(crate) fn serves(&self, seat: usize) -> RoleMask {
        let seat = self.host.seats().get(seat);
        seat.map_or(RoleMask::EMPTY, |seat| seat.spec().roles)
    }
}
