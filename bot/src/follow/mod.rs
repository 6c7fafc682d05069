//! From what a source says to what is said of it: which blocks run, which are missed, and what is retracted.
//!
//! # Invariants
//! - A batch of events leads to at most one cycle: that of the block it ends with. If it ends otherwise, the world
//!   is as the events say, and what they touched is owed to the next block that runs.
//! - A block that came runs or is said to be missed, exactly once.
//! - What was published for a block is retracted when the block is reverted, each record exactly once, newest
//!   block first and in the order of publication within a block, before anything that came after.

mod branch;

use crate::evm::Machine;
use crate::market::UntrustedText;
use crate::pipeline::{Arbitrage, BlockResult, Pump, PumpConfig, PumpError, Watch};
use crate::publish;
use crate::report::{BlockRecord, DistrustRecord, MissedRecord, RetractRecord};
use crate::run::RunError;
use crate::source::{Block, Event, Head};
use branch::{Branch, Published, Waiting};
use regatta_portable::Fleet;

/// Blocks that are kept waiting for a block that covers them, so that the record of a missed block can name it.
/// More come only of a source that reverts and reverts.
const WAITING: usize = 1024;

/// Something to be said of the chain.
#[derive(Debug)]
pub(crate) enum Said<'r> {
    /// A block ran, and came to this.
    Block(Head, BlockRecord, &'r BlockResult),
    /// Something is not what it is said to be, by its bytecode: said after the block that showed it.
    Distrust(DistrustRecord),
    /// A block was missed.
    Missed(MissedRecord),
    /// A record was published for a block that is no longer part of the chain.
    Retract(RetractRecord),
}

/// Who says it.
pub(crate) type Say<'s> = dyn FnMut(Said<'_>) -> Result<(), RunError> + 's;

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
        let mut newest = None;
        for event in events {
            newest = self.change(event, say)?;
        }
        if let Some(head) = newest {
            self.run(&head, say)
        } else if self.branch.waiting() > WAITING {
            self.finish(say)
        } else {
            Ok(())
        }
    }

    /// Nothing more comes: what waits is missed, and nothing covers it.
    pub(crate) fn finish(&mut self, say: &mut Say<'_>) -> Result<(), RunError> {
        self.branch
            .give_up()
            .try_for_each(|block| say(missed(&self.chain, block, None)))
    }

    /// Changes the world. The block that is to run if nothing else comes.
    fn change(&mut self, event: Event, say: &mut Say<'_>) -> Result<Option<Head>, RunError> {
        match event {
            Event::Block(block) => self.block(&block).map(Some),
            Event::Reverted { number, hash } => {
                self.pump.revert(number, hash, !self.every)?;
                for Published { kind, path } in self.branch.reverted(hash) {
                    say(Said::Retract(RetractRecord {
                        chain: self.chain.clone(),
                        number,
                        hash,
                        path,
                        kind,
                    }))?;
                }
                Ok(None)
            }
            // The made-up chain, the one source until a node is, says neither.
            Event::Pools(_) | Event::Reread { .. } => Err(RunError::Cut),
        }
    }

    fn block(&mut self, block: &Block) -> Result<Head, RunError> {
        self.pump.apply(block)?;
        self.branch.came(block.number, block.hash);
        Ok(block.head())
    }

    fn run(&mut self, head: &Head, say: &mut Say<'_>) -> Result<(), RunError> {
        let result = self.pump.run_last()?;
        let record = publish::block_record(&self.chain, head, &result, self.fleet);
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
        say(Said::Block(*head, record, &result))?;
        let marks = result.evm.iter().flat_map(|evm| &evm.marks);
        let mut records = marks.map(|mark| DistrustRecord::of(mark, &self.chain, head));
        records.try_for_each(|record| say(Said::Distrust(record)))
    }
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
