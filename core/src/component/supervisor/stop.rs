//! Stopping: whose turn it is, and whose time is over.

use super::super::report::{PhaseResult, StartResult};
use super::{
    Action, ComponentEvent as Event, ComponentId, ComponentSet, ComponentState as State, Deadline,
    Reaction, Row, RuntimeEvent, RuntimeState, Stop, StopReason, Supervisor,
};
use crate::component::Plane;
use crate::time::{Duration, Instant};
use heapless::Vec;

impl<const N: usize> Supervisor<N> {
    pub(super) fn begin_stop(&mut self, reason: StopReason, now: Instant) {
        self.runtime_surely(RuntimeEvent::Stop);
        self.stop = Some(Stop {
            reason,
            began: now,
            deadline: Deadline::new(now, self.config.stop_budget),
            completed: now,
        });
        for id in self.graph.0.ids() {
            self.close(id);
        }
    }

    /// A component that is up goes on as it is and installs nothing new.
    pub(super) fn close(&mut self, id: ComponentId) {
        if self.state(id).is_some_and(Self::came_up) {
            self.step_surely(id, Event::Close);
        }
        if let Some(reconnect) = self.reconnect(id) {
            reconnect.fence();
        }
    }

    pub(super) fn second_signal(&mut self, now: Instant) -> Reaction {
        let Some(stop) = &mut self.stop else {
            return Reaction::Already;
        };
        if self.runtime != RuntimeState::Stopping {
            return Reaction::Already;
        }
        stop.deadline.shorten_to_safe_minimum(now);
        let deadline = stop.deadline;
        for id in self.graph.0.ids() {
            let by = now + self.share(id, now, &deadline);
            if let Some(row) = self.rows.get_mut(id.index()) {
                row.stop_by = row.stop_by.min(by);
            }
        }
        self.expire(now);
        Reaction::Noted
    }

    /// Ends what has taken longer than it may.
    pub(super) fn expire(&mut self, now: Instant) {
        match (self.runtime, self.stop) {
            (RuntimeState::Starting, _) if now >= self.start_by => self.expire_start(now),
            (RuntimeState::Starting | RuntimeState::Running, _) => self.expire_attempts(now),
            (RuntimeState::Stopping, Some(stop)) => self.expire_stop(now, &stop.deadline),
            _ => {}
        }
    }

    fn expire_start(&mut self, now: Instant) {
        let mut ids = self.graph.0.start_order().iter().copied();
        let late = ids.find(|id| !self.state(*id).is_some_and(Self::came_up));
        let Some(id) = late else { return };
        if self.state(id) == Some(State::Starting) {
            self.fence(id);
        }
        self.begin_stop(StopReason::StartTimedOut(self.graph.0.name(id)), now);
    }

    fn expire_attempts(&mut self, now: Instant) {
        for id in self.graph.0.ids() {
            if self
                .reconnect(id)
                .is_some_and(|reconnect| reconnect.expire(now))
            {
                self.step_surely(id, Event::Degrade);
                self.note_given_up(id);
            }
        }
    }

    fn expire_stop(&mut self, now: Instant, deadline: &Deadline) {
        for id in self.graph.0.ids() {
            let row = self.rows.get(id.index());
            let limit = row.and_then(|row| self.stop_limit(row, deadline));
            if limit.is_some_and(|limit| now >= limit) {
                self.fence(id);
            }
        }
    }

    /// The one place where a component runs out of time.
    fn fence(&mut self, id: ComponentId) {
        if let Some(row) = self.rows.get_mut(id.index()) {
            let report = &mut row.report;
            report.stop = PhaseResult::Fenced;
            match row.state {
                State::Starting => report.start = StartResult::TimedOut,
                State::Quiescing => report.quiesce = PhaseResult::TimedOut,
                State::Draining => report.drain = PhaseResult::TimedOut,
                State::Stopping => report.stop = PhaseResult::TimedOut,
                _ => {}
            }
        }
        self.step_surely(id, Event::Expire);
        self.fences = self.fences.with(id);
    }

    pub(super) fn stop_limit(&self, row: &Row, deadline: &Deadline) -> Option<Instant> {
        match row.state {
            State::Starting => Some(self.start_by.min(deadline.fence_at())),
            State::Quiescing | State::Draining => Some(deadline.fence_at()),
            State::Stopping => Some(row.stop_by.min(deadline.at())),
            State::Closing | State::Quiet | State::Drained => Some(deadline.at()),
            _ => None,
        }
    }

    pub(super) fn poll_stop(&mut self, now: Instant) -> Option<Action> {
        let deadline = self.stop?.deadline;
        let of = |pick: fn(State) -> bool| -> ComponentSet {
            let ids = self.graph.0.ids();
            ids.filter(|id| self.state(*id).is_some_and(pick)).collect()
        };
        let (drained, over) = (of(State::is_drained), of(State::is_over));
        let due = |id: ComponentId| Some((id, self.due(id, now, &deadline, drained, over)?));
        let next = self.graph.0.stop_order().find_map(due);
        if let Some((id, event)) = next {
            return self.act(id, event, now, &deadline);
        }
        if self.graph.0.ids().all(|id| over.contains(id)) {
            self.runtime_surely(RuntimeEvent::Over);
            if let Some(stop) = &mut self.stop {
                stop.completed = now;
            }
        }
        None
    }

    /// Which phase it is the turn of `id` to begin.
    fn due(
        &self,
        id: ComponentId,
        now: Instant,
        deadline: &Deadline,
        drained: ComponentSet,
        over: ComponentSet,
    ) -> Option<Event> {
        let graph = &self.graph.0;
        let drains = now < deadline.drain_end();
        let row = self.rows.get(id.index())?;
        // Nobody ever depended on one that came up too late, and there may be no time to wait in.
        let late = row.report.start == StartResult::TimedOut;
        let stops = late || graph.stops_after(id).is_within(over);
        match row.state {
            State::Closing if drains => {
                let data = graph.plane(id) == Plane::Data || graph.data_plane().is_within(over);
                (data && graph.dependents(id).is_within(drained)).then_some(Event::Quiesce)
            }
            State::Quiet if drains => Some(Event::Drain),
            State::Closing | State::Quiet | State::Drained => stops.then_some(Event::Stop),
            _ => None,
        }
    }

    fn act(
        &mut self,
        id: ComponentId,
        event: Event,
        now: Instant,
        deadline: &Deadline,
    ) -> Option<Action> {
        let share = self.share(id, now, deadline);
        self.step_surely(id, event);
        let row = self.rows.get_mut(id.index())?;
        let until = deadline.drain_end();
        match event {
            Event::Quiesce => {
                row.report.quiesce = PhaseResult::Pending;
                Some(Action::Quiesce { id, until })
            }
            Event::Drain => {
                row.report.drain = PhaseResult::Pending;
                Some(Action::Drain { id, until })
            }
            _ => {
                for skipped in [&mut row.report.quiesce, &mut row.report.drain] {
                    if *skipped == PhaseResult::NotRun {
                        *skipped = PhaseResult::Skipped;
                    }
                }
                row.report.stop = PhaseResult::Pending;
                row.stop_by = now + share;
                let quarter = Duration::from_nanos(share.as_nanos() / 4);
                let until = row.stop_by - deadline.grace().min(quarter);
                Some(Action::Stop { id, until })
            }
        }
    }

    /// How long a stop of `id` that begins `now` may take: what is left, by how many have yet to stop one
    /// after the other, from `id` on. So one that hangs leaves to those after it what it found.
    fn share(&self, id: ComponentId, now: Instant, deadline: &Deadline) -> Duration {
        let left = deadline.left(now).as_nanos();
        let share = left / self.height(id).max(1);
        Duration::from_nanos(share.max(1))
    }

    /// The most components that stop one after the other from `id` on, itself among them.
    fn height(&self, id: ComponentId) -> u64 {
        let mut heights: Vec<u64, N> = self.rows.iter().map(|_| 0).collect();
        let mut control = 0;
        for plane in [Plane::Control, Plane::Data] {
            for id in self.graph.0.start_order() {
                let over = self.state(*id).is_none_or(State::is_over);
                if over || self.graph.0.plane(*id) != plane {
                    continue;
                }
                let after = if plane == Plane::Data { control } else { 0 };
                let depends = self.graph.0.depends(*id).iter();
                let below = depends.filter_map(|dependency| heights.get(dependency.index()));
                let height = 1 + below.copied().fold(after, u64::max);
                if let Some(slot) = heights.get_mut(id.index()) {
                    *slot = height;
                }
                if plane == Plane::Control {
                    control = control.max(height);
                }
            }
        }
        heights.get(id.index()).copied().unwrap_or(1)
    }
}
