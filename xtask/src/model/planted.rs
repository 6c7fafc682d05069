//! `model --planted`: the walk over hosts that are wrong.
//!
//! Each change of [`CHANGES`] is made to a copy of the core, in a workspace of its own under
//! `target/planted`, with the explorer beside it. It is one folder for all, since cargo tells the crates of two
//! workspaces that share a target directory apart by nothing but the age of their files. The walk must find the
//! change. One that survives fails the verb: then a rule is stated that nothing proves.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use super::changes::{CHANGES, Change};
use crate::cargo::{Metadata, cargo, shown};
use crate::tidy::tracked_paths;
use crate::verb::Error;

/// What the copied workspace is made of.
const FOLDERS: &[&str] = &["core", "tests/explorer"];

/// Lines of the root manifest that are different there.
const MANIFEST: &[(&str, &str)] = &[
    ("members = ", "members = [\"core\", \"tests/explorer\"]"),
    (
        "default-members = ",
        "default-members = [\"tests/explorer\"]",
    ),
];

/// Built often and run shortly.
const PROFILE: &str = "
[profile.planted]
inherits = \"release\"
lto = false
codegen-units = 16
opt-level = 1
incremental = true
debug = false
";

pub(super) fn run(size: &str, out: &mut dyn Write) -> Result<(), Error> {
    let root = Path::new(&Metadata::load()?.target_directory).join("planted");
    let mut survivors = Vec::new();
    for change in CHANGES {
        let begun = Instant::now();
        let place = Place {
            folder: root.join("tree"),
            target: root.join("target"),
        };
        place.fill(change)?;
        let caught = place.walk(size)?;
        let seconds = begun.elapsed().as_secs_f64();
        let verdict = caught.as_deref().unwrap_or("SURVIVED");
        let (name, what) = (change.name, change.what);
        writeln!(out, "{name:<20} {verdict:<22} {seconds:>5.1} s  {what}")?;
        out.flush()?;
        if caught.is_none() {
            survivors.push(change.name);
        }
    }
    if survivors.is_empty() {
        let changes = CHANGES.len();
        return Ok(writeln!(out, "{changes} planted changes, each caught")?);
    }
    Err(Error::Failed(format!(
        "model: nothing caught {}: a property is missing, or the rule does nothing",
        survivors.join(", ")
    )))
}

/// Where a changed copy is and is built.
struct Place {
    folder: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Copies what is tracked and makes the change.
    fn fill(&self, change: &Change) -> Result<(), Error> {
        let manifest = planted_manifest(&read(Path::new("Cargo.toml"))?)?;
        write(&self.folder.join("Cargo.toml"), &manifest)?;
        write(
            &self.folder.join("Cargo.lock"),
            &read(Path::new("Cargo.lock"))?,
        )?;
        for folder in FOLDERS {
            for path in tracked_paths(folder)? {
                let text = read(Path::new(&path))?;
                let text = if path == change.file {
                    change.apply(&text)?
                } else {
                    text
                };
                write(&self.folder.join(&path), &text)?;
            }
        }
        Ok(())
    }

    fn cargo(&self, args: &[&str]) -> Command {
        let mut command = cargo();
        command
            .args(args)
            .arg("--offline")
            .current_dir(&self.folder);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The property that the walk finds violated.
    fn walk(&self, size: &str) -> Result<Option<String>, Error> {
        // A change that does not compile shows nothing.
        let mut build = self.cargo(&["build", "--quiet", "--profile", "planted"]);
        let done = finish(&mut build)?;
        if !done.status.success() {
            return Err(failed(&build, &done));
        }
        let mut walk = Command::new(self.target.join("planted").join("model"));
        let walked = finish(walk.args(["--size", size]))?;
        let said = String::from_utf8_lossy(&walked.stderr).into_owned();
        match walked.status.code() {
            Some(0) => Ok(None),
            Some(1) => Ok(Some(caught_by(&said))),
            _ => Err(failed(&walk, &walked)),
        }
    }
}

/// The manifest of the copy. A list may go over several lines.
fn planted_manifest(text: &str) -> Result<String, Error> {
    let mut lines: Vec<&str> = Vec::new();
    let mut replaced = [0; MANIFEST.len()];
    let mut in_list = false;
    for line in text.lines() {
        let list = MANIFEST
            .iter()
            .position(|(start, _)| line.starts_with(start));
        if let Some(list) = list {
            lines.push(MANIFEST[list].1);
            replaced[list] += 1;
            in_list = true;
        }
        if !in_list {
            lines.push(line);
        }
        in_list &= !line.ends_with(']');
    }
    for ((start, _), times) in MANIFEST.iter().zip(replaced) {
        if times != 1 {
            return Err(Error::Failed(format!(
                "model: Cargo.toml must have exactly one list that starts with `{start}`, and has {times}"
            )));
        }
    }
    Ok(format!("{}\n{PROFILE}", lines.join("\n")))
}

/// What the walk says last: "model: `armed` does not hold".
fn caught_by(said: &str) -> String {
    let last = said.lines().rfind(|line| line.starts_with("model: "));
    let property = last.and_then(|line| line.split('`').nth(1));
    property.unwrap_or("the walk").to_owned()
}

fn finish(command: &mut Command) -> Result<Output, Error> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|source| Error::Command {
        command: shown(command),
        what: format!("could not be started: {source}"),
    })
}

fn failed(command: &Command, output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr);
    Error::Command {
        command: shown(command),
        what: format!("{}\n{said}", output.status),
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::io("read", path, source))
}

/// Writes a file unless it is there already with that text, so that cargo sees what changed.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    }
    fs::write(path, text).map_err(|source| Error::io("write", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_fits_the_core_as_it_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for change in CHANGES {
            let text = fs::read_to_string(root.join(change.file)).unwrap();
            let changed = change.apply(&text).unwrap();
            assert_ne!(changed, text, "{}", change.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = CHANGES.iter().map(|change| change.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHANGES.len());
    }

    #[test]
    fn a_change_that_does_not_fit_exactly_once_is_refused() {
        let change = |from| Change {
            name: "x",
            what: "x",
            file: "f.rs",
            from,
            to: "z",
        };
        assert_eq!(change("b").apply("a b c").unwrap(), "a z c");
        assert!(change("b").apply("a b b").is_err());
        assert!(change("d").apply("a b c").is_err());
    }

    #[test]
    fn the_copied_manifest_has_two_members_and_a_profile() {
        let text =
            "[workspace]\nmembers = [\"a\", \"b\"]\ndefault-members = [\"b\"]\nresolver = \"3\"\n";
        let planted = planted_manifest(text).unwrap();
        assert!(planted.contains("members = [\"core\", \"tests/explorer\"]\n"));
        assert!(planted.contains("resolver = \"3\"\n") && planted.contains("[profile.planted]"));
        assert!(!planted.contains("\"b\""));
        assert!(planted_manifest("[workspace]\n").is_err());
        let long = "[workspace]\nmembers = [\n    \"a\",\n]\ndefault-members = [\"b\"]\nresolver = \"3\"\n";
        assert_eq!(planted_manifest(long).unwrap(), planted);
    }

    #[test]
    fn the_property_is_read_from_what_the_walk_says_last() {
        assert_eq!(
            caught_by("thread panicked\nmodel: `armed` does not hold\n"),
            "armed"
        );
        assert_eq!(caught_by(""), "the walk");
    }
}
