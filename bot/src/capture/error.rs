//! What can be wrong with a capture, and where.

use super::{FRAME, MAX_COUNT, MAX_PAYLOAD, MAX_TEXT, VERSION};
use crate::market::BuildError;
use crate::solver::FeeError;
use std::io;
use thiserror::Error;

/// Why a capture cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The platform does not give the bytes.
    #[error("the capture cannot be read at byte {offset}: {message}")]
    Io {
        /// Where in the file.
        offset: u64,
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the platform said.
        message: String,
    },
    /// It does not begin as a capture does.
    #[error("this is no capture: it does not begin with the eight bytes that every capture has")]
    Magic,
    /// It is of another version.
    #[error("the capture is of format version {found}; this program reads version {VERSION}")]
    Version {
        /// The version.
        found: u16,
    },
    /// It ends before its header does.
    #[error(
        "the capture ends within its header, of which there is nothing whole from byte {offset} on: there is \
         no market to run"
    )]
    NoHeader {
        /// Up to where it is whole.
        offset: u64,
    },
    /// A record is damaged.
    #[error("the capture is damaged: the record at byte {offset} {damage}")]
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A record is whole, and says something that no capture says.
    #[error("the record at byte {offset} is wrong at byte {at} of its unpacked payload: {problem}")]
    Content {
        /// Where the record begins.
        offset: u64,
        /// Where in the unpacked payload.
        at: u64,
        /// What is wrong there.
        problem: Problem,
    },
    /// It has no end record, and it was to be whole.
    #[error(
        "the capture is not whole: what can be read ends at byte {offset}, without an end record"
    )]
    Unfinished {
        /// The end of what can be read.
        offset: u64,
    },
}

/// What is wrong with a record as a piece of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// The checksum of its first bytes is another.
    #[error("has another checksum over its first {FRAME} bytes than it says")]
    HeadChecksum,
    /// The checksum of its payload is another.
    #[error("has another checksum over its payload than it says")]
    PayloadChecksum,
    /// There is no such kind.
    #[error("is of kind {0}, which there is not")]
    Kind(u8),
    /// It says to be longer than any record.
    #[error("says to have {bytes} bytes of payload, where {MAX_PAYLOAD} is the most")]
    TooLong {
        /// How many, packed or unpacked.
        bytes: u32,
    },
    /// Its payload cannot be unpacked.
    #[error("has a payload that cannot be unpacked")]
    Packing,
    /// Its payload unpacks to another length.
    #[error("has a payload that does not unpack to the {stated} bytes that it says")]
    Length {
        /// What it says.
        stated: u32,
    },
    /// It is the first and no header.
    #[error("is the first and is no header")]
    NotTheHeader,
    /// It is a header and not the first.
    #[error("is a second header")]
    SecondHeader,
    /// It comes after the end record.
    #[error("comes after the end")]
    AfterEnd,
}

/// What is wrong with the content of a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// It ends in the middle of something.
    #[error("it ends in the middle of {what}")]
    Short {
        /// What.
        what: &'static str,
    },
    /// A number has more bits than there are of this.
    #[error("{what} has more than {bits} bits")]
    Bits {
        /// What.
        what: &'static str,
        /// The most.
        bits: u32,
    },
    /// A number is written with more bytes than it takes.
    #[error("{what} is written with more bytes than it takes")]
    Overlong {
        /// What.
        what: &'static str,
    },
    /// There is no such choice.
    #[error("{what} is {found} where it is 0 or 1")]
    Choice {
        /// What.
        what: &'static str,
        /// The byte.
        found: u8,
    },
    /// There are more of these than a record can have.
    #[error("it says to have {count} {what}, where {MAX_COUNT} is the most")]
    Many {
        /// What.
        what: &'static str,
        /// How many.
        count: u64,
    },
    /// There are more of these than there are bytes for.
    #[error("it says to have {count} {what}, for which {room} bytes are too few")]
    Count {
        /// What.
        what: &'static str,
        /// How many.
        count: u64,
        /// The bytes that follow.
        room: usize,
    },
    /// A text is not printable as it is, is no UTF-8, or is too long.
    #[error("{what} is no printable text of at most {MAX_TEXT} characters")]
    Text {
        /// What.
        what: &'static str,
    },
    /// A fee is none.
    #[error(transparent)]
    Fee(#[from] FeeError),
    /// The parts do not make a market.
    #[error(transparent)]
    Market(#[from] BuildError),
    /// A token is listed twice.
    #[error("token number {number} is listed for the second time")]
    Token {
        /// Its place in the list.
        number: usize,
    },
    /// There is no such token or exchange in the header.
    #[error("{what} {number} is none of the {count} that the capture has")]
    Unknown {
        /// What.
        what: &'static str,
        /// Its number.
        number: u64,
        /// How many there are.
        count: usize,
    },
    /// The clock went back.
    #[error("its time is before that of the record before it")]
    Clock,
    /// There is something behind the content.
    #[error("{bytes} bytes follow where it should end")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

/// Why a capture cannot be written on. What was written before can be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The file cannot be made or written.
    #[error("the capture cannot be written: {message}")]
    Io {
        /// What kind of failure.
        kind: io::ErrorKind,
        /// What the platform said.
        message: String,
    },
    /// An event is larger than a record can be.
    #[error("a record of {bytes} bytes is longer than a capture can have, which is {MAX_PAYLOAD}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// There are more of these than a record can have.
    #[error("a record with {count} {what} has more than a capture can have, which is {MAX_COUNT}")]
    Many {
        /// What.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// A write failed before, so that what follows would stand behind half a record.
    #[error("the capture could not be written before this, and cannot be continued")]
    Broken,
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}
