//! Writes a capture, and the source that is written down as it is read.

use super::content::{encode_event, encode_header};
use super::error::WriteError;
use super::frame::Packer;
use super::{Header, Kind, MAGIC, MAX_PAYLOAD, Recorded, VERSION};
use crate::source::{BlockSource, Event, SourceError};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// A place that can be told to keep what was written to it.
pub trait Durable: Write {
    /// Returns when what was written outlasts a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

impl Durable for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Memory keeps what it has.
impl Durable for Vec<u8> {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the file of a capture; with `force` in the place of one that is there.
pub fn create(path: &Path, header: &Header, force: bool) -> Result<Writer<File>, WriteError> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    Writer::new(options.open(path)?, header)
}

/// Writes a capture: each record with one write, so that the platform has it when the call returns.
pub struct Writer<W> {
    out: W,
    packer: Packer,
    payload: Vec<u8>,
    began: Instant,
    /// A write has failed: half a record may stand at the end.
    broken: bool,
}

impl<W> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Durable> Writer<W> {
    /// Begins a capture with its header. Times count from here.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self {
            out,
            packer: Packer::new(),
            payload: Vec::new(),
            began: Instant::now(),
            broken: false,
        };
        encode_header(header, &mut writer.payload)?;
        let mut start = MAGIC.to_vec();
        start.extend_from_slice(&VERSION.to_le_bytes());
        writer.record(Kind::Header, start)?;
        Ok(writer)
    }

    /// Writes an event that came now.
    pub fn event(&mut self, event: Event) -> Result<Event, WriteError> {
        let at = self.began.elapsed();
        let recorded = Recorded { at, event };
        self.recorded(&recorded)?;
        Ok(recorded.event)
    }

    /// Writes an event that came at a time of its own, which is none before the last one's.
    pub fn recorded(&mut self, recorded: &Recorded) -> Result<(), WriteError> {
        self.payload.clear();
        encode_event(recorded, &mut self.payload)?;
        self.record(Kind::of(&recorded.event), Vec::new())
    }

    /// Ends the capture and has it kept, and gives back where it went.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.payload.clear();
        self.record(Kind::End, Vec::new())?;
        self.out.sync()?;
        Ok(self.out)
    }

    /// Writes a record with the payload in hand, behind `before`.
    fn record(&mut self, kind: Kind, before: Vec<u8>) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        let bytes = self.payload.len();
        if bytes > MAX_PAYLOAD as usize {
            return Err(WriteError::TooLong { bytes });
        }
        let mut record = before;
        // From here on the packer may have what the file has not.
        self.broken = true;
        record.extend(self.packer.record(kind, &self.payload)?);
        self.out.write_all(&record)?;
        self.out.flush()?;
        self.broken = false;
        Ok(())
    }
}

/// A source whose events are written down before they are handed on.
#[derive(Debug)]
pub struct Tee<S, W> {
    source: S,
    writer: Writer<W>,
}

impl<S: BlockSource, W: Durable> Tee<S, W> {
    /// `source`, written down by `writer`.
    pub const fn new(source: S, writer: Writer<W>) -> Self {
        Self { source, writer }
    }

    /// Ends the capture, wherever the source is.
    pub fn finish(self) -> Result<W, WriteError> {
        self.writer.finish()
    }
}

impl<S: BlockSource, W: Durable> BlockSource for Tee<S, W> {
    fn next_event(&mut self) -> Result<Option<Event>, SourceError> {
        match self.source.next_event()? {
            Some(event) => Ok(Some(self.writer.event(event)?)),
            None => Ok(None),
        }
    }
}
