//! What can happen: the host's inputs, the driver's steps, and the outside world's.

use crate::state::{Env, State};
use crate::world::{Size, World};
use regatta_core::host::ClosePhase;
use regatta_core::lane::Progress;
use regatta_core::role::RoleId;
use regatta_core::seat::{Seat, SlotPhase};
use regatta_core::time::Duration;

/// One step of a walk. Small, since one is kept for each state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A unit comes in.
    Enqueue {
        /// Its role.
        role: u8,
        /// Its key.
        key: u8,
    },
    /// The driver polls one grant.
    Poll,
    /// The driver begins a leased unit.
    Start(u8),
    /// A seat reports its unit; `twice` leaves a second report on its way.
    Done {
        /// The seat.
        seat: u8,
        /// Whether the report is doubled.
        twice: bool,
    },
    /// A report that is out of date arrives.
    Stale(u8),
    /// The driver ticks at the deadline, or long after it.
    Tick {
        /// Long after.
        late: bool,
    },
    /// A posture edge arrives: in time, late, doubled or out of nowhere.
    Edge,
    /// An epoch ends.
    Epoch,
    /// The thread of a seat is lost; `reports` leaves the report of what it ran on its way.
    Die {
        /// The seat.
        seat: u8,
        /// Whether its last report is still to come.
        reports: bool,
    },
    /// A resize arrives.
    Resize(u8),
    /// A step of closing.
    Close {
        /// The fence and not the quiesce.
        fence: bool,
    },
    /// One ended unit is read.
    Read,
    /// The receipt of a read unit is collected.
    Release(u8),
    /// The cordon sets in or lifts, and nobody says so.
    Cordon(bool),
    /// The posture's owner hears of a death, and nobody says so.
    LaneDeath,
    /// The permits change, and nobody says so.
    Permits(u8),
    /// The ledger changes, and nobody says so.
    Ledger(u8),
}

/// Which actions a walk takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alphabet {
    /// All.
    Whole,
    /// Of the host's inputs `Enqueue` and `SeatDone` only: what the fleet of the incident had.
    TwoInputs,
    /// The same and the tick, by a driver that arms the backstop only while a backlog is not empty.
    BacklogTimer,
}

impl Alphabet {
    /// Whether the driver would tick at the deadline of the host, if it has one.
    pub(crate) fn ticks(self, state: &State, world: &World) -> bool {
        match self {
            Self::Whole => true,
            Self::TwoInputs => false,
            Self::BacklogTimer => state.has_backlog(world),
        }
    }

    fn has(self, action: Action, state: &State, world: &World) -> bool {
        match self {
            Self::Whole => true,
            Self::TwoInputs | Self::BacklogTimer => match action {
                Action::Tick { .. } => self.ticks(state, world),
                Action::Edge
                | Action::Stale(_)
                | Action::Epoch
                | Action::Die { .. }
                | Action::Resize(_)
                | Action::Close { .. }
                | Action::LaneDeath => false,
                _ => true,
            },
        }
    }
}

/// Every action that can happen in `state`.
#[must_use]
pub fn actions(state: &State, world: &World, size: &Size, alphabet: Alphabet) -> Vec<Action> {
    let mut all = Vec::with_capacity(32);
    let env = &state.env;
    outside(env, size, &mut all);
    for (at, phase) in (0_u8..).zip(state.host.seats().iter().map(Seat::phase)) {
        if phase == SlotPhase::Leased {
            all.push(Action::Start(at));
        }
    }
    if !env.pumped {
        all.push(Action::Poll);
    }
    if env.pumped || size.batches {
        inputs(state, world, size, &mut all);
    }
    all.retain(|action| alphabet.has(*action, state, world));
    all
}

/// What needs no thread that runs the host.
fn outside(env: &Env, size: &Size, all: &mut Vec<Action>) {
    if !env.guard.lane_death {
        all.push(Action::Cordon(!env.guard.cordoned));
        if env.deaths > 0 {
            all.push(Action::LaneDeath);
        }
    }
    let levels = (0_u8..).zip(size.permits);
    let others = levels.filter(|(level, _)| *level != env.guard.permits);
    all.extend(others.map(|(level, _)| Action::Permits(level)));
    let levels = (0_u8..).zip(size.ledgers);
    let others = levels.filter(|(level, _)| *level != env.guard.ledger);
    all.extend(others.map(|(level, _)| Action::Ledger(level)));
}

fn inputs(state: &State, world: &World, size: &Size, all: &mut Vec<Action>) {
    let (host, env) = (&state.host, &state.env);
    if state.alive() < world.units(size) && host.closing().is_none() {
        for (role, lane) in (0_u8..).zip(world.lanes).filter(|(_, lane)| lane.rows > 0) {
            let id = RoleId::new(role);
            if host.room(id) > 0 && host.progress(id) != Some(Progress::Faulted) {
                all.extend((0..lane.keys).map(|key| Action::Enqueue { role, key }));
            }
        }
    }
    for (seat, phase) in (0_u8..).zip(host.seats().iter().map(Seat::phase)) {
        let runs = matches!(phase, SlotPhase::Running | SlotPhase::Draining);
        let may_double = env.stale.len() < size.stale;
        if runs {
            all.push(Action::Done { seat, twice: false });
            if may_double {
                all.push(Action::Done { seat, twice: true });
            }
        }
        if phase != SlotPhase::Dead && usize::from(env.deaths) < size.deaths {
            let reports = false;
            all.push(Action::Die { seat, reports });
            if runs && may_double {
                let reports = true;
                all.push(Action::Die { seat, reports });
            }
        }
    }
    all.extend((0_u8..).zip(&env.stale).map(|(at, _)| Action::Stale(at)));
    all.extend((0_u8..).zip(&env.read).map(|(at, _)| Action::Release(at)));
    if !env.ended.is_empty() {
        all.push(Action::Read);
    }
    // A driver sleeps to its deadline when it has polled.
    if env.pumped && state.backstop(size).is_some() {
        all.push(Action::Tick { late: false });
        all.push(Action::Tick { late: true });
    }
    all.push(Action::Edge);
    all.push(Action::Epoch);
    all.extend(world.pins(size).iter().map(|pins| Action::Resize(*pins)));
    match host.closing() {
        None => {
            all.push(Action::Close { fence: false });
            all.push(Action::Close { fence: true });
        }
        Some(ClosePhase::Quiesce) => all.push(Action::Close { fence: true }),
        Some(ClosePhase::Fence) => {}
    }
}

/// How long after the deadline a late tick comes.
pub(crate) const LATE: Duration = Duration::from_secs(3600);
