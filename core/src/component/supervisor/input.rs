//! What happened: one input at a time.

use super::super::report::{PhaseResult, StartResult};
use super::{
    ComponentEvent as Event, ComponentId, ComponentState as State, InputError, Reaction, Reconnect,
    Row, RuntimeEvent, RuntimeState, Supervisor,
};
use super::{DrainCounts, ErrorCode, Generation, Input, Remaining, StopReason};
use crate::time::Instant;

impl<const N: usize> Supervisor<N> {
    /// Takes one input. An error leaves everything as it was, but for limits that had passed by `now`.
    pub fn handle(&mut self, input: Input, now: Instant) -> Result<Reaction, InputError> {
        self.expire(now);
        match input {
            Input::StartAll => self.start_all(now),
            Input::Started { id, degraded } => self.started(id, degraded, now),
            Input::StartFailed {
                id,
                error,
                remaining,
            } => self.start_failed(id, error, remaining, now),
            Input::Stop(reason) => Ok(self.request_stop(reason, now)),
            Input::SecondSignal => Ok(self.second_signal(now)),
            Input::Quiesced { id, result } => self.answered(id, Event::Quiesced, |row| {
                row.report.quiesce = result.into();
            }),
            Input::Drained { id, result, counts } => self.drained(id, result, counts),
            Input::Stopped {
                id,
                result,
                remaining,
            } => self.stopped(id, result, remaining),
            Input::Fenced { id, remaining } => self.fenced(id, remaining),
            Input::Lost { id } => self.lost(id, now),
            Input::Recovered { id } => self.recovered(id),
            Input::AttemptFailed { id, generation } => self.attempt_failed(id, generation, now),
            Input::Tick => Ok(Reaction::Noted),
        }
    }

    fn start_all(&mut self, now: Instant) -> Result<Reaction, InputError> {
        let state = self.runtime;
        let started = state.on(RuntimeEvent::Start);
        self.runtime = started.map_err(|_| InputError::AlreadyStarted { state })?;
        self.start_by = now + self.config.start_budget;
        self.note_all_up();
        Ok(Reaction::Noted)
    }

    fn note_all_up(&mut self) {
        let up = self.rows.iter().all(|row| Self::came_up(row.state));
        if up && self.runtime == RuntimeState::Starting {
            self.runtime_surely(RuntimeEvent::AllUp);
        }
    }

    fn started(
        &mut self,
        id: ComponentId,
        degraded: bool,
        now: Instant,
    ) -> Result<Reaction, InputError> {
        if self.runtime == RuntimeState::Stopped && self.state(id) == Some(State::Overdue) {
            return Ok(Reaction::CloseIt);
        }
        self.step(id, Event::Up)?;
        let policy = self.graph.0.policy(id);
        // Another stream for each component: the draws mix whatever the seeds have in common.
        let seed = self.config.seed ^ (id.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(row) = self.rows.get_mut(id.index()) {
            if row.state == State::Running {
                row.report.start = StartResult::Up;
                row.reconnect = policy.map(|policy| Reconnect::new(policy, seed, now));
            } else {
                row.report.quiesce = PhaseResult::Skipped;
                row.report.drain = PhaseResult::Skipped;
                row.report.stop = PhaseResult::NotRun;
            }
        }
        if self.runtime.is_up() {
            if degraded {
                let _ = self.lost(id, now)?;
            }
            self.note_all_up();
        } else {
            self.close(id);
        }
        Ok(Reaction::Noted)
    }

    fn start_failed(
        &mut self,
        id: ComponentId,
        error: ErrorCode,
        remaining: Remaining,
        now: Instant,
    ) -> Result<Reaction, InputError> {
        if self.runtime == RuntimeState::Stopped && self.state(id) == Some(State::Overdue) {
            return Ok(Reaction::Late);
        }
        self.step(id, Event::Fail)?;
        if let Some(row) = self.rows.get_mut(id.index()) {
            row.report.start = StartResult::Failed(error);
            row.report.stop = PhaseResult::NotRun;
            row.report.remaining = Some(remaining);
        }
        if self.runtime == RuntimeState::Starting {
            self.begin_stop(StopReason::StartFailed(self.graph.0.name(id)), now);
        }
        Ok(Reaction::Noted)
    }

    fn request_stop(&mut self, reason: StopReason, now: Instant) -> Reaction {
        if !self.runtime.is_up() {
            return Reaction::Already;
        }
        self.begin_stop(reason, now);
        Reaction::Noted
    }

    /// An answer that a component was asked for.
    fn answered(
        &mut self,
        id: ComponentId,
        event: Event,
        note: impl FnOnce(&mut Row),
    ) -> Result<Reaction, InputError> {
        if self.state(id) == Some(State::TimedOut) {
            return Ok(Reaction::Late);
        }
        self.step(id, event)?;
        if let Some(row) = self.rows.get_mut(id.index()) {
            note(row);
        }
        Ok(Reaction::Noted)
    }

    fn drained(
        &mut self,
        id: ComponentId,
        result: Result<(), ErrorCode>,
        counts: DrainCounts,
    ) -> Result<Reaction, InputError> {
        self.answered(id, Event::Drained, |row| {
            row.report.drain = result.into();
            row.report.counts = counts;
        })
    }

    fn stopped(
        &mut self,
        id: ComponentId,
        result: Result<(), ErrorCode>,
        remaining: Remaining,
    ) -> Result<Reaction, InputError> {
        let reaction = self.answered(id, Event::Stopped, |row| {
            row.report.stop = result.into();
            row.report.remaining = Some(remaining);
        })?;
        if reaction == Reaction::Late {
            self.note_left(id, remaining);
        }
        Ok(reaction)
    }

    fn fenced(&mut self, id: ComponentId, remaining: Remaining) -> Result<Reaction, InputError> {
        let count = self.rows.len();
        let row = self.rows.get(id.index());
        let row = row.ok_or(InputError::Unknown { id, count })?;
        let (state, component) = (row.state, row.report.name);
        if !matches!(state, State::TimedOut | State::Overdue) {
            return Err(InputError::NotFenced { component, state });
        }
        if self.runtime == RuntimeState::Stopped {
            return Ok(Reaction::Late);
        }
        self.note_left(id, remaining);
        Ok(Reaction::Noted)
    }

    /// What is left of a fenced component, as long as the report is open.
    fn note_left(&mut self, id: ComponentId, remaining: Remaining) {
        if self.runtime != RuntimeState::Stopped
            && let Some(row) = self.rows.get_mut(id.index())
        {
            row.report.remaining = Some(remaining);
        }
    }

    fn lost(&mut self, id: ComponentId, now: Instant) -> Result<Reaction, InputError> {
        match self.state(id) {
            Some(State::Degraded | State::Reconnecting | State::Failed) => {
                return Ok(Reaction::Already);
            }
            Some(State::Registered | State::Starting | State::Running) | None => {}
            Some(_) => return Ok(Reaction::Late),
        }
        self.step(id, Event::Degrade)?;
        if let Some(reconnect) = self.reconnect(id) {
            reconnect.lost(now);
            self.note_given_up(id);
        }
        Ok(Reaction::Noted)
    }

    fn recovered(&mut self, id: ComponentId) -> Result<Reaction, InputError> {
        if self.graph.0.policy(id).is_some() {
            let component = self.graph.0.name(id);
            return Err(InputError::RecoversByCommit { component });
        }
        self.step(id, Event::Recover)?;
        Ok(Reaction::Noted)
    }

    fn attempt_failed(
        &mut self,
        id: ComponentId,
        generation: Generation,
        now: Instant,
    ) -> Result<Reaction, InputError> {
        let count = self.rows.len();
        if id.index() >= count {
            return Err(InputError::Unknown { id, count });
        }
        let current = self
            .reconnect(id)
            .is_some_and(|reconnect| reconnect.failed(generation, now).is_ok());
        if !current {
            return Ok(Reaction::Late);
        }
        self.step_surely(id, Event::Degrade);
        self.note_given_up(id);
        Ok(Reaction::Noted)
    }

    pub(super) fn reconnect(&mut self, id: ComponentId) -> Option<&mut Reconnect> {
        self.rows.get_mut(id.index())?.reconnect.as_mut()
    }

    pub(super) fn note_given_up(&mut self, id: ComponentId) {
        if self
            .reconnect(id)
            .is_some_and(|reconnect| reconnect.gave_up())
        {
            self.step_surely(id, Event::GiveUp);
        }
    }
}
