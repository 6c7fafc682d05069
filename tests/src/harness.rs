//! Runs of the bot inside the test's process, and what they wrote.

use clap::Parser;
use regatta_bot::cli::{Cli, Command};
use regatta_bot::exit::Exit;
use regatta_bot::run;
use regatta_bot::source::embedded::{GenerateError, MarketConfig, generate};
use serde_json::Value;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The files of real pools in the repository.
pub const REAL_POOLS: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../data/uniswap_v2_pairs.csv"),
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../data/sushiswap_v2_pairs.csv"
    ),
];

/// WETH: the base token of runs on the real pools.
pub const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";

/// The command line that starts from the real pools.
pub const ON_REAL_POOLS: [&str; 4] = ["--pools", REAL_POOLS[0], "--pools", REAL_POOLS[1]];

/// Why there is nothing to look at.
#[derive(Debug, Error)]
pub enum HarnessError {
    /// The command line is wrong.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The command line is not that of a run.
    #[error("the command line asks for something else than a run")]
    NotARun,
    /// A line of the output is no JSON.
    #[error("line {line} of the output is no JSON: {error}")]
    NotJson {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The made-up market could not be made.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A file of pools could not be read.
    #[error("{file}: {error}")]
    Pools {
        /// The file.
        file: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// What a run wrote and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code of the process that it would have been.
    pub exit: Exit,
    /// What it would have said on stderr.
    pub error: Option<String>,
    /// Its records, one a line, byte for byte.
    pub lines: Vec<String>,
    /// The same, parsed.
    pub records: Vec<Value>,
}

impl Ran {
    /// The records of one type, in order.
    pub fn of_type<'r>(&'r self, kind: &'r str) -> impl Iterator<Item = &'r Value> {
        self.records
            .iter()
            .filter(move |record| record["type"] == kind)
    }

    /// The last record, which ends every run.
    #[must_use]
    pub fn summary(&self) -> &Value {
        self.records.last().unwrap_or(&Value::Null)
    }

    /// The lines without what depends on timing.
    #[must_use]
    pub fn timeless(&self) -> Vec<String> {
        self.lines.iter().map(|line| without_timing(line)).collect()
    }
}

/// Where a run writes to, that can be read when it has ended.
#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `regatta run --json` with these arguments.
pub fn regatta<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Ran, HarnessError> {
    let line = ["regatta", "run", "--json"].into_iter().chain(args);
    let command = Cli::try_parse_from(line)?.command;
    let Command::Run(args) = command else {
        return Err(HarnessError::NotARun);
    };
    let written = Written::default();
    let ended = run::run(&args, written.clone(), run::Outside::default());
    let lines: Vec<String> = String::from_utf8_lossy(&written.bytes())
        .lines()
        .map(str::to_owned)
        .collect();
    let records = (1..)
        .zip(&lines)
        .map(|(line, text)| {
            serde_json::from_str(text).map_err(|error| HarnessError::NotJson { line, error })
        })
        .collect::<Result<_, _>>()?;
    Ok(Ran {
        exit: ended
            .as_ref()
            .map_or_else(run::RunError::exit, |()| Exit::Ok),
        error: ended.err().map(|error| error.to_string()),
        lines,
        records,
    })
}

/// A market as text: its pools and its base token.
#[derive(Clone, Debug)]
pub struct MarketText {
    /// Pool files in the format of the real ones.
    pub files: Vec<String>,
    /// The base token's address.
    pub base: String,
}

/// The real pools.
pub fn real_market() -> Result<MarketText, HarnessError> {
    let read =
        |file| std::fs::read_to_string(file).map_err(|error| HarnessError::Pools { file, error });
    Ok(MarketText {
        files: REAL_POOLS.into_iter().map(read).collect::<Result<_, _>>()?,
        base: WETH.to_owned(),
    })
}

/// The market that the bot makes up from `seed`.
pub fn made_up_market(seed: u64) -> Result<MarketText, HarnessError> {
    let made = generate(&MarketConfig::with_seed(seed))?;
    let market = &made.market;
    let mut text = String::from("pair,token0,reserve0,token1,reserve1\n");
    for pool in market.pools() {
        let token = |id| market.token(id).address;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{}",
            pool.address,
            token(pool.token0),
            pool.reserve0,
            token(pool.token1),
            pool.reserve1
        );
    }
    Ok(MarketText {
        files: vec![text],
        base: made.base.to_string(),
    })
}

/// A market where rounding decides: eight tokens, two pools for each pair of them, a thousand million
/// units of the base token and a thousand or so of any other in a pool.
#[must_use]
pub fn coarse_market() -> MarketText {
    const TOKENS: u64 = 8;
    let token = |number: u64| format!("0x{:040x}", 0xA000 + number);
    let mut state = 1_u64;
    // Knuth's linear congruential generator; its high bits are random enough for this.
    let mut noise = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text =
        String::from("pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1\n");
    let pairs = (0..TOKENS).flat_map(|one| (one + 1..TOKENS).map(move |other| (one, other)));
    for (pool, (one, other)) in pairs.flat_map(|pair| [pair, pair]).enumerate() {
        let coarse = 1_000 + noise(20);
        let first = match one {
            0 => 1_000_000_000 + noise(20_000_000),
            _ => 1_000 + noise(20),
        };
        let (one, other) = (token(one), token(other));
        // Writing to a string does not fail.
        let _ = writeln!(text, "0x{pool:040x},{one},0,{first},{other},0,{coarse},A,B");
    }
    MarketText {
        files: vec![text],
        base: token(0),
    }
}

/// The text of a JSON object without its `timing` entry, whose value is an object, and every other byte
/// as it is.
#[must_use]
pub fn without_timing(line: &str) -> String {
    const ENTRY: &str = ",\"timing\":";
    let Some(start) = line.find(ENTRY) else {
        return line.to_owned();
    };
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut end = line.len();
    for (place, byte) in line.bytes().enumerate().skip(start + ENTRY.len()) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            end = place + 1;
            break;
        }
    }
    format!("{}{}", &line[..start], &line[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_is_taken_out_and_nothing_else() {
        for (line, rest) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1,"timing":{"b":2}}"#, r#"{"a":1}"#),
            (
                r#"{"a":1,"timing":{"b":[{"c":"}\"]"}],"d":{}},"timings":{}}"#,
                r#"{"a":1,"timings":{}}"#,
            ),
        ] {
            assert_eq!(without_timing(line), rest);
        }
    }
}
