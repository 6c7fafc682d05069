//! Every run of two components that reconnect: losses, attempts that succeed, fail, hang and come late,
//! and a stop at any time.

use crate::shape::id;
use regatta_core::component::{
    Action, BackoffPolicy, CommitError, ComponentSpec, ComponentState, Generation, Graph, Input,
    Limit, Plane, Reaction, RuntimeState, StopReason, Supervisor, SupervisorConfig,
};
use regatta_core::time::{Duration, Instant};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

const MOST: u32 = 2;

const POLICY: BackoffPolicy = BackoffPolicy {
    initial: ns(2),
    factor: 2,
    cap: ns(4),
    jitter_percent: 0,
    limit: Limit::Attempts(MOST),
    attempt: ns(3),
    stable: ns(5),
};

/// What is known of the connection of a component.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Track {
    /// Attempts that were begun and have not answered, and until when they count.
    out: Vec<(Generation, Instant)>,
    connected: bool,
    since: Instant,
    /// Attempts since the last connection that lasted.
    series: u32,
    newest: Generation,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World<const N: usize> {
    supervisor: Supervisor<N>,
    tracks: [Track; N],
    now: Instant,
    stopped: bool,
    losses: u8,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Lose(usize),
    Commit(usize, usize),
    Fail(usize, usize),
    Wait,
    /// The next deadline comes, and whatever is next comes before anybody polls.
    Race,
    /// Long enough for a connection to count as stable.
    Rest,
    Stop,
}

impl<const N: usize> World<N> {
    fn new(losses: u8) -> Self {
        let spec = |name, depends| ComponentSpec {
            name,
            depends,
            required: true,
            plane: Plane::Data,
            reconnects: true,
            policy: Some(POLICY),
        };
        let specs = [spec("a", &[]), spec("b", &["a"])];
        let graph = Graph::new(&specs[..N], &[]).unwrap();
        let mut world = Self {
            supervisor: Supervisor::new(graph, SupervisorConfig::new(1)),
            tracks: core::array::from_fn(|_| Track::default()),
            now: Instant::ORIGIN,
            stopped: false,
            losses,
        };
        let _ = world.supervisor.handle(Input::StartAll, world.now).unwrap();
        for i in 0..N {
            world.settle();
            let up = Input::Started {
                id: id(i),
                degraded: false,
            };
            assert_eq!(world.supervisor.handle(up, world.now), Ok(Reaction::Noted));
            world.tracks[i].connected = true;
        }
        assert_eq!(world.supervisor.runtime(), RuntimeState::Running);
        world
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (i, track) in self.tracks.iter().enumerate() {
            if track.connected && self.losses > 0 && !self.stopped {
                steps.push(Step::Lose(i));
            }
            for at in 0..track.out.len() {
                steps.extend([Step::Commit(i, at), Step::Fail(i, at)]);
            }
        }
        if !self.stopped {
            if self.supervisor.next_deadline().is_some() {
                steps.extend([Step::Wait, Step::Race]);
            }
            let fresh = |track: &Track| self.now.since(track.since) < POLICY.stable;
            let all = self.tracks.iter().all(|track| track.connected);
            if self.losses > 0 && all && self.tracks.iter().any(fresh) {
                steps.push(Step::Rest);
            }
            steps.push(Step::Stop);
        }
        steps
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Lose(i) => {
                self.losses -= 1;
                let lost = self.supervisor.handle(Input::Lost { id: id(i) }, self.now);
                assert_eq!(lost, Ok(Reaction::Noted));
                let track = &mut self.tracks[i];
                track.connected = false;
                if self.now.since(track.since) >= POLICY.stable {
                    track.series = 0;
                }
            }
            Step::Commit(i, at) => {
                let current = self.is_current(i, at);
                let (generation, _) = self.tracks[i].out.remove(at);
                let installed = self.supervisor.commit(id(i), generation, self.now);
                assert_eq!(installed.is_ok(), current, "{installed:?} {self:?}");
                if self.stopped {
                    assert!(matches!(installed, Err(CommitError::NotUp(_))));
                }
                if current {
                    let track = &mut self.tracks[i];
                    assert!(!track.connected, "two connections");
                    (track.connected, track.since) = (true, self.now);
                }
            }
            Step::Fail(i, at) => {
                let current = self.is_current(i, at);
                let (generation, _) = self.tracks[i].out.remove(at);
                let failed = Input::AttemptFailed {
                    id: id(i),
                    generation,
                };
                let reaction = self.supervisor.handle(failed, self.now).unwrap();
                assert_eq!(reaction == Reaction::Noted, current);
            }
            Step::Wait => self.now = self.supervisor.next_deadline().unwrap(),
            Step::Race => {
                self.now = self.supervisor.next_deadline().unwrap();
                return;
            }
            Step::Rest => self.now = self.now + POLICY.stable,
            Step::Stop => {
                let input = Input::Stop(StopReason::Requested);
                let reaction = self.supervisor.handle(input, self.now);
                assert_eq!(reaction, Ok(Reaction::Noted));
                self.stopped = true;
            }
        }
        self.settle();
    }

    /// Only the newest attempt counts, before its time is over, and none once a stop has begun.
    fn is_current(&self, i: usize, at: usize) -> bool {
        let track = &self.tracks[i];
        let (generation, until) = track.out[at];
        generation == track.newest && self.now < until && !self.stopped
    }

    fn settle(&mut self) {
        while let Some(action) = self.supervisor.poll_action(self.now) {
            let Action::Reconnect {
                id,
                generation,
                until,
            } = action
            else {
                continue;
            };
            let track = &mut self.tracks[id.index()];
            assert!(!self.stopped, "an attempt after the stop");
            assert!(!track.connected && generation > track.newest);
            assert_eq!(until, self.now + POLICY.attempt);
            track.series += 1;
            assert!(track.series <= MOST, "{track:?}");
            track.newest = generation;
            track.out.push((generation, until));
        }
        for (i, track) in self.tracks.iter().enumerate() {
            let running = self.supervisor.state(id(i)) == Some(ComponentState::Running);
            assert!(self.stopped || running == track.connected);
            let failed = self.supervisor.state(id(i)) == Some(ComponentState::Failed);
            assert!(!failed || track.series == MOST, "gave up early: {track:?}");
        }
    }
}

fn explore<const N: usize>(losses: u8) -> usize {
    let hasher = RandomState::new();
    let mut seen = HashSet::new();
    let mut open = vec![World::<N>::new(losses)];
    while let Some(world) = open.pop() {
        for step in world.steps() {
            let mut next = world.clone();
            next.step(step);
            if seen.insert(hasher.hash_one(&next)) {
                open.push(next);
            }
        }
    }
    seen.len()
}

#[test]
fn nothing_stale_is_installed_on_any_path_of_one() {
    let states = explore::<1>(5);
    assert!(states > 2_000, "{states}");
}

#[test]
fn nothing_stale_is_installed_on_any_path_of_two() {
    let states = explore::<2>(3);
    assert!(states > 2_000, "{states}");
}
