//! The settlement ledger: what was planned, what was sent, and how it ended, on disk.
//!
//! A file of lines: a header, then [`Entry`]s, each JSON with a CRC-32 before it. It is appended to and never rewritten.
//!
//! # Invariants
//! - When [`Ledger::append`] returns, the entry survives a crash of the process and of the machine.
//! - Opening cuts off what a crash left of a last line, and says so. Anything else that is not as it was written is an
//!   error with its offset, and nothing is changed.
//! - One process at a time appends to a file. After a failed append nothing more is appended: the file's end is unknown.

mod entry;
mod line;
mod state;

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use self::entry::{Attempt, Block, Entry, Header, Id, Kind, Mined, Outcome, Plan, VERSION};
pub use self::state::{Flight, Inconsistent, KEPT, State, Totals};
use line::Lines;

/// The longest ledger that is read, in bytes: some million entries.
pub const MAX_LENGTH: u64 = 4 << 30;

/// A ledger that is open for appending.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
    header: Header,
    state: State,
    failed: bool,
}

/// What a crash left at a ledger's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Torn {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
}

/// What a ledger says, for whoever looks at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Its first line.
    pub header: Header,
    /// What its entries add up to.
    pub state: State,
    /// How many there are.
    pub entries: u64,
    /// What was left of a last one.
    pub torn: Option<Torn>,
}

/// Why a ledger cannot be read or appended to.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The system refused.
    #[error("cannot {what} the ledger {}: {source}", .path.display())]
    Io {
        /// Open, read, write and so on.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process appends to it.
    #[error("the ledger {} is in use by another process: stop it first", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Longer than is read.
    #[error("the ledger {} has {length} bytes, above {MAX_LENGTH}: begin another", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// The first line is not a ledger's.
    #[error("{} is no settlement ledger: {what}", .path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
        /// What is wrong with the line.
        what: String,
    },
    /// A form that this build does not read.
    #[error("the ledger {} has form {found}, not {VERSION}", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its form.
        found: u32,
    },
    /// It is of another chain, executor or account.
    #[error(
        "the ledger {} is of chain {}, executor {}, owner {}, not of chain {}, executor {}, owner {}",
        .path.display(), .found.chain_id, .found.executor, .found.owner,
        .wanted.chain_id, .wanted.executor, .wanted.owner
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// What it is of.
        found: Box<Header>,
        /// What is asked for.
        wanted: Box<Header>,
    },
    /// A line before the last one is not as it was written.
    #[error("the ledger {} is damaged at byte {offset}: {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A whole line cannot follow those before it.
    #[error("the ledger {} does not add up at byte {offset}: {source}", .path.display())]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
        /// What is wrong with it.
        source: Inconsistent,
    },
    /// An entry to append cannot follow those that are there.
    #[error("not appended to the ledger {}: {source}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Inconsistent,
    },
    /// An append failed before.
    #[error("an append to the ledger {} failed before: open it again", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
    },
}

fn offset(at: usize) -> u64 {
    at as u64
}

/// Reads a ledger's bytes; `path` names it in errors.
fn parse(path: &Path, bytes: &[u8]) -> Result<Summary, LedgerError> {
    let path = || path.to_owned();
    let mut lines = Lines::new(bytes);
    let not_one = |what| LedgerError::NotALedger { path: path(), what };
    let first = lines.next().map(|(_, line)| line);
    let first = first.ok_or_else(|| not_one("its first line has no end".to_owned()))?;
    let header: Header = line::decode(first).map_err(not_one)?;
    if header.settlement_ledger != VERSION {
        let found = header.settlement_ledger;
        return Err(LedgerError::Version {
            path: path(),
            found,
        });
    }
    let (mut state, mut entries) = (State::default(), 0);
    while let Some((at, line)) = lines.next() {
        let entry: Entry = line::decode(line).map_err(|what| LedgerError::Damaged {
            path: path(),
            offset: offset(at),
            what,
        })?;
        state
            .apply(&entry)
            .map_err(|source| LedgerError::Inconsistent {
                path: path(),
                offset: offset(at),
                source,
            })?;
        entries += 1;
    }
    let rest = lines.rest();
    let torn = (!rest.is_empty()).then_some(Torn {
        offset: offset(lines.offset()),
        length: offset(rest.len()),
    });
    Ok(Summary {
        header,
        state,
        entries,
        torn,
    })
}

impl Ledger {
    /// Opens the ledger at `path` for appending, or makes it, and says what a crash had left at its end.
    pub fn open(path: &Path, wanted: Header) -> Result<(Self, Option<Torn>), LedgerError> {
        let failed = |what| {
            let path = path.to_owned();
            move |source| LedgerError::Io { what, path, source }
        };
        let options = File::options().read(true).append(true).create(true).clone();
        let mut file = options.open(path).map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let path = path.to_owned();
                return Err(LedgerError::InUse { path });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
        }
        let bytes = contents(path, &mut file)?;
        let first = line::encode(&wanted).map_err(io::Error::other);
        let first = first.map_err(failed("write"))?;
        // A crash while it was made; any other file without a line's end is somebody else's.
        if bytes.len() < first.len() && first.starts_with(&bytes) {
            file.set_len(0).map_err(failed("cut"))?;
            file.write_all(&first).map_err(failed("write"))?;
            file.sync_all().map_err(failed("write"))?;
            sync_folder(path).map_err(failed("make"))?;
            let torn = (!bytes.is_empty()).then_some(Torn {
                offset: 0,
                length: offset(bytes.len()),
            });
            return Ok((Self::with(file, path, wanted, State::default()), torn));
        }
        let read = parse(path, &bytes)?;
        if read.header != wanted {
            return Err(LedgerError::Other {
                path: path.to_owned(),
                found: Box::new(read.header),
                wanted: Box::new(wanted),
            });
        }
        if let Some(torn) = read.torn {
            file.set_len(torn.offset).map_err(failed("cut"))?;
            file.sync_all().map_err(failed("cut"))?;
        }
        Ok((Self::with(file, path, wanted, read.state), read.torn))
    }

    fn with(file: File, path: &Path, header: Header, state: State) -> Self {
        Self {
            file,
            path: path.to_owned(),
            header,
            state,
            failed: false,
        }
    }

    /// Reads the ledger at `path` and changes nothing, also while a process appends to it.
    pub fn read(path: &Path) -> Result<Summary, LedgerError> {
        let mut file = File::open(path).map_err(|source| LedgerError::Io {
            what: "open",
            path: path.to_owned(),
            source,
        })?;
        parse(path, &contents(path, &mut file)?)
    }

    /// Appends an entry. When this returns, it is on the disk.
    pub fn append(&mut self, entry: &Entry) -> Result<(), LedgerError> {
        let path = || self.path.clone();
        if self.failed {
            return Err(LedgerError::Failed { path: path() });
        }
        self.state
            .apply(entry)
            .map_err(|source| LedgerError::Refused {
                path: path(),
                source,
            })?;
        self.failed = true;
        let written = line::encode(entry).map_err(io::Error::other);
        // One write: a crash leaves a beginning of it.
        let written = written.and_then(|line| self.file.write_all(&line));
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|source| LedgerError::Io {
            what: "append to",
            path: path(),
            source,
        })?;
        self.failed = false;
        Ok(())
    }

    /// What its entries add up to.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its first line.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }
}

/// What is in the file.
fn contents(path: &Path, file: &mut File) -> Result<Vec<u8>, LedgerError> {
    let failed = |source| LedgerError::Io {
        what: "read",
        path: path.to_owned(),
        source,
    };
    let length = file.metadata().map_err(failed)?.len();
    if length > MAX_LENGTH {
        let path = path.to_owned();
        return Err(LedgerError::TooLong { path, length });
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Makes the file's name survive a crash too.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
