//! `vm`: `regatta` under real quotas of a real kernel, in small virtual machines.
//!
//! What a quota does cannot be tried everywhere: the first hierarchy may hold the CPU controller, the process
//! may not make groups, and few machines have eight CPUs. So the emulator and a kernel come from Debian's
//! archive ([`crate::apt`]: nothing is installed), and a machine is booted for each size, with two
//! binaries, the libraries that they load, and nothing else in it. The scenarios are in `tests/vm-agent`.
//!
//! # Invariants
//! - A boot that does not get to its first process is tried again; a scenario never is.
//! - A machine is ended when this is.

mod boot;
mod console;
mod initramfs;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::apt;
use crate::cargo::{Metadata, Rustc, built_executable, cargo, output};
use crate::verb::{Args, Error, Flag, Verb};
use boot::{Boot, Tools};
use initramfs::Initramfs;

pub(crate) const VERB: Verb = Verb {
    name: "vm",
    doc: "runs the binary under real quotas, in virtual machines with 2, 4 and 8 CPUs",
    flags: &[
        Flag {
            name: "--cpus",
            value: Some("N"),
            doc: "boot the machine with so many CPUs alone",
        },
        Flag {
            name: "--only",
            value: Some("TEXT"),
            doc: "run the scenarios with this in their name alone",
        },
        Flag {
            name: "--if-possible",
            value: None,
            doc: "say so and succeed where this machine cannot do it",
        },
    ],
    run,
};

/// The only target that is built for: the emulator and the kernel are of it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

const PACKAGES: &[&str] = &["qemu-system-x86", "linux-image-cloud-amd64"];

/// The machines: CPUs, and which hierarchy has the CPU controller.
const MACHINES: &[(u16, u8)] = &[(2, 2), (4, 2), (8, 2), (2, 1)];

const BOT: (&str, &str) = ("regatta-bot", "regatta");
const AGENT: &str = "regatta-vm-agent";

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let boots = chosen(args)?;
    if let Some(reason) = impossible(&Rustc::load()?.host) {
        if args.has("--if-possible") {
            writeln!(out, "{reason}: skipped")?;
            return Ok(());
        }
        return Err(Error::Failed(reason));
    }
    let target = PathBuf::from(Metadata::load()?.target_directory);
    let folder = target.join("vm");
    let root = match apt::unpacked(&folder, "tools", PACKAGES, out) {
        Err(error) if args.has("--if-possible") => {
            writeln!(
                out,
                "vm: {} could not be had: {error}: skipped",
                PACKAGES.join(" and ")
            )?;
            return Ok(());
        }
        unpacked => unpacked?,
    };
    let tools = Tools::of(&root)?;
    let begun = Instant::now();
    let initramfs = folder.join("initramfs.cpio");
    let bytes = pack(&build()?, &folder)?;
    fs::write(&initramfs, bytes).map_err(|source| Error::io("write", &initramfs, source))?;
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(
        out,
        "binaries built and packed in {seconds:.1} s; kernel {}",
        tools.kernel_name()
    )?;

    let begun = Instant::now();
    let (mut passed, mut failed) = (0, Vec::new());
    for boot in &boots {
        let log = boot.run(&tools, &initramfs, &folder, out)?;
        passed += log.passed();
        failed.extend(log.failed().map(|name| format!("{boot}: {name}")));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (n, machines) = (failed.len(), boots.len());
    writeln!(
        out,
        "vm: {passed} scenarios passed, {n} failed, on {machines} machines in {seconds:.1} s"
    )?;
    if passed == 0 && n == 0 {
        return Err(Error::Usage("vm: no scenario has such a name".to_owned()));
    }
    if n > 0 {
        let names = failed.join(", ");
        return Err(Error::Failed(format!("vm: {n} scenarios failed: {names}")));
    }
    Ok(())
}

/// The machines that the flags ask for.
fn chosen(args: &Args) -> Result<Vec<Boot>, Error> {
    let only = args.value("--only").unwrap_or_default();
    if only.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
        return Err(Error::Usage(format!(
            "vm: --only {only:?}: names have letters, digits and dashes"
        )));
    }
    let cpus = args.value("--cpus");
    let boots: Vec<Boot> = MACHINES
        .iter()
        .filter(|(count, _)| cpus.is_none_or(|cpus| cpus == count.to_string()))
        .map(|&(cpus, hierarchy)| Boot {
            cpus,
            hierarchy,
            only: only.to_owned(),
        })
        .collect();
    if boots.is_empty() {
        let cpus = cpus.unwrap_or_default();
        return Err(Error::Usage(format!(
            "vm: --cpus {cpus:?}: the machines have 2, 4 or 8"
        )));
    }
    Ok(boots)
}

/// Why this machine cannot do it, if it cannot.
fn impossible(host: &str) -> Option<String> {
    if host != TARGET {
        return Some(format!(
            "vm: this is {host}; the binaries, the kernel and the emulator are for {TARGET}"
        ));
    }
    apt::missing().then(|| {
        format!(
            "vm: this machine has no apt-get, and {} come from Debian's archive: run this on Debian 12 or later",
            PACKAGES.join(" and ")
        )
    })
}

/// The two binaries: the bot's and the agent's.
struct Binaries {
    bot: PathBuf,
    agent: PathBuf,
}

/// Builds both for release. Each by itself: so the bot is the one that `build` has built already.
fn build() -> Result<Binaries, Error> {
    let built = |package: &str, name: &str| {
        let mut command = cargo();
        command.args(["build", "--locked", "--release", "--package", package]);
        command.args(["--bin", name, "--message-format=json-render-diagnostics"]);
        built_executable(&mut command)
    };
    Ok(Binaries {
        bot: built(BOT.0, BOT.1)?,
        agent: built(AGENT, AGENT)?,
    })
}

/// The file system that a machine starts with, and has no other: the binaries, and the libraries of this machine
/// that they load, under the paths by which they look for them.
fn pack(binaries: &Binaries, folder: &Path) -> Result<Vec<u8>, Error> {
    let read = |path: &Path| fs::read(path).map_err(|source| Error::io("read", path, source));
    let mut libraries = BTreeSet::new();
    for binary in [&binaries.bot, &binaries.agent] {
        libraries.extend(libraries_of(&output(Command::new("ldd").arg(binary))?));
    }
    let mut folders = BTreeSet::from(["bin", "dev", "proc", "sys", "tmp"].map(PathBuf::from));
    for library in &libraries {
        let above = inside(library).ancestors().skip(1).map(Path::to_owned);
        folders.extend(above.filter(|folder| !folder.as_os_str().is_empty()));
    }
    let mut files = Initramfs::new();
    for folder in &folders {
        files.folder(&folder.to_string_lossy());
    }
    // The standard streams of the first process.
    files.character_device("dev/console", (5, 1));
    for (name, binary) in [("init", &binaries.agent), ("bin/regatta", &binaries.bot)] {
        // What a debugger would read is most of a binary, and the machine is slow to unpack.
        let stripped = folder.join("stripped");
        output(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
        files.program(name, &read(&stripped)?)?;
    }
    for library in &libraries {
        let name = inside(library).to_string_lossy().into_owned();
        files.program(&name, &read(library)?)?;
    }
    Ok(files.finish())
}

/// An absolute path as the archive names it.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// The files that `ldd` names: a library after its arrow, and the loader, which has none.
fn libraries_of(listed: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let line = line.split_once("=>").map_or(line, |(_, found)| found);
        let path = line.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    listed.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Args {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Args::parse(&VERB, &words).unwrap()
    }

    #[test]
    fn machines_are_chosen_by_their_cpus() {
        let cpus = |words: &[&str]| {
            let boots = chosen(&args(words)).unwrap();
            boots.iter().map(|boot| boot.cpus).collect::<Vec<_>>()
        };
        assert_eq!(cpus(&[]).len(), MACHINES.len());
        assert_eq!(cpus(&["--cpus", "8"]), [8]);
        for wrong in [&["--cpus", "3"][..], &["--only", "a b"]] {
            let error = chosen(&args(wrong)).err().unwrap();
            assert_eq!(error.exit_code(), 2, "{error}");
            assert!(error.to_string().contains(wrong[1]), "{error}");
        }
    }

    #[test]
    fn libraries_are_found_in_what_ldd_says() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffe0d3f2000)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0a8c400000)\n\
            \tlibgone.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f0a8c6b3000)\n";
        let found = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries_of(listed), found.map(PathBuf::from).into());
        assert_eq!(inside(Path::new("/lib/a.so")), Path::new("lib/a.so"));
        assert!(libraries_of("\tstatically linked\n").is_empty());
    }

    #[test]
    fn another_machine_says_what_it_lacks() {
        let reason = impossible("aarch64-apple-darwin").unwrap();
        assert!(reason.contains("aarch64-apple-darwin") && reason.contains(TARGET));
    }
}
