//! The bot's units: one kind per role.

use super::merge::MergeJob;
use super::registration::RegisterJob;
use super::reread::{READ_WINDOW, ReadJob};
use super::resolve::ResolveJob;
use super::simulate::{SimJob, Simulated};
use super::solve::BinJob;
use super::world::World;
use super::{GROUP, REGISTRATION_WINDOW};
use crate::cycles::Cycle;
use crate::evm::{EvmAnswer, EvmArena, EvmJob};
use crate::partition::{Partition, PartitionError, Policy};
use crate::settle::SubmitJob;
use crate::verify::VerifyJob;
use regatta_core::outcome::{FuseTrip, Tally};
use regatta_core::plan::FleetPlan;
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use regatta_portable::{FleetConfig, Pin, UnitContext, Workload};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A unit of the bot.
#[derive(Debug)]
pub enum Unit {
    /// Registrar: check a cycle that a crawl found.
    Register(RegisterJob),
    /// `PoolStateUpdater`: find what a reading of the market changes.
    Compare(ReadJob),
    /// Resolve: find what a block touched.
    Resolve(Box<ResolveJob>),
    /// Solver: screen and bound a bin.
    Solve(BinJob),
    /// Merge: close the ledger and order the candidates.
    Merge(Box<MergeJob>),
    /// `SimDriver`: simulate a candidate exactly.
    Simulate(SimJob),
    /// `SimDriver`: run a candidate as bytecode.
    Evm(Box<EvmJob>),
    /// Verifier: compare the reserves of a block with what the source says of it.
    Verify(Box<VerifyJob>),
    /// Submitter: sign a transaction.
    Submit(Box<SubmitJob>),
}

/// What a unit yields.
#[derive(Debug)]
pub enum Output {
    /// Whether the cycle is one, and the cycle.
    Registered(Cycle, bool),
    /// What differs from the world.
    Compared(ReadJob),
    /// The touched cycles, in bins.
    Resolved(Box<ResolveJob>),
    /// The bin's outcomes and candidates.
    Solved(BinJob),
    /// The ledger's balance, or why the fuse tripped.
    Merged(Box<MergeJob>, Result<Tally, FuseTrip>),
    /// The exact result.
    Simulated(Simulated),
    /// What the bytecode came to.
    Evm(Box<EvmAnswer>),
    /// The block with what was found out.
    Verified(Box<VerifyJob>),
    /// The signed transaction.
    Submitted(Box<SubmitJob>),
}

/// The workload: the world that every unit reads.
#[derive(Debug)]
pub struct Arbitrage {
    world: RwLock<World>,
    partition: RwLock<Partition>,
    policy: Policy,
}

impl Arbitrage {
    /// A workload over `world` with so many bins.
    pub fn new(world: World, bins: u8) -> Result<Self, PartitionError> {
        let policy = Policy::with_bins(u16::from(bins));
        let partition = RwLock::new(Partition::new(policy, &[])?);
        Ok(Self {
            world: RwLock::new(world),
            partition,
            policy,
        })
    }

    /// The world, for reading.
    pub fn world(&self) -> RwLockReadGuard<'_, World> {
        // A writer changes one edge after the other, each whole: a panic leaves a world to read.
        self.world.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world, for changing it between cycles.
    pub fn world_mut(&self) -> RwLockWriteGuard<'_, World> {
        self.world.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition of the groups into bins.
    pub(crate) fn partition(&self) -> RwLockReadGuard<'_, Partition> {
        self.partition
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition, for changing it at an epoch boundary.
    pub(crate) fn partition_mut(&self) -> RwLockWriteGuard<'_, Partition> {
        self.partition
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Places the groups of the registered cycles into bins; a group's first estimate is its number of
    /// cycles.
    pub(crate) fn place_groups(&self) -> Result<usize, PartitionError> {
        let cycles = self.world().table().len();
        let estimates: Vec<u64> = (0..cycles)
            .step_by(GROUP as usize)
            .map(|first| (cycles - first).min(GROUP as usize) as u64)
            .collect();
        *self.partition_mut() = Partition::new(self.policy, &estimates)?;
        Ok(estimates.len())
    }

    /// Places the groups that have come since: those that are placed stay.
    pub(crate) fn place_new_groups(&self) -> Result<(), PartitionError> {
        let cycles = self.world().table().len();
        let mut partition = self.partition_mut();
        let new: Vec<u64> = (0..cycles)
            .step_by(GROUP as usize)
            .skip(partition.groups())
            .map(|first| (cycles - first).min(GROUP as usize) as u64 * 1000 / u64::from(GROUP))
            .collect();
        partition.extend(&new)
    }
}

/// A workload that runs the bot's units: [`Arbitrage`], or one around it that watches them or makes
/// them fail.
pub trait Pipeline: Workload<Unit = Unit, Output = Output> {
    /// The world and the partition that the units read.
    fn arbitrage(&self) -> &Arbitrage;
}

impl Pipeline for Arbitrage {
    fn arbitrage(&self) -> &Arbitrage {
        self
    }
}

impl Workload for Arbitrage {
    type Unit = Unit;
    type Output = Output;
    type Arena = EvmArena;

    fn arena(&self, _: Pin) -> EvmArena {
        EvmArena::default()
    }

    fn run(&self, unit: Unit, arena: &mut EvmArena, _: &UnitContext) -> Output {
        match unit {
            Unit::Register(job) => Output::Registered(job.cycle(), job.run()),
            Unit::Compare(mut job) => {
                job.run(&self.world());
                Output::Compared(job)
            }
            Unit::Resolve(mut job) => {
                job.run(&self.world(), &self.partition());
                Output::Resolved(job)
            }
            Unit::Solve(mut job) => {
                job.run(&self.world());
                Output::Solved(job)
            }
            Unit::Merge(mut job) => {
                let tally = job.run();
                Output::Merged(job, tally)
            }
            Unit::Simulate(job) => Output::Simulated(job.run()),
            Unit::Evm(job) => Output::Evm(Box::new(job.run(arena))),
            Unit::Verify(mut job) => {
                job.run();
                Output::Verified(job)
            }
            Unit::Submit(mut job) => {
                job.run();
                Output::Submitted(job)
            }
        }
    }
}

/// Simulations that the pump keeps outstanding: as many as there are slots.
pub(crate) const SIM_WINDOW: u32 = 4;

/// Comparisons that the verifier keeps outstanding.
const VERIFY_WINDOW: u32 = 1;

/// Signatures that the settler keeps outstanding: nonces are given out one after the other.
const SUBMIT_WINDOW: u32 = 1;

/// The fleet of a bot that settles, too.
#[must_use]
pub(crate) fn settling(config: FleetConfig) -> FleetConfig {
    config.lane(WorkerRole::Submitter, SUBMIT_WINDOW).window(
        "settler",
        WorkerRole::Submitter,
        SUBMIT_WINDOW,
    )
}

/// The fleet of the bot: the shipped roles by `plan`, a lane for each role that has work, and the
/// windows of the producers.
#[must_use]
pub fn fleet_config(plan: FleetPlan, bins: u8) -> FleetConfig {
    FleetConfig::new(&FLEET_ROLES, plan)
        .name("bot")
        .lane(WorkerRole::Registrar, REGISTRATION_WINDOW)
        .window("crawl", WorkerRole::Registrar, REGISTRATION_WINDOW)
        .lane(WorkerRole::PoolStateUpdater, READ_WINDOW)
        .window("pump", WorkerRole::PoolStateUpdater, READ_WINDOW)
        .lane(WorkerRole::Resolve, 1)
        .window("pump", WorkerRole::Resolve, 1)
        .keyed_lane(WorkerRole::Solver, u32::from(bins), bins)
        .window("pump", WorkerRole::Solver, u32::from(bins))
        .lane(WorkerRole::Merge, 1)
        .window("pump", WorkerRole::Merge, 1)
        .lane(WorkerRole::SimDriver, SIM_WINDOW)
        .window("pump", WorkerRole::SimDriver, SIM_WINDOW)
        .lane(WorkerRole::Verifier, VERIFY_WINDOW)
        .window("verifier", WorkerRole::Verifier, VERIFY_WINDOW)
}
