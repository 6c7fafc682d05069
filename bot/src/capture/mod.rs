//! Captures: the events of a source in a file, to be run again at any time.
//!
//! A [`Tee`] around a source writes each event with a [`Writer`] before it hands it on; a [`Reader`] gives the
//! same events back, and a [`CaptureSource`] is a source over one. `docs/capture-format.md` describes
//! the bytes.
//!
//! # Invariants
//! - What is read is what was written, or an error that names the byte: no damage becomes another event.
//! - A file that ends early, at any byte, gives every record that is whole before that, and says how it
//!   ended ([`Tail`]).
//! - Nothing is trusted: no length or count makes the reader reserve memory that the file's own bytes do
//!   not fill, and there is one way to write a value, so that equal contents are equal bytes.

mod command;
mod content;
mod error;
mod frame;
mod read;
mod source;
mod wire;
mod write;

pub use command::{CaptureError, capture};
pub use content::{decode_event, decode_header, encode_event, encode_header};
pub use error::{Damage, Problem, ReadError, WriteError};
pub use read::{Reader, Tail, open};
pub use source::CaptureSource;
pub use write::{Durable, Tee, Writer, create};

use crate::market::{Address, Market, UntrustedText};
use crate::source::Event;
use core::time::Duration;

/// What a capture begins with. The first byte is no text and the last two are a line's end, so that a transfer
/// that treats the file as text damages what is looked at first.
pub const MAGIC: [u8; 8] = *b"\x89RGCAP\r\n";

/// The version that is written, and the one that is read.
pub const VERSION: u16 = 1;

/// Bytes before the first record: the magic and the version.
pub const PROLOGUE: u64 = MAGIC.len() as u64 + 2;

/// Bytes of a record before its payload.
pub const FRAME: u64 = frame::HEAD as u64;

/// The longest payload of a record, in bytes, unpacked. Packed it may be longer by what packing costs at
/// worst, which is less than an eighth.
pub const MAX_PAYLOAD: u32 = 64 << 20;

/// The most pools, tokens or updates of one record.
pub const MAX_COUNT: u64 = 1 << 20;

/// The longest text, in characters, as it is printed.
pub const MAX_TEXT: usize = 1024;

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The first record, once: the [`Header`].
    Header = 1,
    /// An [`Event::Block`].
    Block = 2,
    /// An [`Event::Reverted`].
    Reverted = 3,
    /// An [`Event::Pools`].
    Pools = 4,
    /// An [`Event::Reread`].
    Reread = 5,
    /// The last record of a capture that was ended: it has no payload.
    End = 6,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Header,
        Self::Block,
        Self::Reverted,
        Self::Pools,
        Self::Reread,
        Self::End,
    ];

    fn of(event: &Event) -> Self {
        match event {
            Event::Block(_) => Self::Block,
            Event::Reverted { .. } => Self::Reverted,
            Event::Pools(_) => Self::Pools,
            Event::Reread { .. } => Self::Reread,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The chain that events are of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// What it is called in output.
    pub name: UntrustedText,
    /// The number by which transactions name it, where it has one.
    pub id: Option<u64>,
}

/// What a capture says before its events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The program that made it, with its version.
    pub made_by: UntrustedText,
    /// The kind of source that it was made from.
    pub source: UntrustedText,
    /// The chain.
    pub chain: Chain,
    /// The base token of the run that it was made for.
    pub base: Address,
    /// Where the market came from, for people.
    pub market_name: UntrustedText,
    /// The market before the first event.
    pub market: Market,
}

/// An event and when it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Since the start of the capture, by a clock that does not go back.
    pub at: Duration,
    /// What came.
    pub event: Event,
}
