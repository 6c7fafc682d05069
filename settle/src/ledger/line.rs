//! A ledger's lines: a CRC-32 in eight hexadecimal digits, a blank, JSON, a line feed.
//!
//! # Invariants
//! - A line is whole, or it is reported. Only the end of a file can be torn: an append that a crash cut short.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is before the JSON.
const PREFIX: usize = 9;

/// The line of `value`, with its end.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(value)?;
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

/// What a line without its end says, or why it is none.
pub(super) fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let (prefix, json) = line.split_at_checked(PREFIX).ok_or("too short")?;
    let stated = std::str::from_utf8(prefix).ok();
    let stated = stated.and_then(|text| u32::from_str_radix(text.strip_suffix(' ')?, 16).ok());
    let stated = stated.ok_or("no checksum before it")?;
    let actual = crc32fast::hash(json);
    if stated != actual {
        return Err(format!("checksum {actual:08x}, not {stated:08x} as stated"));
    }
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

/// The lines of a file with their offsets, and where its torn end begins, if it has one.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Where the next line begins, or the torn end.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// What is not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    /// The next line without its end, and where it begins; nothing at the end or where the torn end begins.
    pub(super) fn next(&mut self) -> Option<(usize, &'a [u8])> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest.get(..end)?;
        let last = end + 1 == rest.len();
        // A page that a crash kept from the disk reads as zeros, though the line's end is there.
        if last && line.contains(&0) {
            return None;
        }
        let offset = self.offset;
        self.offset += end + 1;
        Some((offset, line))
    }
}
