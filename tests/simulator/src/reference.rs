//! The plain serial driver: the same units, one after the other, with nothing in the way.

use crate::fleet;
use crate::rule::{Rule, Step, Violation};
use crate::script::Tier;
use crate::unit::Unit;
use regatta_core::guard::Guard;
use regatta_core::time::Instant;
use regatta_core::unit::{Outcome, RunResult};

/// How each unit ends, and with what.
pub(crate) fn run(units: &[Unit]) -> Step<Vec<(Outcome, Option<u64>)>> {
    let plan = fleet::plan(Tier::Serial)?;
    let mut host = fleet::host(&plan)?;
    let (now, guard) = (Instant::ORIGIN, Guard::open(1));
    let failed = |what: String| Violation::new(Rule::Agrees, format!("the plain driver: {what}"));
    let mut ended = Vec::with_capacity(units.len());
    for (n, unit) in units.iter().enumerate() {
        let submitted = host.enqueue(unit.role, unit.key, now, &guard);
        let id = submitted.map_err(|error| failed(error.to_string()))?.unit();
        let mut output = None;
        while let Some(grant) = host.poll_grant(now, &guard) {
            let started = host.start(grant.seat, grant.unit, now, &guard);
            started.map_err(|error| failed(error.to_string()))?;
            let result = if unit.panics {
                RunResult::Panicked
            } else {
                output = Some(unit.result(n));
                RunResult::Done
            };
            let done = host.seat_done(grant.seat, grant.unit, result, now, &guard);
            done.map_err(|error| failed(error.to_string()))?;
        }
        let resolved = host.poll_resolved().filter(|resolved| resolved.unit == id);
        let resolved = resolved.ok_or_else(|| failed(format!("unit {n} did not end")))?;
        let released = host.release(id);
        released.map_err(|error| failed(error.to_string()))?;
        ended.push((resolved.outcome, output));
    }
    Ok(ended)
}
