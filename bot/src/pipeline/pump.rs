//! The pump: leads each block through the roles and says what came of it.
//!
//! # Invariants
//! - A cycle of the pump ends with every receipt collected and the fuse closed; then the fleet is told
//!   the epoch boundary.
//! - The world changes between cycles only. What blocks without a cycle of their own touched stays owed to the
//!   next cycle.
//! - A candidate is simulated only while its bound can still change what is published, so a skipped
//!   candidate is proved to be no better.

mod confirm;
mod growth;
mod reread;

pub use growth::Grown;

use growth::Growth;

use super::best::{Best, least_interesting};
use super::merge::MergeJob;
use super::resolve::{ResolveJob, group_of};
use super::result::{BlockResult, PumpConfig, PumpError};
use super::simulate::{SimError, SimJob, Simulated, Winner};
use super::solve::BinJob;
use super::watch::{Watch, wait};
use super::workload::{Arbitrage, Output, Pipeline, SIM_WINDOW, Unit};
use super::world::{World, WorldError};
use crate::cycles::CycleId;
use crate::evm::Machine;
use crate::market::{PoolId, ReserveUpdate};
use crate::partition::PartitionError;
use crate::solver::NotProved;
use crate::source::{Block, BlockHash};
use regatta_core::role::{RoleId, WorkerRole};
use regatta_portable::{Ended, Fleet, Receipt};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Epochs between two looks at whether groups should move to other bins.
const REPARTITION_EVERY: u64 = 32;

/// The pump. One per fleet. After an error it is not to be run again.
#[derive(Debug)]
pub struct Pump<'f, W: Pipeline = Arbitrage> {
    fleet: &'f Fleet<W>,
    config: PumpConfig,
    watch: &'f dyn Watch,
    epoch: u64,
    /// The block that the pump is at, for errors.
    number: u64,
    resolve: Option<Box<ResolveJob>>,
    merge: Option<Box<MergeJob>>,
    /// What the next cycle is to look at.
    changed: Vec<PoolId>,
    /// When the last change of the world began.
    began: Instant,
    growth: Growth<W>,
    solving: Vec<(u8, Receipt<W>)>,
    simulating: VecDeque<(CycleId, Receipt<W>)>,
    /// Runs candidates as bytecode, if that is wanted.
    evm: Option<Box<Machine>>,
}

impl<'f, W: Pipeline> Pump<'f, W> {
    /// A pump for the cycles that are registered, which it places into bins. `watch` is tended while
    /// the pump waits.
    pub fn new(
        fleet: &'f Fleet<W>,
        config: PumpConfig,
        watch: &'f dyn Watch,
    ) -> Result<Self, PumpError> {
        fleet.workload().arbitrage().place_groups()?;
        let world = fleet.workload().arbitrage().world();
        let (cycles, pools) = (world.table().len(), world.market().pools().len());
        drop(world);
        let resolve = Box::new(ResolveJob::new(config.bins));
        let merge = Box::new(MergeJob::new(cycles, config.bins));
        Ok(Self {
            fleet,
            config,
            watch,
            epoch: 0,
            number: 0,
            resolve: Some(resolve),
            merge: Some(merge),
            changed: Vec::new(),
            began: Instant::now(),
            growth: Growth::new(pools),
            solving: Vec::with_capacity(usize::from(config.bins)),
            simulating: VecDeque::with_capacity(SIM_WINDOW as usize),
            evm: None,
        })
    }

    /// Bytes on the heap that follow the number of registered cycles, beside those of the [`World`]: the
    /// scratch of resolve, and the outcome ledger.
    ///
    /// [`World`]: super::World
    #[must_use]
    pub fn memory(&self) -> usize {
        let resolve = self.resolve.as_ref().map_or(0, |job| job.touched.memory());
        resolve + self.merge.as_ref().map_or(0, |job| job.memory())
    }

    /// Runs the cycle of the newest of `blocks`, which must not be empty. Earlier ones are applied
    /// with it: what they touched counts as touched, and they have no result of their own.
    pub fn run(&mut self, blocks: &[Block]) -> Result<BlockResult, PumpError> {
        for block in blocks {
            self.apply(block)?;
        }
        self.run_last()
    }

    /// Applies a block. The next cycle looks at what it touched.
    pub fn apply(&mut self, block: &Block) -> Result<(), PumpError> {
        self.change(block.number, |world, changed| {
            world.apply_block(block.number, block.hash, &block.updates, changed)
        })?;
        self.evm_came(block.head());
        Ok(())
    }

    /// Reverts the last block. The next cycle looks at what the reverted block's cycle had looked at beyond the
    /// block's own pools, and with `own` at those, too.
    ///
    /// Without them a block's result follows from its chain alone: on the pools that are as before the reverted
    /// block, everything was looked at then. With them, what can be had again is said again.
    pub fn revert(&mut self, number: u64, hash: BlockHash, own: bool) -> Result<(), PumpError> {
        self.change(number, |world, changed| world.revert(hash, own, changed))?;
        self.evm_reverted(hash);
        Ok(())
    }

    fn change(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut World, &mut Vec<PoolId>) -> Result<(), WorldError>,
    ) -> Result<(), PumpError> {
        self.number = number;
        self.began = Instant::now();
        let mut world = self.fleet.workload().arbitrage().world_mut();
        change(&mut world, &mut self.changed).map_err(|error| PumpError::World { number, error })
    }

    /// Runs a cycle over all that is owed, on the world as the last change left it.
    pub fn run_last(&mut self) -> Result<BlockResult, PumpError> {
        self.changed.sort_unstable();
        self.changed.dedup();

        let mut result = BlockResult {
            walks: vec![Duration::ZERO; usize::from(self.config.bins)],
            ..BlockResult::default()
        };
        let mut resolved = self.resolve()?;
        let merged = self.solve_and_merge(&mut resolved, &mut result)?;
        self.evm_begin()?;
        let merged = self.simulate(merged, &mut result)?;
        self.end_epoch(resolved, merged)?;
        result.evm = self.evm_end();
        result.moved = self.moved();
        self.changed.clear();
        result.cycle = self.began.elapsed();
        Ok(result)
    }

    fn moved(&self) -> Vec<ReserveUpdate> {
        let world = self.fleet.workload().arbitrage().world();
        self.changed
            .iter()
            .map(|&pool| {
                let state = world.market().pool(pool);
                ReserveUpdate {
                    pool,
                    reserve0: state.reserve0,
                    reserve1: state.reserve1,
                }
            })
            .collect()
    }

    fn resolve(&mut self) -> Result<Box<ResolveJob>, PumpError> {
        let role = WorkerRole::Resolve;
        let mut job = self.resolve.take().ok_or_else(|| self.protocol(role))?;
        job.pools.clone_from(&self.changed);
        match self.finish(role, self.submit(role, 0, Unit::Resolve(job))?)? {
            Output::Resolved(job) => Ok(job),
            _ => Err(self.protocol(role)),
        }
    }

    fn solve_and_merge(
        &mut self,
        resolved: &mut ResolveJob,
        result: &mut BlockResult,
    ) -> Result<Box<MergeJob>, PumpError> {
        let role = WorkerRole::Merge;
        let mut merge = self.merge.take().ok_or_else(|| self.protocol(role))?;
        std::mem::swap(&mut merge.expected, &mut resolved.expected);
        let at_least = least_interesting(self.config.min_profit);
        let mut solving = std::mem::take(&mut self.solving);
        // Bins that nothing was touched in too: which those are depends on measured times, and the count
        // of units must not.
        for mut bin in resolved.bins.drain(..) {
            bin.at_least = at_least;
            let key = bin.bin;
            let receipt = self.submit(WorkerRole::Solver, key, Unit::Solve(bin))?;
            solving.push((key, receipt));
        }
        for (key, receipt) in solving.drain(..) {
            match self.outcome(WorkerRole::Solver, receipt)? {
                Ended::Done(Output::Solved(bin)) => {
                    if let Some(walk) = result.walks.get_mut(usize::from(bin.bin)) {
                        *walk = bin.walk;
                    }
                    merge.bins.push(bin);
                }
                Ended::Done(_) => return Err(self.protocol(WorkerRole::Solver)),
                // The merge gives the bin's cycles their outcome; the bin itself is made anew.
                Ended::Failed(failure, _) => {
                    let number = self.number;
                    tracing::error!("block {number}: solver bin {key} failed: {failure}");
                    merge.lost.push(key);
                }
            }
        }
        self.solving = solving;
        match self.finish(role, self.submit(role, 0, Unit::Merge(merge))?)? {
            Output::Merged(merge, Ok(tally)) => {
                result.tally = tally;
                result.profitable = merge.candidates.len();
                Ok(merge)
            }
            Output::Merged(_, Err(trip)) => {
                tracing::error!("at the trip of the outcome fuse:\n{}", self.fleet.status());
                Err(PumpError::Fuse {
                    number: self.number,
                    trip,
                })
            }
            _ => Err(self.protocol(role)),
        }
    }

    /// Simulates candidates in order while a bound can still change what is published, then finds the
    /// smallest inputs of those that are.
    fn simulate(
        &mut self,
        mut merged: Box<MergeJob>,
        result: &mut BlockResult,
    ) -> Result<Box<MergeJob>, PumpError> {
        let role = WorkerRole::SimDriver;
        let mut best = Best::new(self.config.top, self.config.min_profit);
        let mut next = 0;
        loop {
            if next == merged.ordered {
                merged.order_more();
            }
            let candidate = merged.candidates[..merged.ordered].get(next).copied();
            let wanted = candidate.filter(|candidate| best.may_change(candidate));
            let wanted = wanted.filter(|_| !self.evm_is_over());
            if let Some(candidate) = wanted
                && self.simulating.len() < SIM_WINDOW as usize
            {
                next += 1;
                if let Some(job) = self.sim_job(candidate.id, false) {
                    let receipt = self.submit(role, 0, Unit::Simulate(job))?;
                    self.simulating.push_back((candidate.id, receipt));
                }
                continue;
            }
            // The oldest first: what is submitted next depends on results in order, not in time.
            let Some((id, receipt)) = self.simulating.pop_front() else {
                break;
            };
            result.simulated += 1;
            match self.simulated(id, receipt, result)? {
                Ok(Some(winner)) => {
                    let profit = winner.trade.optimum.profit;
                    if profit >= self.config.min_profit && self.evm_confirms(&winner)? {
                        best.take(id, profit, winner);
                    }
                }
                Ok(None) => {}
                Err(not_proved) => {
                    tracing::warn!("block {}: cycle {}: {not_proved}", self.number, id.number());
                    result.unproved += 1;
                }
            }
        }
        for winner in best.into_kept() {
            let Some(job) = self.sim_job(winner.id, true) else {
                continue;
            };
            let receipt = self.submit(role, 0, Unit::Simulate(job))?;
            let smaller = self.simulated(winner.id, receipt, result)?;
            // The profit is proved already; only its input may get smaller.
            let least = match smaller {
                Ok(Some(least)) => Winner {
                    least_input: true,
                    ..least
                },
                Ok(None) | Err(_) => winner,
            };
            if least.trade == winner.trade || self.evm_confirms(&least)? {
                result.winners.push(least);
            } else if !self.evm_distrusts(winner.id) {
                result.winners.push(winner);
            }
        }
        Ok(merged)
    }

    fn sim_job(&self, id: CycleId, least_input: bool) -> Option<SimJob> {
        if self.evm_distrusts(id) {
            return None;
        }
        let hops = self.fleet.workload().arbitrage().world().hops_of(id)?;
        Some(SimJob { hops, least_input })
    }

    /// What came of a simulation: a trade, none, or no proof. One that failed has none and is counted.
    fn simulated(
        &self,
        id: CycleId,
        receipt: Receipt<W>,
        result: &mut BlockResult,
    ) -> Result<Result<Option<Winner>, NotProved>, PumpError> {
        let role = WorkerRole::SimDriver;
        let (number, cycle) = (self.number, id.number());
        match self.outcome(role, receipt)? {
            Ended::Done(Output::Simulated(Simulated(ended))) => match ended {
                Ok(trade) => {
                    return Ok(Ok(trade.map(|trade| Winner {
                        id,
                        trade,
                        least_input: false,
                    })));
                }
                Err(SimError::NotProved(not_proved)) => return Ok(Err(not_proved)),
                Err(error @ SimError::Disagrees(_)) => {
                    tracing::error!("block {number}: cycle {cycle}: {error}");
                }
            },
            Ended::Done(_) => return Err(self.protocol(role)),
            Ended::Failed(failure, _) => {
                tracing::error!(
                    "block {number}: the simulation of cycle {cycle} failed: {failure}"
                );
            }
        }
        result.sim_failed += 1;
        Ok(Ok(None))
    }

    /// Tells the fleet that the epoch is over, feeds measured costs back, and takes the buffers home.
    fn end_epoch(
        &mut self,
        mut resolved: Box<ResolveJob>,
        mut merged: Box<MergeJob>,
    ) -> Result<(), PumpError> {
        self.epoch += 1;
        let number = self.number;
        self.fleet
            .epoch_boundary(self.epoch)
            .map_err(|error| PumpError::Epoch { number, error })?;
        {
            let mut partition = self.fleet.workload().arbitrage().partition_mut();
            for bin in &merged.bins {
                observe(&mut partition, bin)?;
            }
            if self.epoch.is_multiple_of(REPARTITION_EVERY) {
                let moved = partition.repartition();
                tracing::debug!(
                    "epoch {}: {} groups moved, makespan {} -> {}",
                    self.epoch,
                    moved.moves.len(),
                    moved.before,
                    moved.after
                );
            }
        }
        std::mem::swap(&mut merged.expected, &mut resolved.expected);
        resolved.bins.append(&mut merged.bins);
        resolved.bins.sort_unstable_by_key(|bin| bin.bin);
        for key in 0..self.config.bins {
            let place = usize::from(key);
            if resolved.bins.get(place).is_none_or(|bin| bin.bin != key) {
                resolved.bins.insert(place, BinJob::new(key));
            }
        }
        self.resolve = Some(resolved);
        self.merge = Some(merged);
        Ok(())
    }

    fn submit(&self, role: WorkerRole, key: u8, unit: Unit) -> Result<Receipt<W>, PumpError> {
        self.fleet
            .submit(role, key, unit)
            .map_err(|refused| PumpError::Refused {
                number: self.number,
                role: name(role),
                error: refused.error,
            })
    }

    fn outcome(&self, role: WorkerRole, receipt: Receipt<W>) -> Result<Ended<W>, PumpError> {
        wait(receipt, self.watch).map_err(|_| self.protocol(role))
    }

    fn finish(&self, role: WorkerRole, receipt: Receipt<W>) -> Result<Output, PumpError> {
        match self.outcome(role, receipt)? {
            Ended::Done(output) => Ok(output),
            Ended::Failed(failure, _) => Err(PumpError::Failed {
                number: self.number,
                role: name(role),
                failure,
            }),
        }
    }

    fn protocol(&self, role: WorkerRole) -> PumpError {
        PumpError::Protocol {
            number: self.number,
            role: name(role),
        }
    }
}

/// Shares a bin's measured time out over its groups, by the cycles that each had in it.
fn observe(
    partition: &mut crate::partition::Partition,
    bin: &BinJob,
) -> Result<(), PartitionError> {
    let walk = u64::try_from(bin.walk.as_nanos()).unwrap_or(u64::MAX);
    let all = bin.ids.len() as u64;
    for run in bin.ids.chunk_by(|a, b| group_of(*a) == group_of(*b)) {
        if let Some(first) = run.first() {
            partition.observe(
                group_of(*first),
                walk.saturating_mul(run.len() as u64) / all.max(1),
            )?;
        }
    }
    Ok(())
}

fn name(role: WorkerRole) -> &'static str {
    regatta_core::role::FLEET_ROLES
        .get(RoleId::from(role))
        .map_or("unknown", |spec| spec.name)
}
