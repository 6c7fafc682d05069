//! Reading the market anew: pool-state units compare, and what differs is applied at once.
//!
//! # Invariants
//! - The world changes when every comparison has ended, so all of them see the world of before.

use super::super::reread::{READ_BATCH, READ_WINDOW, ReadJob, last_of_each};
use super::super::watch::wait_unless_interrupted;
use super::super::workload::{Output, Pipeline, Unit};
use super::{Pump, PumpError};
use crate::market::ReserveUpdate;
use regatta_core::role::WorkerRole;
use regatta_portable::{Ended, Receipt};
use std::collections::VecDeque;

impl<W: Pipeline> Pump<'_, W> {
    /// Takes reserves that were read at a block, which is the last one from here on; blocks before it cannot be
    /// reverted any more. The next cycle looks at the pools whose reserves were others.
    ///
    /// The units are deferrable: while the posture holds them, so it does what comes after.
    pub fn reread(
        &mut self,
        number: u64,
        hash: crate::source::BlockHash,
        mut reserves: Vec<ReserveUpdate>,
    ) -> Result<(), PumpError> {
        self.number = number;
        last_of_each(&mut reserves);
        let mut differing = Vec::new();
        let mut window = VecDeque::with_capacity(READ_WINDOW as usize);
        for batch in reserves.chunks(READ_BATCH) {
            if window.len() == READ_WINDOW as usize {
                self.compared(&mut window, &mut differing)?;
            }
            let job = ReadJob {
                reserves: batch.to_vec(),
            };
            window.push_back(self.submit(WorkerRole::PoolStateUpdater, 0, Unit::Compare(job))?);
        }
        while !window.is_empty() {
            self.compared(&mut window, &mut differing)?;
        }
        self.change(number, |world, changed| {
            world.reread(number, hash, &differing, changed)
        })
    }

    /// Collects the oldest comparison, if there is one.
    fn compared(
        &self,
        window: &mut VecDeque<Receipt<W>>,
        differing: &mut Vec<ReserveUpdate>,
    ) -> Result<(), PumpError> {
        let role = WorkerRole::PoolStateUpdater;
        let Some(receipt) = window.pop_front() else {
            return Ok(());
        };
        let number = self.number;
        let given_up = window.len() as u64 + 1;
        let interrupted = PumpError::Interrupted { number, given_up };
        match wait_unless_interrupted(receipt, self.watch).ok_or(interrupted)? {
            Ok(Ended::Done(Output::Compared(job))) => {
                differing.extend(job.reserves);
                Ok(())
            }
            Ok(Ended::Failed(failure, _)) => Err(PumpError::Failed {
                number,
                role: super::name(role),
                failure,
            }),
            Ok(Ended::Done(_)) | Err(_) => Err(self.protocol(role)),
        }
    }
}
