//! Simulate: one candidate, exactly.

use super::world::CycleHops;
use crate::cycles::CycleId;
use crate::solver::{Cycle, HOPS_MAX, NotProved, Optimum, optimum, optimum_least_input};

/// What a simulation unit works on.
#[derive(Clone, Copy, Debug)]
pub struct SimJob {
    /// The cycle.
    pub(crate) id: CycleId,
    /// Its hops at this block.
    pub(crate) hops: CycleHops,
    /// Whether to find the smallest input of all that have the largest profit: for what is published.
    pub(crate) least_input: bool,
}

/// What it yields.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    /// The cycle.
    pub(crate) id: CycleId,
    /// The proved optimum, or none if no input has a profit, or what is known if it cannot be proved.
    pub(crate) result: Result<Option<Trade>, NotProved>,
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
    fn of(cycle: &Cycle<'_>, optimum: Optimum) -> Option<Self> {
        let mut amounts = [0; HOPS_MAX + 1];
        amounts[0] = optimum.input;
        for (place, hop) in cycle.hops().iter().enumerate() {
            amounts[place + 1] = hop.forward(amounts[place])?;
        }
        let len = cycle.hops().len() + 1;
        (amounts[len - 1] == optimum.output).then_some(Self {
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
            Ok(best.and_then(|best| Trade::of(&cycle, best)))
        });
        Simulated {
            id: self.id,
            result,
        }
    }
}
