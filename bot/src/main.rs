//! The `regatta` binary: the command line, logging, and the exit code.

use clap::Parser;
use regatta_bot::Signals;
use regatta_bot::capture::capture;
use regatta_bot::cli::{Cli, Command, LogArg, SettleCommand, SettleVerb};
use regatta_bot::doctor::doctor;
use regatta_bot::exit::Exit;
use regatta_bot::replay::replay;
use regatta_bot::run::{Outside, SetLog, run};
use regatta_bot::settle::settle;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    // Before anything else, so that a stop that is asked for early is not lost.
    let signals = Signals::install();
    let command = Cli::parse().command;
    let level: LevelFilter = match &command {
        Command::Run(args) => args.log.unwrap_or(LogArg::Warn).into(),
        Command::Capture(args) => args.log.into(),
        Command::Replay(args) => args.log.unwrap_or(LogArg::Warn).into(),
        Command::Settle(SettleCommand {
            verb: SettleVerb::Deploy(args),
        }) => args.log.into(),
        Command::Settle(_) | Command::Doctor(_) => LevelFilter::WARN,
    };
    let (level, reload) = reload::Layer::new(level);
    tracing_subscriber::registry()
        .with(level)
        .with(
            tracing_subscriber::fmt::layer()
                .with_writer(io::stderr)
                .with_target(false)
                // A span that ends is a line with its fields: that is how the walks of the bins are seen.
                .with_span_events(FmtSpan::CLOSE)
                // It would say on stderr that stderr cannot be written, and panic where that fails too.
                .log_internal_errors(false),
        )
        .init();
    let signals = match (signals, &command) {
        (Ok(signals), Command::Run(_) | Command::Capture(_) | Command::Replay(_)) => Some(signals),
        // What is over in a moment stops as any program does.
        (Ok(_), _) => None,
        (Err(error), _) => {
            tracing::error!("signals cannot be caught: {error}");
            None
        }
    };
    let set_log: SetLog = Box::new(move |level| {
        if let Err(error) = reload.reload(LevelFilter::from(level)) {
            tracing::error!("the log level was not changed: {error}");
        }
    });
    let outside = |signals| Outside {
        signals,
        set_log: Some(set_log),
    };
    match command {
        Command::Run(args) => {
            run(&args, io::stdout(), outside(signals)).map_err(|error| report(&error, error.exit()))
        }
        Command::Capture(args) => capture(&args, io::stdout().lock(), signals)
            .map_err(|error| report(&error, error.exit())),
        Command::Replay(args) => replay(&args, io::stdout(), outside(signals))
            .map_err(|error| report(&error, error.exit())),
        Command::Settle(command) => {
            settle(&command, io::stdout().lock()).map_err(|error| report(&error, error.exit()))
        }
        Command::Doctor(args) => {
            doctor(&args, io::stdout().lock()).map_err(|error| report(&error, error.exit()))
        }
    }
    .map_or_else(ExitCode::from, |()| Exit::Ok.into())
}

/// Says on stderr why the command ended early.
fn report(error: &dyn Display, exit: Exit) -> Exit {
    if exit != Exit::Ok {
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "regatta: {error}");
    }
    exit
}
