//! A host with a guard, a clock and a driver that behaves like a binding.

use super::check::check;
use super::layout::Layout;
use crate::guard::Guard;
use crate::host::{
    Accepted, Alarm, ClosePhase, EnqueueError, EpochError, Grant, Host, Input, InputError,
    Reaction, Resolved, StartError,
};
use crate::role::RoleId;
use crate::seat::{SeatId, SlotState};
use crate::time::{Duration, Instant};
use crate::unit::{Outcome, RunResult, UnitId, UnitRow};

/// The rig of the shipped table: eight lanes of eight rows.
pub(super) type FleetRig = Rig<64>;

/// Every call is followed by a check of everything that must hold.
#[derive(Clone)]
pub(super) struct Rig<const N: usize> {
    pub(super) host: Host<[UnitRow; N]>,
    pub(super) guard: Guard,
    pub(super) now: Instant,
}

impl<const N: usize> Rig<N> {
    pub(super) fn new(layout: &Layout) -> Self {
        let host = Host::new(&layout.config(), [UnitRow::FREE; N]).unwrap();
        let rig = Self {
            host,
            guard: Guard::open(64),
            now: Instant::from_nanos(1_000_000_000),
        };
        rig.checked()
    }

    fn checked(self) -> Self {
        self.check();
        self
    }

    pub(super) fn check(&self) {
        check(&self.host, &self.guard);
    }

    /// Hands in one input; an error must have changed nothing.
    pub(super) fn handle(&mut self, input: Input) -> Result<Reaction, InputError> {
        let before = self.host.clone();
        let result = self.host.handle(input, self.now, &self.guard);
        if result.is_err() {
            assert!(
                self.host == before,
                "{input:?} was refused and changed something"
            );
        } else {
            self.check();
        }
        result
    }

    pub(super) fn enqueue(&mut self, role: impl Into<RoleId>) -> Accepted {
        self.submit(role, 0).unwrap()
    }

    pub(super) fn enqueue_key(&mut self, role: impl Into<RoleId>, key: u8) -> Accepted {
        self.submit(role, key).unwrap()
    }

    pub(super) fn submit(
        &mut self,
        role: impl Into<RoleId>,
        key: u8,
    ) -> Result<Accepted, EnqueueError> {
        let role = role.into();
        match self.handle(Input::Enqueue { role, key }) {
            Ok(Reaction::Accepted(accepted)) => Ok(accepted),
            Err(InputError::Enqueue(error)) => Err(error),
            other => panic!("an enqueue was answered with {other:?}"),
        }
    }

    /// Polls one grant and does not start it.
    pub(super) fn grant(&mut self) -> Option<Grant> {
        let grant = self.host.poll_grant(self.now, &self.guard);
        self.check();
        grant
    }

    pub(super) fn start(&mut self, grant: Grant) -> Result<(), StartError> {
        let before = self.host.clone();
        let result = self
            .host
            .start(grant.seat, grant.unit, self.now, &self.guard);
        if !matches!(result, Ok(()) | Err(StartError::HandedBack(_))) {
            assert!(
                self.host == before,
                "{grant:?} was refused and changed something"
            );
        }
        self.check();
        result
    }

    /// Polls grants until there are none and starts each, as a binding does after an input.
    pub(super) fn pump(&mut self) -> Vec<Grant> {
        let mut started = Vec::new();
        while let Some(grant) = self.grant() {
            self.start(grant).unwrap();
            started.push(grant);
            assert!(started.len() <= N, "a pump that grants for ever");
        }
        started
    }

    /// The roles of the units that a pump would start, in order.
    pub(super) fn pumped_roles(&mut self) -> Vec<RoleId> {
        self.pump().iter().map(|grant| grant.role).collect()
    }

    /// The seat reports its unit, and the binding polls no grant yet.
    pub(super) fn finish(&mut self, seat: SeatId) -> Reaction {
        let (_, unit) = self.host.seats()[seat.index()].held().unwrap();
        self.report(seat, unit, RunResult::Done).unwrap()
    }

    pub(super) fn report(
        &mut self,
        seat: SeatId,
        unit: UnitId,
        result: RunResult,
    ) -> Result<Reaction, InputError> {
        self.handle(Input::SeatDone { seat, unit, result })
    }

    /// Everything that waits runs to its end, seat by seat.
    pub(super) fn run_dry(&mut self) -> usize {
        let mut ran = 0;
        loop {
            let started = self.pump();
            if started.is_empty() {
                return ran;
            }
            for grant in started {
                assert_eq!(self.finish(grant.seat), Reaction::Finished);
                ran += 1;
            }
        }
    }

    /// The clock runs to the deadline, if there is one, and the binding ticks and pumps.
    pub(super) fn sleep_to_deadline(&mut self) -> Option<Vec<Grant>> {
        self.now = self.host.next_deadline(&self.guard)?;
        self.handle(Input::BackstopTick).unwrap();
        Some(self.pump())
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    pub(super) fn cordon(&mut self, on: bool) {
        self.guard.posture.cordoned = on;
    }

    pub(super) fn edge(&mut self) {
        self.handle(Input::PostureEdge { seq: 1 }).unwrap();
    }

    pub(super) fn epoch(&mut self, seq: u64) -> Result<(), EpochError> {
        match self.handle(Input::EpochBoundary { seq }) {
            Ok(_) => Ok(()),
            Err(InputError::Epoch(error)) => Err(error),
            other => panic!("an epoch boundary was answered with {other:?}"),
        }
    }

    /// The thread of a seat is lost, and the posture owner hears of it.
    pub(super) fn kill(&mut self, seat: u8) {
        let seat = SeatId::new(seat);
        self.handle(Input::SeatDied { seat }).unwrap();
        self.guard.posture.cordoned = true;
        self.guard.posture.lane_death = true;
        self.edge();
    }

    pub(super) fn close(&mut self, phase: ClosePhase) {
        self.handle(Input::Close(phase)).unwrap();
    }

    pub(super) fn state(&self, seat: u8) -> SlotState {
        self.host.seats()[usize::from(seat)].state()
    }

    /// Reads and releases every unit that ended, in order.
    pub(super) fn collect(&mut self) -> Vec<Resolved> {
        let mut all = Vec::new();
        while let Some(resolved) = self.host.poll_resolved() {
            self.check();
            self.host.release(resolved.unit).unwrap();
            self.check();
            all.push(resolved);
        }
        all
    }

    /// The outcomes of everything that ended, in order.
    pub(super) fn outcomes(&mut self) -> Vec<Outcome> {
        self.collect()
            .iter()
            .map(|resolved| resolved.outcome)
            .collect()
    }

    pub(super) fn alarms(&mut self) -> Vec<Alarm> {
        let alarms = std::iter::from_fn(|| self.host.poll_alarm());
        // An alarm that never ends is to fail a comparison, not to fill the memory.
        alarms.take(20).collect()
    }

    /// How many units of a lane wait.
    pub(super) fn waiting(&self, role: impl Into<RoleId>) -> u64 {
        self.host.ledger(role.into()).unwrap().waiting()
    }
}
