//! The host and the plain model in lockstep: same grants, same outcomes, same refusals.

use super::check::check;
use super::layout::Layout;
use super::model::{Begun, Model, Seat, Taken, Unit};
use crate::guard::Guard;
use crate::host::{Accepted, EnqueueError, Grant, Host, StartError};
use crate::role::{RoleId, RoleMask};
use crate::seat::{SeatId, SlotState};
use crate::time::{Duration, Instant};
use crate::unit::{Outcome, RunResult, UnitId, UnitRow};
use proptest::prelude::*;

/// One step of a script. The numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue(u8, u8),
    Grant,
    Start(u8),
    Done(u8, bool),
    Tick,
    Edge,
    Read,
    Release(u8),
    Cordon(bool),
    Floor(Option<u16>),
    Permits(u16, u16),
    BelowFloor(bool),
    Ledger(u8, bool),
    Pass(u64),
    Pump,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0_u8..7).prop_map(|(r, k)| Step::Enqueue(r, k)),
        4 => Just(Step::Grant),
        4 => any::<u8>().prop_map(Step::Start),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(s, p)| Step::Done(s, p)),
        2 => Just(Step::Tick),
        1 => Just(Step::Edge),
        2 => Just(Step::Read),
        2 => any::<u8>().prop_map(Step::Release),
        2 => any::<bool>().prop_map(Step::Cordon),
        1 => proptest::option::of(0_u16..4).prop_map(Step::Floor),
        1 => (0_u16..5, 0_u16..4).prop_map(|(t, k)| Step::Permits(t, k)),
        1 => Just(Step::Permits(64, 64)),
        1 => any::<bool>().prop_map(Step::BelowFloor),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(r, on)| Step::Ledger(r, on)),
        2 => (0_u64..600).prop_map(Step::Pass),
        3 => Just(Step::Pump),
    ]
}

struct Pair {
    host: Host<Vec<UnitRow>>,
    model: Model,
    guard: Guard,
    now: Instant,
    /// The host's name of each unit, by the model's number.
    names: Vec<UnitId>,
    collected: Vec<usize>,
}

impl Pair {
    fn new(layout: &Layout) -> Self {
        let rows: u32 = layout.lanes.iter().map(|lane| lane.rows).sum();
        Self {
            host: Host::new(&layout.config(), vec![UnitRow::FREE; rows as usize]).unwrap(),
            model: Model::new(layout),
            guard: Guard::open(64),
            now: Instant::ORIGIN,
            names: Vec::new(),
            collected: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let roles = u8::try_from(self.host.table().roles.len()).unwrap();
        let seats = u8::try_from(self.host.seats().len()).unwrap();
        let guard = &mut self.guard;
        match step {
            Step::Cordon(on) => guard.posture.cordoned = on,
            Step::Floor(floor) => guard.posture.sim_floor = floor,
            Step::Permits(total, keyed) => {
                (guard.permits.total, guard.permits.keyed) = (total, keyed);
            }
            Step::BelowFloor(on) => guard.permits.below_floor = on,
            Step::Ledger(role, on) => {
                let role = RoleId::new(role % roles);
                guard.ledger.holds = if on {
                    RoleMask::EMPTY.with(role)
                } else {
                    RoleMask::EMPTY
                };
            }
            Step::Pass(ms) => self.now = self.now + Duration::from_millis(ms),
            Step::Enqueue(role, key) => self.enqueue(RoleId::new(role % roles), key),
            Step::Grant => {
                self.grant();
            }
            Step::Start(seat) => self.start(seat % seats),
            Step::Done(seat, panicked) => self.done(seat % seats, panicked),
            Step::Tick => {
                self.host.backstop_tick(self.now, &self.guard);
                self.model.tick(self.now, &self.guard);
            }
            Step::Edge => self.look(),
            Step::Read => self.read(),
            Step::Release(which) => self.release(usize::from(which)),
            Step::Pump => {
                while let Some(grant) = self.grant() {
                    self.start(u8::try_from(grant.seat.index()).unwrap());
                }
            }
        }
        if !matches!(
            step,
            Step::Cordon(_)
                | Step::Floor(_)
                | Step::Permits(..)
                | Step::BelowFloor(_)
                | Step::Ledger(..)
                | Step::Pass(_)
        ) {
            self.compare(step);
        }
    }

    fn enqueue(&mut self, role: RoleId, key: u8) {
        let want = self.model.enqueue(role, key, self.now, &self.guard);
        let got = self.host.enqueue(role, key, self.now, &self.guard);
        let got = match got {
            Ok(Accepted::Queued(unit)) => {
                self.names.push(unit);
                Taken::Queued
            }
            Ok(Accepted::Held(unit, reason)) => {
                self.names.push(unit);
                Taken::Held(reason)
            }
            Err(EnqueueError::IntakeFull { .. }) => Taken::Full,
            Err(EnqueueError::UnknownKey { .. }) => Taken::NoSuchKey,
            other => panic!("{other:?}"),
        };
        assert_eq!(got, want);
        if matches!(want, Taken::Full | Taken::NoSuchKey) {
            self.look();
        }
    }

    fn grant(&mut self) -> Option<Grant> {
        let want = self.model.grant(self.now, &self.guard);
        let got = self.host.poll_grant(self.now, &self.guard);
        assert_eq!(got.is_some(), want.is_some(), "{got:?} and {want:?}");
        if let (Some(grant), Some((seat, unit))) = (got, want) {
            let host_says = (grant.seat.index(), grant.unit, grant.role, grant.key);
            assert_eq!(
                host_says,
                (seat, self.names[unit.number], unit.role, unit.key)
            );
            let spec = self.host.seats()[seat].spec();
            let keyed = spec.kind == crate::role::SeatKind::KeyedPin;
            assert_eq!(grant.pin, keyed.then_some(spec.key));
        }
        got
    }

    fn start(&mut self, seat: u8) {
        let at = usize::from(seat);
        let Some((_, unit)) = self.host.seats()[at].held() else {
            assert!(!matches!(self.model.seats[at], Seat::Leased(_)));
            self.look();
            return;
        };
        let leased = matches!(self.model.seats[at], Seat::Leased(_));
        let want = self.model.start(at, self.now, &self.guard);
        let got = match self
            .host
            .start(SeatId::new(seat), unit, self.now, &self.guard)
        {
            Ok(()) => Begun::Yes,
            Err(StartError::HandedBack(reason)) => Begun::HandedBack(reason),
            Err(StartError::Seat { .. }) => Begun::NotLeased,
            Err(StartError::UnknownSeat { .. }) => panic!("seat {seat} exists"),
        };
        assert_eq!(got, want);
        if !leased {
            self.look();
        }
    }

    fn done(&mut self, seat: u8, panicked: bool) {
        let at = usize::from(seat);
        let Some((_, unit)) = self.host.seats()[at].held() else {
            self.look();
            return;
        };
        let (result, how) = if panicked {
            (RunResult::Panicked, Outcome::Panicked)
        } else {
            (RunResult::Done, Outcome::Done)
        };
        let want = self.model.done(at, how, self.now, &self.guard);
        let got = self
            .host
            .seat_done(SeatId::new(seat), unit, result, self.now, &self.guard);
        assert_eq!(got.is_ok(), want, "{got:?}");
        if !want {
            self.look();
        }
    }

    /// Both look at the guard: after a call that may have been refused, the only one that surely has.
    fn look(&mut self) {
        self.host.posture_edge(self.now, &self.guard);
        self.model.edge(self.now, &self.guard);
    }

    fn read(&mut self) {
        let want = self.model.read();
        let got = self.host.poll_resolved();
        assert_eq!(
            got.map(|r| (r.unit, r.role, r.outcome)),
            want.map(|(unit, how)| (self.names[unit.number], unit.role, how))
        );
        self.collected.extend(want.map(|(unit, _)| unit.number));
        self.look();
    }

    fn release(&mut self, which: usize) {
        if !self.collected.is_empty() {
            let number = self.collected.swap_remove(which % self.collected.len());
            self.model.release(number);
            self.host.release(self.names[number]).unwrap();
        }
        self.look();
    }

    fn compare(&self, step: Step) {
        check(&self.host, &self.guard);
        assert_eq!(
            self.host.next_deadline(&self.guard),
            self.model.deadline,
            "{step:?}"
        );
        for (seat, want) in self.host.seats().iter().zip(&self.model.seats) {
            let held = |u: &Unit| (u.role, self.names[u.number]);
            let same = match (seat.state(), want) {
                (SlotState::Idle, Seat::Idle) | (SlotState::Pinned { .. }, Seat::Pinned) => true,
                (SlotState::Leased { role, unit }, Seat::Leased(u))
                | (SlotState::Running { role, unit }, Seat::Running(u))
                | (SlotState::Draining { role, unit }, Seat::Draining(u)) => {
                    (role, unit) == held(u)
                }
                _ => false,
            };
            assert!(same, "{:?} and {want:?} after {step:?}", seat.state());
        }
    }
}

fn lockstep(layout: &Layout, script: &[Step]) {
    let mut pair = Pair::new(layout);
    for step in script {
        pair.step(*step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_800))]

    #[test]
    fn the_pinned_layout_follows_the_model(script in proptest::collection::vec(step(), 0..250)) {
        lockstep(&Layout::pinned(), &script);
    }

    #[test]
    fn the_serial_layout_follows_the_model(script in proptest::collection::vec(step(), 0..250)) {
        lockstep(&Layout::serial(), &script);
    }

    #[test]
    fn an_odd_table_follows_the_model(script in proptest::collection::vec(step(), 0..250)) {
        lockstep(&Layout::odd(), &script);
    }
}
