//! `core-alone`: the core builds by itself, and neither it nor what it links needs `std` or `alloc`.
//!
//! Built together with the rest of the workspace, cargo unifies features and a missing `no_std` would go
//! unnoticed. So the core is built alone with each feature set that ships, and its dependency tree is read as
//! cargo resolves it for the core alone: every crate in it must declare `no_std` at its root and have neither
//! its `std` nor its `alloc` feature on. Procedural macros run on the host and do not count.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::cargo::{Metadata, cargo, output, run as run_command};
use crate::tidy::{Line, Source, Tree};
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "core-alone",
    doc: "the core builds by itself, and nothing that it links needs std or an allocator",
    flags: &[],
    run,
};

/// The package.
pub(crate) const CORE: &str = "regatta-core";

/// The feature sets that ship.
pub(crate) const FEATURES: &[&str] = &["", "defmt"];

/// How the core's root says that it needs no `std`: always, or in every build that is not one of tests.
const NO_STD: [&str; 2] = ["#![no_std]", "#![cfg_attr(not(any(test, loom)), no_std)]"];

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let mut findings = own_sources(&Tree::tracked()?);
    let metadata = Metadata::load()?;
    for features in FEATURES {
        let linked = linked(features)?;
        for krate in &linked {
            let root = root_source(&metadata, krate)?;
            findings.extend(needs_std(krate, &root));
        }
        writeln!(out, "features `{features}`: {} crates linked", linked.len())?;
        run_command(&mut for_core("build", features))?;
    }
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    match findings.len() {
        0 => Ok(()),
        n => Err(Error::Failed(format!(
            "core-alone: {n} findings: the core must not need std or alloc"
        ))),
    }
}

fn for_core(verb: &str, features: &str) -> Command {
    let mut command = cargo();
    command.args([verb, "--locked", "--package", CORE, "--no-default-features"]);
    command.args(["--features", features]);
    command
}

/// A crate that the core links, as `cargo tree` prints it.
#[derive(Debug, PartialEq, Eq)]
struct Linked {
    name: String,
    version: String,
    features: Vec<String>,
}

impl Linked {
    fn parse(line: &str) -> Option<Self> {
        let (package, features) = line.split_once('|')?;
        let mut words = package.split_whitespace();
        let name = words.next()?.to_owned();
        let version = words.next()?.strip_prefix('v')?.to_owned();
        let features = features.split_whitespace().next().unwrap_or("");
        let features = features
            .split(',')
            .filter(|f| !f.is_empty())
            .map(str::to_owned)
            .collect();
        Some(Self {
            name,
            version,
            features,
        })
    }
}

fn linked(features: &str) -> Result<Vec<Linked>, Error> {
    let mut command = for_core("tree", features);
    command.args([
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--no-dedupe",
    ]);
    let text = output(command.args(["--format", "{p}|{f}"]))?;
    let mut crates = Vec::new();
    for line in text.lines() {
        let krate = Linked::parse(line).ok_or_else(|| {
            Error::Failed(format!(
                "core-alone: `cargo tree` printed `{line}`: not NAME vVERSION|FEATURES"
            ))
        })?;
        if !crates.contains(&krate) {
            crates.push(krate);
        }
    }
    Ok(crates)
}

/// The text of the crate's root source file.
fn root_source(metadata: &Metadata, krate: &Linked) -> Result<String, Error> {
    let package = metadata
        .packages
        .iter()
        .find(|p| p.name == krate.name && p.version == krate.version);
    let lib = package.and_then(|p| {
        p.targets
            .iter()
            .find(|t| t.kind.iter().any(|kind| kind.ends_with("lib")))
    });
    let Some(lib) = lib else {
        let Linked { name, version, .. } = krate;
        return Err(Error::Failed(format!(
            "core-alone: no library source known for {name} {version}"
        )));
    };
    fs::read_to_string(&lib.src_path).map_err(|source| Error::io("read", &lib.src_path, source))
}

/// What is wrong with a crate in the core's tree, if something is.
fn needs_std(krate: &Linked, root: &str) -> Option<String> {
    let Linked {
        name,
        version,
        features,
    } = krate;
    if let Some(feature) = features
        .iter()
        .find(|f| matches!(f.as_str(), "std" | "alloc"))
    {
        return Some(format!(
            "{name} {version}: feature `{feature}` is on: the core's tree needs it off"
        ));
    }
    // `#![no_std]`, or `no_std` under a `cfg_attr` whose features the line above found off.
    let declared = Source::new(root).attributes().any(|a| a.has_word("no_std"));
    (!declared)
        .then(|| format!("{name} {version}: its root has no `no_std` attribute: it links std"))
}

/// What is wrong in the core's own sources.
fn own_sources(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, source) in tree
        .rust()
        .filter(|(path, _)| path.starts_with("core/src/"))
    {
        let lines = source.lines();
        let declares = |line: &Line| NO_STD.contains(&line.code.trim());
        if path == "core/src/lib.rs" && !lines.iter().any(declares) {
            findings.push(format!("{path}:1: `{}` must stand there", NO_STD[0]));
        }
        for (i, line) in lines.iter().enumerate() {
            let code = line.code.trim();
            let names_it =
                code.starts_with("extern crate std") || code.starts_with("extern crate alloc");
            let for_tests = i > 0 && lines[i - 1].code.trim() == "#[cfg(test)]";
            if names_it && !for_tests {
                let n = i + 1;
                findings.push(format!(
                    "{path}:{n}: `{code}` only stands right under `#[cfg(test)]`"
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core_with(lib: &str) -> Vec<String> {
        own_sources(&Tree::of(&[
            ("core/src/lib.rs", lib),
            ("bot/src/lib.rs", "extern crate std;"),
        ]))
    }

    #[test]
    fn the_core_is_no_std_in_every_build_that_ships() {
        for fine in NO_STD {
            assert!(core_with(&format!("//! Core.\n{fine}\n")).is_empty());
        }
        assert_eq!(core_with("//! #![no_std]\n").len(), 1);
        assert_eq!(
            core_with("//! Core.\n#![cfg_attr(not(feature = \"x\"), no_std)]\n").len(),
            1
        );
    }

    #[test]
    fn only_tests_may_link_std() {
        assert!(core_with("#![no_std]\n#[cfg(test)]\nextern crate std;\n").is_empty());
        assert_eq!(core_with("#![no_std]\nextern crate alloc;\n").len(), 1);
        assert_eq!(
            core_with("#![no_std]\n#[cfg(feature = \"x\")]\nextern crate std;\n").len(),
            1
        );
    }

    #[test]
    fn a_linked_crate_is_no_std_with_std_off() {
        let krate = |line| Linked::parse(line).unwrap();
        let conditional = "#![cfg_attr(not(feature = \"std\"), no_std)]\n";
        assert_eq!(needs_std(&krate("byteorder v1.5.0|"), conditional), None);
        assert_eq!(
            needs_std(&krate("hash32 v0.3.1|default"), "#![no_std]\n"),
            None
        );
        assert!(needs_std(&krate("byteorder v1.5.0|default,std"), conditional).is_some());
        assert!(needs_std(&krate("csv v1.4.0|"), "// no_std\npub fn f() {}\n").is_some());
    }

    #[test]
    fn tree_lines_are_read() {
        let line = "regatta-core v0.1.0 (some/folder)|defmt,other (*)";
        let features = vec!["defmt".to_owned(), "other".to_owned()];
        let expected = Linked {
            name: "regatta-core".into(),
            version: "0.1.0".into(),
            features,
        };
        assert_eq!(Linked::parse(line), Some(expected));
        assert_eq!(Linked::parse("hash32 v0.3.1|").unwrap().features, [""; 0]);
        assert_eq!(Linked::parse("nonsense"), None);
    }
}
