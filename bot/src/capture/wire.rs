//! Values as bytes and back: the one way to write each, and no other way that is read.
//!
//! # Invariants
//! - A value has one form: numbers are written with as few bytes as they take, and the reader refuses any
//!   other form.
//! - Reading does not reserve memory by a number that was read.

use super::error::Problem;
use super::{MAX_COUNT, MAX_TEXT};
use crate::market::{Address, UntrustedText};

/// Adds a number: seven bits a byte, lowest first, the highest bit set in all but the last byte.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    bytes.push(low_bits(number));
}

const fn low_bits(number: u128) -> u8 {
    (number & 0x7F) as u8
}

/// Adds a number that may be missing.
pub(super) fn put_option(bytes: &mut Vec<u8>, number: Option<u128>) {
    bytes.push(u8::from(number.is_some()));
    if let Some(number) = number {
        put_number(bytes, number);
    }
}

/// Adds a text with its length before it.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &UntrustedText) {
    put_number(bytes, text.as_str().len() as u128);
    bytes.extend_from_slice(text.as_str().as_bytes());
}

/// Reads values from the front of some bytes.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Bytes that were read.
    at: u64,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Problem::Short { what })?;
        self.rest = rest;
        self.at += length as u64;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, Problem> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Problem> {
        let taken = self.take(N, what)?;
        taken.try_into().map_err(|_| Problem::Short { what })
    }

    /// A number of at most `bits` bits.
    pub(super) fn number(&mut self, what: &'static str, bits: u32) -> Result<u128, Problem> {
        let (mut number, mut shift) = (0_u128, 0_u32);
        loop {
            let byte = self.byte(what)?;
            let part = u128::from(byte & 0x7F);
            if shift >= bits || (bits - shift < 7 && part >> (bits - shift) != 0) {
                return Err(Problem::Bits { what, bits });
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 {
                    Err(Problem::Overlong { what })
                } else {
                    Ok(number)
                };
            }
            shift += 7;
        }
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, Problem> {
        let bits = Problem::Bits { what, bits: 64 };
        u64::try_from(self.number(what, 64)?).map_err(|_| bits)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, Problem> {
        let bits = Problem::Bits { what, bits: 32 };
        u32::try_from(self.number(what, 32)?).map_err(|_| bits)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Problem> {
        let bits = Problem::Bits { what, bits: 16 };
        u16::try_from(self.number(what, 16)?).map_err(|_| bits)
    }

    /// A number that may be missing.
    pub(super) fn option(
        &mut self,
        what: &'static str,
        bits: u32,
    ) -> Result<Option<u128>, Problem> {
        match self.byte(what)? {
            0 => Ok(None),
            1 => self.number(what, bits).map(Some),
            found => Err(Problem::Choice { what, found }),
        }
    }

    /// How many of something follow, each of at least `least` bytes.
    pub(super) fn count(&mut self, what: &'static str, least: u64) -> Result<u64, Problem> {
        let count = self.u64(what)?;
        if count > MAX_COUNT {
            return Err(Problem::Many { what, count });
        }
        let room = self.rest.len();
        if count * least > room as u64 {
            return Err(Problem::Count { what, count, room });
        }
        Ok(count)
    }

    pub(super) fn address(&mut self, what: &'static str) -> Result<Address, Problem> {
        self.array(what).map(Address::new)
    }

    /// A text that is kept as it is: it was made safe to print before it was written.
    pub(super) fn text(&mut self, what: &'static str) -> Result<UntrustedText, Problem> {
        let length = self.u64(what)?;
        let wrong = Problem::Text { what };
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= 4 * MAX_TEXT)
            .ok_or_else(|| wrong.clone())?;
        let bytes = self.take(length, what)?;
        let text = core::str::from_utf8(bytes).map_err(|_| wrong.clone())?;
        UntrustedText::printed_before(text, MAX_TEXT).ok_or(wrong)
    }

    /// The end of the bytes.
    pub(super) const fn end(&self) -> Result<(), Problem> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Problem::Trailing {
                bytes: self.rest.len(),
            })
        }
    }
}
