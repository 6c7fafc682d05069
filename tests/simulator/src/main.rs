//! `sim`: runs a fleet from many seeds and reports; `cargo xtask sim` runs it.
//!
//! Exit codes: 0 every property holds, 1 one does not, 2 the command line was not understood.

use regatta_sim::bug::Bug;
use regatta_sim::generate::STEPS;
use regatta_sim::report::{self, Runs};
use std::io::{self, Write};
use std::process::ExitCode;

/// Runs, unless asked otherwise.
const SEEDS: u64 = 10_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runs = match ask(&words) {
        Ok(runs) => runs,
        Err(what) => return end(&what, 2),
    };
    match report::whole(runs, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(&error.to_string(), 1),
    }
}

fn end(what: &str, code: u8) -> ExitCode {
    // Nobody is left to tell if stderr is closed too.
    let _ = writeln!(io::stderr(), "sim: {what}");
    ExitCode::from(code)
}

fn ask(words: &[String]) -> Result<Runs, String> {
    let (mut first, mut seeds, mut steps, mut bug) = (None, None, STEPS, None);
    for pair in words.chunks(2) {
        let [flag, value] = pair else {
            return Err(format!("`{}` needs a value", pair.join(" ")));
        };
        let number = || value.parse::<u64>();
        let malformed = |_| format!("{flag} `{value}`: it takes a whole number");
        match flag.as_str() {
            "--seed" => first = Some(number().map_err(malformed)?),
            "--seeds" => seeds = Some(number().map_err(malformed)?),
            "--steps" => steps = value.parse().map_err(malformed)?,
            "--bug" => {
                let known: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
                let named = Bug::named(value)
                    .ok_or_else(|| format!("no bug `{value}`: there are {}", known.join(", ")))?;
                bug = Some(named);
            }
            _ => {
                return Err(format!(
                    "unexpected `{flag}`: it takes --seed, --seeds, --steps and --bug"
                ));
            }
        }
    }
    // A seed by itself is one run.
    let seeds = seeds.unwrap_or(if first.is_some() { 1 } else { SEEDS });
    Ok(Runs {
        first: first.unwrap_or(0),
        seeds,
        steps,
        bug,
    })
}
