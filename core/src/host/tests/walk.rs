//! Conservation on random walks: any input, legal or not, in any order, while the guard flips.
//!
//! Each step is a word of random bits that picks what happens, so a long cheap walk and a property
//! test that shrinks run the same code.

use super::check::check;
use super::layout::{DELTA, Layout};
use crate::guard::Guard;
use crate::host::{
    Accepted, ClosePhase, EnqueueError, Grant, Host, Input, InputError, Reaction, StartError,
};
use crate::role::{RoleId, RoleMask};
use crate::seat::SeatId;
use crate::time::{Duration, Instant};
use crate::unit::{Outcome, Place, RunResult, UnitId, UnitRow};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A reader of one random word.
pub(super) struct Bits(pub(super) u64);

impl Bits {
    fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        let pick = self.0 % n;
        self.0 /= n;
        usize::try_from(pick).unwrap()
    }

    fn byte(&mut self, n: usize) -> u8 {
        u8::try_from(self.below(n)).unwrap()
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }
}

pub(super) struct Walk {
    pub(super) host: Host<Vec<UnitRow>>,
    pub(super) guard: Guard,
    /// The guard of the last call that looked at it.
    seen: Guard,
    pub(super) now: Instant,
    pub(super) leased: Vec<Grant>,
    pub(super) running: Vec<Grant>,
    /// Accepted and without an outcome.
    open: BTreeMap<UnitId, (RoleId, u8)>,
    /// What each unit that reported said, until its outcome is read.
    reported: BTreeMap<UnitId, Outcome>,
    /// Waiting units in the order in which they must be granted, per role and key.
    order: BTreeMap<(RoleId, u8), VecDeque<UnitId>>,
    /// Ended and read, not released.
    read: Vec<UnitId>,
    stale: Vec<UnitId>,
    pub(super) deaths: u32,
    /// The kinds of refusal and of outcome that the walk has seen.
    met: BTreeSet<&'static str>,
}

impl Walk {
    pub(super) fn new(layout: &Layout) -> Self {
        let rows: u32 = layout.lanes.iter().map(|lane| lane.rows).sum();
        let rows = vec![UnitRow::FREE; rows as usize];
        Self {
            host: Host::new(&layout.config(), rows).unwrap(),
            guard: Guard::open(64),
            seen: Guard::open(64),
            now: Instant::ORIGIN,
            leased: Vec::new(),
            running: Vec::new(),
            open: BTreeMap::new(),
            reported: BTreeMap::new(),
            order: BTreeMap::new(),
            read: Vec::new(),
            stale: Vec::new(),
            deaths: 0,
            met: BTreeSet::new(),
        }
    }

    pub(super) fn step(&mut self, word: u64) {
        let mut bits = Bits(word);
        match bits.below(64) {
            0..=13 => self.enqueue(&mut bits),
            14..=25 => self.grant(),
            26..=33 => self.start_one(&mut bits),
            34..=42 => self.finish_one(&mut bits),
            43 => self.illegal_report(&mut bits),
            44 => self.illegal_start(&mut bits),
            45..=47 => self.offer(Input::BackstopTick),
            48 => self.offer(Input::PostureEdge { seq: 9 }),
            49 => {
                let seq = self.host.epoch() + bits.below(3) as u64;
                self.offer(Input::EpochBoundary { seq });
            }
            50 => self.rare(&mut bits),
            51 => {
                let pins = bits.byte(8);
                self.offer(Input::Resize { pins });
            }
            52..=55 => self.flip_guard(&mut bits),
            _ => self.collect(&mut bits),
        }
        if bits.flip() {
            let jump = [0, 10, 100, 250, 600, 1_000_000][bits.below(6)];
            self.now = self.now + Duration::from_millis(jump);
        }
    }

    fn handle(&mut self, input: Input) -> Result<Reaction, InputError> {
        let before = self.host.clone();
        let result = self.host.handle(input, self.now, &self.guard);
        if let Err(error) = result {
            assert!(self.host == before, "{input:?}: {error}");
            self.met.insert(kind(&error));
        } else {
            self.seen = self.guard;
        }
        check(&self.host, &self.seen);
        result
    }

    /// Hands in what may as well be refused.
    pub(super) fn offer(&mut self, input: Input) {
        let _ = self.handle(input);
    }

    fn enqueue(&mut self, bits: &mut Bits) {
        let roles = self.host.table().roles.len();
        // Now and then a role or a key that does not exist.
        let role = RoleId::new(if bits.below(40) == 0 {
            200
        } else {
            bits.byte(roles)
        });
        let key = bits.byte(7) % if bits.below(3) == 0 { 7 } else { 2 };
        match self.handle(Input::Enqueue { role, key }) {
            Ok(Reaction::Accepted(accepted)) => {
                let unit = accepted.unit();
                let fresh = self.open.insert(unit, (role, key)).is_none();
                assert!(
                    fresh && !self.stale.contains(&unit),
                    "{unit:?} was given twice"
                );
                if !matches!(accepted, Accepted::Dead(_)) {
                    self.order
                        .entry(self.line(role, key))
                        .or_default()
                        .push_back(unit);
                }
            }
            Ok(other) => panic!("an enqueue was answered with {other:?}"),
            Err(InputError::Enqueue(EnqueueError::IntakeFull { .. })) => {
                assert_eq!(self.host.room(role), 0);
            }
            Err(_) => {}
        }
    }

    /// The line in which a unit waits: its lane's, or its key's if the lane is keyed.
    fn line(&self, role: RoleId, key: u8) -> (RoleId, u8) {
        let keyed = self.host.lanes[role.index()].keyed;
        (role, if keyed { key } else { 0 })
    }

    pub(super) fn grant(&mut self) {
        let granted = self.host.poll_grant(self.now, &self.guard);
        self.seen = self.guard;
        check(&self.host, &self.seen);
        let Some(grant) = granted else {
            // Nothing is left that could have been granted.
            for role in self.host.table().ids() {
                let hold = self.host.hold(role, &self.guard);
                assert!(
                    hold.is_some() || self.waiting(role) == 0,
                    "{role:?} was passed over"
                );
            }
            return;
        };
        assert_eq!(self.open[&grant.unit], (grant.role, grant.key));
        let line = self.line(grant.role, grant.key);
        let first = self.order.get_mut(&line).unwrap().pop_front();
        assert_eq!(first, Some(grant.unit), "the first of its line comes first");
        let spec = self.host.seats()[grant.seat.index()].spec();
        assert!(spec.roles.contains(grant.role));
        self.leased.push(grant);
    }

    pub(super) fn waiting(&self, role: RoleId) -> u64 {
        self.host.ledger(role).unwrap().waiting()
    }

    pub(super) fn start_one(&mut self, bits: &mut Bits) {
        if self.leased.is_empty() {
            return;
        }
        let grant = self.leased.swap_remove(bits.below(self.leased.len()));
        let before = self.host.clone();
        let result = self
            .host
            .start(grant.seat, grant.unit, self.now, &self.guard);
        if before != self.host {
            self.seen = self.guard;
        }
        check(&self.host, &self.seen);
        match result {
            Ok(()) => self.running.push(grant),
            Err(StartError::HandedBack(_)) => {
                self.met.insert("handed back");
                if !self.has_ended(grant.unit) {
                    let line = self.line(grant.role, grant.key);
                    self.order.get_mut(&line).unwrap().push_front(grant.unit);
                }
            }
            // Its seat died, or a fence took the lease.
            Err(_) => {
                assert!(self.host == before);
                assert!(self.has_ended(grant.unit));
            }
        }
    }

    pub(super) fn finish_one(&mut self, bits: &mut Bits) {
        if self.running.is_empty() {
            return;
        }
        let grant = self.running.swap_remove(bits.below(self.running.len()));
        let (result, outcome) = if bits.below(4) == 0 {
            (RunResult::Panicked, Outcome::Panicked)
        } else {
            (RunResult::Done, Outcome::Done)
        };
        let ended = self.has_ended(grant.unit);
        let report = Input::SeatDone {
            seat: grant.seat,
            unit: grant.unit,
            result,
        };
        match self.handle(report) {
            Ok(Reaction::Finished) => {
                assert!(!ended);
                self.reported.insert(grant.unit, outcome);
            }
            Ok(Reaction::Late) => {
                self.met.insert("late");
                assert!(ended && self.host.closing() == Some(ClosePhase::Fence));
            }
            Ok(other) => panic!("a report was answered with {other:?}"),
            Err(_) => assert!(ended && self.deaths > 0),
        }
        if bits.flip() {
            assert!(self.handle(report).is_err(), "a report counts once");
        }
    }

    /// Whether the unit has an outcome, read or not.
    fn has_ended(&self, unit: UnitId) -> bool {
        !self.open.contains_key(&unit)
            || self.host.units.rows()[unit.index()].place == Place::Resolved
    }

    fn illegal_report(&mut self, bits: &mut Bits) {
        let seat = SeatId::new(bits.byte(70));
        let Some(unit) = self.some_unit(bits) else {
            return;
        };
        if self
            .running
            .iter()
            .any(|g| (g.seat, g.unit) == (seat, unit))
            || self.pinned_lease(seat, unit)
        {
            return;
        }
        let result = RunResult::Done;
        assert!(self.handle(Input::SeatDone { seat, unit, result }).is_err());
    }

    /// A pinned seat runs from the moment of its grant, so its report is legal before its start.
    fn pinned_lease(&self, seat: SeatId, unit: UnitId) -> bool {
        self.leased.iter().any(|g| (g.seat, g.unit) == (seat, unit))
    }

    fn illegal_start(&mut self, bits: &mut Bits) {
        let seat = SeatId::new(bits.byte(70));
        let Some(unit) = self.some_unit(bits) else {
            return;
        };
        if self
            .running
            .iter()
            .any(|g| (g.seat, g.unit) == (seat, unit))
            || self.pinned_lease(seat, unit)
        {
            return;
        }
        let before = self.host.clone();
        assert!(self.host.start(seat, unit, self.now, &self.guard).is_err());
        assert!(self.host == before);
    }

    fn some_unit(&self, bits: &mut Bits) -> Option<UnitId> {
        let known: Vec<UnitId> = self.open.keys().chain(&self.stale).copied().collect();
        (!known.is_empty()).then(|| known[bits.below(known.len())])
    }

    /// What ends much of a host's life: a death in an eighth of the draws, a close in fewer.
    fn rare(&mut self, bits: &mut Bits) {
        match bits.below(32) {
            0..=3 => {
                let seat = SeatId::new(bits.byte(14));
                self.deaths += u32::from(self.handle(Input::SeatDied { seat }).is_ok());
                self.forget_ended();
            }
            4 => {
                self.guard.posture.lane_death = true;
                self.guard.posture.cordoned = true;
                self.offer(Input::PostureEdge { seq: 0 });
                self.forget_ended();
            }
            5 => {
                let phase = [ClosePhase::Quiesce, ClosePhase::Fence][bits.below(2)];
                self.offer(Input::Close(phase));
                self.forget_ended();
            }
            _ => {}
        }
    }

    /// Drops from the lines what ended while it waited.
    fn forget_ended(&mut self) {
        let rows = self.host.units.rows();
        for line in self.order.values_mut() {
            line.retain(|unit| matches!(rows[unit.index()].place, Place::Queue | Place::Backlog));
        }
    }

    fn flip_guard(&mut self, bits: &mut Bits) {
        let guard = &mut self.guard;
        match bits.below(6) {
            0 | 1 => guard.posture.cordoned = guard.posture.lane_death || bits.flip(),
            2 => {
                guard.permits.total = [0, 1, 2, 4, 64][bits.below(5)];
                guard.permits.keyed = [0, 1, 2, 64][bits.below(4)];
            }
            3 => guard.permits.below_floor = bits.flip(),
            4 => {
                let role = RoleId::new(bits.byte(8));
                guard.ledger.holds = RoleMask::EMPTY.with(role);
                guard.ledger.refill_at = bits.flip().then(|| self.now + DELTA);
                if bits.flip() {
                    guard.ledger.holds = RoleMask::EMPTY;
                }
            }
            _ => guard.posture.sim_floor = [None, Some(0), Some(1), Some(3)][bits.below(4)],
        }
    }

    fn collect(&mut self, bits: &mut Bits) {
        if let Some(resolved) = self.host.poll_resolved() {
            let (role, _) = self.open.remove(&resolved.unit).expect("one outcome each");
            assert_eq!(resolved.role, role);
            self.met.insert(match resolved.outcome {
                Outcome::Done => "ran",
                Outcome::Panicked => "panicked",
                Outcome::LaneDeath => "lane death",
                Outcome::Closed => "closed unit",
                Outcome::NotRun => "not run",
            });
            if let Some(said) = self.reported.remove(&resolved.unit) {
                assert_eq!(resolved.outcome, said);
            } else {
                let closing = self.host.closing();
                match resolved.outcome {
                    Outcome::LaneDeath => assert!(self.deaths > 0 || self.guard.posture.lane_death),
                    Outcome::NotRun => assert!(closing.is_some()),
                    Outcome::Closed => assert_eq!(closing, Some(ClosePhase::Fence)),
                    ran => panic!("{ran:?} and no report"),
                }
            }
            self.read.push(resolved.unit);
            check(&self.host, &self.seen);
        }
        if !self.read.is_empty() && bits.flip() {
            let unit = self.read.swap_remove(bits.below(self.read.len()));
            let full = self.host.room(self.role_of(unit)) == 0;
            assert_eq!(self.host.release(unit).unwrap().was_full, full);
            assert!(self.host.release(unit).is_err(), "a row is released once");
            self.stale.push(unit);
            check(&self.host, &self.seen);
        }
        if let Some(unit) = self.some_unit(bits) {
            assert!(
                self.host.release(unit).is_err(),
                "{unit:?} is not collected"
            );
        }
    }

    fn role_of(&self, unit: UnitId) -> RoleId {
        self.host.units.rows()[unit.index()].role
    }

    /// Closes the host, lets every seat report, and finds nothing owed.
    pub(super) fn wind_up(mut self) -> BTreeSet<&'static str> {
        self.offer(Input::Close(ClosePhase::Fence));
        while !self.running.is_empty() || !self.leased.is_empty() {
            self.start_one(&mut Bits(0));
            self.finish_one(&mut Bits(1));
        }
        while !self.open.is_empty() || !self.read.is_empty() {
            let owed = 2 * self.open.len() + self.read.len();
            self.collect(&mut Bits(u64::MAX));
            let left = 2 * self.open.len() + self.read.len();
            assert!(left < owed, "{:?} never end", self.open);
        }
        assert!(self.host.is_idle() && self.host.next_deadline(&self.guard).is_none());
        assert!(
            self.host
                .units
                .rows()
                .iter()
                .all(|row| row.place == Place::Free)
        );
        self.met
    }
}

fn kind(error: &InputError) -> &'static str {
    match error {
        InputError::Enqueue(EnqueueError::UnknownRole { .. }) => "role",
        InputError::Enqueue(EnqueueError::UnknownKey { .. }) => "key",
        InputError::Enqueue(EnqueueError::IntakeFull { .. }) => "full",
        InputError::Enqueue(EnqueueError::Closed { .. }) => "closed",
        InputError::Enqueue(EnqueueError::Faulted { .. }) => "faulted",
        InputError::SeatDone(_) => "done",
        InputError::Epoch(_) => "epoch",
        InputError::SeatDied(_) => "died",
        InputError::Resize(_) => "resize",
        InputError::Close(_) => "close",
    }
}

pub(super) fn layouts() -> [Layout; 3] {
    [Layout::pinned(), Layout::serial(), Layout::odd()]
}

/// `SplitMix64`, for walks that need no shrinking.
pub(super) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[test]
fn a_long_walk_conserves_every_unit() {
    let mut met = BTreeSet::new();
    let mut seed = 0x5EA7;
    for life in 0..120 {
        let mut walk = Walk::new(&layouts()[life % 3]);
        for _ in 0..2_000 {
            walk.step(random(&mut seed));
        }
        met.extend(walk.wind_up());
    }
    assert_eq!(met.len(), 10 + 5 + 2, "the walk met {met:?}");
}

proptest! {
    #[test]
    fn a_random_walk_conserves_every_unit(
        layout in 0_usize..3,
        words in proptest::collection::vec(any::<u64>(), 0..300),
    ) {
        let mut walk = Walk::new(&layouts()[layout]);
        for word in words {
            walk.step(word);
        }
        walk.wind_up();
    }
}
