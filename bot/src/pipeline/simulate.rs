//! Simulate: one candidate, exactly.

use super::world::CycleHops;
use crate::cycles::CycleId;
use crate::solver::{Cycle, HOPS_MAX, NotProved, Optimum, optimum, optimum_least_input};
use thiserror::Error;

/// What a simulation unit works on.
#[derive(Clone, Copy, Debug)]
pub struct SimJob {
    /// The hops of the cycle at this block.
    pub(crate) hops: CycleHops,
    /// Whether to find the smallest input of all that have the largest profit: for what is published.
    pub(crate) least_input: bool,
}

/// What it yields: the proved optimum, or none if no input has a profit.
#[derive(Clone, Copy, Debug)]
pub struct Simulated(pub(crate) Result<Option<Trade>, SimError>);

/// Why a simulation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum SimError {
    /// The optimum cannot be proved.
    #[error(transparent)]
    NotProved(#[from] NotProved),
    /// Swap by swap the optimum does not come out as the solver says: the solver is at fault.
    #[error("{} in gives {} out by the solver, and not by one swap after the other", .0.input, .0.output)]
    Disagrees(Optimum),
}

/// A trade that is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Winner {
    /// The cycle.
    pub id: CycleId,
    /// The trade.
    pub trade: Trade,
    /// Whether its input is proved to be the smallest of all that have the profit. It is the least for
    /// its output in any case.
    pub least_input: bool,
}

/// A trade: what goes in and what each hop gives, in the smallest units of the tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trade {
    /// The proved optimum.
    pub optimum: Optimum,
    /// The input, then the output of each hop.
    amounts: [u128; HOPS_MAX + 1],
    len: usize,
}

impl Trade {
    /// The input, then the output of each hop.
    #[must_use]
    pub fn amounts(&self) -> &[u128] {
        &self.amounts[..self.len]
    }

    /// Walks the optimum through the hops, one exact swap after the other.
    fn of(cycle: &Cycle<'_>, optimum: Optimum) -> Result<Self, SimError> {
        let disagrees = SimError::Disagrees(optimum);
        let mut amounts = [0; HOPS_MAX + 1];
        amounts[0] = optimum.input;
        for (place, hop) in cycle.hops().iter().enumerate() {
            amounts[place + 1] = hop.forward(amounts[place]).ok_or(disagrees)?;
        }
        let len = cycle.hops().len() + 1;
        if amounts[len - 1] != optimum.output {
            return Err(disagrees);
        }
        Ok(Self {
            optimum,
            amounts,
            len,
        })
    }
}

impl SimJob {
    pub(crate) fn run(&self) -> Simulated {
        let result = Cycle::new(self.hops.as_slice()).map_or(Ok(None), |cycle| {
            let best = if self.least_input {
                optimum_least_input(&cycle)
            } else {
                optimum(&cycle)
            }?;
            best.map(|best| Trade::of(&cycle, best)).transpose()
        });
        Simulated(result)
    }
}
