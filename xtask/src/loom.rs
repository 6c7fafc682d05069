//! `loom`: the wake word under every interleaving, as it is and without each of its fences.
//!
//! That a checker finds nothing says little until it is seen to find what it is for. So it runs on a copy
//! of the core as it is, and then on copies from each of which one full fence is taken: each must end in
//! the deadlock that the fence prevents.
//!
//! # Invariants
//! - Every run is of a copy that was written anew. To cargo they are all one package, in the same place of
//!   a workspace, and it goes by the times of the files: an older tree, such as the work tree itself, would
//!   be taken for what was built last.

use std::fs;
use std::io::Write;
use std::path::Path;
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
    let source = read(WAKE)?;
    run_command(&mut check(&folder, &source)?)?;

    let twins = twins(&source);
    if twins.is_empty() {
        return Err(Error::Failed(format!(
            "loom: {WAKE} has no `{FENCE}` to take away"
        )));
    }
    for (line, twin) in twins {
        expect_deadlock(&mut check(&folder, &twin)?)?;
        writeln!(
            out,
            "without the fence of {WAKE}:{line}: {DEADLOCK}, as it must be"
        )?;
    }
    Ok(())
}

/// The run of the checker on a copy of the core with this text of [`WAKE`].
fn check(folder: &Path, wake: &str) -> Result<Command, Error> {
    let copy = folder.join("copy");
    copy_core(&copy)?;
    write(&copy.join(WAKE), wake)?;
    let mut command = cargo();
    // Not `--locked`: a copy has fewer members, so its lock file shrinks.
    command.args(["test", "--quiet", "--package", "regatta-core"]);
    command.args(["--test", "loom_wake", "--release"]);
    // It runs for seconds: what a release build spends on being small and fast is not won back.
    for option in ["lto=false", "codegen-units=16", "debug=false"] {
        command.args(["--config", &format!("profile.release.{option}")]);
    }
    command.current_dir(copy);
    command.env("RUSTFLAGS", "--cfg loom");
    command.env("CARGO_TARGET_DIR", folder.join("target"));
    Ok(command)
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
fn copy_core(to: &Path) -> Result<(), Error> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(|source| Error::io("clear", to, source))?;
    }
    for path in tracked_paths("core")? {
        write(&to.join(&path), &read(&path)?)?;
    }
    for path in ROOT {
        write(&to.join(path), &core_alone(&read(path)?))?;
    }
    Ok(())
}

/// The workspace's manifest with the core as its only member; any other text as it is.
fn core_alone(manifest: &str) -> String {
    let mut kept = String::new();
    let mut in_list = false;
    for line in manifest.lines() {
        let key = line.split('=').next().unwrap_or_default().trim();
        if key == "members" {
            kept.push_str("members = [\"core\"]\n");
        }
        in_list |= matches!(key, "members" | "default-members");
        if in_list {
            in_list = !line.contains(']');
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
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
        for lists in [
            "members = [\"core\", \"bot\"]\ndefault-members = [\"bot\"]\n",
            "members = [\n    \"core\",\n    \"bot\",\n]\ndefault-members = [\n    \"bot\"\n]\n",
        ] {
            let manifest = ["[workspace]\n", lists, "x = [\"1\"]\n"].concat();
            let expected = "[workspace]\nmembers = [\"core\"]\nx = [\"1\"]\n";
            assert_eq!(core_alone(&manifest), expected);
        }
        assert_eq!(core_alone("version = 4\n"), "version = 4\n");
    }
}
