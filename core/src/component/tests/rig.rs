//! A supervisor, driven by hand.

use crate::component::{
    Action, BackoffPolicy, ComponentId, ComponentSpec, ComponentState, DrainCounts, ErrorCode,
    Graph, Input, InputError, Plane, Reaction, Remaining, Report, RuntimeState, StopReason,
    Supervisor, SupervisorConfig,
};
use crate::time::{Duration, Instant};
use std::vec::Vec;

pub(super) const A: ComponentId = ComponentId::new(0);
pub(super) const B: ComponentId = ComponentId::new(1);
pub(super) const C: ComponentId = ComponentId::new(2);

/// A required component of the data plane.
pub(super) const fn spec(
    name: &'static str,
    depends: &'static [&'static str],
) -> ComponentSpec<'static> {
    ComponentSpec {
        name,
        depends,
        required: true,
        plane: Plane::Data,
        reconnects: false,
        policy: None,
    }
}

pub(super) const fn control(
    name: &'static str,
    depends: &'static [&'static str],
) -> ComponentSpec<'static> {
    ComponentSpec {
        plane: Plane::Control,
        ..spec(name, depends)
    }
}

pub(super) const fn reconnecting(
    name: &'static str,
    policy: BackoffPolicy,
) -> ComponentSpec<'static> {
    ComponentSpec {
        reconnects: true,
        policy: Some(policy),
        ..spec(name, &[])
    }
}

/// Time is in seconds.
pub(super) struct Rig {
    pub(super) supervisor: Supervisor<4>,
    pub(super) now: Instant,
}

pub(super) const fn at(s: u64) -> Instant {
    Instant::from_nanos(s * 1_000_000_000)
}

impl Rig {
    /// Twenty seconds to start and twenty to stop: the drain ends four before, the fence is at seventeen.
    pub(super) fn new(specs: &[ComponentSpec<'_>]) -> Self {
        let config = SupervisorConfig {
            start_budget: Duration::from_secs(20),
            stop_budget: Duration::from_secs(20),
            seed: 7,
        };
        Self {
            supervisor: Supervisor::new(Graph::new(specs, &[]).unwrap(), config),
            now: at(0),
        }
    }

    /// All of them up, at zero.
    pub(super) fn up(specs: &[ComponentSpec<'_>]) -> Self {
        let mut rig = Self::new(specs);
        rig.ok(Input::StartAll);
        while let Some(Action::Start { id, .. }) = rig.supervisor.poll_action(rig.now) {
            rig.ok(Input::Started {
                id,
                degraded: false,
            });
        }
        assert_eq!(rig.supervisor.runtime(), RuntimeState::Running);
        rig
    }

    pub(super) fn input(&mut self, input: Input) -> Result<Reaction, InputError> {
        self.supervisor.handle(input, self.now)
    }

    pub(super) fn ok(&mut self, input: Input) {
        assert_eq!(self.input(input), Ok(Reaction::Noted), "{input:?}");
    }

    pub(super) fn started(&mut self, id: ComponentId) {
        self.ok(Input::Started {
            id,
            degraded: false,
        });
    }

    pub(super) fn stop(&mut self) {
        self.ok(Input::Stop(StopReason::Signal(15)));
    }

    /// What is to be done, by letter and component: `S`tart, `R`econnect, `Q`uiesce, `D`rain, sto`P`, `F`ence.
    pub(super) fn poll(&mut self) -> Vec<(char, ComponentId)> {
        let now = self.now;
        let actions = core::iter::from_fn(|| self.supervisor.poll_action(now));
        actions.map(letter).collect()
    }

    pub(super) fn pass(&mut self, s: u64) -> Vec<(char, ComponentId)> {
        self.now = self.now + Duration::from_secs(s);
        self.poll()
    }

    pub(super) fn quiesced(&mut self, id: ComponentId) -> Vec<(char, ComponentId)> {
        self.ok(Input::Quiesced { id, result: Ok(()) });
        self.poll()
    }

    pub(super) fn drained(&mut self, id: ComponentId) -> Vec<(char, ComponentId)> {
        self.ok(Input::Drained {
            id,
            result: Ok(()),
            counts: DrainCounts::default(),
        });
        self.poll()
    }

    pub(super) fn stopped(&mut self, id: ComponentId) -> Vec<(char, ComponentId)> {
        self.ok(stopped(id));
        self.poll()
    }

    pub(super) fn state(&self, id: ComponentId) -> ComponentState {
        self.supervisor.state(id).unwrap()
    }

    pub(super) fn report(&self) -> Report<4> {
        self.supervisor.report().unwrap()
    }
}

pub(super) const fn stopped(id: ComponentId) -> Input {
    Input::Stopped {
        id,
        result: Ok(()),
        remaining: Remaining::NONE,
    }
}

pub(super) const ERROR: ErrorCode = ErrorCode("bind_refused");

fn letter(action: Action) -> (char, ComponentId) {
    match action {
        Action::Start { id, .. } => ('S', id),
        Action::Reconnect { id, .. } => ('R', id),
        Action::Quiesce { id, .. } => ('Q', id),
        Action::Drain { id, .. } => ('D', id),
        Action::Stop { id, .. } => ('P', id),
        Action::Fence { id } => ('F', id),
    }
}
