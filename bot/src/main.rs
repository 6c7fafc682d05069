//! The `regatta` binary: the command line, logging, and the exit code.

use clap::Parser;
use regatta_bot::cli::{Cli, Command};
use regatta_bot::exit::Exit;
use regatta_bot::run::{RunError, run};
use std::io::{self, Write};
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

fn main() -> ExitCode {
    let Command::Run(args) = Cli::parse().command;
    let level: LevelFilter = args.log.into();
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        // A span that ends is a line with its fields: that is how the walks of the bins are seen.
        .with_span_events(FmtSpan::CLOSE)
        // It would say on stderr that stderr cannot be written, and panic where that fails too.
        .log_internal_errors(false)
        .init();
    match run(&args, io::stdout().lock()) {
        Ok(()) => Exit::Ok.into(),
        Err(error) => report(&error).into(),
    }
}

/// Says on stderr why the run ended early.
fn report(error: &RunError) -> Exit {
    let exit = error.exit();
    if exit != Exit::Ok {
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "regatta: {error}");
    }
    exit
}
