//! `fuzz`: the coverage-guided targets of `fuzz/`, each for a while.
//!
//! The folder has the layout of `cargo fuzz` and works with it. This verb needs neither that tool nor a nightly
//! compiler: the instrumentation is a pass that the stable one has, and the code has no undefined behaviour for an
//! address sanitizer to find, since what is fuzzed is safe Rust. What it needs is a C++ compiler for the
//! fuzzer itself.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{Metadata, Rustc, cargo, not_started, run as run_command, shown};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "fuzz",
    doc: "runs every fuzz target for a while, from the corpora in the repository",
    flags: &[
        Flag {
            name: "--minutes",
            value: Some("M"),
            doc: "for so long each (10 seconds unless said otherwise)",
        },
        Flag {
            name: "--target",
            value: Some("NAME"),
            doc: "this target alone",
        },
        Flag {
            name: "--if-possible",
            value: None,
            doc: "without a C++ compiler say so and succeed",
        },
    ],
    run,
};

/// The targets, each a file of `fuzz/fuzz_targets` and a folder of `fuzz/corpus`.
const TARGETS: &[&str] = &[
    "host", "posture", "plan", "cgroup", "pools", "texts", "capture",
];

const MANIFEST: &str = "fuzz/Cargo.toml";

/// How long a target runs, in seconds.
const SECONDS: u64 = 10;

/// What the fuzzer reads the coverage from; as `cargo fuzz` sets it.
const INSTRUMENT: &str = "--cfg fuzzing -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares";

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let seconds = seconds(args)?;
    let targets = targets(args)?;
    if !has_compiler() {
        let what = "fuzz: the fuzzer is C++ and neither $CXX nor `c++` runs";
        return if args.has("--if-possible") {
            Ok(writeln!(out, "{what}: skipped")?)
        } else {
            Err(Error::Failed(format!("{what}: install a C++ compiler")))
        };
    }
    let mut format = cargo();
    run_command(format.args(["fmt", "--manifest-path", MANIFEST, "--check"]))?;
    let folder = Path::new(&Metadata::load()?.target_directory).join("fuzz");
    let host = Rustc::load()?.host;
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--release"]);
    // With a target named, build scripts and macros go without the instrumentation.
    build.args(["--manifest-path", MANIFEST, "--target", &host]);
    build.env("RUSTFLAGS", INSTRUMENT);
    run_command(build.env("CARGO_TARGET_DIR", &folder))?;
    let binaries = folder.join(&host).join("release");
    for target in targets {
        let line = fuzz(target, &binaries.join(target), &folder, seconds)?;
        writeln!(out, "{target:<8} {line}")?;
        out.flush()?;
    }
    Ok(())
}

fn seconds(args: &Args) -> Result<u64, Error> {
    let Some(text) = args.value("--minutes") else {
        return Ok(SECONDS);
    };
    let minutes = text.parse::<u64>().ok().filter(|minutes| *minutes > 0);
    let minutes = minutes.and_then(|minutes| minutes.checked_mul(60));
    minutes.ok_or_else(|| {
        Error::Usage(format!(
            "fuzz: --minutes `{text}`: it takes a whole number from 1"
        ))
    })
}

fn targets(args: &Args) -> Result<&'static [&'static str], Error> {
    let Some(name) = args.value("--target") else {
        return Ok(TARGETS);
    };
    let at = TARGETS.iter().position(|target| *target == name);
    at.map(|at| &TARGETS[at..=at]).ok_or_else(|| {
        let known = TARGETS.join(", ");
        Error::Usage(format!("fuzz: no target `{name}`: there are {known}"))
    })
}

fn has_compiler() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command.arg("--version").stdin(Stdio::null());
    command.output().is_ok_and(|done| done.status.success())
}

/// Runs one target; its last word on coverage and speed.
fn fuzz(target: &str, binary: &Path, folder: &Path, seconds: u64) -> Result<String, Error> {
    // What it finds of interest stays between runs, what fails is beside it.
    let grown = made(folder.join("corpus").join(target))?;
    let failures = made(folder.join("failures"))?;
    let prefix = failures.join(format!("{target}-"));
    let mut command = Command::new(binary);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}", prefix.display()));
    command.args(["-timeout=20", "-rss_limit_mb=2048"]);
    command
        .arg(grown)
        .arg(Path::new("fuzz/corpus").join(target));
    let child = command.stdin(Stdio::null()).output();
    let done = child.map_err(|source| not_started(&command, &source))?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() {
        return Ok(last_word(&said));
    }
    Err(Error::Failed(format!(
        "fuzz: `{}` failed:\n{}",
        shown(&command),
        story(&said)
    )))
}

/// The panic and where the input is, or the end of what was said if nothing panicked.
fn story(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let from = panic.unwrap_or(lines.len().saturating_sub(30));
    let shown = lines.iter().skip(from).take(30);
    let input = lines
        .iter()
        .rfind(|line| line.contains("Test unit written"));
    let shown: Vec<&str> = shown.chain(input).copied().collect();
    shown.join("\n")
}

fn made(folder: PathBuf) -> Result<PathBuf, Error> {
    fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
    Ok(folder)
}

/// The line on which the fuzzer says how far it has come.
fn last_word(said: &str) -> String {
    let line = said.lines().rfind(|line| line.contains("DONE"));
    let words = line.unwrap_or("done").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_its_file_its_binary_and_a_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = fs::read_to_string(root.join(MANIFEST)).unwrap();
        let named = manifest.matches("[[bin]]").count();
        assert_eq!(named, TARGETS.len());
        for target in TARGETS {
            let file = format!("fuzz_targets/{target}.rs");
            assert!(manifest.contains(&format!("path = \"{file}\"")), "{target}");
            assert!(root.join("fuzz").join(&file).is_file(), "{file}");
            let corpus = format!("fuzz/corpus/{target}");
            let kept = fs::read_dir(root.join(&corpus)).unwrap().count();
            assert!(kept > 0, "{corpus} is empty");
        }
    }

    #[test]
    fn the_last_word_is_that_of_the_fuzzer() {
        let said = "INFO: x\n#8\tDONE   cov: 5 ft: 9 exec/s: 4\nDone 8 runs\n";
        assert_eq!(last_word(said), "#8 DONE cov: 5 ft: 9 exec/s: 4");
        assert_eq!(last_word(""), "done");
    }

    #[test]
    fn a_failure_is_told_from_its_panic_on_with_its_input() {
        let noise = "#1 NEW\n".repeat(50);
        let said =
            format!("{noise}thread panicked at x.rs:1:2:\nboom\n{noise}Test unit written to f\n");
        let told = story(&said);
        assert!(
            told.starts_with("thread panicked at x.rs:1:2:\nboom\n"),
            "{told}"
        );
        assert!(told.ends_with("\nTest unit written to f"), "{told}");
        assert_eq!(story("a\nb"), "a\nb");
    }

    #[test]
    fn times_and_targets_are_read_or_refused() {
        let args = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Args::parse(&VERB, &words).unwrap()
        };
        assert_eq!(seconds(&args(&[])).unwrap(), SECONDS);
        assert_eq!(seconds(&args(&["--minutes", "3"])).unwrap(), 180);
        for wrong in ["0", "-1", "x", "18446744073709551615"] {
            let error = seconds(&args(&["--minutes", wrong])).unwrap_err();
            assert!(error.to_string().contains(wrong), "{error}");
        }
        assert_eq!(targets(&args(&[])).unwrap(), TARGETS);
        assert_eq!(targets(&args(&["--target", "plan"])).unwrap(), ["plan"]);
        assert_eq!(
            targets(&args(&["--target", "x"])).unwrap_err().exit_code(),
            2
        );
    }
}
