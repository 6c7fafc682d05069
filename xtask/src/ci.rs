//! `ci`: every check, in one order, each named and timed.
//!
//! The order is cheap before dear, and it shares artefacts: clippy and rustdoc use the same checked
//! dependencies (so both turn all features on), nextest and the documentation tests the same compiled
//! ones, and the optimised build happens once, for the release, its smoke test and the virtual machines.
//!
//! The largest walk of the model (`cargo xtask model --size large`) is not among them: it takes as long as a third of
//! the rest, and what it adds to the medium one, more units at once, the simulator goes through at random.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::cargo::{cargo, run as run_command, run_and_keep};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "ci",
    doc: "every check, in order, up to the first that fails (this is what `.ci/run` runs)",
    flags: &[
        Flag {
            name: "--list",
            value: None,
            doc: "print the steps, run none",
        },
        Flag {
            name: "--from",
            value: Some("STEP"),
            doc: "begin with this step",
        },
        Flag {
            name: "--only",
            value: Some("STEP"),
            doc: "run this step alone",
        },
    ],
    run,
};

/// One check.
struct Step {
    name: &'static str,
    does: Does,
}

/// What a step does.
enum Does {
    /// The verb of this tool that has the step's name, without flags.
    Verb,
    /// The verb with this name and these flags (separated by blanks).
    VerbWith(&'static str, &'static str),
    /// Cargo with these arguments (separated by blanks) and, perhaps, a variable set.
    Cargo(&'static str, Option<(&'static str, &'static str)>),
    /// The same, and the last line with this word in it is printed again at the end.
    CargoKeeping(&'static str, &'static str),
}

/// Every step, in order.
static STEPS: &[Step] = &[
    Step {
        name: "tidy",
        does: Does::Verb,
    },
    Step {
        name: "fmt",
        does: Does::Cargo("fmt --all --check", None),
    },
    Step {
        name: "licences",
        does: Does::Verb,
    },
    Step {
        name: "msrv",
        does: Does::Verb,
    },
    Step {
        name: "clippy",
        does: Does::Cargo(
            "clippy --locked --workspace --all-targets --all-features -- -D warnings",
            None,
        ),
    },
    Step {
        name: "portable",
        does: Does::Cargo(
            "clippy --locked -p regatta-bot --no-default-features --all-targets -- -D warnings",
            None,
        ),
    },
    Step {
        name: "rustdoc",
        does: Does::Cargo(
            "doc --locked --workspace --all-features --no-deps",
            Some(("RUSTDOCFLAGS", "-D warnings")),
        ),
    },
    Step {
        name: "core-alone",
        does: Does::Verb,
    },
    Step {
        name: "no-std",
        does: Does::VerbWith("no-std", "--if-possible"),
    },
    Step {
        name: "bare-target",
        does: Does::VerbWith("no-std", "--target thumbv7em-none-eabihf --if-possible"),
    },
    Step {
        name: "loom",
        does: Does::Verb,
    },
    Step {
        name: "nextest",
        does: Does::CargoKeeping(
            "nextest run --locked --workspace -E not(binary(parity))",
            "Summary",
        ),
    },
    Step {
        name: "portable-run",
        does: Does::Cargo(
            // What does not depend on the backend has run already.
            "nextest run --locked -p regatta-bot --no-default-features -E not(binary(doctor_rpc)|binary(evm)|binary(node)|binary(settle))",
            None,
        ),
    },
    Step {
        name: "parity",
        does: Does::Cargo("nextest run --locked -p regatta-tests --test parity", None),
    },
    Step {
        name: "doctest",
        does: Does::Cargo("test --locked --workspace --doc", None),
    },
    Step {
        name: "model",
        does: Does::Verb,
    },
    Step {
        name: "planted",
        does: Does::Cargo("xtask model --planted", None),
    },
    Step {
        name: "sim",
        does: Does::VerbWith("sim", "--seeds 100000"),
    },
    Step {
        name: "sim-planted",
        does: Does::Cargo("xtask sim --planted", None),
    },
    Step {
        name: "contracts",
        does: Does::VerbWith("contracts", "--check --if-possible"),
    },
    Step {
        name: "fuzz",
        does: Does::VerbWith("fuzz", "--if-possible"),
    },
    Step {
        name: "build",
        does: Does::Verb,
    },
    Step {
        name: "smoke",
        does: Does::Verb,
    },
    Step {
        name: "vm",
        does: Does::VerbWith("vm", "--if-possible"),
    },
];

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.does {
            Does::Verb => write!(f, "cargo xtask {}", self.name),
            Does::VerbWith(verb, flags) => write!(f, "cargo xtask {verb} {flags}"),
            Does::Cargo(args, None) | Does::CargoKeeping(args, _) => write!(f, "cargo {args}"),
            Does::Cargo(args, Some((name, value))) => write!(f, "{name}=\"{value}\" cargo {args}"),
        }
    }
}

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let steps = selected(args)?;
    if args.has("--list") {
        for step in steps {
            writeln!(out, "{:<11} {step}", step.name)?;
        }
        return Ok(());
    }
    run_steps(steps, out, &mut execute)
}

/// The steps that the flags ask for.
fn selected(args: &Args) -> Result<&'static [Step], Error> {
    let at = |flag: &str, name: &str| {
        STEPS
            .iter()
            .position(|step| step.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
                Error::Usage(format!(
                    "ci: {flag} `{name}`: the steps are {}",
                    known.join(", ")
                ))
            })
    };
    match (args.value("--from"), args.value("--only")) {
        (None, None) => Ok(STEPS),
        (Some(name), None) => Ok(&STEPS[at("--from", name)?..]),
        (None, Some(name)) => {
            let i = at("--only", name)?;
            Ok(&STEPS[i..=i])
        }
        (Some(_), Some(_)) => Err(Error::Usage(
            "ci: `--from` or `--only`, not both".to_owned(),
        )),
    }
}

/// Runs a step; a line that it wants repeated at the end, if it has one.
fn execute(step: &Step, out: &mut dyn Write) -> Result<Option<String>, Error> {
    let command = |args: &str| {
        let mut command = cargo();
        command.args(args.split(' '));
        command
    };
    match step.does {
        Does::Verb => run_verb(step.name, "", out).map(|()| None),
        Does::VerbWith(verb, flags) => run_verb(verb, flags, out).map(|()| None),
        Does::Cargo(args, variable) => run_command(command(args).envs(variable)).map(|()| None),
        Does::CargoKeeping(args, word) => run_and_keep(&mut command(args), word),
    }
}

fn run_verb(name: &str, flags: &str, out: &mut dyn Write) -> Result<(), Error> {
    let verb = crate::find(name)?;
    let words: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    (verb.run)(&Args::parse(verb, &words)?, out)
}

/// A way to run one step.
type Execute<'a> = dyn FnMut(&Step, &mut dyn Write) -> Result<Option<String>, Error> + 'a;

/// Runs `steps` up to the first that fails, then prints how long each took.
fn run_steps(steps: &[Step], out: &mut dyn Write, execute: &mut Execute<'_>) -> Result<(), Error> {
    let mut table: Vec<(&str, Duration, &str)> = Vec::new();
    let mut kept = Vec::new();
    let mut failed = None;
    for (i, step) in steps.iter().enumerate() {
        writeln!(out, "\n== {}/{} {}: {step}", i + 1, steps.len(), step.name)?;
        out.flush()?;
        let begun = Instant::now();
        let outcome = execute(step, out);
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        table.push((step.name, begun.elapsed(), verdict));
        match outcome {
            Ok(line) => kept.extend(line),
            Err(error) => {
                failed = Some(Error::Failed(format!(
                    "ci: step `{}` failed: {error}",
                    step.name
                )));
                break;
            }
        }
    }
    let total = ("total", table.iter().map(|(_, took, _)| *took).sum(), "");
    writeln!(out)?;
    for (name, took, verdict) in table.into_iter().chain([total]) {
        let line = format!("{name:<11} {:>7.1} s  {verdict}", took.as_secs_f64());
        writeln!(out, "{}", line.trim_end())?;
    }
    for line in kept {
        writeln!(out, "{line}")?;
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Args {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Args::parse(&VERB, &words).unwrap()
    }

    fn names(words: &[&str]) -> Vec<&'static str> {
        selected(&args(words))
            .unwrap()
            .iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn steps_are_selected_by_name() {
        let all: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names(&[]), all);
        assert_eq!(
            names(&["--from", "doctest"]),
            [
                "doctest",
                "model",
                "planted",
                "sim",
                "sim-planted",
                "contracts",
                "fuzz",
                "build",
                "smoke",
                "vm"
            ]
        );
        assert_eq!(names(&["--only", "fmt"]), ["fmt"]);
        assert_eq!(
            selected(&args(&["--from", "fmt", "--only", "fmt"]))
                .err()
                .map(|e| e.exit_code()),
            Some(2)
        );
    }

    #[test]
    fn a_step_that_is_a_verb_has_one_that_takes_its_flags() {
        for step in STEPS {
            let (name, flags) = match step.does {
                Does::Verb => (step.name, ""),
                Does::VerbWith(name, flags) => (name, flags),
                _ => continue,
            };
            assert_ne!(name, VERB.name);
            let verb = crate::find(name).unwrap();
            let words: Vec<String> = flags
                .split(' ')
                .filter(|w| !w.is_empty())
                .map(str::to_owned)
                .collect();
            assert!(Args::parse(verb, &words).is_ok(), "{step}");
        }
    }

    #[test]
    fn the_list_shows_each_step_as_it_would_be_typed() {
        let mut out = Vec::new();
        run(&args(&["--list"]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), STEPS.len());
        assert!(
            text.contains("\nrustdoc     RUSTDOCFLAGS=\"-D warnings\" cargo doc "),
            "{text}"
        );
    }

    /// Runs all steps, with the one called `bad` failing; what was run, what was printed, how it ended.
    fn ran(bad: &str) -> (Vec<&'static str>, String, Result<(), Error>) {
        let mut seen = Vec::new();
        let mut out = Vec::new();
        let ended = run_steps(STEPS, &mut out, &mut |step, _| {
            seen.push(step.name);
            if step.name == bad {
                return Err(Error::Failed("as told".to_owned()));
            }
            Ok((step.name == "fmt").then(|| "kept line".to_owned()))
        });
        (seen, String::from_utf8(out).unwrap(), ended)
    }

    #[test]
    fn all_steps_run_and_stand_in_the_table() {
        let (seen, text, ended) = ran("none of them");
        assert!(ended.is_ok());
        assert_eq!(seen.len(), STEPS.len());
        let table = text.lines().filter(|line| line.ends_with(" s  ok")).count();
        assert_eq!(table, STEPS.len());
        assert_eq!(text.lines().last(), Some("kept line"));
    }

    #[test]
    fn the_first_failure_ends_the_run_and_names_the_step() {
        let (seen, text, ended) = ran("licences");
        assert_eq!(seen, ["tidy", "fmt", "licences"]);
        let error = ended.unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(
            error
                .to_string()
                .contains("step `licences` failed: as told"),
            "{error}"
        );
        assert!(
            text.contains("FAILED") && !text.contains("clippy"),
            "{text}"
        );
    }
}
