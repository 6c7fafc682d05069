//! `model`: the shipped host, walked through every state that it can reach at a small size.
//!
//! The walk and its properties are in `tests/explorer`. This verb builds it optimised and runs it; with
//! `--planted` it shows that the walk can fail, by running it over hosts with a rule changed.

mod changes;

use std::io::Write;

pub(crate) use changes::CHANGES;

use crate::cargo::{cargo, run as run_command};
use crate::planted::Bed;
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "model",
    doc: "walks the shipped host through every state at a small size and judges each property",
    flags: &[
        Flag {
            name: "--size",
            value: Some("SIZE"),
            doc: "tiny, small, medium (the default), large or huge",
        },
        Flag {
            name: "--world",
            value: Some("WORLD"),
            doc: "this fleet alone: fleet, pins, pipe or serial",
        },
        Flag {
            name: "--planted",
            value: None,
            doc: "change one rule of the core after the other and expect each to be caught",
        },
    ],
    run,
};

/// The size at which every property is judged in CI.
const SIZE: &str = "medium";
/// The size at which planted changes must be caught.
const PLANTED_SIZE: &str = "small";

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    if args.has("--planted") {
        if args.has("--world") {
            return Err(Error::Usage(
                "model: `--planted` goes through every world: leave `--world` out".to_owned(),
            ));
        }
        let bed = Bed {
            verb: "model",
            folder: "tests/explorer",
            binary: "model",
            args: &["--size", args.value("--size").unwrap_or(PLANTED_SIZE)],
        };
        return bed.find(CHANGES, out);
    }
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--locked"]);
    command.args(["--package", "regatta-explorer", "--bin", "model", "--"]);
    command.args(["--size", args.value("--size").unwrap_or(SIZE)]);
    if let Some(world) = args.value("--world") {
        command.args(["--world", world]);
    }
    run_command(&mut command)
}
