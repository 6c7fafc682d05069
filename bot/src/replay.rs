//! `regatta replay`: a capture is run, and what it says is compared with what it is to say.
//!
//! # Invariants
//! - What is compared is [`canonical`]: it depends on the capture and the options, and not on the machine or
//!   the binding.
//! - A corpus that is written takes its place whole, and only if the run went well.

use crate::cli::ReplayArgs;
use crate::exit::Exit;
use crate::market::UntrustedText;
use crate::report::canonical;
use crate::run::{Outside, RunError, run};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// Why a replay did not come out as it was to.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The run ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A corpus cannot be read or written.
    #[error("{file}: {error}")]
    Corpus {
        /// The file.
        file: UntrustedText,
        /// What the platform said.
        error: io::Error,
    },
    /// What the run says is not what it is to say.
    #[error("line {line} is not as expected, from byte {from} on:\n  expected: {}\n  found:    {}", Side(.expected), Side(.found))]
    Differs {
        /// The first line that differs, from 1.
        line: u64,
        /// The first byte of it that differs, from 1.
        from: usize,
        /// The corpus's line; none where it has ended.
        expected: Option<UntrustedText>,
        /// The run's; none where it has ended.
        found: Option<UntrustedText>,
    },
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] io::Error),
}

/// A line, or its absence.
struct Side<'a>(&'a Option<UntrustedText>);

impl std::fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(text) => write!(f, "{text}"),
            None => f.write_str("(the end)"),
        }
    }
}

impl ReplayError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Run(error) => error.exit(),
            Self::Differs { .. } => Exit::Differs,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Corpus { .. } | Self::Output(_) => Exit::Failed,
        }
    }
}

/// What is done with what the run says.
enum Corpus {
    Expected(BufReader<File>),
    Written(BufWriter<File>),
}

/// The run's lines, on their way.
struct Lines {
    corpus: Corpus,
    /// Where the corpus is.
    path: PathBuf,
    /// The line that is not whole yet.
    partial: Vec<u8>,
    /// Lines that went through.
    count: u64,
    failure: Option<ReplayError>,
}

/// Where the run writes to.
#[derive(Clone)]
struct Shared(Arc<Mutex<Lines>>);

impl Shared {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.lines();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            lines.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut lines.partial);
                lines.line(&line);
            }
        }
        if lines.failure.is_some() {
            // Nothing that follows is of interest: the run is told so.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn line(&mut self, line: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let Some(found) = canonical(text.trim_end_matches('\n')) else {
            return;
        };
        self.count += 1;
        let outcome = match &mut self.corpus {
            Corpus::Written(out) => writeln!(out, "{found}"),
            Corpus::Expected(corpus) => next(corpus).map(|expected| {
                if expected != format!("{found}\n").into_bytes() {
                    self.failure = Some(differs(self.count, &expected, found.as_bytes()));
                }
            }),
        };
        if let Err(error) = outcome {
            self.failure = Some(of_file(&self.path, error));
        }
    }

    /// The end of the run: of what is expected nothing may be left.
    fn end(&mut self) -> Result<u64, ReplayError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match &mut self.corpus {
            Corpus::Written(out) => {
                let kept = out.flush().and_then(|()| out.get_ref().sync_all());
                kept.map_err(|error| of_file(&self.path, error))?;
            }
            Corpus::Expected(corpus) => {
                let left = next(corpus).map_err(|error| of_file(&self.path, error))?;
                if !left.is_empty() {
                    return Err(differs(self.count + 1, &left, &[]));
                }
            }
        }
        Ok(self.count)
    }
}

/// The next line of a corpus with its end; nothing at the end.
fn next(corpus: &mut BufReader<File>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    corpus.read_until(b'\n', &mut line)?;
    Ok(line)
}

fn differs(line: u64, expected: &[u8], found: &[u8]) -> ReplayError {
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        (!text.is_empty())
            .then(|| UntrustedText::with_limit(text.trim_end_matches('\n'), usize::MAX))
    };
    let same = expected.iter().zip(found).take_while(|(a, b)| a == b);
    ReplayError::Differs {
        line,
        from: same.count() + 1,
        expected: shown(expected),
        found: shown(found),
    }
}

fn of_file(path: &Path, error: io::Error) -> ReplayError {
    ReplayError::Corpus {
        file: UntrustedText::with_limit(&path.to_string_lossy(), usize::MAX),
        error,
    }
}

/// Runs the capture, compares or writes what it says, and says on `out` how many lines that were.
pub fn replay(args: &ReplayArgs, mut out: impl Write, outside: Outside) -> Result<(), ReplayError> {
    let (lines, place) = match (&args.expect, &args.write) {
        (Some(path), _) => {
            let corpus = File::open(path).map_err(|error| of_file(path, error))?;
            (
                Lines::new(Corpus::Expected(BufReader::new(corpus)), path),
                None,
            )
        }
        (None, path) => {
            let place = path.clone().unwrap_or_default();
            let mut beside = place.clone().into_os_string();
            beside.push(".new");
            let beside = PathBuf::from(beside);
            let corpus = File::create(&beside).map_err(|error| of_file(&beside, error))?;
            (
                Lines::new(Corpus::Written(BufWriter::new(corpus)), &beside),
                Some((beside, place)),
            )
        }
    };
    let shared = Shared(Arc::new(Mutex::new(lines)));
    let ended = run(&args.run(), shared.clone(), outside);
    let outcome = compared(&shared, ended);
    let Some((beside, place)) = place else {
        let count = outcome?;
        writeln!(out, "{count} lines as expected")?;
        return Ok(out.flush()?);
    };
    let count = match outcome {
        Ok(count) => count,
        Err(error) => {
            // Best effort: what is left is not taken for a corpus.
            let _ = fs::remove_file(&beside);
            return Err(error);
        }
    };
    fs::rename(&beside, &place).map_err(|error| of_file(&place, error))?;
    writeln!(out, "{count} lines written")?;
    Ok(out.flush()?)
}

impl Lines {
    fn new(corpus: Corpus, path: &Path) -> Self {
        Self {
            corpus,
            path: path.to_owned(),
            partial: Vec::new(),
            count: 0,
            failure: None,
        }
    }
}

/// What came of it: a difference says more than that the run was ended for it.
fn compared(shared: &Shared, ended: Result<(), RunError>) -> Result<u64, ReplayError> {
    let mut lines = shared.lines();
    if lines.failure.is_none() {
        ended?;
    }
    lines.end()
}
