//! The states in which the host is asked: one lane and the seat that serves it, in everything that they
//! come to.

use regatta_core::guard::Guard;
use regatta_core::host::{ClosePhase, Grant, Host, HostConfig, Input};
use regatta_core::lane::LaneConfig;
use regatta_core::role::{FLEET_ROLES, RoleId, RoleMask, SeatKind, WorkerRole};
use regatta_core::seat::{Seat, SeatId, SeatSpec};
use regatta_core::time::{Duration, Instant};
use regatta_core::unit::{RunResult, UnitId, UnitRow};

/// Rows of each lane; a queue takes one less, so that a further unit is held.
const ROWS: u32 = 3;

/// A state, and what brought it about.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) title: String,
    pub(super) host: Host<Vec<UnitRow>>,
    pub(super) guard: Guard,
    pub(super) now: Instant,
    /// The lane.
    pub(super) role: RoleId,
    /// The seat that serves it.
    pub(super) seat: SeatId,
    /// The unit that the seat holds or held last.
    pub(super) unit: Option<UnitId>,
    /// A unit that ended long ago.
    pub(super) stale: Option<UnitId>,
}

/// What happens on the way to a state.
#[derive(Clone, Copy)]
enum Deed {
    Enqueue,
    Grant,
    Start,
    Finish,
    Cordon,
    NoPermits,
    Die,
    Quiesce,
    Fence,
}

use Deed::{Cordon, Die, Enqueue, Fence, Finish, Grant as Lease, NoPermits, Quiesce, Start};

/// Every scene: the titles' beginnings, and the deeds that lead there.
const POOLED: &[(&str, &[Deed])] = &[
    ("at rest", &[]),
    ("a unit queued", &[Enqueue]),
    ("a unit leased", &[Enqueue, Lease]),
    ("a unit running", &[Enqueue, Lease, Start]),
    ("a unit held by a cordon", &[Cordon, Enqueue]),
    (
        "a leased unit overtaken by a cordon",
        &[Enqueue, Lease, Cordon],
    ),
    (
        "a running unit overtaken by a cordon: the seat drains",
        &[Enqueue, Lease, Start, Cordon],
    ),
    ("the seat dead", &[Die]),
    ("closing, a unit running", &[Enqueue, Lease, Start, Quiesce]),
    (
        "fenced, a unit still running",
        &[Enqueue, Lease, Start, Fence],
    ),
];

const PINNED: &[(&str, &[Deed])] = &[
    ("at rest, no pin yet", &[]),
    ("a unit leased: the claim of a pin", &[Enqueue, Lease]),
    ("a unit running", &[Enqueue, Lease, Start]),
    ("pinned", &[Enqueue, Lease, Start, Finish]),
    (
        "pinned, a unit held for want of a permit",
        &[Enqueue, Lease, Start, Finish, NoPermits, Enqueue],
    ),
    ("the seat dead", &[Die]),
    (
        "fenced, a unit still running",
        &[Enqueue, Lease, Start, Fence],
    ),
];

const FIXED: &[(&str, &[Deed])] = &[("a unit running", &[Enqueue, Lease, Start])];

/// Every scene.
pub(super) fn all() -> Vec<Scene> {
    let lanes = [
        (
            "A pooled role that a cordon holds",
            WorkerRole::Registrar,
            2,
            POOLED,
        ),
        ("A keyed role", WorkerRole::Solver, 0, PINNED),
        (
            "The role that drains the results",
            WorkerRole::Merge,
            1,
            FIXED,
        ),
    ];
    let scenes = lanes.into_iter().flat_map(|(what, role, seat, scenes)| {
        scenes.iter().filter_map(move |(title, deeds)| {
            let mut scene = Scene::new(format!("{what}: {title}"), role.id(), SeatId::new(seat))?;
            deeds.iter().for_each(|deed| scene.does(*deed));
            Some(scene)
        })
    });
    scenes.collect()
}

impl Scene {
    /// One seat for the keyed role, one for the fixed, one for all pooled ones.
    fn new(title: String, role: RoleId, seat: SeatId) -> Option<Self> {
        let of = |kind| -> RoleMask {
            let rows = FLEET_ROLES.ids().zip(FLEET_ROLES.roles);
            rows.filter(|(_, spec)| spec.seat == kind)
                .map(|(role, _)| role)
                .collect()
        };
        let kinds = [SeatKind::KeyedPin, SeatKind::FixedPin, SeatKind::Pooled];
        let seats = kinds.map(|kind| SeatSpec {
            kind,
            roles: of(kind),
            key: 0,
        });
        let lane = LaneConfig {
            rows: ROWS,
            queue: ROWS - 1,
            keys: 1,
            slots: None,
        };
        let lanes = vec![lane; FLEET_ROLES.roles.len()];
        let config = HostConfig {
            table: &FLEET_ROLES,
            lanes: &lanes,
            seats: &seats,
            windows: &[],
            backstop: Duration::from_millis(250),
            stuck_ticks: 8,
        };
        let rows = vec![UnitRow::FREE; lanes.len() * ROWS as usize];
        let mut scene = Self {
            title,
            host: Host::new(&config, rows).ok()?,
            guard: Guard::open(8),
            now: Instant::from_nanos(1_000_000_000),
            role,
            seat,
            unit: None,
            stale: None,
        };
        // A unit of another lane, long gone.
        let mut before = Self {
            role: WorkerRole::Resolve.id(),
            seat: SeatId::new(2),
            ..scene.clone()
        };
        for deed in [Enqueue, Lease, Start, Finish] {
            before.does(deed);
        }
        scene.stale = before.unit;
        scene.host = before.host;
        Some(scene)
    }

    pub(super) fn give(&mut self, input: Input) {
        // The deeds are chosen so that each is taken.
        let _ = self.host.handle(input, self.now, &self.guard);
    }

    pub(super) fn grant(&mut self) -> Option<Grant> {
        self.host.poll_grant(self.now, &self.guard)
    }

    fn does(&mut self, deed: Deed) {
        let (role, seat) = (self.role, self.seat);
        match (deed, self.unit) {
            (Enqueue, _) => self.give(Input::Enqueue { role, key: 0 }),
            (Lease, _) => self.unit = self.grant().map(|grant| grant.unit),
            (Start, Some(unit)) => {
                let _ = self.host.start(seat, unit, self.now, &self.guard);
            }
            (Finish, Some(unit)) => {
                self.give(Input::SeatDone {
                    seat,
                    unit,
                    result: RunResult::Done,
                });
            }
            (Start | Finish, None) => {}
            (Cordon, _) => {
                self.guard.posture.cordoned = true;
                self.give(Input::PostureEdge { seq: 1 });
            }
            (NoPermits, _) => self.guard.permits.total = 0,
            (Die, _) => {
                self.give(Input::SeatDied { seat });
                self.guard.posture.cordoned = true;
                self.guard.posture.lane_death = true;
                self.give(Input::PostureEdge { seq: 1 });
            }
            (Quiesce, _) => self.give(Input::Close(ClosePhase::Quiesce)),
            (Fence, _) => self.give(Input::Close(ClosePhase::Fence)),
        }
        // Outcomes of the way there are no news.
        while let Some(resolved) = self.host.poll_resolved() {
            let _ = self.host.release(resolved.unit);
        }
        while self.host.poll_alarm().is_some() {}
    }

    /// The phase of the seat.
    pub(super) fn phase(&self) -> String {
        let seat = self.host.seats().get(self.seat.index());
        seat.map(Seat::phase)
            .map_or(String::new(), |phase| format!("{phase:?}"))
    }

    /// The progress of the lane, and why its first unit waits if one does.
    pub(super) fn lane(&self) -> String {
        let progress = self.host.progress(self.role);
        let progress = progress.map_or(String::new(), |progress| format!("{progress:?}"));
        match self.host.hold(self.role, &self.guard) {
            Some(reason) => format!("{progress}, waiting: {}", reason.label()),
            None if self
                .host
                .ledger(self.role)
                .is_some_and(|ledger| ledger.waiting() > 0) =>
            {
                format!("{progress}, waiting")
            }
            None => progress,
        }
    }

    /// Whether the host wants to be woken.
    pub(super) fn backstop(&self) -> &'static str {
        match self.host.next_deadline(&self.guard) {
            Some(_) => "armed",
            None => "none",
        }
    }

    /// The state in one sentence.
    pub(super) fn describe(&self) -> String {
        let cordon = if self.guard.posture.cordoned {
            "a cordon"
        } else {
            "no cordon"
        };
        let (phase, lane, backstop) = (self.phase(), self.lane(), self.backstop());
        format!("Seat {phase}; lane {lane}; {cordon}; backstop {backstop}.")
    }
}
