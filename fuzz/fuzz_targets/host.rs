//! The host under any script of inputs: it recounts after each, what it refuses changes nothing, and a
//! driver that does its part brings everything to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regatta_core::guard::{Guard, Permits};
use regatta_core::host::{ClosePhase, Grant, Host, HostConfig, Input};
use regatta_core::lane::LaneConfig;
use regatta_core::role::{FLEET_ROLES, RoleId, RoleMask, SeatKind, WorkerRole};
use regatta_core::seat::{SeatId, SeatSpec};
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{RunResult, UnitId, UnitRow};

const ROWS: usize = 32;
const DELTA: Duration = Duration::from_millis(250);

type SmallHost = Host<[UnitRow; ROWS], 6, 8>;

struct Driver {
    host: SmallHost,
    guard: Guard,
    now: Instant,
    /// Granted and not begun, or begun and not reported.
    granted: Vec<Grant>,
    begun: Vec<Grant>,
    /// Every unit there ever was, and those that were read and not released.
    units: Vec<UnitId>,
    read: Vec<UnitId>,
    epoch: u64,
}

fn boot() -> SmallHost {
    let pooled: RoleMask = FLEET_ROLES
        .ids()
        .filter(|role| {
            FLEET_ROLES
                .get(*role)
                .is_some_and(|spec| spec.seat == SeatKind::Pooled)
        })
        .collect();
    let seat = |kind, roles, key| SeatSpec { kind, roles, key };
    let only = |role: WorkerRole| RoleMask::EMPTY.with(role.id());
    let seats = [
        seat(SeatKind::KeyedPin, only(WorkerRole::Solver), 0),
        seat(SeatKind::KeyedPin, only(WorkerRole::Solver), 1),
        seat(SeatKind::FixedPin, only(WorkerRole::Merge), 0),
        seat(SeatKind::Pooled, pooled, 0),
        seat(SeatKind::Pooled, pooled, 0),
    ];
    let lanes: Vec<LaneConfig> = FLEET_ROLES
        .ids()
        .map(|role| LaneConfig {
            rows: 4,
            queue: 2,
            keys: if role == WorkerRole::Solver.id() {
                2
            } else {
                1
            },
            slots: (role == WorkerRole::SimDriver.id()).then_some(2),
        })
        .collect();
    let config = HostConfig {
        table: &FLEET_ROLES,
        lanes: &lanes,
        seats: &seats,
        windows: &[],
        backstop: DELTA,
        stuck_ticks: 8,
    };
    Host::sized(&config, [UnitRow::FREE; ROWS]).expect("a host that is set up right")
}

impl Driver {
    fn handle(&mut self, input: Input) {
        let before = self.host.clone();
        match self.host.handle(input, self.now, &self.guard) {
            Ok(regatta_core::host::Reaction::Accepted(accepted)) => {
                self.units.push(accepted.unit())
            }
            Ok(_) => {}
            Err(error) => assert!(self.host == before, "{error} changed something"),
        }
    }

    fn poll(&mut self) {
        while let Some(grant) = self.host.poll_grant(self.now, &self.guard) {
            self.granted.push(grant);
        }
    }

    fn step(&mut self, op: u8, arg: u8) {
        let pick = |n: usize| usize::from(arg) % n.max(1);
        match op % 16 {
            0..=2 => self.handle(Input::Enqueue {
                role: RoleId::new(arg & 15),
                key: arg >> 6,
            }),
            3 | 4 => self.poll(),
            5 | 6 if !self.granted.is_empty() => {
                let grant = self.granted.swap_remove(pick(self.granted.len()));
                if self
                    .host
                    .start(grant.seat, grant.unit, self.now, &self.guard)
                    .is_ok()
                {
                    self.begun.push(grant);
                }
            }
            7 | 8 if !self.begun.is_empty() => {
                let grant = self.begun.swap_remove(pick(self.begun.len()));
                let result = if arg & 1 == 0 {
                    RunResult::Done
                } else {
                    RunResult::Panicked
                };
                let (seat, unit) = (grant.seat, grant.unit);
                self.handle(Input::SeatDone { seat, unit, result });
            }
            9 if !self.units.is_empty() => {
                // Any seat with any unit there ever was.
                let unit = self.units[pick(self.units.len())];
                let seat = SeatId::new(arg % 7);
                let result = RunResult::Done;
                if !self
                    .begun
                    .iter()
                    .any(|begun| (begun.seat, begun.unit) == (seat, unit))
                {
                    self.handle(Input::SeatDone { seat, unit, result });
                }
            }
            10 => self.collect(arg),
            11 => {
                self.now = self.now + Duration::from_millis(u64::from(arg));
                self.handle(Input::BackstopTick);
            }
            12 => {
                self.guard.posture.cordoned = arg & 1 != 0;
                self.guard.posture.sim_floor = (arg & 2 != 0).then_some(u16::from(arg >> 6));
                self.guard.ledger.holds = (0..8)
                    .filter(|role| arg & 4 != 0 && arg >> (role % 8) & 1 != 0)
                    .map(RoleId::new)
                    .collect();
                if arg & 8 != 0 {
                    self.handle(Input::PostureEdge { seq: arg.into() });
                }
            }
            13 => {
                let total = u16::from(arg & 7);
                self.guard.permits = Permits {
                    total,
                    keyed: u16::from(arg >> 3 & 3),
                    below_floor: arg & 32 != 0,
                };
                self.handle(Input::Resize { pins: arg >> 6 });
            }
            14 => {
                self.epoch += u64::from(arg & 1);
                self.handle(Input::EpochBoundary { seq: self.epoch });
            }
            15 if arg < 12 => self.handle(Input::SeatDied {
                seat: SeatId::new(arg % 6),
            }),
            15 if arg > 250 => self.handle(Input::Close(if arg & 1 == 0 {
                ClosePhase::Quiesce
            } else {
                ClosePhase::Fence
            })),
            _ => {}
        }
        if let Err(error) = self.host.audit() {
            panic!("{error}");
        }
    }

    fn collect(&mut self, arg: u8) {
        while let Some(resolved) = self.host.poll_resolved() {
            self.read.push(resolved.unit);
        }
        if arg & 1 == 0 {
            for unit in self.read.drain(..) {
                assert!(self.host.release(unit).is_ok(), "{unit:?} was read");
            }
        }
        if let Some(unit) = self.units.get(usize::from(arg)) {
            if !self.read.contains(unit) {
                assert!(
                    self.host.release(*unit).is_err(),
                    "{unit:?} is not for release"
                );
            }
        }
    }

    /// The guard opens, nobody says so, and the driver does its part.
    fn end(&mut self) {
        self.guard = Guard::open(64);
        for _ in 0..4 * ROWS {
            for grant in std::mem::take(&mut self.granted) {
                if self
                    .host
                    .start(grant.seat, grant.unit, self.now, &self.guard)
                    .is_ok()
                {
                    self.begun.push(grant);
                }
            }
            for grant in std::mem::take(&mut self.begun) {
                let (seat, unit, result) = (grant.seat, grant.unit, RunResult::Done);
                self.handle(Input::SeatDone { seat, unit, result });
            }
            self.poll();
            if self.granted.is_empty() {
                let Some(due) = self.host.next_deadline(&self.guard) else {
                    break;
                };
                self.now = self.now.max(due);
                self.handle(Input::BackstopTick);
                self.poll();
            }
        }
        self.step(10, 0);
        // A driver that leaves grants unpolled for long is told so, and that is right.
        while self.host.poll_alarm().is_some() {}
        for role in FLEET_ROLES.ids() {
            let ledger = self.host.ledger(role).unwrap_or_default();
            assert!(
                ledger.waiting() == 0 && ledger.in_flight == 0 && ledger.uncollected == 0,
                "{role:?}: {ledger:?}"
            );
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let mut driver = Driver {
        host: boot(),
        guard: Guard::open(8),
        now: Instant::from_nanos(1),
        granted: Vec::new(),
        begun: Vec::new(),
        units: Vec::new(),
        read: Vec::new(),
        epoch: 0,
    };
    for pair in script.chunks_exact(2).take(400) {
        driver.step(pair[0], pair[1]);
    }
    driver.end();
});
