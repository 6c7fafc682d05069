//! The `regatta` binary from the outside: exit codes, messages, and what reaches stdout and stderr.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, in a helper too"
)]

mod bad_input;
mod hostile;
mod options;
mod output;
mod streams;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// How a run ended.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    /// The run was refused before it began: nothing on stdout, and every part of a message on stderr.
    #[track_caller]
    fn refused(self, code: i32, parts: &[&str]) {
        let ran = self.exits(code);
        assert_eq!(ran.stdout, "");
        for part in parts {
            assert!(
                ran.stderr.contains(part),
                "{part:?} is not in {}",
                ran.stderr
            );
        }
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }

    /// The records of a run with `--json`.
    #[track_caller]
    fn records(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// `regatta` with these arguments and nothing in its environment.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.env_clear().args(args);
    command
}

/// `regatta run` with these arguments, on two cores whatever the machine has.
fn run_logging(level: &str, args: &[&str]) -> Command {
    let mut command = command(&["run", "--quota", "2000", "--log", level]);
    command.args(args);
    command
}

fn run_command(args: &[&str]) -> Command {
    run_logging("off", args)
}

fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(args: &[&str]) -> Ran {
    ran(run_command(args))
}

/// The record of a type; there must be one.
#[track_caller]
fn record<'r>(records: &'r [Value], kind: &str) -> &'r Value {
    let mut found = records.iter().filter(|record| record["type"] == kind);
    let record = found.next().unwrap_or_else(|| panic!("no {kind} record"));
    assert!(found.next().is_none(), "more than one {kind} record");
    record
}

const HEADER: &str = "pair,token0,decimals0,reserve0,token1,decimals1,reserve1,symbol0,symbol1";

/// The base token of a run over pool files.
const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";

fn address(n: u32) -> String {
    format!("0x{n:040x}")
}

/// A row of a pool file.
#[derive(Clone)]
struct Row {
    pair: String,
    tokens: [String; 2],
    decimals: [String; 2],
    reserves: [String; 2],
    symbols: [String; 2],
}

impl Row {
    /// Pool `pair` of WETH and token number `token`.
    fn weth(pair: u32, token: u32) -> Self {
        Self {
            pair: address(pair),
            tokens: [WETH.to_owned(), address(token)],
            decimals: ["18".to_owned(), "18".to_owned()],
            reserves: ["1000000000000000000000".to_owned(), format!("2{token:021}")],
            symbols: ["WETH".to_owned(), format!("T{token}")],
        }
    }

    fn text(&self) -> String {
        let quoted = |text: &String| format!("\"{}\"", text.replace('"', "\"\""));
        [
            &self.pair,
            &self.tokens[0],
            &self.decimals[0],
            &self.reserves[0],
            &self.tokens[1],
            &self.decimals[1],
            &self.reserves[1],
            &quoted(&self.symbols[0]),
            &quoted(&self.symbols[1]),
        ]
        .map(String::as_str)
        .join(",")
    }
}

/// Pools 101 to 104 of WETH with tokens 1 and 2, two each: four cycles of two hops.
fn rows() -> Vec<Row> {
    [(101, 1), (102, 1), (103, 2), (104, 2)]
        .map(|(pair, token)| Row::weth(pair, token))
        .to_vec()
}

fn file_of(rows: &[Row]) -> String {
    let lines: Vec<String> = rows.iter().map(Row::text).collect();
    format!("{HEADER}\n{}\n", lines.join("\n"))
}

/// Pool files in a directory of their own.
struct Pools {
    directory: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Pools {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            arguments: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Names a file on the command line.
    fn named(mut self, name: &str) -> Self {
        let path = self.path(name).to_str().unwrap().to_owned();
        self.arguments.extend(["--pools".to_owned(), path]);
        self
    }

    fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), content).unwrap();
        self.named(name)
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_logging("off", args)
    }

    fn run_logging(&self, level: &str, args: &[&str]) -> Ran {
        let mut command = run_logging(level, args);
        command.args(&self.arguments);
        ran(command)
    }
}
