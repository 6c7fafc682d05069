//! Where records end up.
//!
//! # Invariants
//! - A record is put together before its first byte is written, and given to the writer whole: one
//!   `write`, unless the writer takes less, and one `flush`.
//! - After a failure a delivery goes on at the byte where it stopped. No byte is written twice and no
//!   record is begun before the one before it is whole.
//!
//! # What that promises about files and pipes
//! A file gets a record in one `write`. A full disk, a kill or a crash in the middle can leave a prefix of
//! the last record; what a reader finds after the last newline is then not a record, and all before it is.
//! A pipe takes up to `PIPE_BUF` bytes (4,096 on Linux) in one piece, and records may be longer: then a
//! reader can see the beginning before the rest, another writer of the same pipe can get in between, and
//! a kill in the middle of a blocked `write` leaves a prefix. So a pipe should have one writer, and its
//! readers should drop what has no newline.

use crate::report::{Format, Record};
use std::io::{self, Write};
use thiserror::Error;

/// Takes records, one after the other, on a thread of its own: it may block.
pub trait Sink: Send {
    /// Delivers `record`. After a failure the same record is given again, and the sink goes on where it
    /// stopped, until it is delivered or the sink is given up.
    ///
    /// [`io::ErrorKind::BrokenPipe`] says that whoever reads has had enough: the sink has ended in
    /// order and is given nothing more.
    fn deliver(&mut self, record: &Record) -> Result<(), Failure>;
}

/// A delivery failed.
#[derive(Debug, Error)]
#[error("{written} of {of} bytes of the record went out: {source}")]
pub struct Failure {
    /// Bytes of the record that went out.
    pub written: usize,
    /// Bytes that it has.
    pub of: usize,
    /// What the writer said.
    pub source: io::Error,
}

/// Writes records as text or as JSON lines.
pub struct Lines {
    out: Box<dyn Write + Send>,
    format: Format,
    /// The record in hand; empty between two records.
    bytes: Vec<u8>,
    /// How many of its bytes the writer took.
    written: usize,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("format", &self.format)
            .field("written", &self.written)
            .field("of", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl Lines {
    /// A sink over `out`, which should not gather writes: a record is whole when it is written.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, format: Format) -> Self {
        Self {
            out,
            format,
            bytes: Vec::new(),
            written: 0,
        }
    }

    /// Writes what is left of the record in hand.
    fn write_rest(&mut self) -> io::Result<()> {
        while let Some(rest) = self.bytes.get(self.written..).filter(|r| !r.is_empty()) {
            match self.out.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => self.written += taken,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.flush()
    }
}

impl Sink for Lines {
    fn deliver(&mut self, record: &Record) -> Result<(), Failure> {
        if self.bytes.is_empty()
            && let Err(source) = self.format.render(record, &mut self.bytes)
        {
            self.bytes.clear();
            return Err(Failure {
                written: 0,
                of: 0,
                source,
            });
        }
        self.write_rest().map_err(|source| Failure {
            written: self.written,
            of: self.bytes.len(),
            source,
        })?;
        self.bytes.clear();
        self.written = 0;
        Ok(())
    }
}

/// Why a sink was given up.
#[derive(Debug, Error)]
pub enum SinkError {
    /// It kept failing.
    #[error(
        "sink {sink}: {written} of {of} bytes of record {record} went out in {attempts} attempts, and the \
         {behind} records behind it are lost to it: {source}"
    )]
    Failed {
        /// The sink.
        sink: String,
        /// The number of the record, the first being 1.
        record: u64,
        /// Bytes of the record that went out.
        written: usize,
        /// Bytes that it has.
        of: usize,
        /// Attempts without one byte of progress.
        attempts: u32,
        /// Records that waited in the spool.
        behind: u64,
        /// What the writer said last.
        source: io::Error,
    },
    /// It panicked.
    #[error(
        "sink {sink} panicked in record {record}, of which any part may have gone out, and the {behind} \
         records behind it are lost to it"
    )]
    Panicked {
        /// The sink.
        sink: String,
        /// The number of the record, the first being 1.
        record: u64,
        /// Records that waited in the spool.
        behind: u64,
    },
}

impl SinkError {
    /// What the writer said, if it said something.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Failed { source, .. } => Some(source),
            Self::Panicked { .. } => None,
        }
    }
}
