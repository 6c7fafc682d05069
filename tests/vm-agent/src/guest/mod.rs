//! What this file does, by its first argument; without one it is the machine's first process.

mod enter;
mod failure;
mod fleet;
mod group;
mod init;
mod job;
mod look;
mod probe;
mod scenarios;

use failure::Failure;
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Where the machine has this file, and where it has `regatta`.
const AGENT: &str = "/init";
const REGATTA: &str = "/bin/regatta";

/// No step takes longer, on however loaded a machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a condition is asked.
const PACE: Duration = Duration::from_millis(10);

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["enter", rest @ ..] => enter::run(rest),
        ["probe"] => probe::run(),
        ["fleet", threads] => number(threads).and_then(fleet::run),
        ["burn", threads] => number(threads).and_then(fleet::burn_for_good),
        _ if std::process::id() == 1 => init::run(),
        _ => Err(Failure::Other(
            "this is the first process of a small virtual machine: `cargo xtask vm` boots it"
                .to_owned(),
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // With stderr gone there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "regatta-vm-agent: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u16, Failure> {
    text.parse().map_err(|error| {
        Failure::Other(format!(
            "{text:?}: {error}: it takes a whole number of threads"
        ))
    })
}

/// Asks `done` until it has an answer, a failure, or no more time; `tail` says what was seen last.
fn until<T>(
    what: &str,
    mut done: impl FnMut() -> Result<Option<T>, Failure>,
    tail: impl FnOnce() -> String,
) -> Result<T, Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = done()? {
            return Ok(answer);
        }
        if Instant::now() > end {
            return Err(Failure::TimedOut {
                what: what.to_owned(),
                tail: tail(),
            });
        }
        pause(PACE);
    }
}

/// Waits on a channel that nobody sends on.
fn pause(time: Duration) {
    let (_never, pace) = mpsc::channel::<()>();
    let _ = pace.recv_timeout(time);
}
