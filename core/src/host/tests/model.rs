//! A plain model of the host for a life without deaths, epochs and closing.
//!
//! Vectors, linear searches, counts taken anew each time. It shares no code with the host but the
//! types at its border, and names units by the order in which they came in.

use super::layout::{DELTA, Layout};
use crate::guard::Guard;
use crate::lane::HoldReason;
use crate::role::{CordonClass, GrantStep, RoleId, SeatKind};
use crate::time::Instant;
use crate::unit::Outcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) number: usize,
    pub(super) role: RoleId,
    pub(super) key: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seat {
    Idle,
    Leased(Unit),
    Running(Unit),
    Pinned,
    Draining(Unit),
}

/// What became of a unit that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Queued,
    Held(HoldReason),
    Full,
    NoSuchKey,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    Yes,
    HandedBack(HoldReason),
    NotLeased,
}

pub(super) struct Model {
    layout: Layout,
    pub(super) seats: Vec<Seat>,
    queue: Vec<Unit>,
    backlog: Vec<Unit>,
    /// Ended units in the order in which they ended, and whether they were read.
    pub(super) ended: Vec<(Unit, Outcome)>,
    read: usize,
    /// Read and not released.
    collected: Vec<Unit>,
    /// Which seat the last keyed unit of each role went to.
    last_pin: Vec<Option<usize>>,
    next_number: usize,
    pub(super) deadline: Option<Instant>,
}

impl Model {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            seats: vec![Seat::Idle; layout.seats.len()],
            last_pin: vec![None; layout.lanes.len()],
            layout: layout.clone(),
            queue: Vec::new(),
            backlog: Vec::new(),
            ended: Vec::new(),
            read: 0,
            collected: Vec::new(),
            next_number: 0,
            deadline: None,
        }
    }

    pub(super) fn enqueue(&mut self, role: RoleId, key: u8, now: Instant, guard: &Guard) -> Taken {
        let lane = self.layout.lanes[role.index()];
        if key >= lane.keys {
            return Taken::NoSuchKey;
        }
        let of_role = |unit: &&Unit| unit.role == role;
        let unread = self.ended[self.read..]
            .iter()
            .filter(|e| e.0.role == role)
            .count();
        let queued = self.queue.iter().filter(of_role).count();
        let backlog = self.backlog.iter().filter(of_role).count();
        let collected = self.collected.iter().filter(of_role).count();
        let in_use = queued + backlog + unread + collected + self.with_seat(role);
        if in_use >= lane.rows as usize {
            return Taken::Full;
        }
        let unit = Unit {
            number: self.next_number,
            role,
            key,
        };
        self.next_number += 1;
        let taken = if self.keyed(role) {
            Taken::Queued
        } else if let Some(reason) = self.role_hold(role, guard) {
            Taken::Held(reason)
        } else if backlog > 0 {
            Taken::Held(HoldReason::Behind)
        } else if queued >= lane.queue as usize {
            Taken::Held(HoldReason::QueueFull)
        } else {
            Taken::Queued
        };
        match taken {
            Taken::Queued => self.queue.push(unit),
            _ => self.backlog.push(unit),
        }
        self.after(now, guard);
        taken
    }

    pub(super) fn grant(&mut self, now: Instant, guard: &Guard) -> Option<(usize, Unit)> {
        let mut granted = None;
        for step in self.layout.table.order {
            let role = step.role();
            self.promote(role, guard);
            let Some((at, seat)) = self.choice(*step) else {
                continue;
            };
            if self.hold(role, guard).is_none() {
                let unit = self.queue.remove(at);
                self.seats[seat] = match self.seats[seat] {
                    Seat::Pinned => Seat::Running(unit),
                    _ => Seat::Leased(unit),
                };
                if self.keyed(role) {
                    self.last_pin[role.index()] = Some(seat);
                }
                granted = Some((seat, unit));
                break;
            }
        }
        self.after(now, guard);
        granted
    }

    /// Where in the queue the unit is that `step` would take, and the seat it would get.
    fn choice(&self, step: GrantStep) -> Option<(usize, usize)> {
        let role = step.role();
        let parked = if matches!(step, GrantStep::Pinned(_)) {
            Seat::Pinned
        } else {
            Seat::Idle
        };
        let count = self.seats.len();
        let from = self.last_pin[role.index()].map_or(0, |last| last + 1);
        let mut round = (0..count).map(|i| (from + i) % count);
        round.find_map(|seat| {
            let spec = self.layout.seats[seat];
            if self.seats[seat] != parked || !spec.roles.contains(role) {
                return None;
            }
            let fits = |u: &Unit| u.role == role && (!self.keyed(role) || u.key == spec.key);
            Some((self.queue.iter().position(fits)?, seat))
        })
    }

    fn promote(&mut self, role: RoleId, guard: &Guard) {
        let cap = self.layout.lanes[role.index()].queue as usize;
        while self.role_hold(role, guard).is_none()
            && self.queue.iter().filter(|u| u.role == role).count() < cap
            && let Some(at) = self.backlog.iter().position(|u| u.role == role)
        {
            let unit = self.backlog.remove(at);
            self.queue.push(unit);
        }
    }

    pub(super) fn start(&mut self, seat: usize, now: Instant, guard: &Guard) -> Begun {
        let Seat::Leased(unit) = self.seats[seat] else {
            return match self.seats[seat] {
                Seat::Running(_) if self.layout.seats[seat].kind != SeatKind::Pooled => Begun::Yes,
                _ => Begun::NotLeased,
            };
        };
        self.seats[seat] = Seat::Idle;
        if let Some(reason) = self.hold(unit.role, guard) {
            // To the head of its lane: before every other unit of the role.
            self.queue.insert(0, unit);
            self.after(now, guard);
            return Begun::HandedBack(reason);
        }
        self.seats[seat] = Seat::Running(unit);
        self.after(now, guard);
        Begun::Yes
    }

    /// Whether the report was taken.
    pub(super) fn done(&mut self, seat: usize, how: Outcome, now: Instant, guard: &Guard) -> bool {
        let (Seat::Running(unit) | Seat::Draining(unit)) = self.seats[seat] else {
            return false;
        };
        self.seats[seat] = match self.layout.seats[seat].kind {
            SeatKind::Pooled => Seat::Idle,
            SeatKind::KeyedPin | SeatKind::FixedPin => Seat::Pinned,
        };
        self.ended.push((unit, how));
        self.after(now, guard);
        true
    }

    pub(super) fn tick(&mut self, now: Instant, guard: &Guard) {
        if self.deadline.is_some_and(|due| now >= due) {
            self.deadline = Some(now + DELTA);
        }
        self.after(now, guard);
    }

    /// A look at the guard and nothing else.
    pub(super) fn edge(&mut self, now: Instant, guard: &Guard) {
        self.after(now, guard);
    }

    pub(super) fn read(&mut self) -> Option<(Unit, Outcome)> {
        let ended = *self.ended.get(self.read)?;
        self.read += 1;
        self.collected.push(ended.0);
        Some(ended)
    }

    pub(super) fn release(&mut self, number: usize) {
        self.collected.retain(|unit| unit.number != number);
    }

    /// What every call ends with: seats drain under a cordon, and the backstop is armed or not.
    fn after(&mut self, now: Instant, guard: &Guard) {
        for (seat, spec) in self.seats.iter_mut().zip(&self.layout.seats) {
            if let Seat::Running(unit) = *seat
                && guard.posture.cordoned
                && spec.kind == SeatKind::Pooled
                && self.layout.table.roles[unit.role.index()].cordon == CordonClass::Deferrable
            {
                *seat = Seat::Draining(unit);
            }
        }
        let mut armed = false;
        for unit in self.queue.iter().chain(&self.backlog) {
            let fits = (0..self.seats.len()).any(|seat| {
                let spec = self.layout.seats[seat];
                matches!(self.seats[seat], Seat::Idle | Seat::Pinned)
                    && spec.roles.contains(unit.role)
                    && (spec.kind != SeatKind::KeyedPin || spec.key == unit.key)
            });
            armed |= fits && self.hold(unit.role, guard) != Some(HoldReason::Slots);
        }
        self.deadline = match (armed, self.deadline) {
            (false, _) => None,
            (true, Some(due)) => Some(due),
            (true, None) => Some(now + DELTA),
        };
    }

    fn keyed(&self, role: RoleId) -> bool {
        let mut seats = self.layout.seats.iter();
        seats.any(|s| s.roles.contains(role) && s.kind == SeatKind::KeyedPin)
    }

    fn with_seat(&self, role: RoleId) -> usize {
        let held = self.seats.iter().filter_map(|seat| match seat {
            Seat::Leased(unit) | Seat::Running(unit) | Seat::Draining(unit) => Some(unit),
            Seat::Idle | Seat::Pinned => None,
        });
        held.filter(|unit| unit.role == role).count()
    }

    fn role_hold(&self, role: RoleId, guard: &Guard) -> Option<HoldReason> {
        let class = self.layout.table.roles[role.index()].cordon;
        if class == CordonClass::Deferrable && guard.posture.cordoned {
            Some(HoldReason::Cordoned)
        } else if class == CordonClass::Deferrable && guard.permits.below_floor {
            Some(HoldReason::BelowFloor)
        } else if class != CordonClass::Never && guard.ledger.holds.contains(role) {
            Some(HoldReason::Ledger)
        } else {
            None
        }
    }

    fn hold(&self, role: RoleId, guard: &Guard) -> Option<HoldReason> {
        if let Some(reason) = self.role_hold(role, guard) {
            return Some(reason);
        }
        let serving = |s: &&crate::seat::SeatSpec| s.roles.contains(role);
        let seats = self.layout.seats.iter().filter(serving).count();
        let slots = self.layout.lanes[role.index()]
            .slots
            .map_or(seats, usize::from);
        let running = self.with_seat(role);
        if running >= slots {
            return Some(HoldReason::Slots);
        }
        let class = self.layout.table.roles[role.index()].cordon;
        let half_up = slots / 2 + slots % 2;
        let floor = guard.posture.sim_floor.map_or(half_up, usize::from);
        if class == CordonClass::SimFloor && guard.posture.cordoned && running >= floor.max(1) {
            return Some(HoldReason::SimFloor);
        }
        let roles = || self.layout.table.ids();
        let all: usize = roles().map(|r| self.with_seat(r)).sum();
        if all >= usize::from(guard.permits.total) {
            return Some(HoldReason::Permits);
        }
        let keyed: usize = roles()
            .filter(|r| self.keyed(*r))
            .map(|r| self.with_seat(r))
            .sum();
        if self.keyed(role) && keyed >= usize::from(guard.permits.keyed) {
            return Some(HoldReason::KeyedPermits);
        }
        None
    }
}
