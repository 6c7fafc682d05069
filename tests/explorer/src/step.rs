//! One step: an action on a state, and everything that must hold of a step.

use crate::action::{Action, LATE};
use crate::oracle;
use crate::rule::{Coverage, Rule, Violation, ensure};
use crate::state::{Env, GuardState, NOWHERE, Open, SmallHost, State};
use crate::tables;
use crate::world::{CHORE, DELTA, Size, World};
use regatta_core::guard::Guard;
use regatta_core::host::{Alarm, ClosePhase, Reaction, StartError};
use regatta_core::role::{RoleId, SeatKind};
use regatta_core::seat::{SeatId, SlotPhase};
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{Outcome, RunResult, UnitId};

/// What a step led to.
#[derive(Clone, Debug)]
pub struct Stepped {
    /// The state, under its old names.
    pub state: State,
    /// By how much the clock is to be set back.
    pub elapsed: Duration,
    /// The unit that came in.
    pub gained: Option<UnitId>,
}

/// The place of a step: what is walked, and what is noted on the way.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The fleet.
    pub world: &'a World,
    /// What happens to it.
    pub size: &'a Size,
    /// An id that names no unit any more. They are all alike; see [`regatta_core::host::Host::normalise`].
    pub gone: UnitId,
}

struct Step<'a> {
    scene: Scene<'a>,
    action: Action,
    state: State,
    now: Instant,
    covered: &'a mut Coverage,
    /// The unit whose report the action is.
    reported: Option<UnitId>,
}

impl<'a> Scene<'a> {
    /// The scene of a world at a size.
    pub fn new(world: &'a World, size: &'a Size) -> Result<Self, Violation> {
        let mut host = State::initial(world)?.host;
        let (now, guard) = (Instant::ORIGIN, GuardState::default().view(size));
        let answer = host.enqueue(CHORE, 0, now, &guard);
        let mut gone = [answer.map_err(|error| refused(&error))?.unit()];
        let closed = host.close(ClosePhase::Fence, now, &guard);
        closed.map_err(|error| refused(&error))?;
        host.poll_resolved();
        let released = host.release(gone[0]);
        released.map_err(|error| refused(&error))?;
        host.normalise(Duration::ZERO, &mut gone);
        let [gone] = gone;
        Ok(Self { world, size, gone })
    }

    /// Does `action` in `state`.
    pub fn step(
        self,
        state: &State,
        action: Action,
        covered: &mut Coverage,
    ) -> Result<Stepped, Violation> {
        let mut step = Step {
            scene: self,
            action,
            state: state.clone(),
            now: Instant::ORIGIN,
            covered,
            reported: None,
        };
        let gained = step.act()?;
        oracle::books(self.world, &step.state)?;
        if !step.state.env.pumped && step.state.waiting(self.world) == 0 {
            // A poll would only look at the guard, as an edge does, and an edge may come at any time.
            step.state.env.pumped = true;
            oracle::polled(self.world, self.size, &step.state)?;
        }
        Ok(Stepped {
            elapsed: step.now.since(Instant::ORIGIN),
            state: step.state,
            gained,
        })
    }
}

impl Step<'_> {
    fn act(&mut self) -> Result<Option<UnitId>, Violation> {
        match self.action {
            Action::Enqueue { role, key } => return self.enqueue(RoleId::new(role), key).map(Some),
            Action::Poll => self.poll()?,
            Action::Start(seat) => self.start(seat)?,
            Action::Done { seat, twice } => self.done(seat, twice)?,
            Action::Stale(at) => self.stale(at.into())?,
            Action::Tick { late } => self.tick(late)?,
            Action::Edge => {
                self.input(SmallHost::posture_edge)?;
            }
            Action::Epoch => self.epoch()?,
            Action::Die { seat, reports } => self.die(seat, reports)?,
            Action::Resize(pins) => {
                let resized = self.input(|host, now, guard| host.resize(pins, now, guard))?;
                self.state.env.pins = pins;
                accepted(resized.is_ok(), "a resize")?;
            }
            Action::Close { fence } => {
                let phase = if fence {
                    ClosePhase::Fence
                } else {
                    ClosePhase::Quiesce
                };
                let closed = self.input(|host, now, guard| host.close(phase, now, guard))?;
                accepted(closed.is_ok(), "a close")?;
            }
            Action::Read => self.read()?,
            Action::Release(at) => self.release(at.into())?,
            Action::Cordon(on) => self.state.env.guard.cordoned = on,
            Action::LaneDeath => {
                // It cordons by itself, and for good.
                let guard = &mut self.state.env.guard;
                (guard.lane_death, guard.cordoned) = (true, false);
            }
            Action::Permits(level) => self.state.env.guard.permits = level,
            Action::Ledger(level) => self.state.env.guard.ledger = level,
        }
        Ok(None)
    }

    /// An input: grants have to be polled after it.
    fn input<T>(
        &mut self,
        call: impl FnOnce(&mut SmallHost, Instant, &Guard) -> T,
    ) -> Result<T, Violation> {
        self.state.env.pumped = false;
        self.call(call, |_, _| {})
    }

    /// A call of the host: what changed is compared with the tables, and what ended is noted, after
    /// `note` has noted what the call itself says.
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut SmallHost, Instant, &Guard) -> T,
        note: impl FnOnce(&mut Env, &T),
    ) -> Result<T, Violation> {
        let guard = self.state.env.guard.view(self.scene.size);
        let phases = self.state.phases();
        let roles = || self.scene.world.table.ids();
        let progress: heapless::Vec<_, 8> =
            roles().map(|role| self.state.host.progress(role)).collect();
        let answer = call(&mut self.state.host, self.now, &guard);
        note(&mut self.state.env, &answer);
        for (seat, (from, to)) in phases.into_iter().zip(self.state.phases()).enumerate() {
            let kind = self.scene.world.seats.get(seat).map(|(kind, ..)| *kind);
            let fenced = self.state.host.closing() == Some(ClosePhase::Fence);
            tables::seat(self.covered, kind, fenced, from, to)
                .map_err(|what| Violation::new(Rule::Slots, format!("seat {seat} {what}")))?;
        }
        for (role, from) in roles().zip(progress) {
            if let (Some(from), Some(to)) = (from, self.state.host.progress(role)) {
                tables::lane(self.covered, from, to)
                    .map_err(|what| Violation::new(Rule::Progress, format!("{role:?} {what}")))?;
            }
        }
        self.note_ended()?;
        self.alarms()?;
        Ok(answer)
    }

    /// Notes what has ended since the last call, without reading it.
    fn note_ended(&mut self) -> Result<(), Violation> {
        let world = self.scene.world;
        let ledgers = world.table.ids().filter_map(|r| self.state.host.ledger(r));
        let uncollected: u64 = ledgers.map(|ledger| ledger.uncollected).sum();
        let noted = self.state.env.ended.len() + self.state.env.read.len();
        if uncollected == noted as u64 {
            return Ok(());
        }
        let mut copy = self.state.host.clone();
        let mut known = self.state.env.ended.clone().into_iter();
        while let Some(resolved) = copy.poll_resolved() {
            let unit = resolved.unit;
            if let Some(expected) = known.next() {
                ensure(expected == (resolved.role, unit), Rule::Once, || {
                    format!("{unit:?} ends where {expected:?} had ended before")
                })?;
                continue;
            }
            let open = &mut self.state.env.open;
            let at = open.iter().position(|open| open.unit == unit);
            let Some(at) = at else {
                let what = format!(
                    "{unit:?} ended as {:?} and owed no outcome",
                    resolved.outcome
                );
                return Err(Violation::new(Rule::Once, what));
            };
            let open = open.remove(at);
            self.check_cause(open, resolved.role, resolved.outcome)?;
            let _ = self.state.env.ended.push((open.role, unit));
        }
        if self.scene.size.reads_at_once {
            while !self.state.env.ended.is_empty() {
                self.read()?;
            }
        }
        Ok(())
    }

    /// Whether what happened explains the outcome.
    fn check_cause(&self, open: Open, role: RoleId, outcome: Outcome) -> Result<(), Violation> {
        let explained = match outcome {
            Outcome::Done => self.reported == Some(open.unit),
            Outcome::Panicked => false,
            Outcome::LaneDeath => self.state.env.deaths > 0,
            Outcome::NotRun => matches!(self.action, Action::Close { .. }),
            Outcome::Closed => self.action == Action::Close { fence: true },
        };
        ensure(explained && role == open.role, Rule::Once, || {
            format!(
                "{open:?} ended as {outcome:?} of {role:?} in {:?}",
                self.action
            )
        })
    }

    fn alarms(&mut self) -> Result<(), Violation> {
        while let Some(alarm) = self.state.host.poll_alarm() {
            let founded = match alarm {
                Alarm::Stuck { .. } => false,
                Alarm::StrandedPipe { role } => (0..self.state.host.seats().len())
                    .filter(|seat| self.state.serves(*seat).contains(role))
                    .all(|seat| self.state.phase(seat) == SlotPhase::Dead),
            };
            ensure(founded, Rule::Silent, || format!("{alarm:?}"))?;
        }
        Ok(())
    }

    fn enqueue(&mut self, role: RoleId, key: u8) -> Result<UnitId, Violation> {
        self.state.env.pumped = false;
        let mut known = Vec::new();
        let env = &self.state.env;
        known.extend(env.open.iter().map(|open| open.unit));
        known.extend(env.ended.iter().chain(&env.read).map(|(_, unit)| *unit));
        known.extend(env.stale.iter().map(|(_, unit)| *unit));
        let answer = self.call(
            |host, now, guard| host.enqueue(role, key, now, guard),
            |env, answer| {
                if let Ok(accepted) = answer {
                    let unit = accepted.unit();
                    let _ = env.open.push(Open { unit, role, key });
                }
            },
        )?;
        let unit = answer.map_err(|error| refused(&error))?.unit();
        ensure(!known.contains(&unit), Rule::Once, || {
            format!("{unit:?} came in, and that id is known already")
        })?;
        Ok(unit)
    }

    fn poll(&mut self) -> Result<(), Violation> {
        let (world, size) = (self.scene.world, self.scene.size);
        let before = self.state.clone();
        let granted = self.call(SmallHost::poll_grant, |_, _| {})?;
        let Some(grant) = granted else {
            self.state.env.pumped = true;
            return oracle::polled(world, size, &self.state);
        };
        let seat = grant.seat.index();
        let pinned = before.phase(seat) == SlotPhase::Pinned;
        let phase = self.state.phase(seat);
        let right = oracle::may_run(world, &before, grant.role, grant.unit, seat)
            && self.state.held(seat) == Some((grant.role, grant.unit))
            && phase
                == if pinned {
                    SlotPhase::Running
                } else {
                    SlotPhase::Leased
                };
        let held = oracle::hold(world, size, &before, grant.role, 0);
        ensure(right && held.is_none(), Rule::Grants, || {
            format!(
                "{grant:?} on a seat that was {:?}, held by {held:?}",
                before.phase(seat)
            )
        })
    }

    fn start(&mut self, at: u8) -> Result<(), Violation> {
        let seat = SeatId::new(at);
        let Some((role, unit)) = self.state.held(seat.index()) else {
            return Ok(());
        };
        let (world, size) = (self.scene.world, self.scene.size);
        let held = oracle::hold(world, size, &self.state, role, 1);
        let started = self.call(
            |host, now, guard| host.start(seat, unit, now, guard),
            |_, _| {},
        )?;
        let reason = match started {
            Ok(()) => None,
            Err(StartError::HandedBack(reason)) => {
                // Its seat is idle again, and a unit of another lane may take it.
                self.state.env.pumped = false;
                Some(reason)
            }
            Err(error) => return Err(Violation::new(Rule::Grants, error.to_string())),
        };
        ensure(reason == held, Rule::Grants, || {
            format!("{seat:?} {unit:?} is held by {held:?}, and started with {started:?}")
        })?;
        if reason.is_some() && self.state.is_open(unit) {
            self.comes_first(role, unit, seat)?;
        }
        Ok(())
    }

    /// Whether a unit that was handed back is the next of its lane, or of its pin, to be granted.
    fn comes_first(&self, role: RoleId, unit: UnitId, seat: SeatId) -> Result<(), Violation> {
        let guard = self.state.env.guard.opened().view(self.scene.size);
        let keyed = self.scene.world.keyed(role);
        let mut host = self.state.host.clone();
        let mut granted = std::iter::from_fn(|| host.poll_grant(self.now, &guard));
        let next = granted.find(|grant| grant.role == role && (!keyed || grant.seat == seat));
        // Under a cordon for good nothing of the lane may be granted at all.
        let right = next.is_none_or(|grant| grant.unit == unit);
        ensure(right, Rule::Grants, || {
            format!("{unit:?} was handed back, and {next:?} comes before it")
        })
    }

    fn done(&mut self, at: u8, twice: bool) -> Result<(), Violation> {
        let seat = SeatId::new(at);
        let Some((_, unit)) = self.state.held(seat.index()) else {
            return Ok(());
        };
        let late = !self.state.is_open(unit);
        self.reported = Some(unit);
        let done = RunResult::Done;
        let taken = self.input(|host, now, guard| host.seat_done(seat, unit, done, now, guard))?;
        let fenced = self.state.host.closing() == Some(ClosePhase::Fence);
        let wanted = if late {
            Reaction::Late
        } else {
            Reaction::Finished
        };
        ensure(taken == Ok(wanted) && late == fenced, Rule::Once, || {
            format!("the report of {unit:?} by {seat:?} was answered with {taken:?}")
        })?;
        if twice {
            let _ = self.state.env.stale.push((seat, unit));
        }
        Ok(())
    }

    fn stale(&mut self, at: usize) -> Result<(), Violation> {
        let before = self.state.host.clone();
        let (seat, unit) = self.state.env.stale.remove(at);
        let done = RunResult::Done;
        let taken = self.call(
            |host, now, guard| host.seat_done(seat, unit, done, now, guard),
            |_, _| {},
        )?;
        ensure(
            taken.is_err() && before == self.state.host,
            Rule::Inert,
            || format!("{seat:?} reported {unit:?} again: {taken:?}"),
        )
    }

    fn tick(&mut self, late: bool) -> Result<(), Violation> {
        let Some(due) = self.state.backstop(self.scene.size) else {
            return Ok(());
        };
        self.now = if late { due + LATE } else { due };
        self.input(SmallHost::backstop_tick)?;
        let next = self.state.backstop(self.scene.size);
        let right = next.is_none_or(|next| next == self.now + DELTA);
        ensure(right, Rule::Armed, || {
            format!("a tick at {:?} set the next to {next:?}", self.now)
        })
    }

    fn epoch(&mut self) -> Result<(), Violation> {
        let world = self.scene.world;
        let open = oracle::in_flight(&self.state, |role| {
            let spec = world.table.get(role);
            spec.is_some_and(|spec| spec.seat == SeatKind::KeyedPin)
        });
        let (before, env) = (self.state.host.clone(), self.state.env.clone());
        let taken = self.input(|host, now, guard| host.epoch_boundary(1, now, guard))?;
        ensure(taken.is_ok() == (open == 0), Rule::Inert, || {
            format!("{open} walks are in flight: {taken:?}")
        })?;
        if taken.is_ok() {
            self.state.rehome(world);
        } else {
            ensure(before == self.state.host, Rule::Inert, || {
                format!("{taken:?}")
            })?;
            self.state.env = env;
        }
        Ok(())
    }

    fn die(&mut self, at: u8, reports: bool) -> Result<(), Violation> {
        let seat = SeatId::new(at);
        let held = self.state.held(seat.index());
        self.state.env.deaths += 1;
        for home in &mut self.state.env.homes {
            if *home == at {
                *home = NOWHERE;
            }
        }
        let taken = self.input(|host, now, guard| host.seat_died(seat, now, guard))?;
        accepted(taken.is_ok(), "a death")?;
        if let Some((_, unit)) = held.filter(|_| reports) {
            let _ = self.state.env.stale.push((seat, unit));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Violation> {
        let resolved = self.state.host.poll_resolved();
        let env = &mut self.state.env;
        let first = (!env.ended.is_empty()).then(|| env.ended.remove(0));
        let read = resolved.map(|resolved| (resolved.role, resolved.unit));
        ensure(read == first, Rule::Once, || {
            format!("{first:?} ended first, and {read:?} is read first")
        })?;
        if let Some(read) = read {
            let _ = env.read.push(read);
        }
        Ok(())
    }

    fn release(&mut self, at: usize) -> Result<(), Violation> {
        let (role, unit) = self.state.env.read.remove(at);
        let full = self.state.host.room(role) == 0;
        let released = self.state.host.release(unit);
        let right = released.is_ok_and(|r| (r.role, r.was_full) == (role, full));
        ensure(right, Rule::Once, || {
            format!("the release of {unit:?}: {released:?}")
        })?;
        let again = self.state.host.release(unit);
        ensure(again.is_err(), Rule::Inert, || {
            format!("{unit:?} was released twice: {again:?}")
        })
    }
}

fn refused(error: &dyn std::error::Error) -> Violation {
    Violation::new(Rule::Inert, error.to_string())
}

fn accepted(right: bool, what: &str) -> Result<(), Violation> {
    ensure(right, Rule::Inert, || format!("{what} was refused"))
}
