//! `regatta capture`: a source and a file, and no fleet.

use super::{Tee, WriteError, create};
use crate::app::{Asked, Signals};
use crate::cli::CaptureArgs;
use crate::exit::Exit;
use crate::market::UntrustedText;
use crate::run::RunError;
use crate::source::{BlockSource, Event, SourceError};
use crate::start;
use regatta_portable::Census;
use regatta_portable::census::CensusError;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a capture was not made, or ended early. What was written can be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// There is nothing to capture.
    #[error(transparent)]
    Start(#[from] RunError),
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
            Self::Start(error) => error.exit(),
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
    let start = start::of_source(&args.source, None)?;
    let header = start.header();
    let source = start.source()?;
    let of_file = |error| failed(&args.out, error);
    let writer = create(&args.out, &header, args.force).map_err(of_file)?;
    let asked = Asked::listen(signals, &Census::new())?;
    let interval = Duration::from_millis(args.source.block_time);
    let mut source = Tee::new(source, writer);
    let (mut due, mut events, mut blocks) = (Instant::now(), 0_u64, 0_u64);
    loop {
        if let Some(signal) = asked.within(due.saturating_duration_since(Instant::now())) {
            tracing::warn!("{signal}: the capture ends");
            break;
        }
        match source.next_event() {
            Ok(Some(event)) => {
                events += 1;
                blocks += u64::from(matches!(event, Event::Block(_)));
            }
            Ok(None) => break,
            Err(SourceError::Record(error)) => return Err(of_file(error)),
            Err(error) => return Err(CaptureError::Source(error)),
        }
        // Dated from the start, so that delays do not add up.
        due += interval;
    }
    source.finish().map_err(of_file)?;
    let file = UntrustedText::with_limit(&args.out.to_string_lossy(), usize::MAX);
    writeln!(out, "captured {blocks} blocks in {events} events to {file}")?;
    Ok(out.flush()?)
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
