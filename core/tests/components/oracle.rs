//! What must hold, kept beside the supervisor from what was asked and answered, by the plainest rules.

use crate::shape::{Shape, members};
use regatta_core::component::{Deadline, Outcome, PhaseResult, Report, StartResult};
use regatta_core::time::{Duration, Instant};

pub(crate) const START: u64 = 100;
pub(crate) const STOP: u64 = 400;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    Start,
    Quiesce,
    Drain,
    Stop,
}

/// What is known of one component.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what happened, one by one; a state machine here would be the one that is tested"
)]
pub(crate) struct Track {
    /// What it was asked and has not answered, and until when it should.
    pub(crate) asked: Option<(Phase, Instant)>,
    begun: bool,
    pub(crate) up: bool,
    quiesced: bool,
    drained: bool,
    told_to_stop: bool,
    stopped: bool,
    pub(crate) fenced: bool,
    /// What it had not answered when it was fenced first.
    hung: Option<Phase>,
    fences: u8,
    /// It came up after it had been fenced.
    late: bool,
    /// Phases that it answered with an error, one bit each.
    failed: u8,
}

/// The record of a run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Oracle<const N: usize> {
    shape: Shape<N>,
    pub(crate) tracks: [Track; N],
    start_by: Instant,
    stop: Option<(Instant, Deadline)>,
    /// Nobody came back later than asked to.
    pub(crate) punctual: bool,
}

impl<const N: usize> Oracle<N> {
    pub(crate) fn new(shape: Shape<N>, now: Instant) -> Self {
        Self {
            shape,
            tracks: [Track::default(); N],
            start_by: now + Duration::from_nanos(START),
            stop: None,
            punctual: true,
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn stop_begins(&mut self, now: Instant) {
        let deadline = Deadline::new(now, Duration::from_nanos(STOP));
        self.stop.get_or_insert((now, deadline));
    }

    pub(crate) fn second_signal(&mut self, now: Instant) {
        if let Some((_, deadline)) = &mut self.stop {
            deadline.shorten_to_safe_minimum(now);
        }
        for track in &mut self.tracks {
            // It gets less than it was told.
            if let Some((Phase::Stop, until)) = &mut track.asked {
                *until = now.min(*until);
            }
        }
    }

    fn over(&self, i: usize) -> bool {
        let track = &self.tracks[i];
        let starting = matches!(track.asked, Some((Phase::Start, _)));
        track.fenced || track.stopped || (!track.up && !starting)
    }

    fn drained(&self, i: usize) -> bool {
        self.over(i) || self.tracks[i].drained
    }

    fn data_over(&self, i: usize) -> bool {
        let mut data = (0..N).filter(|d| !self.shape.is_control(*d));
        !self.shape.is_control(i) || data.all(|d| self.over(d))
    }

    /// Whose turn it is, and for what.
    pub(crate) fn due(&self, i: usize, now: Instant) -> Option<Phase> {
        let track = &self.tracks[i];
        let Some((_, deadline)) = &self.stop else {
            let free = self.tracks.iter().all(|t| t.asked.is_none());
            let ready = |i: usize| {
                let track = &self.tracks[i];
                !track.begun && members(self.shape.depends[i]).all(|d| self.tracks[d].up)
            };
            let first = (0..N).find(|i| ready(*i));
            return (free && first == Some(i)).then_some(Phase::Start);
        };
        if !track.up || track.fenced || track.stopped || track.asked.is_some() {
            return None;
        }
        if track.late {
            return Some(Phase::Stop);
        }
        let drains = now < deadline.drain_end() && !track.drained;
        let all = |of: fn(&Self, usize) -> bool| self.shape.dependents(i).all(|d| of(self, d));
        if drains && !track.quiesced {
            return (all(Self::drained) && self.data_over(i)).then_some(Phase::Quiesce);
        }
        if drains {
            return Some(Phase::Drain);
        }
        (all(Self::over) && self.data_over(i)).then_some(Phase::Stop)
    }

    pub(crate) fn asked(&mut self, i: usize, phase: Phase, until: Instant, now: Instant) {
        assert_eq!(self.due(i, now), Some(phase), "{i} at {now:?}: {self:?}");
        let track = &mut self.tracks[i];
        match phase {
            Phase::Start => {
                assert!(!track.begun && until == self.start_by);
                track.begun = true;
            }
            Phase::Quiesce | Phase::Drain => {
                assert_eq!(Some(until), self.stop.map(|(_, d)| d.drain_end()));
            }
            Phase::Stop => {
                assert!(!track.told_to_stop, "{i} was told to stop twice: {self:?}");
                track.told_to_stop = true;
                assert!(until >= now && Some(until) <= self.stop.map(|(_, d)| d.at()));
            }
        }
        track.asked = Some((phase, until));
    }

    /// An answer; returns whether it is too late to matter.
    pub(crate) fn answered(&mut self, i: usize, ok: bool) -> bool {
        let track = &mut self.tracks[i];
        let (phase, _) = track.asked.take().unwrap();
        let too_late = track.fenced && phase != Phase::Start;
        if too_late {
            return true;
        }
        if !ok {
            track.failed |= 1 << phase as u8;
        }
        match phase {
            Phase::Start => {
                track.up = ok;
                track.late = track.fenced;
                track.drained = track.fenced;
                track.fenced = false;
            }
            Phase::Quiesce => track.quiesced = true,
            Phase::Drain => track.drained = true,
            Phase::Stop => track.stopped = true,
        }
        false
    }

    pub(crate) fn fenced(&mut self, i: usize, now: Instant) {
        let track = &mut self.tracks[i];
        let (drain_end, end) = self.stop.map_or((self.start_by, self.start_by), |(_, d)| {
            (d.drain_end(), d.at())
        });
        match track.asked {
            Some((Phase::Start, until)) => assert!(now >= until.min(drain_end)),
            Some((Phase::Quiesce | Phase::Drain, _)) => assert!(now >= drain_end),
            Some((Phase::Stop, until)) => assert!(now >= until),
            None => {
                assert!(!self.punctual, "{i} answered and was fenced: {self:?}");
                assert!(now >= end);
            }
        }
        assert!(!track.fenced && !track.stopped);
        track.fences += 1;
        assert!(track.fences == 1 || track.late);
        track.fenced = true;
        track.hung = track.hung.or(track.asked.map(|(phase, _)| phase));
    }

    pub(crate) fn nothing_due(&self, now: Instant) {
        for i in 0..N {
            assert_eq!(self.due(i, now), None, "{i} waits for nothing: {self:?}");
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        (0..N).all(|i| self.over(i))
    }

    pub(crate) fn check_report(&self, report: &Report<N>) {
        let (began, deadline) = self.stop.unwrap();
        assert_eq!(report.started_at, began);
        assert_eq!(report.deadline, deadline.at());
        assert!(deadline.at() <= began + Duration::from_nanos(STOP));
        assert!(
            !self.punctual || report.completed_at <= deadline.at(),
            "{self:?}"
        );
        let mut outcome = Outcome::Clean;
        for (track, of) in self.tracks.iter().zip(&report.components) {
            let up = track.up || track.late;
            assert!(!up || track.told_to_stop || track.fences > 0, "{track:?}");
            assert!(up || !track.told_to_stop);
            let failed = |phase: Phase| track.failed & (1 << phase as u8) != 0;
            let said: Vec<&str> = of.errors().map(|(phase, _)| phase).collect();
            let hung = |phase| track.hung == Some(phase) && !failed(phase);
            let bad = |phase| failed(phase) || hung(phase);
            let phases = [
                (Phase::Start, "start"),
                (Phase::Quiesce, "quiesce"),
                (Phase::Drain, "drain"),
                (Phase::Stop, "stop"),
            ];
            for (phase, name) in phases {
                let twice = track.late && phase == Phase::Stop && track.fenced;
                assert_eq!(
                    said.contains(&name),
                    bad(phase) || twice,
                    "{name}: {track:?} {of:?}"
                );
            }
            assert_eq!(of.start == StartResult::NotStarted, !track.begun);
            assert_eq!(
                of.stop == PhaseResult::Done,
                track.stopped && !failed(Phase::Stop)
            );
            assert_eq!(of.timed_out(), track.fenced, "{track:?} {of:?}");
            outcome = outcome.max(if track.fenced {
                Outcome::TimedOut
            } else if failed(Phase::Stop) {
                Outcome::Incomplete
            } else {
                Outcome::Clean
            });
        }
        if report.completed_at <= report.deadline {
            assert_eq!(report.outcome(), outcome);
        }
    }
}
