//! From bytes to checked rows.

use core::str::FromStr;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::super::{Address, MAX_RESERVE, UntrustedText};
use super::{COLUMNS, LoadError, Place, RowError};

/// The places of the columns in [`COLUMNS`].
mod column {
    pub(super) const PAIR: usize = 0;
    pub(super) const TOKEN: [usize; 2] = [1, 4];
    pub(super) const DECIMALS: [usize; 2] = [2, 5];
    pub(super) const RESERVE: [usize; 2] = [3, 6];
    pub(super) const SYMBOL: [usize; 2] = [7, 8];
}

/// The records of a file with the lines on which they start.
///
/// Lines are counted here, from byte offsets: the reader's own count does not include the line feed of
/// the CRLF that ended the record before.
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    reader: Reader<&'a [u8]>,
    record: ByteRecord,
    /// Where the last record ended.
    offset: usize,
    /// Line of `offset`.
    line: u64,
}

/// A record that could not be taken apart.
pub(super) struct RecordError {
    line: u64,
    problem: RowError,
}

impl RecordError {
    pub(super) fn into_load_error(self, file: &UntrustedText) -> LoadError {
        let at = Place {
            file: file.clone(),
            line: self.line,
        };
        LoadError::Row {
            at,
            problem: self.problem,
        }
    }
}

impl<'a> Records<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        Self {
            bytes,
            reader,
            record: ByteRecord::new(),
            offset: 0,
            line: 1,
        }
    }

    /// The next record that is not an empty line.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &ByteRecord)>, RecordError> {
        let gap = self.bytes[self.offset..]
            .iter()
            .take_while(|b| matches!(b, b'\r' | b'\n'))
            .count();
        let start = self.offset + gap;
        self.line += line_ends(&self.bytes[self.offset..start]);
        let line = self.line;
        // The reader fails only on I/O, which memory has none of, and on unequal lengths, which are
        // allowed here; a failure would be the end of what can be read.
        if !self
            .reader
            .read_byte_record(&mut self.record)
            .unwrap_or(false)
        {
            return Ok(None);
        }
        let end = usize::try_from(self.reader.position().byte()).unwrap_or(self.bytes.len());
        // Between this record's CR and its LF, the LF is the next gap's.
        let end = end.clamp(start, self.bytes.len());
        let text = &self.bytes[start..end];
        let body = text.len()
            - text
                .iter()
                .rev()
                .take_while(|b| matches!(b, b'\r' | b'\n'))
                .count();
        self.offset = start + body;
        self.line += line_ends(&text[..body]);
        if text.iter().fold(false, |odd, &b| odd ^ (b == b'"')) {
            return Err(RecordError {
                line,
                problem: RowError::Quote,
            });
        }
        Ok(Some((line, &self.record)))
    }
}

/// How many lines end in `bytes`: at an LF, a CRLF or a CR.
fn line_ends(bytes: &[u8]) -> u64 {
    let mut ends = 0;
    let mut previous = 0;
    for &byte in bytes {
        ends += u64::from(byte == b'\r' || byte == b'\n' && previous != b'\r');
        previous = byte;
    }
    ends
}

/// Where each column is in the records of a file.
pub(super) struct Header {
    places: [usize; COLUMNS.len()],
}

impl Header {
    pub(super) fn parse(record: &ByteRecord, at: &Place) -> Result<Self, LoadError> {
        let mut places = [None; COLUMNS.len()];
        for (place, name) in record.iter().enumerate() {
            let Some(column) = COLUMNS.iter().position(|known| known.as_bytes() == name) else {
                let column = UntrustedText::from_bytes(name);
                return Err(LoadError::UnknownColumn {
                    at: at.clone(),
                    column,
                });
            };
            if places[column].replace(place).is_some() {
                return Err(LoadError::RepeatedColumn {
                    at: at.clone(),
                    column: COLUMNS[column],
                });
            }
        }
        let mut header = Self {
            places: [0; COLUMNS.len()],
        };
        for (column, place) in places.into_iter().enumerate() {
            header.places[column] = place.ok_or_else(|| LoadError::MissingColumn {
                at: at.clone(),
                column: COLUMNS[column],
            })?;
        }
        Ok(header)
    }
}

/// One pool as its row has it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) pair: Address,
    pub(super) sides: [Side; 2],
}

/// One token of a row and how much of it the pool has.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) token: Address,
    pub(super) decimals: u8,
    pub(super) symbol: UntrustedText,
    pub(super) reserve: u128,
}

impl Row {
    /// The row in `record`, right by itself.
    pub(super) fn parse(header: &Header, record: &ByteRecord) -> Result<Self, RowError> {
        if record.len() != COLUMNS.len() {
            return Err(RowError::FieldCount {
                found: record.len(),
            });
        }
        let fields = Fields { header, record };
        let row = Self {
            pair: fields.address(column::PAIR)?,
            sides: [fields.side(0)?, fields.side(1)?],
        };
        if row.sides[0].token == row.sides[1].token {
            return Err(RowError::SameToken {
                token: row.sides[0].token,
            });
        }
        Ok(row)
    }
}

/// The fields of a row by column.
struct Fields<'a> {
    header: &'a Header,
    record: &'a ByteRecord,
}

impl<'a> Fields<'a> {
    fn text(&self, column: usize) -> Result<&'a str, RowError> {
        let bytes = &self.record[self.header.places[column]];
        core::str::from_utf8(bytes).map_err(|_| RowError::NotUtf8 {
            column: COLUMNS[column],
            text: UntrustedText::from_bytes(bytes),
        })
    }

    fn side(&self, side: usize) -> Result<Side, RowError> {
        Ok(Side {
            token: self.address(column::TOKEN[side])?,
            decimals: self.decimals(column::DECIMALS[side])?,
            reserve: self.reserve(column::RESERVE[side])?,
            symbol: UntrustedText::new(self.text(column::SYMBOL[side])?),
        })
    }

    fn address(&self, column: usize) -> Result<Address, RowError> {
        let parsed = self.text(column)?.parse();
        parsed.map_err(|problem| RowError::Address {
            column: COLUMNS[column],
            problem,
        })
    }

    fn decimals(&self, column: usize) -> Result<u8, RowError> {
        let text = self.text(column)?;
        digits(text)
            .and_then(number)
            .ok_or_else(|| RowError::Decimals {
                column: COLUMNS[column],
                text: UntrustedText::new(text),
            })
    }

    fn reserve(&self, column: usize) -> Result<u128, RowError> {
        let text = self.text(column)?;
        let (column, untrusted) = (COLUMNS[column], UntrustedText::new(text));
        match digits(text) {
            None => Err(RowError::Reserve {
                column,
                text: untrusted,
            }),
            Some(digits) => number(digits)
                .filter(|&reserve| reserve <= MAX_RESERVE)
                .ok_or(RowError::ReserveTooLarge {
                    column,
                    text: untrusted,
                }),
        }
    }
}

/// `text` if it is one or more ASCII digits; `FromStr` of integers takes a sign too.
fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// The number that `digits` write, if it fits the type.
fn number<N: FromStr>(digits: &str) -> Option<N> {
    digits.parse().ok()
}
