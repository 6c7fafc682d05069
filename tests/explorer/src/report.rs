//! What a run prints: the numbers of each walk, each property with its verdict, and a trace if one fails.

use crate::action::Alphabet;
use crate::rule::{Coverage, Rule, Violation};
use crate::search::{Walk, walk};
use crate::step::Scene;
use crate::trace;
use crate::world::{Size, World};
use std::io::{self, Write};
use std::time::Instant;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A property does not hold, and the report says which and how.
    #[error("`{}` does not hold", .0.name())]
    Violated(Rule),
    /// The walk of a cut alphabet did not end in the dead state that it must find.
    #[error("the walk with the alphabet {0:?} found no dead state, and there is one")]
    NotFound(Alphabet),
    /// The host could not be set up.
    #[error("{0}")]
    Boot(Violation),
    /// The report could not be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
}

/// Walks `worlds` with the whole alphabet and reports. Every property must hold.
pub fn whole(worlds: &[&World], size: &Size, out: &mut dyn Write) -> Result<(), ReportError> {
    writeln!(
        out,
        "{:<8} {:>6} {:>11} {:>12} {:>6} {:>8}",
        "world", "units", "states", "steps", "depth", "seconds"
    )?;
    let mut covered = Coverage::default();
    for world in worlds {
        let scene = Scene::new(world, size).map_err(ReportError::Boot)?;
        let found = timed(scene, Alphabet::Whole, out)?;
        covered.merge(found.covered);
        if let Some((violation, actions)) = &found.violation {
            verdicts(Some(violation.rule), out)?;
            writeln!(out, "\n{violation}\n")?;
            let test = trace::as_test(scene, "the_trace", actions, violation);
            writeln!(out, "{} steps lead there:\n\n{test}", actions.len())?;
            return Err(ReportError::Violated(violation.rule));
        }
    }
    verdicts(None, out)?;
    let (missing, rows) = covered.missing();
    let walked = rows - missing.len();
    writeln!(
        out,
        "\n{walked} of {rows} transitions of seats and lanes were walked"
    )?;
    for row in missing {
        writeln!(out, "  not walked: {row}")?;
    }
    Ok(())
}

fn timed(scene: Scene<'_>, alphabet: Alphabet, out: &mut dyn Write) -> Result<Walk, ReportError> {
    let begun = Instant::now();
    let found = walk(scene, alphabet).map_err(ReportError::Boot)?;
    writeln!(
        out,
        "{:<8} {:>6} {:>11} {:>12} {:>6} {:>8.1}",
        scene.world.name,
        scene.world.units(scene.size),
        found.states,
        found.steps,
        found.depth,
        begun.elapsed().as_secs_f64()
    )?;
    Ok(found)
}

fn verdicts(violated: Option<Rule>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for rule in Rule::ALL.iter().filter(|rule| **rule != Rule::Alive) {
        let verdict = match violated {
            None => "holds",
            Some(broken) if broken == *rule => "VIOLATED",
            Some(_) => "undecided",
        };
        writeln!(out, "{verdict:<9} {:<10} {}", rule.name(), rule.says())?;
    }
    Ok(())
}

/// Walks a world with the two alphabets that a fleet must not be left to, and prints how each ends:
/// in the state in which units wait and nothing will ever come.
pub fn cut(world: &World, size: &Size, out: &mut dyn Write) -> Result<(), ReportError> {
    for (alphabet, name, about) in [
        (
            Alphabet::TwoInputs,
            "two_inputs",
            "Enqueue and SeatDone are the only inputs",
        ),
        (
            Alphabet::BacklogTimer,
            "backlog_timer",
            "the same and a tick, armed iff a backlog is not empty",
        ),
    ] {
        let scene = Scene::new(world, size).map_err(ReportError::Boot)?;
        let found = walk(scene, alphabet).map_err(ReportError::Boot)?;
        let Some((violation, actions)) = &found.violation else {
            return Err(ReportError::NotFound(alphabet));
        };
        if violation.rule != Rule::Alive {
            return Err(ReportError::Violated(violation.rule));
        }
        let (steps, states) = (actions.len(), found.states);
        writeln!(
            out,
            "\n{about}: a dead state is {steps} steps away, found among {states} states\n"
        )?;
        write!(out, "{}", trace::as_test(scene, name, actions, violation))?;
    }
    Ok(())
}
