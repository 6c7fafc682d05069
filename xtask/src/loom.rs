//! `loom`: the wake word under every interleaving, as it is and without each of its fences.
//!
//! That a checker finds nothing says little until it is seen to find what it is for. So it runs on the
//! shipped source, and then on copies from each of which one full fence is taken: each must end in the
//! deadlock that the fence prevents.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{Metadata, cargo, not_started, run as run_command, shown};
use crate::tidy::tracked_paths;
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "loom",
    doc: "the wake word under every interleaving, and that each of its fences is needed",
    flags: &[],
    run,
};

const WAKE: &str = "core/src/wake.rs";

/// A full fence.
const FENCE: &str = "fence(Ordering::SeqCst);";

/// What the checker says when threads wait for ever.
const DEADLOCK: &str = "deadlock";

/// Files of the workspace that a copy of the core needs beside it.
const ROOT: &[&str] = &["Cargo.toml", "Cargo.lock"];

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    // A folder of its own: the flag below is of every crate that it compiles.
    let folder = Path::new(&Metadata::load()?.target_directory).join("loom");
    run_command(&mut check(Path::new("."), &folder))?;

    let source = read(WAKE)?;
    let twins = twins(&source);
    if twins.is_empty() {
        return Err(Error::Failed(format!(
            "loom: {WAKE} has no `{FENCE}` to take away"
        )));
    }
    for (line, twin) in twins {
        let copy = copy_core(&folder.join("twin"))?;
        write(&copy.join(WAKE), &twin)?;
        expect_deadlock(&mut check(&copy, &folder))?;
        writeln!(
            out,
            "without the fence of {WAKE}:{line}: {DEADLOCK}, as it must be"
        )?;
    }
    Ok(())
}

/// The run of the checker in the workspace at `root`.
fn check(root: &Path, target: &Path) -> Command {
    let mut command = cargo();
    // Not `--locked`: a copy has fewer members, so its lock file shrinks. The copy fetches nothing, since
    // the run before it has used the same crates.
    let lock = if root == Path::new(".") {
        "--locked"
    } else {
        "--offline"
    };
    command.args(["test", "--quiet", lock, "--package", "regatta-core"]);
    command.args(["--test", "loom_wake", "--release"]);
    command.current_dir(root);
    command.env("RUSTFLAGS", "--cfg loom");
    command.env("CARGO_TARGET_DIR", target);
    command
}

/// The source without one of its fences, for each of them, with the line on which it stood.
fn twins(source: &str) -> Vec<(usize, String)> {
    let without = |(at, fence): (usize, &str)| {
        let (before, after) = (&source[..at], &source[at + fence.len()..]);
        let line = before.matches('\n').count() + 1;
        (line, format!("{before}{after}"))
    };
    source.match_indices(FENCE).map(without).collect()
}

/// A workspace at `to` of the core alone.
fn copy_core(to: &Path) -> Result<PathBuf, Error> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(|source| Error::io("clear", to, source))?;
    }
    for path in tracked_paths("core")? {
        write(&to.join(&path), &read(&path)?)?;
    }
    for path in ROOT {
        write(&to.join(path), &core_alone(&read(path)?))?;
    }
    Ok(to.to_owned())
}

/// The workspace's manifest with the core as its only member; any other text as it is.
fn core_alone(manifest: &str) -> String {
    let lines = manifest
        .lines()
        .filter_map(|line| match line.split_once(" = ") {
            Some(("members", _)) => Some("members = [\"core\"]"),
            Some(("default-members", _)) => None,
            _ => Some(line),
        });
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn expect_deadlock(command: &mut Command) -> Result<(), Error> {
    let child = command.stdin(Stdio::null()).output();
    let done = child.map_err(|source| not_started(command, &source))?;
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if !done.status.success() && said.contains(DEADLOCK) {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "loom: `{}` without a fence ended with {} and should have found a {DEADLOCK}:\n{said}",
        shown(command),
        done.status
    )))
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::io("read", path, source))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    fs::write(path, text).map_err(|source| Error::io("write", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_twin_lacks_one_fence_and_nothing_else() {
        let source = format!("a\n{FENCE}\nb\n  {FENCE} c\n");
        let expected = [
            (2, format!("a\n\nb\n  {FENCE} c\n")),
            (4, format!("a\n{FENCE}\nb\n   c\n")),
        ];
        assert_eq!(twins(&source), expected);
        assert!(twins("fence(Ordering::Acquire);").is_empty());
    }

    #[test]
    fn a_copy_has_the_core_as_its_only_member() {
        let manifest =
            "[workspace]\nmembers = [\"core\", \"bot\"]\ndefault-members = [\"bot\"]\nx = \"1\"\n";
        let expected = "[workspace]\nmembers = [\"core\"]\nx = \"1\"\n";
        assert_eq!(core_alone(manifest), expected);
    }
}
