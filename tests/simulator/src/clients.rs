//! Those who submit: clients with receipts, the crawl with its window, and the pipeline with its epochs
//! and its outcome ledger.

use crate::coverage::{Event, Met};
use crate::fleet::{BINS, CRAWL_WINDOW, MERGE, REGISTRAR, SOLVER};
use crate::rng::mix;
use crate::rule::{Rule, Step, Violation, ensure};
use crate::thread::{Bring, Rings};
use crate::unit::{Source, Stage, Unit};
use crate::world::World;
use regatta_core::host::{ClosePhase, EpochError};
use regatta_core::outcome::{Fuse, FuseRow, FuseTrip, OutcomeKind};
use regatta_core::role::{MAX_ROLES, RoleId};
use regatta_core::time::Duration;
use regatta_core::unit::{Outcome, UnitId};
use std::collections::VecDeque;

/// How long it takes to register a path.
const CRAWL_RUNS: Duration = Duration::from_millis(5);
/// When a boundary is tried again.
const BOUNDARY_AGAIN: Duration = Duration::from_millis(1);
/// How long a merge takes.
const MERGE_RUNS: Duration = Duration::from_millis(1);

/// The crawl: so many paths, of which a window is outstanding.
#[derive(Debug, Default)]
struct Crawl {
    total: u32,
    submitted: u32,
    registered: u32,
    outstanding: u32,
    stopped: bool,
    rings: Rings,
}

/// An epoch that is worked on.
#[derive(Debug)]
struct Epoch {
    seq: u64,
    /// Bins whose outcomes are owed.
    owed: u32,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Units that a full lane handed back, in order.
    held_back: [VecDeque<usize>; MAX_ROLES],
    /// Receipts of clients that ended.
    ready: VecDeque<usize>,
    /// Those of the crawl and the pipeline, who never wait to collect.
    own: VecDeque<usize>,
    pub(crate) collecting: bool,
    crawl: Crawl,
    epoch: Option<Epoch>,
    seq: u64,
    fuse: Fuse<[FuseRow; BINS as usize]>,
    /// Units whose rows were released.
    gone: VecDeque<UnitId>,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            held_back: std::array::from_fn(|_| VecDeque::new()),
            ready: VecDeque::new(),
            own: VecDeque::new(),
            collecting: true,
            crawl: Crawl::default(),
            epoch: None,
            seq: 0,
            fuse: Fuse::new([FuseRow::default(); BINS as usize]),
            gone: VecDeque::new(),
        }
    }
}

/// The paths of a bin in an epoch.
fn paths(seq: u64, bin: u8) -> u64 {
    mix(seq << 8 | u64::from(bin)) | 1
}

fn fused<T>(result: Result<T, FuseTrip>) -> Step<T> {
    result.map_err(|trip| Violation::new(Rule::Fused, trip.to_string()))
}

impl Clients {
    pub(crate) fn crawl_can_step(&self) -> bool {
        let Crawl {
            total,
            submitted,
            outstanding,
            stopped,
            rings,
            ..
        } = self.crawl;
        !rings.is_empty() || (!stopped && submitted < total && outstanding < CRAWL_WINDOW)
    }

    pub(crate) fn can_collect(&self) -> bool {
        !self.own.is_empty() || (self.collecting && !self.ready.is_empty())
    }

    pub(crate) fn hold_back(&mut self, role: RoleId, unit: usize) {
        self.held_back[role.index()].push_back(unit);
    }

    pub(crate) fn open_epoch(&self) -> Option<u64> {
        self.epoch.as_ref().map(|epoch| epoch.seq)
    }

    pub(crate) fn crawl_rings(&self) -> u64 {
        self.crawl.rings.seats
    }

    pub(crate) fn crawl_more(&mut self, paths: u16) {
        self.crawl.total += u32::from(paths);
    }

    pub(crate) fn crawl_goes_on(&mut self, goes_on: bool) {
        self.crawl.stopped = !goes_on;
    }

    /// Paths registered, and receipts outstanding.
    #[cfg(test)]
    pub(crate) fn crawled(&self) -> (u32, u32) {
        (self.crawl.registered, self.crawl.outstanding)
    }
}

impl World<'_> {
    /// A unit of a client, on its way to the fleet.
    pub(crate) fn submit(&mut self, role: u8, ms: u16, panics: bool, abandoned: bool) {
        let roles = self.plan.table.roles.len();
        let role = RoleId::new(role % u8::try_from(roles).unwrap_or(1));
        // What solvers and the merge owe stands in the outcome ledger: no client submits to them.
        if role == SOLVER || role == MERGE {
            return;
        }
        let runs = Duration::from_millis(ms.into());
        let mut unit = Unit::new(role, 0, runs, Source::Client);
        (unit.panics, unit.abandoned) = (panics, abandoned);
        self.bring_unit(unit);
    }

    /// A walk that is owed to no epoch.
    pub(crate) fn walk(&mut self, key: u8, runs: Duration) {
        self.bring_unit(Unit::new(SOLVER, key % BINS, runs, Source::Client));
    }

    fn bring_unit(&mut self, unit: Unit) {
        self.units.push(unit);
        self.bring(Bring::Submit(self.units.len() - 1), self.time.now);
    }

    /// The receipt of the newest unit that has not ended is dropped.
    pub(crate) fn abandon(&mut self) {
        let mut units = self.units.iter_mut().rev();
        let newest = units.find(|unit| {
            unit.source == Source::Client && unit.id.is_some() && unit.outcome.is_none()
        });
        if let Some(unit) = newest {
            unit.abandoned = true;
        }
    }

    pub(crate) fn crawl_step(&mut self) -> Step {
        if !self.clients.crawl.rings.is_empty() {
            self.clients.crawl.rings = self.ring(self.clients.crawl.rings);
            return Ok(());
        }
        self.clients.crawl.submitted += 1;
        self.clients.crawl.outstanding += 1;
        self.units
            .push(Unit::new(REGISTRAR, 0, CRAWL_RUNS, Source::Crawl));
        let rings = self.deliver(Bring::Submit(self.units.len() - 1))?;
        self.clients.crawl.rings = Rings::of(rings);
        Ok(())
    }

    /// Runs until the crawl has registered `paths`.
    pub(crate) fn crawl_to(&mut self, paths: u16) -> Step {
        let goal = u32::from(paths).min(self.clients.crawl.total);
        while self.clients.crawl.registered < goal && !self.aborted {
            if self.clients.crawl.stopped {
                return Ok(());
            }
            let before = self.time.now;
            self.steps(1)?;
            self.find_ready();
            if self.is_at_rest() {
                let next = self.next_event();
                let next = next.ok_or_else(|| {
                    let crawl = &self.clients.crawl;
                    Violation::new(Rule::Ends, format!("nothing will ever happen: {crawl:?}"))
                })?;
                self.move_to(next)?;
            }
            debug_assert!(before <= self.time.now, "time goes on");
        }
        Ok(())
    }

    /// An epoch begins, unless the last one is still worked on.
    pub(crate) fn block(&mut self, bins: u8, runs: Duration) -> Step {
        let bins = bins & ((1 << BINS) - 1);
        if bins == 0 || self.host.closing().is_some() {
            return Ok(());
        }
        if self.clients.epoch.is_some() {
            self.cover.event(Event::Missed);
            return Ok(());
        }
        self.clients.seq += 1;
        let seq = self.clients.seq;
        fused(self.clients.fuse.open())?;
        for bin in (0..BINS).filter(|bin| bins & 1 << bin != 0) {
            let words = [paths(seq, bin)];
            fused(self.clients.fuse.expect(bin.into(), &words))?;
            self.bring_unit(Unit::new(SOLVER, bin, runs, Source::Bin(bin)));
        }
        let owed = bins.count_ones();
        self.clients.epoch = Some(Epoch { seq, owed });
        Ok(())
    }

    /// The outcomes of a bin's paths are in.
    fn bin_ended(&mut self, bin: u8, kind: OutcomeKind) -> Step {
        let Some(epoch) = &mut self.clients.epoch else {
            let what = format!("bin {bin} ended in no epoch");
            return Err(Violation::new(Rule::Fused, what));
        };
        epoch.owed -= 1;
        let (seq, owed) = (epoch.seq, epoch.owed);
        let words = [paths(seq, bin)];
        fused(self.clients.fuse.record(kind, bin.into(), &words))?;
        // A second report would be a fault, whichever it is.
        let again = self.clients.fuse.clone().record(kind, bin.into(), &words);
        let doubled = matches!(again, Err(FuseTrip::Duplicate { .. }));
        ensure(doubled, Rule::Fused, || {
            format!("reported again: {again:?}")
        })?;
        if owed == 0 {
            let tally = fused(self.clients.fuse.close())?;
            ensure(tally.owed() == 0, Rule::Fused, || format!("{tally:?}"))?;
            self.bring_unit(Unit::new(MERGE, 0, MERGE_RUNS, Source::Merge(seq)));
            self.bring(Bring::Boundary, self.time.now);
        }
        Ok(())
    }

    /// The epoch is over.
    pub(crate) fn boundary(&mut self) -> Step {
        let Some(epoch) = self.clients.epoch.take() else {
            return Ok(());
        };
        if self.host.closing() == Some(ClosePhase::Fence) {
            return Ok(());
        }
        let (now, guard) = (self.time.now, self.read());
        match self.host.epoch_boundary(epoch.seq, now, &guard) {
            Ok(()) => {
                self.cover.met(Met::Epoch);
                Ok(())
            }
            Err(EpochError::KeyedInFlight { .. }) if self.walks() => {
                // A walk of nobody's epoch runs: later.
                self.cover.met(Met::NotOver);
                self.clients.epoch = Some(epoch);
                self.bring(Bring::Boundary, now + BOUNDARY_AGAIN);
                Ok(())
            }
            Err(error) => Err(Violation::new(Rule::Refused, error.to_string())),
        }
    }

    /// Whether a walk runs that is owed to no epoch.
    fn walks(&self) -> bool {
        let mut units = self.units.iter();
        units.any(|unit| {
            let stray = unit.role == SOLVER && unit.source == Source::Client;
            stray && unit.id.is_some() && unit.outcome.is_none()
        })
    }

    /// A unit has its outcome.
    pub(crate) fn ended(&mut self, n: usize) -> Step {
        let unit = &self.units[n];
        match (unit.source, unit.abandoned) {
            (Source::Client, true) => self.release(n)?,
            (Source::Client, false) => self.clients.ready.push_back(n),
            _ => self.clients.own.push_back(n),
        }
        Ok(())
    }

    /// The lane of a unit takes no more.
    pub(crate) fn refuse(&mut self, n: usize) -> Step {
        self.units[n].stage = Stage::Refused;
        let (role, source) = (self.units[n].role, self.units[n].source);
        self.retry(role);
        match source {
            Source::Client | Source::Merge(_) => Ok(()),
            Source::Crawl => {
                let crawl = &mut self.clients.crawl;
                crawl.outstanding -= 1;
                crawl.total = crawl.submitted;
                Ok(())
            }
            Source::Bin(bin) => self.bin_ended(bin, OutcomeKind::Failed),
        }
    }

    /// Who was handed its unit back for want of room tries again.
    fn retry(&mut self, role: RoleId) {
        if let Some(unit) = self.clients.held_back[role.index()].pop_front() {
            self.bring(Bring::Submit(unit), self.time.now);
        }
    }

    fn release(&mut self, n: usize) -> Step {
        let Some(id) = self.units[n].id else {
            return Ok(());
        };
        let released = self.host.release(id);
        ensure(released.is_ok(), Rule::Refused, || format!("{released:?}"))?;
        self.rows[id.index()] = None;
        self.retry(self.units[n].role);
        self.clients.gone.push_back(id);
        if self.clients.gone.len() > 16 {
            self.clients.gone.pop_front();
        }
        Ok(())
    }

    /// Somebody collects a receipt, and somebody else one that was collected before.
    pub(crate) fn collect(&mut self) -> Step {
        for _ in 0..2 {
            let Some(old) = self.clients.gone.pop_front() else {
                break;
            };
            let again = self.host.release(old);
            ensure(again.is_err(), Rule::Refused, || {
                format!("{old:?} was released twice: {again:?}")
            })?;
            self.cover.met(Met::Stale);
            self.clients.gone.push_back(old);
        }
        // And one of a unit that has yet to end.
        let newest = self.units.iter().rev().take(8);
        let mut open = newest.filter(|unit| unit.outcome.is_none());
        if let Some(open) = open.find_map(|unit| unit.id) {
            let early = self.host.release(open);
            ensure(early.is_err(), Rule::Refused, || {
                format!("{open:?} was released before it ended: {early:?}")
            })?;
        }
        let unit = match self.clients.own.pop_front() {
            Some(unit) => unit,
            None => match self.clients.ready.pop_front() {
                Some(unit) => unit,
                None => return Ok(()),
            },
        };
        self.release(unit)?;
        let kind = match self.units[unit].outcome {
            Some(Outcome::Done) => OutcomeKind::Solved,
            _ => OutcomeKind::Failed,
        };
        match self.units[unit].source {
            Source::Crawl => {
                self.clients.crawl.registered += 1;
                self.clients.crawl.outstanding -= 1;
                Ok(())
            }
            Source::Bin(bin) => self.bin_ended(bin, kind),
            Source::Merge(seq) if kind == OutcomeKind::Solved => self.publish_epoch(seq),
            Source::Client | Source::Merge(_) => Ok(()),
        }
    }
}
