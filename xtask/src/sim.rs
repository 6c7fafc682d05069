//! `sim`: the whole fleet on virtual time, a schedule for each seed.
//!
//! The fleet and its properties are in `tests/simulator`. This verb builds it optimised and runs it; with
//! `--planted` it shows that it can fail, by switching on bugs of the binding and by running it over cores with
//! a rule changed.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::cargo::{Metadata, cargo, run as run_command};
use crate::planted::{Bed, Change, caught, change};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "sim",
    doc: "runs a whole fleet on virtual time from many seeds and judges each run",
    flags: &[
        Flag {
            name: "--seeds",
            value: Some("N"),
            doc: "so many runs (10000, or 1 when a seed is given)",
        },
        Flag {
            name: "--seed",
            value: Some("S"),
            doc: "begin with this seed",
        },
        Flag {
            name: "--steps",
            value: Some("M"),
            doc: "operations of a script",
        },
        Flag {
            name: "--planted",
            value: None,
            doc: "make the binding wrong, then the core, in one way after the other and expect each to be caught",
        },
    ],
    run,
};

/// The package, its folder and its binary.
const PACKAGE: [&str; 3] = ["regatta-sim", "tests/simulator", "sim"];

/// Runs in which a planted bug must be caught.
const PLANTED_SEEDS: &str = "100000";

/// The bugs of the binding that the simulator can be told to have, by the names it knows them by.
const BUGS: &[&str] = &[
    "bell-not-rung",
    "look-before-declare",
    "keeper-not-handed-over",
    "keeper-not-buried",
    "armed-without-holder",
    "two-keepers",
    "resize-not-polled",
    "hand-back-not-polled",
    "late-result-taken",
    "fenced-payload-run",
];

const DISPATCH: &str = "core/src/dispatch.rs";
const GRANT: &str = "core/src/host/grant.rs";
const GUARD: &str = "core/src/guard.rs";
const PROGRESS: &str = "core/src/host/progress.rs";
const POSTURE: &str = "core/src/posture/machine.rs";
const OUTCOME: &str = "core/src/outcome.rs";
const UNIT: &str = "core/src/unit.rs";

/// The planted changes of the core.
pub(crate) static CHANGES: &[Change] = &[
    change(
        "generation-unread",
        "an id of a unit that is gone names whatever has its row now",
        UNIT,
        "Some(row) if row.generation == unit.generation && want(row.place) => Ok(row),",
        "Some(row) if want(row.place) => Ok(row),",
    ),
    change(
        "stall-counts-looks",
        "the stall rule counts looks and not time",
        DISPATCH,
        "armed.credited + elapsed.min(self.rule.interval.times(2));",
        "armed.credited + self.rule.interval;",
    ),
    change(
        "stop-is-a-stall",
        "a process that was stopped is taken for a stall",
        DISPATCH,
        "elapsed.min(self.rule.interval.times(2));",
        "elapsed;",
    ),
    change(
        "slow-is-a-stall",
        "a drainer that completes something is taken for frozen all the same",
        DISPATCH,
        ".filter(|_| !progressed)",
        ".filter(|_| !progressed || pipe.completed > 0)",
    ),
    change(
        "newest-refused",
        "once an epoch was offered, every later one is stale",
        DISPATCH,
        "self.newest.is_some_and(|newest| seq <= newest)",
        "self.newest.is_some_and(|newest| seq >= newest)",
    ),
    change(
        "start-unguarded",
        "the guard is not asked again when a unit begins",
        GRANT,
        "let verdict = lane.may_start(role, others, guard);",
        "let verdict = lane.may_start(role, others, guard).or(Ok::<(), crate::lane::HoldReason>(()));",
    ),
    change(
        "backlog-arms",
        "the backstop is armed iff a backlog is not empty: queued units are forgotten",
        PROGRESS,
        "armed |= hold != Some(HoldReason::Slots);",
        "armed |= !self.lanes[role.index()].backlog.is_empty();",
    ),
    change(
        "tick-looks-late",
        "the backstop is twice as slow as it says",
        PROGRESS,
        "            self.backstop_at = Some(now + self.backstop);\n            self.last_tick = now;\n            self.void_strikes();",
        "            self.backstop_at = Some(now + self.backstop.times(2));\n            self.last_tick = now;\n            self.void_strikes();",
    ),
    change(
        "floor-unread",
        "the guard loses the floor of simulations",
        GUARD,
        "Some((word & 0xffff) as u16)",
        "Some(u16::MAX)",
    ),
    change(
        "blind-for-ever",
        "a cordon that nobody can measure never ends",
        POSTURE,
        "if self.causes.throttled() && blind >= self.policy.exit_clean() {",
        "if false && blind >= self.policy.exit_clean() {",
    ),
    change(
        "outcome-forgotten",
        "the fuse takes an outcome and goes on owing it",
        OUTCOME,
        "                let before = *row;\n                row.owed &= !bits;\n                before",
        "                *row",
    ),
];

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let [package, ..] = PACKAGE;
    let given = ["--seeds", "--seed", "--steps"].map(|flag| (flag, args.value(flag)));
    if args.has("--planted") {
        if let Some((flag, _)) = given.iter().find(|(_, value)| value.is_some()) {
            return Err(Error::Usage(format!(
                "sim: `--planted` has its own seeds: leave `{flag}` out"
            )));
        }
        return planted(out);
    }
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--locked"]);
    command.args(["--package", package, "--bin", "sim", "--"]);
    for (flag, value) in given {
        command.args(value.map(|value| [flag, value]).into_iter().flatten());
    }
    run_command(&mut command)
}

fn planted(out: &mut dyn Write) -> Result<(), Error> {
    let [package, folder, binary] = PACKAGE;
    let mut build = cargo();
    build.args(["build", "--quiet", "--release", "--locked"]);
    run_command(build.args(["--package", package, "--bin", binary]))?;
    let target = Metadata::load()?.target_directory;
    let simulator = Path::new(&target).join("release").join(binary);
    for bug in BUGS {
        let begun = Instant::now();
        let mut run = Command::new(&simulator);
        run.args(["--bug", bug, "--seeds", PLANTED_SEEDS]);
        let found = caught(&mut run, binary)?;
        let seconds = begun.elapsed().as_secs_f64();
        let verdict = found.as_deref().unwrap_or("SURVIVED");
        writeln!(
            out,
            "{bug:<22} {verdict:<26} {seconds:>5.1} s  in the binding"
        )?;
        out.flush()?;
        if found.is_none() {
            return Err(Error::Failed(format!(
                "sim: nothing caught {bug}: a property is missing, or the scripts are too tame"
            )));
        }
    }
    let bed = Bed {
        verb: "sim",
        folder,
        binary,
        args: &["--seeds", PLANTED_SEEDS],
    };
    bed.find(CHANGES, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bugs_are_those_that_the_simulator_has() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/simulator/src/bug.rs");
        let source = std::fs::read_to_string(path).unwrap();
        let names = source.lines().filter_map(|line| {
            let (variant, name) = line.trim().split_once(" => \"")?;
            let name = name.strip_suffix("\",")?;
            (variant.starts_with("Self::") && !name.contains(' ')).then_some(name)
        });
        assert_eq!(names.collect::<Vec<_>>(), BUGS);
    }
}
