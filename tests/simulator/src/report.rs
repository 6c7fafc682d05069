//! What is printed of many runs.

use crate::bug::Bug;
use crate::coverage::{Coverage, Seen};
use crate::rule::Rule;
use crate::run::{self, Failure};
use std::io::{self, Write};
use std::time::Instant;
use thiserror::Error;

/// From so many runs on, something that no run came by is a fault of the simulator.
pub const WHOLE: u64 = 50_000;

/// Which runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runs {
    /// The first seed.
    pub first: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Operations of a script.
    pub steps: usize,
    /// What the binding does wrong.
    pub bug: Option<Bug>,
}

/// Why a report is no good news.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A property does not hold.
    #[error("`{}` does not hold, after {runs} runs", rule.name())]
    Fails {
        /// Which.
        rule: Rule,
        /// Runs that were made, the failing one counted.
        runs: u64,
    },
    /// The runs did not come by everything that they should.
    #[error("no run came by {0}: the scripts have grown too tame")]
    Missed(String),
    /// The report could not be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
}

/// Makes the runs and says what came of them.
pub fn whole(runs: Runs, out: &mut dyn Write) -> Result<(), ReportError> {
    let mut cover = Coverage::default();
    let begun = Instant::now();
    let mut failure = None;
    let mut made = 0;
    for seed in (runs.first..).take(usize::try_from(runs.seeds).unwrap_or(usize::MAX)) {
        made += 1;
        if let Err(found) = run::seed(seed, runs.steps, runs.bug, &mut cover) {
            failure = Some(found);
            break;
        }
    }
    totals(made, begun.elapsed().as_secs_f64(), &cover, out)?;
    if let Some(failure) = failure {
        self::failure(&failure, runs.bug, out)?;
        return Err(ReportError::Fails {
            rule: failure.violation.rule,
            runs: made,
        });
    }
    for rule in Rule::ALL {
        writeln!(out, "{:<10} holds: {}", rule.name(), rule.says())?;
    }
    let missed = cover.lists().into_iter().flat_map(Seen::missed);
    let missed: Vec<&str> = missed.collect();
    if runs.seeds >= WHOLE && !missed.is_empty() {
        return Err(ReportError::Missed(missed.join(", ")));
    }
    Ok(())
}

fn totals(runs: u64, seconds: f64, cover: &Coverage, out: &mut dyn Write) -> io::Result<()> {
    let hours = cover.awake / 3_600_000;
    let stopped = (cover.millis - cover.awake) / 3_600_000;
    // Counts of this size are exact, or near enough for a rate.
    #[expect(clippy::cast_precision_loss, reason = "a rate to be read by eye")]
    let rate = runs as f64 / seconds.max(1e-9);
    writeln!(
        out,
        "{runs} runs in {seconds:.1} s: {rate:.0} a second, {} steps, {} units",
        cover.steps, cover.units
    )?;
    writeln!(
        out,
        "{} days and {} hours of virtual time, and {} days for which processes were stopped",
        hours / 24,
        hours % 24,
        stopped / 24
    )?;
    for list in cover.lists() {
        writeln!(out, "{list}")?;
    }
    Ok(())
}

fn failure(failure: &Failure, bug: Option<Bug>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nseed {}: {}", failure.seed, failure.violation)?;
    let least = run::shrink(failure, bug);
    let (before, after) = (failure.script.ops.len(), least.script.ops.len());
    writeln!(
        out,
        "cut from {before} operations to {after}: {}",
        least.violation
    )?;
    let name = format!("seed_{}_{}", failure.seed, failure.violation.rule.name());
    writeln!(out, "\n{}\n", least.script.as_test(&name))
}
