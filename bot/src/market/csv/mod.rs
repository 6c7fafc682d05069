//! Pool files: comma-separated text, one pool a row, one exchange a file.
//!
//! The columns are `pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1`, in any
//! order; the first line names them. Lines may end in LF or CRLF.
//!
//! What a file gets wrong is an error, since one wrong row can be worth more than all honest ones. What
//! is right but of no use is [`Skipped`] and counted.
//!
//! # Invariants
//! - Pools, tokens and exchanges get their ids in the order of the files and, within a file, of the
//!   rows. The tokens of skipped rows get none, unless another row has them.
//! - An error names the first offending place in that order.

mod error;
mod row;

use core::fmt;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;

pub use error::{LoadError, Place, RowError};
use row::{Header, Row};

use super::{Address, Market, MarketBuilder, Pool, TokenId, UntrustedText};
use crate::solver::Fee;

/// The columns of a pool file.
pub const COLUMNS: [&str; 9] = [
    "pair",
    "token0",
    "decimals0",
    "reserve0",
    "token1",
    "decimals1",
    "reserve1",
    "symbol0",
    "symbol1",
];

/// The largest file that is read, in bytes. All pools there ever were on the largest exchange of this
/// kind take about 80 MB; what is larger is not a pool file.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Characters of a file's name kept for messages: paths are longer than symbols.
const NAME_LIMIT: usize = 256;

/// What to do with a pool whose own address is also listed as a token: its shares trade in another
/// pool.
///
/// A pool that lists *its own* shares as one of its two tokens is skipped in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PoolIsToken {
    /// Load it like any other. Trading shares of a pool does not hinder trades through that pool, and
    /// one of the deepest pools there is (DAI for WETH on Uniswap v2) is such a one.
    #[default]
    Keep,
    /// Skip and count it, for settings where an address can hold only one contract's code and the
    /// token's wins.
    Skip,
}

/// How many rows were right but useless, by reason. A row counts once, under the first that applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Skipped {
    /// A reserve is zero: nothing can be traded.
    pub zero_reserve: u64,
    /// The pool's address is a token's: see [`PoolIsToken`].
    pub pool_is_token: u64,
}

impl Skipped {
    /// All skipped rows.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.zero_reserve.saturating_add(self.pool_is_token)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with a zero reserve, {} whose address is a token's",
            self.zero_reserve, self.pool_is_token
        )
    }
}

/// What the files held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// The market of all rows that were not skipped.
    pub market: Market,
    /// The rows that were.
    pub skipped: Skipped,
}

/// Reads `paths` in order into one market; each file is an exchange named by its stem.
pub fn load<P: AsRef<Path>>(paths: &[P], pool_is_token: PoolIsToken) -> Result<Loaded, LoadError> {
    let mut loader = Loader::new(pool_is_token);
    for path in paths {
        loader.file(path.as_ref())?;
    }
    loader.finish()
}

/// Collects rows of several files and makes one market of them.
#[derive(Debug)]
pub struct Loader {
    pool_is_token: PoolIsToken,
    files: Vec<Source>,
    rows: Vec<(Position, Row)>,
    pools: BTreeMap<Address, Position>,
    tokens: BTreeMap<Address, (u8, Position)>,
}

/// One file.
#[derive(Debug)]
struct Source {
    name: UntrustedText,
    exchange: UntrustedText,
}

/// A line of one of the loader's files.
#[derive(Clone, Copy, Debug)]
struct Position {
    file: usize,
    line: u64,
}

impl Loader {
    /// A loader without files.
    #[must_use]
    pub const fn new(pool_is_token: PoolIsToken) -> Self {
        Self {
            pool_is_token,
            files: Vec::new(),
            rows: Vec::new(),
            pools: BTreeMap::new(),
            tokens: BTreeMap::new(),
        }
    }

    /// Reads the file at `path`.
    pub fn file(&mut self, path: &Path) -> Result<(), LoadError> {
        let name = path.to_string_lossy();
        let unreadable = |source| LoadError::Unreadable {
            file: UntrustedText::with_limit(&name, NAME_LIMIT),
            source,
        };
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        self.text(&name, &stem, &bytes)
    }

    /// Reads `bytes` as the content of a file called `name`, for an exchange called `exchange`.
    pub fn text(&mut self, name: &str, exchange: &str, bytes: &[u8]) -> Result<(), LoadError> {
        let name = UntrustedText::with_limit(name, NAME_LIMIT);
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(LoadError::TooLarge { file: name });
        }
        let file = self.files.len();
        self.files.push(Source {
            name: name.clone(),
            exchange: UntrustedText::new(exchange),
        });

        let mut records = row::Records::new(bytes);
        let Some((line, header)) = records.next().map_err(|e| e.into_load_error(&name))? else {
            return Err(LoadError::Empty { file: name });
        };
        let header = Header::parse(
            header,
            &Place {
                file: name.clone(),
                line,
            },
        )?;
        let mut rows = 0_u64;
        while let Some((line, record)) = records.next().map_err(|e| e.into_load_error(&name))? {
            let at = Position { file, line };
            let checked = Row::parse(&header, record).and_then(|row| self.admit(at, row));
            checked.map_err(|problem| LoadError::Row {
                at: self.place(at),
                problem,
            })?;
            rows += 1;
        }
        if rows == 0 {
            return Err(LoadError::HeaderOnly { file: name });
        }
        Ok(())
    }

    /// Checks a row against all rows before it and keeps it.
    fn admit(&mut self, at: Position, row: Row) -> Result<(), RowError> {
        match self.pools.entry(row.pair) {
            Entry::Occupied(first) => {
                let first = *first.get();
                return Err(RowError::DuplicatePair {
                    pair: row.pair,
                    first: self.place(first),
                });
            }
            Entry::Vacant(place) => place.insert(at),
        };
        for side in &row.sides {
            let &mut (decimals, first) =
                self.tokens.entry(side.token).or_insert((side.decimals, at));
            if decimals != side.decimals {
                return Err(RowError::DecimalsConflict {
                    token: side.token,
                    here: side.decimals,
                    there: decimals,
                    first: self.place(first),
                });
            }
        }
        self.rows.push((at, row));
        Ok(())
    }

    fn place(&self, at: Position) -> Place {
        Place {
            file: self.files[at.file].name.clone(),
            line: at.line,
        }
    }

    /// The market of all files.
    pub fn finish(self) -> Result<Loaded, LoadError> {
        let mut builder = MarketBuilder::new();
        let mut exchanges = Vec::with_capacity(self.files.len());
        for file in &self.files {
            // 0.3 %, as Uniswap v2 and most of its forks; `Market::set_fee` changes it.
            exchanges.push(builder.exchange(file.exchange.clone(), Fee::default())?);
        }
        let mut skipped = Skipped::default();
        for (at, row) in &self.rows {
            if row.sides.iter().any(|side| side.reserve == 0) {
                skipped.zero_reserve += 1;
                continue;
            }
            let own_shares = row.sides.iter().any(|side| side.token == row.pair);
            let is_token = self.tokens.contains_key(&row.pair);
            if own_shares || (is_token && self.pool_is_token == PoolIsToken::Skip) {
                skipped.pool_is_token += 1;
                continue;
            }
            let [token0, token1] = row.tokens(&mut builder)?;
            builder.pool(Pool {
                address: row.pair,
                exchange: exchanges[at.file],
                token0,
                token1,
                reserve0: row.sides[0].reserve,
                reserve1: row.sides[1].reserve,
            })?;
        }
        Ok(Loaded {
            market: builder.build(),
            skipped,
        })
    }
}

impl Row {
    fn tokens(&self, builder: &mut MarketBuilder) -> Result<[TokenId; 2], LoadError> {
        let [side0, side1] = &self.sides;
        Ok([
            builder.token(side0.token, side0.decimals, &side0.symbol)?,
            builder.token(side1.token, side1.decimals, &side1.symbol)?,
        ])
    }
}

#[cfg(test)]
mod tests;
