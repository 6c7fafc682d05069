//! The drive: one fleet through submission, cordon, hand-back, death, resize, epoch boundary and close.
//!
//! After every step the host recounts itself and each lane's ledger is compared with what was
//! submitted. Nothing here knows whether an operating system is below.

use core::cell::Cell;
use core::fmt;
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::guard::{Guard, GuardCell, PostureView};
use regatta_core::host::{
    Accepted, Alarm, ClosePhase, Grant, Host, HostConfig, Input, Reaction, StartError,
};
use regatta_core::lane::{HoldReason, LaneConfig, LaneLedger, Progress};
use regatta_core::plan::{Binding, Bindings, FleetPlan, PlanInput, Profile};
use regatta_core::port::PosturePort;
use regatta_core::posture::{Posture, PostureEvent, PostureOwner, PosturePolicy, ThrottleSample};
use regatta_core::role::{FLEET_ROLES, RoleId, RoleTable, WorkerRole};
use regatta_core::seat::{Seat, SeatId, SlotPhase};
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{Outcome, RunResult, UnitRow};
use thiserror::Error;

/// The rows of the fleet: two for each of the eight roles.
pub(crate) const ROWS: usize = 16;

const TABLE: &RoleTable = &FLEET_ROLES;
const LANES: usize = FLEET_ROLES.roles.len();

/// A part of the drive; what failed is the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Eight cores give the pinned tier.
    #[error("1: the plan is not what eight cores give")]
    Plan = 1,
    /// A host over the caller's rows.
    #[error("2: no host over {ROWS} rows")]
    Boot,
    /// One unit of every role runs to its end.
    #[error("3: a unit of every role did not run to its end")]
    Submit,
    /// Throttled periods cordon, and a deferrable unit is held.
    #[error("4: the cordon did not hold what it must, or held what it must not")]
    Cordon,
    /// A grant that the cordon overtakes goes back.
    #[error("5: a lease that the guard took back was not handed back")]
    HandBack,
    /// The cordon lifts after its clean time, and what was held runs.
    #[error("6: the cordon did not lift, or what it held did not run")]
    Lift,
    /// A smaller quota: fewer permits, fewer pins at the boundary and not before.
    #[error("7: the resize did not change permits at once and pins at the boundary")]
    Resize,
    /// The thread of a keyed seat is lost.
    #[error("8: a lost seat did not end what it owed, typed")]
    Death,
    /// The keys of the dead seat find a home.
    #[error("9: the epoch boundary did not re-home the keys of the dead seat")]
    Epoch,
    /// Quiesce, drain, fence.
    #[error("10: closing left a unit without an outcome")]
    Drain,
    /// The ledgers, after any step.
    #[error("11: a ledger does not balance, or the audit found a fault")]
    Ledger,
}

/// What a whole drive counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    units: u64,
    ran: u64,
    died: u64,
    unrun: u64,
    closed: u64,
    edges: u32,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "regatta: {} units over {LANES} lanes in {ROWS} rows: {} ran, {} died with a seat, {} not run, {} closed; \
             {} posture edges; every ledger balances",
            self.units, self.ran, self.died, self.unrun, self.closed, self.edges
        )
    }
}

/// The posture's way to the guard, and the doorbell that it rings.
struct Port<'a> {
    cell: &'a GuardCell,
    rung: &'a Cell<u32>,
}

impl PosturePort for Port<'_> {
    fn store(&self, view: PostureView) {
        self.cell.set_posture(view);
    }

    fn edge(&self, seq: u32) {
        self.rung.set(seq);
    }
}

/// A fleet with its guard, its clock and its count of what was put in and what came out.
struct Fleet<'a> {
    host: Host<&'a mut [UnitRow]>,
    cell: &'a GuardCell,
    now: Instant,
    submitted: [u64; LANES],
    done: Done,
}

/// Drives a fleet over `rows`.
pub(crate) fn drive(rows: &mut [UnitRow; ROWS]) -> Result<Done, Stage> {
    let plan = plan()?;
    let cell = GuardCell::new(plan.permits);
    let rung = Cell::new(0);
    let port = Port {
        cell: &cell,
        rung: &rung,
    };
    let mut posture = PostureOwner::new(port, PosturePolicy::default(), 8);
    let mut fleet = Fleet::boot(&plan, rows, &cell)?;
    fleet.submit_every_role()?;
    fleet.cordon(&mut posture)?;
    fleet.hand_back(&mut posture)?;
    fleet.resize(&plan)?;
    fleet.death(&mut posture)?;
    fleet.drain()?;
    fleet.done.edges = rung.get();
    Ok(fleet.done)
}

fn plan() -> Result<FleetPlan, Stage> {
    let plan = FleetPlan::derive(&PlanInput {
        table: TABLE,
        quota: cores(8),
        profile: Profile::Auto,
        overrides: &Overrides::none(),
        bindings: Bindings { pinned: true },
    });
    let plan = plan.map_err(|_| Stage::Plan)?;
    let as_planned = plan.binding == Binding::Pinned
        && (plan.permits.total, plan.permits.keyed) == (5, 3)
        && plan.seats.len() == 12;
    check(as_planned, Stage::Plan)?;
    Ok(plan)
}

fn cores(cores: u16) -> Quota {
    Quota::exact(
        MilliCpu::from_cores(cores),
        BoundedBy::Cgroup2,
        Reason::LimitRead,
    )
}

fn check(holds: bool, stage: Stage) -> Result<(), Stage> {
    if holds { Ok(()) } else { Err(stage) }
}

impl<'a> Fleet<'a> {
    fn boot(
        plan: &FleetPlan,
        rows: &'a mut [UnitRow; ROWS],
        cell: &'a GuardCell,
    ) -> Result<Self, Stage> {
        let mut lanes = [LaneConfig {
            rows: 2,
            queue: 1,
            keys: 1,
            slots: None,
        }; LANES];
        for (role, lane) in TABLE.ids().zip(&mut lanes) {
            lane.keys = plan.keys(role);
            lane.slots = Some(plan.slots(role));
        }
        let config = HostConfig {
            table: TABLE,
            lanes: &lanes,
            seats: &plan.seats,
            windows: &[],
            backstop: Duration::from_millis(250),
            stuck_ticks: 8,
        };
        let host = Host::new(&config, rows.as_mut_slice()).map_err(|_| Stage::Boot)?;
        Ok(Self {
            host,
            cell,
            now: Instant::from_nanos(1_000_000_000),
            submitted: [0; LANES],
            done: Done {
                units: 0,
                ran: 0,
                died: 0,
                unrun: 0,
                closed: 0,
                edges: 0,
            },
        })
    }

    fn guard(&self) -> Guard {
        self.cell.read(self.now)
    }

    /// Hands in an input and recounts.
    fn handle(&mut self, input: Input, stage: Stage) -> Result<Reaction, Stage> {
        let guard = self.guard();
        let reaction = self.host.handle(input, self.now, &guard);
        let reaction = reaction.map_err(|_| stage)?;
        self.recount()?;
        Ok(reaction)
    }

    fn recount(&self) -> Result<(), Stage> {
        self.host.audit().map_err(|_| Stage::Ledger)?;
        for (role, submitted) in TABLE.ids().zip(self.submitted) {
            // The row of the unit that is coming in counts already.
            let ledger = self.host.ledger(role).unwrap_or_default();
            check(
                ledger.balanced() && ledger.submitted - submitted <= 1,
                Stage::Ledger,
            )?;
        }
        Ok(())
    }

    fn submit(
        &mut self,
        role: impl Into<RoleId>,
        key: u8,
        stage: Stage,
    ) -> Result<Accepted, Stage> {
        let role = role.into();
        let reaction = self.handle(Input::Enqueue { role, key }, stage)?;
        let Reaction::Accepted(accepted) = reaction else {
            return Err(stage);
        };
        if let Some(submitted) = self.submitted.get_mut(role.index()) {
            *submitted += 1;
        }
        self.done.units += 1;
        Ok(accepted)
    }

    fn ledger(&self, role: impl Into<RoleId>) -> LaneLedger {
        self.host.ledger(role.into()).unwrap_or_default()
    }

    fn grant(&mut self) -> Option<Grant> {
        let guard = self.guard();
        self.host.poll_grant(self.now, &guard)
    }

    fn start(&mut self, grant: Grant) -> Result<(), StartError> {
        let guard = self.guard();
        self.host.start(grant.seat, grant.unit, self.now, &guard)
    }

    fn finish(&mut self, grant: Grant, stage: Stage) -> Result<Reaction, Stage> {
        let input = Input::SeatDone {
            seat: grant.seat,
            unit: grant.unit,
            result: RunResult::Done,
        };
        self.handle(input, stage)
    }

    /// Runs everything that may run, one unit at a time; the last grant.
    fn run_dry(&mut self, stage: Stage) -> Result<Option<Grant>, Stage> {
        let mut last = None;
        while let Some(grant) = self.grant() {
            self.start(grant).map_err(|_| stage)?;
            let reaction = self.finish(grant, stage)?;
            check(reaction == Reaction::Finished, stage)?;
            last = Some(grant);
        }
        self.collect()?;
        Ok(last)
    }

    /// Reads every outcome and gives the rows back.
    fn collect(&mut self) -> Result<(), Stage> {
        while let Some(resolved) = self.host.poll_resolved() {
            match resolved.outcome {
                Outcome::Done | Outcome::Panicked => self.done.ran += 1,
                Outcome::LaneDeath => self.done.died += 1,
                Outcome::NotRun => self.done.unrun += 1,
                Outcome::Closed => self.done.closed += 1,
            }
            let released = self.host.release(resolved.unit);
            released.map_err(|_| Stage::Ledger)?;
            self.recount()?;
        }
        Ok(())
    }

    fn phase(&self, seat: SeatId) -> Option<SlotPhase> {
        self.host.seats().get(seat.index()).map(Seat::phase)
    }

    fn submit_every_role(&mut self) -> Result<(), Stage> {
        for role in TABLE.ids() {
            self.submit(role, 0, Stage::Submit)?;
        }
        self.run_dry(Stage::Submit)?;
        check(self.done.ran == LANES as u64, Stage::Submit)?;
        check(self.host.pins().count() == 2, Stage::Submit)
    }

    /// Two throttled periods within a second cordon.
    fn cordon(&mut self, posture: &mut PostureOwner<Port<'_>>) -> Result<(), Stage> {
        self.sample(posture, 0);
        self.now = self.now + Duration::from_millis(250);
        let outcome = self.sample(posture, 2);
        let entered = outcome.is_some_and(|event| event == PostureEvent::Throttled);
        check(entered && self.guard().posture.cordoned, Stage::Cordon)?;
        self.handle(Input::PostureEdge { seq: 1 }, Stage::Cordon)?;
        let held = self.submit(WorkerRole::Registrar, 0, Stage::Cordon)?;
        let as_deferrable = matches!(held, Accepted::Held(_, HoldReason::Cordoned));
        check(as_deferrable && self.grant().is_none(), Stage::Cordon)?;
        let progress = self.host.progress(WorkerRole::Registrar.id());
        check(progress == Some(Progress::Backed), Stage::Cordon)?;
        let deadline = self.host.next_deadline(&self.guard());
        check(deadline.is_some(), Stage::Cordon)?;
        // A critical role goes on meanwhile.
        self.submit(WorkerRole::Submitter, 0, Stage::Cordon)?;
        let ran = self.run_dry(Stage::Cordon)?;
        check(
            ran.is_some_and(|grant| grant.role == WorkerRole::Submitter.id()),
            Stage::Cordon,
        )
    }

    /// The cordon lifts, and comes back between a grant and its start.
    fn hand_back(&mut self, posture: &mut PostureOwner<Port<'_>>) -> Result<(), Stage> {
        self.lift(posture)?;
        let lease = self.grant().ok_or(Stage::Lift)?;
        check(lease.role == WorkerRole::Registrar.id(), Stage::Lift)?;
        self.now = self.now + Duration::from_millis(250);
        self.sample(posture, 4);
        let returned = self.start(lease);
        let handed_back = matches!(returned, Err(StartError::HandedBack(HoldReason::Cordoned)));
        check(handed_back, Stage::HandBack)?;
        self.recount()?;
        check(
            self.phase(lease.seat) == Some(SlotPhase::Idle),
            Stage::HandBack,
        )?;
        check(
            self.ledger(WorkerRole::Registrar).waiting() == 1,
            Stage::HandBack,
        )?;
        self.lift(posture)?;
        // No edge is delivered: the backstop finds the work.
        self.now = self.host.next_deadline(&self.guard()).ok_or(Stage::Lift)?;
        self.handle(Input::BackstopTick, Stage::Lift)?;
        let ran = self.run_dry(Stage::Lift)?;
        check(
            ran.is_some_and(|grant| grant.unit == lease.unit),
            Stage::Lift,
        )
    }

    /// Clean samples until the cordon ends, which takes the policy's ten seconds.
    fn lift(&mut self, posture: &mut PostureOwner<Port<'_>>) -> Result<(), Stage> {
        let throttled = posture.machine().counters().enters * 2;
        for _ in 0..60 {
            if posture.machine().posture() == Posture::Nominal {
                return check(!self.guard().posture.cordoned, Stage::Lift);
            }
            self.now = self.now + Duration::from_millis(250);
            self.sample(posture, throttled);
        }
        Err(Stage::Lift)
    }

    fn sample(
        &mut self,
        posture: &mut PostureOwner<Port<'_>>,
        nr_throttled: u64,
    ) -> Option<PostureEvent> {
        let outcome = posture.sample(ThrottleSample {
            at: self.now,
            nr_throttled: Some(nr_throttled),
            throttled: Some(Duration::ZERO),
        });
        outcome.transition.map(|transition| transition.event)
    }

    /// Eight cores become six: one permit less at once, four pins from the boundary on.
    fn resize(&mut self, plan: &FleetPlan) -> Result<(), Stage> {
        let key = 5;
        self.submit(WorkerRole::Solver, key, Stage::Resize)?;
        self.run_dry(Stage::Resize)?;
        let smaller = plan.permits_for(cores(6));
        check((smaller.total, smaller.keyed) == (4, 2), Stage::Resize)?;
        self.cell.set_permits(smaller, 1);
        self.handle(Input::Resize { pins: 4 }, Stage::Resize)?;
        let home = SeatId::new(key);
        check(self.phase(home) == Some(SlotPhase::Pinned), Stage::Resize)?;
        self.handle(Input::EpochBoundary { seq: 1 }, Stage::Resize)?;
        check(self.phase(home) == Some(SlotPhase::Idle), Stage::Resize)?;
        self.submit(WorkerRole::Solver, key, Stage::Resize)?;
        let ran = self.run_dry(Stage::Resize)?;
        check(
            ran.is_some_and(|grant| grant.key == key && grant.seat.index() < 4),
            Stage::Resize,
        )
    }

    /// A seat dies in its unit: the unit and its keys fail typed until the boundary, and the cordon is
    /// for good.
    fn death(&mut self, posture: &mut PostureOwner<Port<'_>>) -> Result<(), Stage> {
        let key = 1;
        self.submit(WorkerRole::Solver, key, Stage::Death)?;
        let lost = self.grant().ok_or(Stage::Death)?;
        self.start(lost).map_err(|_| Stage::Death)?;
        self.handle(Input::SeatDied { seat: lost.seat }, Stage::Death)?;
        posture.lane_death(self.now);
        self.handle(Input::PostureEdge { seq: 2 }, Stage::Death)?;
        let refused = self.submit(WorkerRole::Solver, key, Stage::Death)?;
        check(matches!(refused, Accepted::Dead(_)), Stage::Death)?;
        let late = self.finish(lost, Stage::Death);
        check(late == Err(Stage::Death), Stage::Death)?;
        self.collect()?;
        let faulted = self.host.progress(WorkerRole::Registrar.id());
        check(faulted == Some(Progress::Faulted), Stage::Death)?;
        check(self.done.died == 2 && self.alarm().is_none(), Stage::Death)?;

        self.handle(Input::EpochBoundary { seq: 2 }, Stage::Epoch)?;
        self.submit(WorkerRole::Solver, key, Stage::Epoch)?;
        let ran = self.run_dry(Stage::Epoch)?;
        check(
            ran.is_some_and(|grant| grant.key == key && grant.seat != lost.seat),
            Stage::Epoch,
        )
    }

    fn alarm(&mut self) -> Option<Alarm> {
        self.host.poll_alarm()
    }

    /// The backlog ends unrun, what is queued at quiesce may run, what waits or runs at the fence is closed,
    /// and a report after it is late.
    fn drain(&mut self) -> Result<(), Stage> {
        let stage = Stage::Drain;
        self.submit(WorkerRole::Resolve, 0, stage)?;
        let running = self.grant().ok_or(stage)?;
        self.start(running).map_err(|_| stage)?;
        self.submit(WorkerRole::Merge, 0, stage)?;
        self.submit(WorkerRole::Merge, 0, stage)?;
        self.submit(WorkerRole::Solver, 0, stage)?;
        self.handle(Input::Close(ClosePhase::Quiesce), stage)?;
        let role = WorkerRole::Merge.id();
        let guard = self.guard();
        let refused = self.host.enqueue(role, 0, self.now, &guard);
        check(refused.is_err(), stage)?;
        let queued = self.grant().ok_or(stage)?;
        check(queued.role == WorkerRole::Solver.id(), stage)?;
        self.start(queued).map_err(|_| stage)?;
        self.finish(queued, stage)?;
        self.handle(Input::Close(ClosePhase::Fence), stage)?;
        let late = self.finish(running, stage)?;
        check(late == Reaction::Late, stage)?;
        self.collect()?;
        check(self.host.is_idle() && self.alarm().is_none(), stage)?;
        let guard = self.guard();
        check(self.host.next_deadline(&guard).is_none(), stage)?;
        let at_rest = |phase| matches!(phase, SlotPhase::Retired | SlotPhase::Dead);
        let rests = self.host.seats().iter().all(|seat| at_rest(seat.phase()));
        let done = self.done;
        check(
            rests && done.units == done.ran + done.died + done.unrun + done.closed,
            stage,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_ends_with_every_unit_accounted_for() {
        let done = drive(&mut [UnitRow::FREE; ROWS]).unwrap();
        assert_eq!((done.died, done.unrun, done.closed), (2, 1, 2), "{done}");
        assert_eq!(done.units, done.ran + done.died + done.unrun + done.closed);
        // Entered, lifted, entered, lifted, and the dead lane.
        assert_eq!(done.edges, 5);
    }
}
