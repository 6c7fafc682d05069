//! A supervisor and whoever drives it, with the oracle looking on.

use crate::oracle::{Oracle, Phase, START, STOP};
use crate::shape::{Shape, id};
use regatta_core::component::{
    Action, DrainCounts, ErrorCode, Input, Reaction, Remaining, RuntimeState, StopReason,
    Supervisor, SupervisorConfig,
};
use regatta_core::time::{Duration, Instant};

/// A step that whoever drives could take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A component answers what it was asked.
    Answer { i: usize, ok: bool },
    /// Time passes, to the next deadline or by so much.
    Wait(Option<u64>),
    /// Somebody wants it to stop.
    Stop,
    /// And wants that sooner.
    SecondSignal,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World<const N: usize> {
    pub(crate) supervisor: Supervisor<N>,
    pub(crate) oracle: Oracle<N>,
    now: Instant,
    /// Second signals and errors that may still come.
    signals: u8,
    errors: u8,
}

const ERROR: ErrorCode = ErrorCode("no");

impl<const N: usize> World<N> {
    /// All of it begins to start.
    pub(crate) fn new(shape: Shape<N>, signals: u8, errors: u8) -> Self {
        let config = SupervisorConfig {
            start_budget: Duration::from_nanos(START),
            stop_budget: Duration::from_nanos(STOP),
            seed: 0,
        };
        let now = Instant::from_nanos(7);
        let mut world = Self {
            supervisor: Supervisor::new(shape.graph().unwrap(), config),
            oracle: Oracle::new(shape, now),
            now,
            signals,
            errors,
        };
        world.input(Input::StartAll, Reaction::Noted);
        world.settle();
        world
    }

    fn input(&mut self, input: Input, expected: Reaction) {
        let reaction = self.supervisor.handle(input, self.now);
        assert_eq!(reaction, Ok(expected), "{input:?} {:?}", self.oracle);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.supervisor.runtime() == RuntimeState::Stopped
    }

    /// Every step that makes sense here.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.is_over() {
            return steps;
        }
        for i in 0..N {
            if self.oracle.tracks[i].asked.is_some() {
                steps.push(Step::Answer { i, ok: true });
                if self.errors > 0 {
                    steps.push(Step::Answer { i, ok: false });
                }
            }
        }
        if self.supervisor.next_deadline().is_some() {
            steps.push(Step::Wait(None));
        }
        if !self.oracle.stopping() {
            steps.push(Step::Stop);
        } else if self.signals > 0 {
            steps.push(Step::SecondSignal);
        }
        steps
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Answer { i, ok } => self.answer(i, ok),
            Step::Wait(span) => {
                let due = self.supervisor.next_deadline();
                let to = span.map_or(due, |span| Some(self.now + Duration::from_nanos(span)));
                self.now = to.unwrap_or(self.now).max(self.now);
                self.oracle.punctual &= due.is_none_or(|due| self.now <= due);
                self.input(Input::Tick, Reaction::Noted);
            }
            Step::Stop => {
                self.input(Input::Stop(StopReason::Requested), Reaction::Noted);
                self.oracle.stop_begins(self.now);
            }
            Step::SecondSignal => {
                self.signals -= 1;
                self.oracle.second_signal(self.now);
                self.input(Input::SecondSignal, Reaction::Noted);
            }
        }
        self.settle();
    }

    fn answer(&mut self, i: usize, ok: bool) {
        let (phase, _) = self.oracle.tracks[i].asked.unwrap();
        self.errors -= u8::from(!ok);
        let late = self.oracle.answered(i, ok);
        let result = if ok { Ok(()) } else { Err(ERROR) };
        let (id, remaining) = (id(i), Remaining::NONE);
        let counts = DrainCounts::default();
        let input = match phase {
            Phase::Start if ok => Input::Started {
                id,
                degraded: false,
            },
            Phase::Start => Input::StartFailed {
                id,
                error: ERROR,
                remaining,
            },
            Phase::Quiesce => Input::Quiesced { id, result },
            Phase::Drain => Input::Drained { id, result, counts },
            Phase::Stop => Input::Stopped {
                id,
                result,
                remaining,
            },
        };
        let expected = if late {
            Reaction::Late
        } else {
            Reaction::Noted
        };
        self.input(input, expected);
        // The answer is outstanding no more, whoever sends it again.
        let again = self.supervisor.clone();
        let twice = self.supervisor.handle(input, self.now);
        assert!(matches!(twice, Ok(Reaction::Late) | Err(_)), "{input:?}");
        assert_eq!(self.supervisor, again);
    }

    /// Does what is to be done, and sees that it was all that is due.
    fn settle(&mut self) {
        if self.supervisor.deadline().is_some() {
            self.oracle.stop_begins(self.now);
        }
        while let Some(action) = self.supervisor.poll_action(self.now) {
            let (id, phase, until) = match action {
                Action::Start { id, until } => (id, Phase::Start, until),
                Action::Quiesce { id, until } => (id, Phase::Quiesce, until),
                Action::Drain { id, until } => (id, Phase::Drain, until),
                Action::Stop { id, until } => (id, Phase::Stop, until),
                Action::Fence { id } => {
                    self.oracle.fenced(id.index(), self.now);
                    continue;
                }
                Action::Reconnect { .. } => panic!("nobody has a policy"),
            };
            self.oracle.asked(id.index(), phase, until, self.now);
        }
        self.oracle.nothing_due(self.now);
        let due = self.supervisor.next_deadline();
        assert!(
            due.is_none_or(|due| due > self.now),
            "a deadline that has passed"
        );
        let stopping = self.oracle.stopping();
        assert_eq!(self.is_over(), stopping && self.oracle.is_over());
        assert_eq!(
            due.is_some(),
            self.supervisor.runtime() == RuntimeState::Starting || (stopping && !self.is_over())
        );
        if self.is_over() {
            self.check_end();
        }
    }

    fn check_end(&self) {
        let report = self.supervisor.report().unwrap();
        self.oracle.check_report(&report);
        for i in 0..N {
            let Some((phase, _)) = self.oracle.tracks[i].asked else {
                continue;
            };
            let mut after = self.clone();
            let expected = match phase {
                Phase::Start => Reaction::CloseIt,
                _ => Reaction::Late,
            };
            let (id, result) = (id(i), Ok(()));
            let remaining = Remaining::NONE;
            let input = match phase {
                Phase::Start => Input::Started { id, degraded: true },
                Phase::Quiesce => Input::Quiesced { id, result },
                Phase::Drain => Input::Drained {
                    id,
                    result,
                    counts: DrainCounts::default(),
                },
                Phase::Stop => Input::Stopped {
                    id,
                    result,
                    remaining,
                },
            };
            after.input(input, expected);
            assert_eq!(after.supervisor.poll_action(after.now), None);
            assert_eq!(after.supervisor.report(), Some(report.clone()));
        }
    }
}
