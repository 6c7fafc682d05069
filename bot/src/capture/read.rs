//! Reads a capture.

use super::content::{decode_event, decode_header};
use super::error::{Damage, Problem, ReadError};
use super::frame::{HEAD, Head, Unpacker};
use super::{Header, Kind, MAGIC, PROLOGUE, Recorded, VERSION};
use core::time::Duration;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// How a capture ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// With its end record: nothing is missing.
    Ended,
    /// After a whole record, without an end record: whoever wrote it was stopped.
    Open {
        /// Where the file ends.
        offset: u64,
    },
    /// In the middle of a record.
    Torn {
        /// Where that record begins, which is the end of what can be read.
        offset: u64,
    },
}

/// Opens the capture at `path`.
pub fn open(path: &Path) -> Result<Reader<BufReader<File>>, ReadError> {
    let file = File::open(path).map_err(|error| failed(0, &error))?;
    Reader::new(BufReader::new(file))
}

/// Reads the events of a capture, in order.
pub struct Reader<R> {
    records: Records<R>,
    header: Header,
    exchanges: u16,
    /// When the last event came.
    at: Duration,
    tail: Option<Tail>,
    /// What was wrong; it stays so.
    failure: Option<ReadError>,
}

impl<R> std::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("offset", &self.records.offset)
            .field("tail", &self.tail)
            .finish_non_exhaustive()
    }
}

fn failed(offset: u64, error: &io::Error) -> ReadError {
    ReadError::Io {
        offset,
        kind: error.kind(),
        message: error.to_string(),
    }
}

/// Reads records as pieces of the file.
struct Records<R> {
    input: R,
    /// Where the next record begins.
    offset: u64,
    unpacker: Unpacker,
    packed: Vec<u8>,
    payload: Vec<u8>,
}

/// A record, or how the file ended.
enum Piece {
    Record(Kind),
    End(Tail),
}

impl<R: Read> Reader<R> {
    /// Reads the header of a capture.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut prologue = Vec::new();
        let read = input.by_ref().take(PROLOGUE).read_to_end(&mut prologue);
        read.map_err(|error| failed(0, &error))?;
        let (magic, version) = prologue.split_at(MAGIC.len().min(prologue.len()));
        if !MAGIC.starts_with(magic) {
            return Err(ReadError::Magic);
        }
        let Ok(version) = version.try_into().map(u16::from_le_bytes) else {
            return Err(ReadError::NoHeader { offset: 0 });
        };
        if version != VERSION {
            return Err(ReadError::Version { found: version });
        }
        let mut records = Records {
            input,
            offset: PROLOGUE,
            unpacker: Unpacker::new(),
            packed: Vec::new(),
            payload: Vec::new(),
        };
        match records.piece()? {
            Piece::End(Tail::Open { offset } | Tail::Torn { offset }) => {
                return Err(ReadError::NoHeader { offset });
            }
            Piece::Record(Kind::Header) => {}
            Piece::Record(_) | Piece::End(Tail::Ended) => {
                return Err(at(PROLOGUE, Damage::NotTheHeader));
            }
        }
        let header = decode_header(&records.payload).map_err(content(PROLOGUE))?;
        let exchanges = header.market.exchanges().len();
        Ok(Self {
            records,
            exchanges: u16::try_from(exchanges).unwrap_or(u16::MAX),
            header,
            at: Duration::ZERO,
            tail: None,
            failure: None,
        })
    }

    /// What the capture says before its events.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// How the capture ended, once it has.
    #[must_use]
    pub const fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// The byte up to which it has been read: where the next record begins.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.records.offset
    }

    /// The next event; `None` at the end, whether it is torn or not. After an error there is nothing but
    /// that error.
    pub fn next_event(&mut self) -> Result<Option<Recorded>, ReadError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.tail.is_some() {
            return Ok(None);
        }
        let next = self.next_of_open();
        self.failure = next.as_ref().err().cloned();
        next
    }

    fn next_of_open(&mut self) -> Result<Option<Recorded>, ReadError> {
        let begins = self.records.offset;
        let kind = match self.records.piece()? {
            Piece::Record(kind) => kind,
            Piece::End(tail) => {
                self.tail = Some(tail);
                return Ok(None);
            }
        };
        let decoded = decode_event(kind, &self.records.payload, self.exchanges);
        let Some(recorded) = decoded.map_err(content(begins))? else {
            return Err(at(begins, Damage::SecondHeader));
        };
        if recorded.at < self.at {
            let problem = Problem::Clock;
            return Err(content(begins)((0, problem)));
        }
        self.at = recorded.at;
        Ok(Some(recorded))
    }
}

impl<R: Read> Records<R> {
    /// Reads a record and unpacks its payload.
    fn piece(&mut self) -> Result<Piece, ReadError> {
        let begins = self.offset;
        let damaged = |damage| at(begins, damage);
        if self.fill(HEAD as u64)? < HEAD {
            let (open, torn) = (Tail::Open { offset: begins }, Tail::Torn { offset: begins });
            let is_open = self.packed.is_empty();
            return Ok(Piece::End(if is_open { open } else { torn }));
        }
        let mut head = [0; HEAD];
        head.copy_from_slice(&self.packed);
        let head = Head::read(&head).map_err(damaged)?;
        if self.fill(head.packed.into())? < head.packed as usize {
            return Ok(Piece::End(Tail::Torn { offset: begins }));
        }
        head.check(&self.packed).map_err(damaged)?;
        if head.kind == Kind::End {
            if head.unpacked != 0 || head.packed != 0 {
                return Err(damaged(Damage::Length { stated: 0 }));
            }
            self.offset += HEAD as u64;
            if self.fill(1)? > 0 {
                return Err(at(self.offset, Damage::AfterEnd));
            }
            return Ok(Piece::End(Tail::Ended));
        }
        self.unpacker
            .unpack(&self.packed, head.unpacked, &mut self.payload)
            .map_err(damaged)?;
        self.offset += HEAD as u64 + u64::from(head.packed);
        Ok(Piece::Record(head.kind))
    }

    /// Reads so many bytes, or as many as there are; the buffer grows by those.
    fn fill(&mut self, bytes: u64) -> Result<usize, ReadError> {
        self.packed.clear();
        let read = self
            .input
            .by_ref()
            .take(bytes)
            .read_to_end(&mut self.packed);
        read.map_err(|error| failed(self.offset, &error))
    }
}

fn at(offset: u64, damage: Damage) -> ReadError {
    ReadError::Damaged { offset, damage }
}

fn content(offset: u64) -> impl Fn((u64, Problem)) -> ReadError {
    move |(at, problem)| ReadError::Content {
        offset,
        at,
        problem,
    }
}
