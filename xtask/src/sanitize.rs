//! `sanitize`: the suites with threads under the compiler's sanitizers, on a nightly toolchain if there is one.
//!
//! The address sanitizer judges what is unsafe: the call of the kernel and the tests' allocators. Leaks are left
//! out, since a panic's payload whose destructor panics is forgotten on purpose.
//!
//! The thread sanitizer needs to see every synchronisation. The standard library that comes with a toolchain is
//! not compiled for it, and so what a contended mutex orders looks like a race. Therefore a program that has
//! nothing but a mutex is run first, and if a race is reported in that one, no report would mean anything.
//! Nor does it understand fences, of which the wake word has two; that word is judged by `cargo xtask loom`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cargo::{Metadata, Rustc, not_started, run as run_command, shown};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "sanitize",
    doc: "runs the suites with threads under the address sanitizer of a nightly compiler",
    flags: &[
        Flag {
            name: "--thread",
            value: None,
            doc: "under the thread sanitizer instead, if its reports mean anything here",
        },
        Flag {
            name: "--if-possible",
            value: None,
            doc: "where it cannot be done say so and succeed",
        },
    ],
    run,
};

/// The suites with threads.
const PACKAGES: &[&str] = &["regatta-portable", "regatta-linux"];

/// Nothing but a mutex that threads contend for.
const CONTROL: &str = "
use std::sync::{Arc, Mutex};
fn main() {
    let count = Arc::new(Mutex::new(0_u32));
    let add = |count: Arc<Mutex<u32>>| move || (0..100_000).for_each(|_| *count.lock().unwrap() += 1);
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(add(Arc::clone(&count)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*count.lock().unwrap(), 400_000);
}
";

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let sanitizer = if args.has("--thread") {
        "thread"
    } else {
        "address"
    };
    let folder = Path::new(&Metadata::load()?.target_directory).join(sanitizer);
    if let Some(why) = obstacle(sanitizer, &folder)? {
        let what = format!("sanitize: {sanitizer}: {why}");
        return if args.has("--if-possible") {
            Ok(writeln!(out, "{what}: skipped")?)
        } else {
            Err(Error::Failed(what))
        };
    }
    let host = Rustc::load()?.host;
    let mut test = nightly("cargo");
    test.args(["test", "--locked", "--tests", "--target", &host]);
    for package in PACKAGES {
        test.args(["--package", package]);
    }
    test.env("RUSTFLAGS", flags(sanitizer));
    test.env("CARGO_TARGET_DIR", folder.join("target"));
    test.env("ASAN_OPTIONS", "detect_leaks=0");
    run_command(&mut test)
}

/// Why the sanitizer cannot be used here, if it cannot.
fn obstacle(sanitizer: &str, folder: &Path) -> Result<Option<String>, Error> {
    let mut version = nightly("rustc");
    let there = version.arg("-vV").stdin(Stdio::null()).output();
    if !there.is_ok_and(|done| done.status.success()) {
        return Ok(Some("there is no nightly toolchain".to_owned()));
    }
    if sanitizer != "thread" {
        return Ok(None);
    }
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    let source = folder.join("control.rs");
    fs::write(&source, CONTROL).map_err(|error| Error::io("write", &source, error))?;
    let control = folder.join("control");
    let mut build = nightly("rustc");
    build.args(["-O", "--edition", "2024"]);
    build.args(flags(sanitizer).split(' '));
    run_command(build.arg(&source).arg("-o").arg(&control))?;
    let mut command = Command::new(&control);
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|source| not_started(&command, &source))?;
    let races = races(&String::from_utf8_lossy(&ran.stderr));
    Ok((races > 0).then(|| {
        format!(
            "`{}`, a mutex and nothing else, is said to have {races} races: \
             the standard library is not instrumented, and no report would mean anything",
            shown(&command)
        )
    }))
}

/// A tool of the nightly toolchain. The cargo that runs this tool would not take a toolchain's name.
fn nightly(tool: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", tool]);
    command
}

fn flags(sanitizer: &str) -> String {
    format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer")
}

/// How many races the thread sanitizer reports.
fn races(said: &str) -> usize {
    said.matches("WARNING: ThreadSanitizer: data race").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_are_counted() {
        let report = "x\nWARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 8\n";
        assert_eq!(races(&report.repeat(2)), 2);
        assert_eq!(races("test result: ok"), 0);
    }
}
