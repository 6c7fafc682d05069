//! What must hold of a state: what is tried on copies of it.

use crate::rule::{Rule, Violation, ensure};
use crate::state::{SmallHost, State};
use crate::step::Scene;
use crate::world::{DELTA, ROWS};
use regatta_core::guard::Guard;
use regatta_core::host::{Alarm, ClosePhase, Input, StartError};
use regatta_core::role::{RoleId, SeatKind};
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::time::Instant;
use regatta_core::unit::{RunResult, UnitId};

impl Scene<'_> {
    /// Checks everything that is a matter of a state alone.
    pub fn check(self, state: &State) -> Result<(), Violation> {
        self.inert(state)?;
        self.fenced(state)?;
        if state.env.pumped {
            self.nudges(state)?;
            self.drains(state)?;
        }
        Ok(())
    }

    /// Everything that the host must refuse.
    fn inert(self, state: &State) -> Result<(), Violation> {
        let guard = state.env.guard.view(self.size);
        let now = Instant::ORIGIN;
        let mut host = state.host.clone();
        let mut refused: Result<(), Violation> = Ok(());
        let mut try_input = |input: Input| {
            let answer = host.handle(input, now, &guard);
            if answer.is_ok() && refused.is_ok() {
                refused = Err(Violation::new(
                    Rule::Inert,
                    format!("{input:?}: {answer:?}"),
                ));
            }
        };
        for input in self.refusals(state) {
            try_input(input);
        }
        refused?;
        for (seat, unit) in self.pairs(state) {
            let at = seat.index();
            let holds = state.held(at).is_some_and(|(_, held)| held == unit);
            let phase = state.phase(at);
            if holds && phase == SlotPhase::Leased {
                continue;
            }
            let pinned = self.world.seats.get(at);
            let pinned = pinned.is_some_and(|(kind, ..)| *kind != SeatKind::Pooled);
            let resumed = holds && phase == SlotPhase::Running && pinned;
            let started = host.start(seat, unit, now, &guard);
            ensure(started.is_ok() == resumed, Rule::Inert, || {
                format!("{seat:?} is {phase:?}, and a start of {unit:?} says {started:?}")
            })?;
        }
        let env = &state.env;
        let open = env.open.iter().map(|open| open.unit);
        let ended = env.ended.iter().map(|(_, unit)| *unit);
        for unit in open.chain(ended).chain([self.gone]) {
            let released = host.release(unit);
            ensure(released.is_err(), Rule::Inert, || {
                format!("{unit:?} is not read: {released:?}")
            })?;
        }
        ensure(host == state.host, Rule::Inert, || {
            "what was refused left a trace".to_owned()
        })
    }

    /// Every seat with every unit that anyone remembers.
    fn pairs(self, state: &State) -> impl Iterator<Item = (SeatId, UnitId)> {
        let env = &state.env;
        let open = env.open.iter().map(|open| open.unit);
        let ended = env.ended.iter().chain(&env.read).map(|(_, unit)| *unit);
        let units = open.chain(ended).chain([self.gone]);
        let units: heapless::Vec<UnitId, { ROWS + 1 }> = units.collect();
        let seats = u8::try_from(self.world.seats.len() + 1).unwrap_or(u8::MAX);
        (0..seats).flat_map(move |seat| {
            let units = units.clone();
            units.into_iter().map(move |unit| (SeatId::new(seat), unit))
        })
    }

    fn refusals(self, state: &State) -> Vec<Input> {
        let host = &state.host;
        let seats = u8::try_from(self.world.seats.len()).unwrap_or(u8::MAX);
        let nobody = SeatId::new(seats);
        let mut inputs = vec![
            Input::Enqueue {
                role: RoleId::new(u8::try_from(self.world.lanes.len()).unwrap_or(u8::MAX)),
                key: 0,
            },
            Input::EpochBoundary { seq: 0 },
            Input::SeatDied { seat: nobody },
            Input::Resize { pins: 0 },
        ];
        for (role, lane) in self.world.table.ids().zip(self.world.lanes) {
            let ended = host.progress(role).is_some_and(|progress| {
                use regatta_core::lane::Progress::{Closed, Faulted};
                matches!(progress, Closed | Faulted)
            });
            let key = if ended || host.room(role) == 0 {
                0
            } else {
                lane.keys
            };
            inputs.push(Input::Enqueue { role, key });
        }
        for (seat, phase) in (0..seats).zip(state.phases()) {
            if phase == SlotPhase::Dead {
                let seat = SeatId::new(seat);
                inputs.push(Input::SeatDied { seat });
            }
        }
        for phase in [ClosePhase::Quiesce, ClosePhase::Fence] {
            if host.closing().is_some_and(|closing| phase <= closing) {
                inputs.push(Input::Close(phase));
            }
        }
        for (seat, unit) in self.pairs(state) {
            let phase = state.phase(seat.index());
            let runs = matches!(phase, SlotPhase::Running | SlotPhase::Draining);
            let holds = state
                .held(seat.index())
                .is_some_and(|(_, held)| held == unit);
            if !(runs && holds) {
                let result = RunResult::Done;
                inputs.push(Input::SeatDone { seat, unit, result });
            }
        }
        inputs
    }

    fn fenced(self, state: &State) -> Result<(), Violation> {
        if state.host.closing() != Some(ClosePhase::Fence) {
            return Ok(());
        }
        let gone = |phase| matches!(phase, SlotPhase::Retired | SlotPhase::Dead);
        let owed = &state.env.open;
        ensure(owed.is_empty(), Rule::Fenced, || {
            format!("{owed:?} have no outcome")
        })?;
        let guard = state.env.guard.view(self.size);
        let mut host = state.host.clone();
        for (seat, phase) in (0_u8..).zip(state.phases()) {
            let Some((_, unit)) = state.held(seat.into()) else {
                ensure(gone(phase), Rule::Fenced, || {
                    format!("seat {seat} is {phase:?}")
                })?;
                continue;
            };
            let seat = SeatId::new(seat);
            let late = host.seat_done(seat, unit, RunResult::Done, Instant::ORIGIN, &guard);
            ensure(late.is_ok(), Rule::Fenced, || format!("{late:?}"))?;
        }
        let left = host.seats().iter().find(|seat| !gone(seat.phase()));
        let due = host.next_deadline(&guard);
        ensure(left.is_none() && due.is_none(), Rule::Fenced, || {
            format!("all reported; {left:?} is left, and the deadline is {due:?}")
        })
    }

    /// Looks for the state in which units wait and nothing will ever come: the submitter's window is
    /// full, so it waits for receipts; no seat runs; no report is on its way; no tick is `due`.
    pub(crate) fn alive(self, state: &State, due: bool) -> Result<(), Violation> {
        let env = &state.env;
        let quiet = env.pumped
            && !due
            && env.guard.is_open()
            && env.ended.is_empty()
            && env.read.is_empty()
            && env.stale.is_empty()
            && env.open.len() == self.world.units(self.size);
        let rests = quiet && (0..self.world.seats.len()).all(|seat| state.held(seat).is_none());
        ensure(!rests, Rule::Alive, || {
            let open = &env.open;
            format!("{open:?} wait, the guard allows them, and no input will come")
        })
    }

    /// An edge is an edge whatever its number, and so is a tick before its time.
    fn nudges(self, state: &State) -> Result<(), Violation> {
        let guard = state.env.guard.view(self.size);
        let after = |input: Input| {
            let mut host = state.host.clone();
            let _ = host.handle(input, Instant::ORIGIN, &guard);
            host
        };
        let edge = after(Input::PostureEdge { seq: 0 });
        let other = after(Input::PostureEdge { seq: u32::MAX });
        ensure(edge == other, Rule::Nudges, || {
            "the number of an edge matters".to_owned()
        })?;
        ensure(edge == after(Input::BackstopTick), Rule::Nudges, || {
            "a tick before its time is no edge".to_owned()
        })
    }

    /// The guard opens for good, nobody says so, nobody submits, and the driver does its part.
    fn drains(self, state: &State) -> Result<(), Violation> {
        let guard = state.env.guard.opened().view(self.size);
        let mut fair = Fair {
            host: state.host.clone(),
            guard,
            now: Instant::ORIGIN,
        };
        // A unit is granted, started and reported, and no step brings it back.
        for _ in 0..=ROWS {
            fair.tick()?;
            if !fair.report()? {
                break;
            }
        }
        let waiting = |role| fair.host.ledger(role).map_or(0, |ledger| ledger.waiting());
        for role in self.world.table.ids() {
            let waiting = waiting(role);
            ensure(waiting == 0, Rule::Drains, || {
                let hold = fair.host.hold(role, &fair.guard);
                format!("{waiting} units of {role:?} wait for ever, held by {hold:?}")
            })?;
        }
        Ok(())
    }
}

/// A driver under a guard that stays as it is.
struct Fair {
    host: SmallHost,
    guard: Guard,
    now: Instant,
}

impl Fair {
    /// Sleeps to the deadline, if there is one, and ticks.
    fn tick(&mut self) -> Result<(), Violation> {
        let Some(due) = self.host.next_deadline(&self.guard) else {
            return Ok(());
        };
        ensure(due.since(self.now) <= DELTA, Rule::Drains, || {
            format!("the deadline is {due:?} at {:?}", self.now)
        })?;
        self.now = due;
        self.host.backstop_tick(self.now, &self.guard);
        self.pump()
    }

    fn pump(&mut self) -> Result<(), Violation> {
        let mut granted = 0;
        while let Some(grant) = self.host.poll_grant(self.now, &self.guard) {
            self.start(grant.seat, grant.unit)?;
            granted += 1;
            ensure(granted <= ROWS, Rule::Drains, || {
                "grants go on for ever".to_owned()
            })?;
        }
        while let Some(alarm) = self.host.poll_alarm() {
            let stuck = matches!(alarm, Alarm::Stuck { .. });
            ensure(!stuck, Rule::Silent, || format!("{alarm:?}"))?;
        }
        Ok(())
    }

    fn start(&mut self, seat: SeatId, unit: UnitId) -> Result<(), Violation> {
        let started = self.host.start(seat, unit, self.now, &self.guard);
        let cordoned = self.guard.posture.cordoned;
        let right = match started {
            Ok(()) => true,
            Err(StartError::HandedBack(_)) => cordoned,
            Err(_) => false,
        };
        ensure(right, Rule::Drains, || {
            format!("the guard is open, and the start of {unit:?} says {started:?}")
        })
    }

    /// Some seat reports; whether one did.
    fn report(&mut self) -> Result<bool, Violation> {
        let held = (0_u8..).zip(self.host.seats());
        let mut held =
            held.filter_map(|(at, seat)| Some((SeatId::new(at), seat.phase(), seat.held()?)));
        let Some((seat, phase, (_, unit))) = held.next() else {
            return Ok(false);
        };
        if phase == SlotPhase::Leased {
            self.start(seat, unit)?;
        }
        let runs = self
            .host
            .seats()
            .get(seat.index())
            .is_some_and(|s| s.held().is_some());
        if runs {
            let done = self
                .host
                .seat_done(seat, unit, RunResult::Done, self.now, &self.guard);
            ensure(done.is_ok(), Rule::Drains, || format!("{done:?}"))?;
        }
        self.pump()?;
        Ok(true)
    }
}
