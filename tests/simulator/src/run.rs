//! One run, many runs, and a failing script cut down.

use crate::bug::Bug;
use crate::coverage::Coverage;
use crate::generate;
use crate::rng::mix;
use crate::rule::Violation;
use crate::script::Script;
use crate::world::World;

/// Schedules that are tried for a script that was cut: what is taken away shifts the draws of the rest.
const SCHEDULES: u64 = 12;

/// Runs a script to its end.
pub fn run(script: &Script, bug: Option<Bug>, cover: &mut Coverage) -> Result<(), Violation> {
    World::new(script, bug, cover)?.run()
}

/// A script that fails, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The seed that it came from.
    pub seed: u64,
    /// The script.
    pub script: Script,
    /// What does not hold.
    pub violation: Violation,
}

/// Runs the script of `seed`.
pub fn seed(
    seed: u64,
    steps: usize,
    bug: Option<Bug>,
    cover: &mut Coverage,
) -> Result<(), Box<Failure>> {
    let script = generate::script(seed, steps);
    run(&script, bug, cover).map_err(|violation| {
        Box::new(Failure {
            seed,
            script,
            violation,
        })
    })
}

/// The failure with as few operations as can be found by leaving out runs of them, in halves, quarters
/// and so on down to single ones, until no single one can go. The rule that does not hold stays.
#[must_use]
pub fn shrink(failure: &Failure, bug: Option<Bug>) -> Failure {
    let mut least = failure.clone();
    let mut chunk = least.script.ops.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        let mut cut = false;
        while at < least.script.ops.len() {
            let mut ops = least.script.ops.clone();
            let end = (at + chunk).min(ops.len());
            ops.drain(at..end);
            if let Some(less) = fails(&least, ops, bug) {
                least = less;
                cut = true;
            } else {
                at += chunk;
            }
        }
        if !(cut && chunk == 1) {
            chunk /= 2;
        }
    }
    least
}

/// The failure with these operations instead, under some schedule.
fn fails(failure: &Failure, ops: Vec<crate::script::Op>, bug: Option<Bug>) -> Option<Failure> {
    let mut script = Script {
        ops,
        ..failure.script
    };
    for schedule in 0..SCHEDULES {
        script.schedule = if schedule == 0 {
            failure.script.schedule
        } else {
            mix(schedule)
        };
        let violation = run(&script, bug, &mut Coverage::default()).err();
        if let Some(violation) = violation.filter(|v| v.rule == failure.violation.rule) {
            return Some(Failure {
                seed: failure.seed,
                script,
                violation,
            });
        }
    }
    None
}
