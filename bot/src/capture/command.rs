//! `regatta capture`: a source and a file, and no fleet.
//!
//! # Invariants
//! - No file is made before there is a market to begin it with.

use super::{Tee, WriteError, create};
use crate::app::{Asked, Counts, RecordError, Signals, record};
use crate::cli::CaptureArgs;
use crate::exit::Exit;
use crate::market::UntrustedText;
use crate::run::RunError;
use crate::source::{BlockSource, SourceError};
use crate::start;
use regatta_chain::endpoint::Endpoint;
use regatta_portable::Census;
use regatta_portable::census::CensusError;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a capture was not made, or ended early. What was written can be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// There is nothing to capture, or what captures did not go well.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file is there.
    #[error("{file} is there already; --force writes in its place")]
    Exists {
        /// The file.
        file: UntrustedText,
    },
    /// The file cannot be made or written.
    #[error("{file}: {error}")]
    Write {
        /// The file.
        file: UntrustedText,
        /// Why.
        error: WriteError,
    },
    /// The source has no next event.
    #[error(transparent)]
    Source(SourceError),
    /// The thread of the signals could not be had.
    #[error(transparent)]
    Thread(#[from] CensusError),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
}

impl CaptureError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Run(error) => error.exit(),
            Self::Exists { .. } => Exit::Usage,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Write { .. } | Self::Source(_) | Self::Thread(_) | Self::Output(_) => {
                Exit::Failed
            }
        }
    }
}

/// Writes down what the source says until it ends or a stop is asked for, and then says on `out` how much
/// that was.
pub fn capture(
    args: &CaptureArgs,
    mut out: impl Write,
    signals: Option<Signals>,
) -> Result<(), CaptureError> {
    let Counts { events, blocks } = match &args.source.rpc {
        Some(endpoint) => of_node(args, endpoint, signals)?,
        None => of_stream(args, signals)?,
    };
    let file = UntrustedText::with_limit(&args.out.to_string_lossy(), usize::MAX);
    writeln!(out, "captured {blocks} blocks in {events} events to {file}")?;
    Ok(out.flush()?)
}

/// Writes down what a node says.
fn of_node(
    args: &CaptureArgs,
    endpoint: &Endpoint,
    mut signals: Option<Signals>,
) -> Result<Counts, CaptureError> {
    // Reading a market takes its time, so this is said before.
    if !args.force && args.out.symlink_metadata().is_ok() {
        let error = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(failed(&args.out, error.into()));
    }
    let census = Census::new();
    let interrupted = || signals.as_mut().is_some_and(Signals::asked);
    let start = start::at_node(&args.source, endpoint, &census, interrupted)?;
    start.base_id().map_err(RunError::from)?;
    let header = start.header();
    let node = start.into_node().map_err(|_| RunError::Cut)?;
    let of_file = |error| failed(&args.out, error);
    let writer = create(&args.out, &header, args.force).map_err(of_file)?;
    record(node, writer, args.source.blocks, census, signals).map_err(|error| match error {
        RecordError::Write(error) => of_file(error),
        RecordError::Run(error) => error.into(),
    })
}

/// Writes down what a source says that is asked for one event after the other.
fn of_stream(args: &CaptureArgs, signals: Option<Signals>) -> Result<Counts, CaptureError> {
    let start = start::of_source(&args.source, None)?;
    let header = start.header();
    let source = start.source()?;
    let of_file = |error| failed(&args.out, error);
    let writer = create(&args.out, &header, args.force).map_err(of_file)?;
    let asked = Asked::listen(signals, &Census::new())?;
    let interval = Duration::from_millis(args.source.block_time);
    let mut source = Tee::new(source, writer);
    let (mut due, mut counts) = (Instant::now(), Counts::default());
    loop {
        if let Some(signal) = asked.within(due.saturating_duration_since(Instant::now())) {
            tracing::warn!("{signal}: the capture ends");
            break;
        }
        match source.next_event() {
            Ok(Some(event)) => counts.add(&event),
            Ok(None) => break,
            Err(SourceError::Record(error)) => return Err(of_file(error)),
            Err(error) => return Err(CaptureError::Source(error)),
        }
        // Dated from the start, so that delays do not add up.
        due += interval;
    }
    source.finish().map_err(of_file)?;
    Ok(counts)
}

fn failed(path: &Path, error: WriteError) -> CaptureError {
    let file = UntrustedText::with_limit(&path.to_string_lossy(), usize::MAX);
    match error {
        WriteError::Io {
            kind: io::ErrorKind::AlreadyExists,
            ..
        } => CaptureError::Exists { file },
        error => CaptureError::Write { file, error },
    }
}
