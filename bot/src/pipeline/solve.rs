//! Solve: screen the touched cycles of a bin and bound those that pass.

use super::GROUP_WORDS;
use super::merge::Candidate;
use super::resolve::{GroupSet, group_of, place_in_group};
use super::world::World;
use crate::cycles::CycleId;
use crate::solver::{Cycle, bound, may_profit};
use std::time::{Duration, Instant};

/// What a solver unit works on, and what it yields.
#[derive(Debug)]
pub struct BinJob {
    /// The bin.
    pub(crate) bin: u8,
    /// In: its touched cycles, ascending.
    pub(crate) ids: Vec<CycleId>,
    /// In: profits below this are of no interest.
    pub(crate) at_least: f64,
    /// Out: the cycles that may have a profit.
    pub(crate) candidates: Vec<Candidate>,
    /// Out: the cycles that were bounded, per group.
    pub(crate) solved: Vec<GroupSet>,
    /// Out: the cycles that the screen rejected, per group.
    pub(crate) suppressed: Vec<GroupSet>,
    /// Out: how long the walk took.
    pub(crate) walk: Duration,
}

impl BinJob {
    pub(crate) fn new(bin: u8) -> Self {
        Self {
            bin,
            ids: Vec::new(),
            at_least: 1.0,
            candidates: Vec::new(),
            solved: Vec::new(),
            suppressed: Vec::new(),
            walk: Duration::ZERO,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ids.clear();
        self.candidates.clear();
        self.solved.clear();
        self.suppressed.clear();
        self.walk = Duration::ZERO;
    }

    pub(crate) fn run(&mut self, world: &World) {
        if self.ids.is_empty() {
            return;
        }
        let span = tracing::debug_span!(
            "arb.solve.bin",
            bin = self.bin,
            paths = self.ids.len(),
            walk_ms = tracing::field::Empty
        );
        let _entered = span.enter();
        let began = Instant::now();
        for run in self.ids.chunk_by(|a, b| group_of(*a) == group_of(*b)) {
            let Some(first) = run.first() else { continue };
            let group = group_of(*first);
            let (mut solved, mut suppressed) = ([0; GROUP_WORDS], [0; GROUP_WORDS]);
            for id in run {
                let (place, bit) = place_in_group(*id);
                match evaluate(world, *id) {
                    None => suppressed[place] |= bit,
                    Some(profit) => {
                        solved[place] |= bit;
                        if let Some(bound) = profit.filter(|bound| *bound >= self.at_least) {
                            self.candidates.push(Candidate { bound, id: *id });
                        }
                    }
                }
            }
            self.solved.push(GroupSet { group, set: solved });
            self.suppressed.push(GroupSet {
                group,
                set: suppressed,
            });
        }
        self.walk = began.elapsed();
        span.record("walk_ms", self.walk.as_secs_f64() * 1e3);
    }
}

/// `None` if the screen rejects the cycle; else an upper bound of its profit, if it can have one of a
/// whole unit.
#[expect(
    clippy::option_option,
    reason = "the outer says whether the cycle was bounded at all, the inner what came of it"
)]
fn evaluate(world: &World, id: CycleId) -> Option<Option<f64>> {
    let (rates, hops) = world.rates_of(*world.table().get(id)?);
    if !may_profit(&rates[..hops]) {
        return None;
    }
    let hops = world.hops_of(id)?;
    let cycle = Cycle::new(hops.as_slice()).ok()?;
    Some(bound(&cycle).map(|bound| bound.profit_at_most))
}
