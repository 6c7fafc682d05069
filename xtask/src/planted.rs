//! Planted changes: a check is run over copies of the core that are wrong, and must find each.
//!
//! Each [`Change`] is made to a copy of the core in a workspace of its own under the target folder, with the
//! crate that checks it beside it. One folder serves all changes of a [`Bed`], since cargo tells the crates of
//! two workspaces that share a target directory apart by nothing but the age of their files. A change that
//! survives fails the verb: then a rule is stated that nothing proves.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::cargo::{Metadata, cargo, shown};
use crate::tidy::tracked_paths;
use crate::verb::Error;

/// A change of the core that must not go unnoticed.
pub(crate) struct Change {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) what: &'static str,
    /// The file of the core that it is made in.
    pub(crate) file: &'static str,
    /// What stands there, exactly once.
    pub(crate) from: &'static str,
    /// What stands there instead.
    pub(crate) to: &'static str,
}

impl Change {
    /// The changed text of the file.
    pub(crate) fn apply(&self, text: &str) -> Result<String, Error> {
        match text.matches(self.from).count() {
            1 => Ok(text.replacen(self.from, self.to, 1)),
            found => Err(Error::Failed(format!(
                "the planted change `{}` must fit {} exactly once, and fits {found} times: \
                 bring it in line with the code",
                self.name, self.file
            ))),
        }
    }
}

/// A change, without the names of its parts.
pub(crate) const fn change(
    name: &'static str,
    what: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Change {
    Change {
        name,
        what,
        file,
        from,
        to,
    }
}

/// What must find the changes: a crate beside the core, and how its binary is run.
pub(crate) struct Bed<'a> {
    /// The verb that asks.
    pub(crate) verb: &'a str,
    /// The folder of the crate.
    pub(crate) folder: &'a str,
    /// Its binary.
    pub(crate) binary: &'a str,
    /// The arguments of the binary.
    pub(crate) args: &'a [&'a str],
}

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

impl Bed<'_> {
    /// Runs the binary over each change; every one must be found.
    pub(crate) fn find(&self, changes: &[Change], out: &mut dyn Write) -> Result<(), Error> {
        let target = Metadata::load()?.target_directory;
        let root = Path::new(&target).join("planted").join(self.verb);
        let mut survivors = Vec::new();
        for change in changes {
            let begun = Instant::now();
            let place = Place {
                folder: root.join("tree"),
                target: root.join("target"),
            };
            place.fill(self, change)?;
            let caught = place.run(self)?;
            let seconds = begun.elapsed().as_secs_f64();
            let verdict = caught.as_deref().unwrap_or("SURVIVED");
            let (name, what) = (change.name, change.what);
            writeln!(out, "{name:<22} {verdict:<26} {seconds:>5.1} s  {what}")?;
            out.flush()?;
            if caught.is_none() {
                survivors.push(change.name);
            }
        }
        if survivors.is_empty() {
            let changes = changes.len();
            return Ok(writeln!(out, "{changes} planted changes, each caught")?);
        }
        Err(Error::Failed(format!(
            "{}: nothing caught {}: a property is missing, or the rule does nothing",
            self.verb,
            survivors.join(", ")
        )))
    }

    /// Lines of the root manifest that are different in the copy.
    fn manifest(&self) -> [(&'static str, String); 2] {
        let folder = self.folder;
        [
            ("members = ", format!("members = [\"core\", \"{folder}\"]")),
            (
                "default-members = ",
                format!("default-members = [\"{folder}\"]"),
            ),
        ]
    }
}

/// Where a changed copy is and is built.
struct Place {
    folder: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Copies what is tracked and makes the change.
    fn fill(&self, bed: &Bed<'_>, change: &Change) -> Result<(), Error> {
        let manifest = planted_manifest(bed, &read(Path::new("Cargo.toml"))?)?;
        write(&self.folder.join("Cargo.toml"), &manifest)?;
        write(
            &self.folder.join("Cargo.lock"),
            &read(Path::new("Cargo.lock"))?,
        )?;
        for folder in ["core", bed.folder] {
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

    /// The property that is found violated.
    fn run(&self, bed: &Bed<'_>) -> Result<Option<String>, Error> {
        // A change that does not compile shows nothing.
        let mut build = self.cargo(&["build", "--quiet", "--profile", "planted"]);
        let done = finish(&mut build)?;
        if !done.status.success() {
            return Err(failed(&build, &done));
        }
        let mut run = Command::new(self.target.join("planted").join(bed.binary));
        caught(run.args(bed.args), bed.binary)
    }
}

/// Runs a check; what it says of the property that does not hold, if one does not.
pub(crate) fn caught(run: &mut Command, binary: &str) -> Result<Option<String>, Error> {
    let ran = finish(run)?;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    match ran.status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(caught_by(&said, binary))),
        _ => Err(failed(run, &ran)),
    }
}

/// The manifest of the copy. A list may go over several lines.
fn planted_manifest(bed: &Bed<'_>, text: &str) -> Result<String, Error> {
    let lists = bed.manifest();
    let mut lines: Vec<&str> = Vec::new();
    let mut replaced = [0; 2];
    let mut in_list = false;
    for line in text.lines() {
        let list = lists.iter().position(|(start, _)| line.starts_with(start));
        if let Some(list) = list {
            lines.push(&lists[list].1);
            replaced[list] += 1;
            in_list = true;
        }
        if !in_list {
            lines.push(line);
        }
        in_list &= !line.ends_with(']');
    }
    for ((start, _), times) in lists.iter().zip(replaced) {
        if times != 1 {
            return Err(Error::Failed(format!(
                "{}: Cargo.toml must have exactly one list that starts with `{start}`, and has {times}",
                bed.verb
            )));
        }
    }
    Ok(format!("{}\n{PROFILE}", lines.join("\n")))
}

/// What a check says last, such as "model: `armed` does not hold, after 3 runs".
fn caught_by(said: &str, binary: &str) -> String {
    let start = format!("{binary}: ");
    let last = said.lines().rfind(|line| line.starts_with(&start));
    let property = last.and_then(|line| line.split('`').nth(1));
    let after = last.and_then(|line| line.split_once(", after ").map(|(_, runs)| runs));
    let property = property.unwrap_or("the check").to_owned();
    after.map_or(property.clone(), |runs| format!("{property}, {runs}"))
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

    const BED: Bed<'_> = Bed {
        verb: "model",
        folder: "tests/explorer",
        binary: "model",
        args: &[],
    };

    fn all() -> impl Iterator<Item = &'static Change> {
        let lists = [crate::model::CHANGES, crate::sim::CHANGES];
        lists.into_iter().flatten()
    }

    #[test]
    fn every_change_fits_the_core_as_it_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for change in all() {
            let text = fs::read_to_string(root.join(change.file)).unwrap();
            let changed = change.apply(&text).unwrap();
            assert_ne!(changed, text, "{}", change.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        for list in [crate::model::CHANGES, crate::sim::CHANGES] {
            let mut names: Vec<&str> = list.iter().map(|change| change.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), list.len());
        }
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
        let planted = planted_manifest(&BED, text).unwrap();
        assert!(planted.contains("members = [\"core\", \"tests/explorer\"]\n"));
        assert!(planted.contains("resolver = \"3\"\n") && planted.contains("[profile.planted]"));
        assert!(!planted.contains("\"b\""));
        assert!(planted_manifest(&BED, "[workspace]\n").is_err());
        let long = "[workspace]\nmembers = [\n    \"a\",\n]\ndefault-members = [\"b\"]\nresolver = \"3\"\n";
        assert_eq!(planted_manifest(&BED, long).unwrap(), planted);
    }

    #[test]
    fn the_property_is_read_from_what_the_check_says_last() {
        for (said, property) in [
            ("thread panicked\nmodel: `armed` does not hold\n", "armed"),
            (
                "model: `held` does not hold, after 3 runs\n",
                "held, 3 runs",
            ),
            ("sim: `held` does not hold\n", "the check"),
            ("", "the check"),
        ] {
            assert_eq!(caught_by(said, "model"), property);
        }
    }
}
