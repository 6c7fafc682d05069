//! `no-std`: the core runs with nothing below it, and builds for a machine that has nothing.
//!
//! Without `--target` it builds the crate in `tests/freestanding` without `std`, `alloc`, C library and start
//! files, runs it, reads its symbols, and sees that the same program does not link once it asks for the
//! allocator's crate: so a core that came to need one would not either. With `--target` the core is
//! compiled for a target of which no compiled `core` is installed; see [`bare`].

mod bare;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::cargo::{Rustc, built_executable, cargo, not_started, shown};
use crate::elf::Elf;
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "no-std",
    doc: "runs a fleet without std, allocator or C library, and sees that an allocator would not link",
    flags: &[
        Flag {
            name: "--target",
            value: Some("TRIPLE"),
            doc: "build the core for this target instead, with a compiler from Debian's archive",
        },
        Flag {
            name: "--if-possible",
            value: None,
            doc: "say so and succeed where this machine cannot do it",
        },
    ],
    run,
};

const PACKAGE: &str = "regatta-freestanding";

/// How the last line of a whole drive begins and ends.
const LINE: (&str, &str) = ("regatta: ", "every ledger balances\n");

/// What the compiler says where a program uses an allocator and has none.
const NO_ALLOCATOR: &str = "no global memory allocator found";

/// Parts of names that only an allocator has.
const ALLOCATES: &[&str] = &["__rust_alloc", "__rust_dealloc", "__rust_realloc", "malloc"];

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let host = Rustc::load()?.host;
    let impossible = match args.value("--target") {
        Some(_) => bare::impossible(),
        None => (!(host.starts_with("x86_64-") && host.contains("-linux-"))).then(|| {
            format!(
                "no-std: this is {host}; the freestanding program knows the system calls of x86_64 Linux only"
            )
        }),
    };
    match (impossible, args.value("--target")) {
        (Some(reason), _) if args.has("--if-possible") => {
            writeln!(out, "{reason}: skipped")?;
            return Ok(());
        }
        (Some(reason), _) => return Err(Error::Failed(reason)),
        (None, Some(target)) => return bare::build(target, args.has("--if-possible"), out),
        (None, None) => {}
    }
    let mut command = freestanding(&host, None);
    let binary = built_executable(&mut command)?;

    let mut program = Command::new(&binary);
    let ran = program.stdin(Stdio::null()).output();
    let ran = ran.map_err(|source| not_started(&program, &source))?;
    out.write_all(&ran.stdout)?;
    let line = String::from_utf8_lossy(&ran.stdout);
    if !(ran.status.success() && line.starts_with(LINE.0) && line.ends_with(LINE.1)) {
        return Err(Error::Failed(format!(
            "no-std: the program ended with {} and should have with 0 and a line from {:?} to {:?}",
            ran.status, LINE.0, LINE.1
        )));
    }

    let bytes = fs::read(&binary).map_err(|source| Error::io("read", &binary, source))?;
    let elf = Elf::parse(&bytes).ok_or_else(|| {
        let path = binary.display();
        Error::Failed(format!("no-std: {path} is no ELF file with symbols"))
    })?;
    let findings = linked_too_much(&elf);
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    if !findings.is_empty() {
        let n = findings.len();
        return Err(Error::Failed(format!(
            "no-std: {n} findings in the program"
        )));
    }
    writeln!(
        out,
        "linked: {} symbols, static, nothing undefined, no allocator",
        elf.symbols.len()
    )?;

    let said = must_fail(&mut freestanding(&host, Some("alloc")), NO_ALLOCATOR)?;
    writeln!(out, "with alloc, refused as it must be: {said}")?;
    Ok(())
}

/// The build of the program, for the host and with `feature`.
fn freestanding(host: &str, feature: Option<&str>) -> Command {
    let mut command = cargo();
    command.args(["rustc", "--locked", "--package", PACKAGE, "--bin", PACKAGE]);
    command.args(["--profile", "freestanding", "--target", host]);
    command.args(["--features", feature.unwrap_or("")]);
    command.args(["--message-format=json-render-diagnostics", "--"]);
    command.args(["--cfg", "freestanding", "-D", "warnings"]);
    command.args(["-C", "relocation-model=static"]);
    command.args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-static"]);
    command
}

/// What is in the program that must not be.
fn linked_too_much(elf: &Elf) -> Vec<String> {
    let mut findings = Vec::new();
    if elf.dynamic {
        findings.push("the program asks for a loader: it is not linked statically".to_owned());
    }
    for symbol in elf.naming(ALLOCATES) {
        findings.push(format!("`{}` is of an allocator", symbol.name));
    }
    for symbol in elf.symbols.iter().filter(|symbol| !symbol.defined) {
        findings.push(format!("`{}` is not defined in the program", symbol.name));
    }
    findings
}

/// Runs a command that must fail and say `wanted`; the line that says it.
fn must_fail(command: &mut Command, wanted: &str) -> Result<String, Error> {
    let child = command.stdin(Stdio::null()).output();
    let done = child.map_err(|source| not_started(command, &source))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let line = said.lines().find(|line| line.contains(wanted));
    match line {
        Some(line) if !done.status.success() => Ok(line.to_owned()),
        _ => Err(Error::Failed(format!(
            "no-std: `{}` ended with {} and should have failed with \"{wanted}\":\n{said}",
            shown(command),
            done.status
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Symbol;

    fn elf(dynamic: bool, symbols: &[(&str, bool)]) -> Elf {
        let symbol = |(name, defined): &(&str, bool)| Symbol {
            name: (*name).to_owned(),
            defined: *defined,
        };
        Elf {
            dynamic,
            symbols: symbols.iter().map(symbol).collect(),
        }
    }

    #[test]
    fn each_way_to_link_too_much_is_a_finding() {
        let fine = [("_start", true), ("memcpy", true)];
        assert!(linked_too_much(&elf(false, &fine)).is_empty());
        assert_eq!(linked_too_much(&elf(true, &fine)).len(), 1);
        for bad in [("_R12___rust_alloc", true), ("memcpy", false)] {
            assert_eq!(linked_too_much(&elf(false, &[bad])).len(), 1, "{bad:?}");
        }
        assert_eq!(linked_too_much(&elf(false, &[("malloc", false)])).len(), 2);
    }

    #[test]
    fn a_failure_counts_only_if_it_is_a_failure_and_says_so() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            must_fail(&mut command, "wanted")
        };
        let said = shell("echo as wanted >&2; exit 1");
        assert_eq!(said.unwrap(), "as wanted");
        assert!(shell("echo as wanted >&2").is_err());
        assert!(shell("echo other >&2; exit 1").is_err());
    }
}
