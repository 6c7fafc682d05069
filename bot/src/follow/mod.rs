//! From what a source says to what is said of it: which blocks run, which are missed, and what is retracted.
//!
//! # Invariants
//! - A batch of events leads to at most one cycle: that of the block it ends with. If it ends otherwise, the world
//!   is as the events say, and what they touched is owed to the next block that runs.
//! - A block that came runs or is said to be missed, exactly once.
//! - What was published for a block is retracted when the block is reverted, each record exactly once, newest
//!   block first and in the order of publication within a block, before anything that came after.
//! - New pools are part of the market at once, and their cycles of what runs once all are registered: where every
//!   block runs that is before the next block, otherwise between two blocks, which do not wait for it.
//! - A block at which the market is read anew is a block like others, whose pools are those that turned out to be
//!   otherwise. What was published for blocks before it is final.

mod branch;

use crate::evm::Machine;
use crate::market::UntrustedText;
use crate::pipeline::{Arbitrage, BlockResult, FeedWaker, Pump, PumpConfig, PumpError, Watch};
use crate::publish;
use crate::report::{BlockRecord, DistrustRecord, MissedRecord, RegisteredRecord, RetractRecord};
use crate::run::RunError;
use crate::source::{Block, BlockHash, Event, Head};
use branch::{Branch, Published, Waiting};
use regatta_portable::Fleet;

/// Blocks that are kept waiting for a block that covers them, so that the record of a missed block can name it.
/// More come only of a source that reverts and reverts.
const WAITING: usize = 1024;

/// Something to be said of the chain.
#[derive(Debug)]
pub(crate) enum Said<'r> {
    /// A block ran, and came to this.
    Block(Head, Box<BlockRecord>, &'r BlockResult),
    /// Something is not what it is said to be, by its bytecode: said after the block that showed it.
    Distrust(DistrustRecord),
    /// A block was missed.
    Missed(MissedRecord),
    /// Cycles over new pools took effect.
    Registered(RegisteredRecord),
    /// A record was published for a block that is no longer part of the chain.
    Retract(RetractRecord),
}

/// Who says it.
pub(crate) type Say<'s> = dyn FnMut(Said<'_>) -> Result<(), RunError> + 's;

/// The last block, which may run.
#[derive(Clone, Copy, Debug)]
struct Newest {
    head: Head,
    /// The market was read anew at it.
    reread: bool,
}

/// Follows a source with a pump.
#[derive(Debug)]
pub(crate) struct Follower<'f> {
    fleet: &'f Fleet<Arbitrage>,
    pump: Pump<'f>,
    chain: UntrustedText,
    branch: Branch,
    /// Every block runs, so what a block comes to follows from its chain alone.
    every: bool,
}

impl<'f> Follower<'f> {
    /// A follower over the cycles that are registered. With `every`, events are to come one at a time, and what is
    /// published for a block does not depend on blocks that were reverted; otherwise what a reverted block
    /// touched is looked at once more.
    pub(crate) fn new(
        fleet: &'f Fleet<Arbitrage>,
        config: PumpConfig,
        chain: UntrustedText,
        every: bool,
        watch: &'f dyn Watch,
    ) -> Result<Self, PumpError> {
        Ok(Self {
            fleet,
            pump: Pump::new(fleet, config, watch)?,
            chain,
            branch: Branch::default(),
            every,
        })
    }

    /// Has `machine` run each candidate, too.
    pub(crate) fn with_evm(mut self, machine: Machine) -> Self {
        self.pump = self.pump.with_evm(machine);
        self
    }

    /// Takes what came, and says what came of it.
    pub(crate) fn take(
        &mut self,
        events: impl IntoIterator<Item = Event>,
        say: &mut Say<'_>,
    ) -> Result<(), RunError> {
        self.grow(false, say)?;
        let mut newest = None;
        for event in events {
            newest = self.change(event, newest, say)?;
        }
        if let Some(newest) = newest {
            self.run(newest, say)?;
        } else if self.branch.waiting() > WAITING {
            self.miss(say)?;
        }
        self.grow(false, say)
    }

    /// Does what there is to do for pools that have come, and says what took effect.
    fn grow(&mut self, wait: bool, say: &mut Say<'_>) -> Result<(), RunError> {
        while let Some(grown) = self.pump.grow(wait)? {
            let (after, hash) = self.branch.last().unzip();
            say(Said::Registered(RegisteredRecord {
                chain: self.chain.clone(),
                epoch: grown.epoch,
                after,
                hash,
                pools: grown.pools,
                skipped: grown.skipped,
                cycles: grown.cycles,
                total: grown.total,
                refused: grown.refused.map(|refused| refused.to_string()),
            }))?;
        }
        Ok(())
    }

    /// What is to be woken when there is something to take though no event came.
    pub(crate) fn wake(&mut self, wake: Option<FeedWaker>) {
        self.pump.wake(wake);
    }

    /// Whether units are outstanding between two batches.
    pub(crate) fn is_growing(&self) -> bool {
        self.pump.is_growing()
    }

    /// Nothing more comes: what waits is missed, and nothing covers it. How many receipts were given up.
    pub(crate) fn finish(&mut self, say: &mut Say<'_>) -> Result<u64, RunError> {
        self.miss(say)?;
        Ok(self.pump.give_up_growth())
    }

    /// Nothing that waits will run.
    fn miss(&mut self, say: &mut Say<'_>) -> Result<(), RunError> {
        self.branch
            .give_up()
            .try_for_each(|block| say(missed(&self.chain, block, None)))
    }

    /// Changes the world. The block that is to run if nothing else comes.
    fn change(
        &mut self,
        event: Event,
        newest: Option<Newest>,
        say: &mut Say<'_>,
    ) -> Result<Option<Newest>, RunError> {
        match event {
            Event::Block(block) => self.block(&block).map(Some),
            Event::Reverted { number, hash } => {
                self.pump.revert(number, hash, !self.every)?;
                retract(&self.chain, number, hash, self.branch.reverted(hash), say)?;
                Ok(None)
            }
            Event::Reread { head, reserves } => {
                let (number, hash) = (head.number, head.hash);
                self.pump.reread(number, hash, reserves)?;
                retract(
                    &self.chain,
                    number,
                    hash,
                    self.branch.reread(number, hash),
                    say,
                )?;
                Ok(Some(Newest { head, reread: true }))
            }
            Event::Pools(pools) => {
                self.pump.extend(&pools)?;
                if self.every {
                    // The next block is to find the same cycles whenever they would be ready.
                    self.grow(true, say)?;
                }
                Ok(newest)
            }
        }
    }

    fn block(&mut self, block: &Block) -> Result<Newest, RunError> {
        self.pump.apply(block)?;
        self.branch.came(block.number, block.hash);
        Ok(Newest {
            head: block.head(),
            reread: false,
        })
    }

    fn run(&mut self, newest: Newest, say: &mut Say<'_>) -> Result<(), RunError> {
        let Newest { head, reread } = newest;
        self.pump.evm_at(head);
        let result = self.pump.run_last()?;
        let record = publish::block_record(&self.chain, &head, reread, &result, self.fleet);
        let winners = record.winners.iter();
        let published = winners
            .map(|winner| Published {
                kind: winner.kind,
                path: winner.path.clone(),
            })
            .collect();
        self.branch
            .ran(published)
            .try_for_each(|block| say(missed(&self.chain, block, Some(head.number))))?;
        say(Said::Block(head, Box::new(record), &result))?;
        let marks = result.evm.iter().flat_map(|evm| &evm.marks);
        let mut records = marks.map(|mark| DistrustRecord::of(mark, &self.chain, &head));
        records.try_for_each(|record| say(Said::Distrust(record)))
    }
}

/// Retracts what was published for a block.
fn retract(
    chain: &UntrustedText,
    number: u64,
    hash: BlockHash,
    published: Vec<Published>,
    say: &mut Say<'_>,
) -> Result<(), RunError> {
    published
        .into_iter()
        .try_for_each(|Published { kind, path }| {
            say(Said::Retract(RetractRecord {
                chain: chain.clone(),
                number,
                hash,
                path,
                kind,
            }))
        })
}

fn missed(chain: &UntrustedText, block: Waiting, covered_by: Option<u64>) -> Said<'static> {
    let Waiting {
        number,
        hash,
        orphaned,
    } = block;
    Said::Missed(MissedRecord {
        chain: chain.clone(),
        number,
        hash,
        covered_by,
        orphaned,
    })
}

#[cfg(test)]
mod tests;
