//! What can be wrong with a pool file.

use core::fmt;
use std::io;

use super::super::{Address, AddressError, BuildError, MAX_RESERVE, UntrustedText};
use super::{COLUMNS, MAX_FILE_BYTES};

/// A line of a file, the first being 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file's name as it was given.
    pub file: UntrustedText,
    /// The line on which the row starts.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The list of columns, for messages.
fn columns() -> String {
    COLUMNS.join(",")
}

/// Why pool files were refused.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        file: UntrustedText,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any pool file.
    #[error("{file}: has more than {MAX_FILE_BYTES} bytes, which no pool file has")]
    TooLarge {
        /// The file.
        file: UntrustedText,
    },
    /// The file has no line.
    #[error("{file}: is empty; the first line names the columns {}", columns())]
    Empty {
        /// The file.
        file: UntrustedText,
    },
    /// The file has a header and nothing else.
    #[error("{file}: has a header and no pools; each further line is one pool")]
    HeaderOnly {
        /// The file.
        file: UntrustedText,
    },
    /// The header names a column that pool files do not have.
    #[error(
        "{at}: column `{column}` is unknown; the columns are {}, in any order",
        columns()
    )]
    UnknownColumn {
        /// The header.
        at: Place,
        /// The column.
        column: UntrustedText,
    },
    /// The header names a column twice.
    #[error(
        "{at}: column `{column}` is there twice; the columns are {}, each once",
        columns()
    )]
    RepeatedColumn {
        /// The header.
        at: Place,
        /// The column.
        column: &'static str,
    },
    /// The header lacks a column.
    #[error(
        "{at}: column `{column}` is missing; the columns are {}, in any order",
        columns()
    )]
    MissingColumn {
        /// The header.
        at: Place,
        /// The column.
        column: &'static str,
    },
    /// A row is wrong.
    #[error("{at}: {problem}")]
    Row {
        /// The row.
        at: Place,
        /// What is wrong with it.
        problem: RowError,
    },
    /// The rows are right one by one and make no market together.
    #[error(transparent)]
    Market(#[from] BuildError),
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row has more or fewer fields than columns.
    #[error("the row has {found} fields where {} belong: {}", COLUMNS.len(), columns())]
    FieldCount {
        /// How many it has.
        found: usize,
    },
    /// A quotation mark is not closed, so the row may have swallowed those after it.
    #[error(
        "a quotation mark in this row has no partner; a quoted field starts and ends with one, and \
         has each mark inside it doubled"
    )]
    Quote,
    /// A field is not UTF-8.
    #[error("column {column}: `{text}` is not UTF-8; pool files are UTF-8 throughout")]
    NotUtf8 {
        /// The column.
        column: &'static str,
        /// The field, with what is not UTF-8 replaced.
        text: UntrustedText,
    },
    /// A field is no address.
    #[error("column {column}: {problem}")]
    Address {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        problem: AddressError,
    },
    /// A field is no number of decimals.
    #[error(
        "column {column}: `{text}` is no number of decimals; that is a whole number from 0 to 255"
    )]
    Decimals {
        /// The column.
        column: &'static str,
        /// The field.
        text: UntrustedText,
    },
    /// A field is no reserve.
    #[error(
        "column {column}: `{text}` is no reserve; that is a whole number of the token's smallest \
         unit in decimal digits"
    )]
    Reserve {
        /// The column.
        column: &'static str,
        /// The field.
        text: UntrustedText,
    },
    /// A reserve has more than 112 bits.
    #[error("column {column}: `{text}` has more than 112 bits; a reserve is at most {MAX_RESERVE}")]
    ReserveTooLarge {
        /// The column.
        column: &'static str,
        /// The field.
        text: UntrustedText,
    },
    /// Both tokens are the same.
    #[error("columns token0 and token1: both are {token}; a pool trades two different tokens")]
    SameToken {
        /// The token.
        token: Address,
    },
    /// The pool was listed before.
    #[error("column pair: {pair} is listed already, at {first}; a pool has one row in one file")]
    DuplicatePair {
        /// The pool.
        pair: Address,
        /// Where it was listed first.
        first: Place,
    },
    /// Two rows disagree about a token's decimals. They are a constant of the token, so one of the two
    /// rows is about something else, and there is no telling which: neither is believed.
    #[error(
        "token {token} has {here} decimals here and {there} at {first}; a token has the same \
         decimals everywhere, so one of the two rows is wrong"
    )]
    DecimalsConflict {
        /// The token.
        token: Address,
        /// The decimals in this row.
        here: u8,
        /// The decimals in the earlier row.
        there: u8,
        /// The earlier row.
        first: Place,
    },
}
