//! What is tried, each scenario with groups of its own.

mod limits;
mod live;
mod plans;
mod posture;
mod sight;

use super::failure::Failure;
use super::group::Hierarchy;

/// The machine that a scenario runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// How many CPUs it has.
    pub(crate) cpus: u16,
    /// Where the CPU controller is.
    pub(crate) hierarchy: Hierarchy,
}

impl Machine {
    /// All its CPUs, in milli-cores.
    fn milli(self) -> u32 {
        u32::from(self.cpus) * 1000
    }

    fn is_v2(self) -> bool {
        self.hierarchy == Hierarchy::V2
    }
}

/// Tries something.
type Run = fn(Machine) -> Result<(), Failure>;

/// Something that is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Does it.
    pub(crate) run: Run,
}

/// Everything that is tried on a machine.
pub(crate) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = limits::all(machine);
    scenarios.extend(sight::all(machine));
    scenarios.extend(plans::all(machine));
    scenarios.extend(plans::runs_of_the_pinned_tier(machine));
    scenarios.extend(live::all(machine));
    scenarios.extend(posture::all(machine));
    scenarios
}

/// The scenarios of these names.
fn named<const N: usize>(list: [(&'static str, Run); N]) -> Vec<Scenario> {
    let one = |(name, run)| Scenario { name, run };
    list.into_iter().map(one).collect()
}
