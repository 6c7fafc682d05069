//! Has the machine run what the exact integers found, where there is a machine.
//!
//! # Invariants
//! - Without a machine nothing is different: no unit is submitted, and every trade stands.
//! - What is marked takes effect at the end of the cycle. Until then candidates over it are passed over.

use super::{Pipeline, Pump, PumpError, Winner};
use crate::cycles::CycleId;
use crate::evm::{EvmAnswer, EvmJob, EvmResult, Machine};
use crate::pipeline::{Output, Unit};
use crate::source::{BlockHash, Head};
use regatta_core::role::WorkerRole;
use regatta_portable::Ended;

impl<W: Pipeline> Pump<'_, W> {
    /// Has `machine` run each candidate, too: what it does not confirm is not published.
    #[must_use]
    pub fn with_evm(mut self, machine: Machine) -> Self {
        self.evm = Some(Box::new(machine));
        self
    }

    /// The next cycle is that of this block, however the pump came to it.
    pub(crate) fn evm_at(&mut self, head: Head) {
        if let Some(machine) = &mut self.evm {
            machine.at(head);
        }
    }

    pub(super) fn evm_came(&mut self, head: Head) {
        if let Some(machine) = &mut self.evm {
            machine.came(head);
        }
    }

    pub(super) fn evm_reverted(&mut self, hash: BlockHash) {
        if let Some(machine) = &mut self.evm {
            machine.reverted(hash);
        }
    }

    /// Begins a cycle: exchanges whose fee was not compared yet are.
    pub(super) fn evm_begin(&mut self) -> Result<(), PumpError> {
        self.with_machine((), |pump, machine| {
            let world = pump.fleet.workload().arbitrage().world();
            machine.begin();
            machine.compare_fees(world.market(), &mut |job| pump.evm_unit(job))
        })
    }

    /// Ends a cycle, when no unit reads the world.
    pub(super) fn evm_end(&mut self) -> Option<EvmResult> {
        let machine = self.evm.as_mut()?;
        let mut world = self.fleet.workload().arbitrage().world_mut();
        Some(machine.end(&mut world))
    }

    /// Whether the machine decides nothing more in this block, so that no candidate can be published any more.
    pub(super) fn evm_is_over(&mut self) -> bool {
        let interrupted = self.watch.interrupted();
        self.evm.as_mut().is_some_and(|machine| {
            if interrupted {
                machine.give_up();
            }
            machine.is_over()
        })
    }

    /// Whether a cycle goes through anything that is marked.
    pub(super) fn evm_distrusts(&self, id: CycleId) -> bool {
        self.evm.as_ref().is_some_and(|machine| {
            let world = self.fleet.workload().arbitrage().world();
            machine.distrusts(&world, id)
        })
    }

    /// Whether a trade may be published.
    pub(super) fn evm_confirms(&mut self, winner: &Winner) -> Result<bool, PumpError> {
        self.with_machine(true, |pump, machine| {
            // Units of this role take what they need with them: none waits for the world.
            let world = pump.fleet.workload().arbitrage().world();
            if machine.distrusts(&world, winner.id) {
                return Ok(false);
            }
            let Some(case) = machine.case(&world, winner.id, &winner.trade) else {
                return Ok(false);
            };
            machine.confirm(world.market(), &case, &mut |job| pump.evm_unit(job))
        })
    }

    fn with_machine<T>(
        &mut self,
        without: T,
        ask: impl FnOnce(&Self, &mut Machine) -> Result<T, PumpError>,
    ) -> Result<T, PumpError> {
        let Some(mut machine) = self.evm.take() else {
            return Ok(without);
        };
        if self.watch.interrupted() {
            machine.give_up();
        }
        let answer = ask(self, &mut machine);
        self.evm = Some(machine);
        answer
    }

    /// Has a seat run the machine.
    fn evm_unit(&self, job: EvmJob) -> Result<Option<EvmAnswer>, PumpError> {
        let role = WorkerRole::SimDriver;
        let receipt = self.submit(role, 0, Unit::Evm(Box::new(job)))?;
        match self.outcome(role, receipt)? {
            Ended::Done(Output::Evm(answer)) => Ok(Some(*answer)),
            Ended::Done(_) => Err(self.protocol(role)),
            Ended::Failed(failure, _) => {
                let number = self.number;
                tracing::error!("block {number}: a run of the machine failed: {failure}");
                Ok(None)
            }
        }
    }
}
