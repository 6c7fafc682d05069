//! `licences`: what the workspace's dependencies are licensed under, and which of them it has twice.
//!
//! Both are asked for all features and platforms, development and build dependencies included: whoever builds the
//! repository has them on disk. The lock file, and with it `cargo metadata`, also names crates that an optional
//! feature of a dependency would bring in and nobody turns on; what is built is what `cargo tree` says.

mod spdx;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::cargo::{Metadata, Package, cargo, output};
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "licences",
    doc: "every dependency is under an allowed licence, and no crate is there twice without a reason",
    flags: &[],
    run,
};

/// The licences that a dependency may be used under. A choice (`OR`) needs one of them, a
/// combination (`AND`) only of them; a licence with an exception is an entry of its own.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are there in versions which cargo cannot unify, each with the reason.
const DOUBLED: &[(&str, &str)] = &[
    (
        "bitflags",
        "defmt 1 depends on bitflags 1, rustix on bitflags 2; defmt is off by default",
    ),
    (
        "block-buffer",
        "k256 0.13 and revm's precompiles are on digest 0.10, alloy's keccak on digest 0.11; so it is for the next six",
    ),
    ("const-oid", "see block-buffer"),
    ("cpufeatures", "see block-buffer"),
    ("crypto-common", "see block-buffer"),
    ("digest", "see block-buffer"),
    ("sha2", "see block-buffer"),
    (
        "getrandom",
        "rand_core 0.6 of the elliptic curves asks for 0.2, tempfile for the newest",
    ),
    (
        "num-bigint",
        "the macros of revm's curves are on 0.4; ours is for tests only",
    ),
    (
        "rand",
        "revm's curves are on 0.8, the web socket's masks on the newest",
    ),
    ("rand_core", "see rand"),
    (
        "syn",
        "alloy's macros and loom's Windows bindings derive with syn 2, our derives with syn 3",
    ),
    (
        "windows-link",
        "loom's Windows bindings and the terminal's are a version apart; neither is built here",
    ),
    (
        "windows-sys",
        "ring's is older than the terminal's; neither is built here",
    ),
];

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let mut metadata = Metadata::load()?;
    let built = built()?;
    let is_built = |package: &Package| {
        let Package { name, version, .. } = package;
        built.contains(&format!("{name} v{version}"))
    };
    metadata.packages.retain(is_built);
    let mut findings = unlicensed(&metadata.packages, ALLOWED);
    findings.extend(unlisted_doubles(&metadata.packages, DOUBLED));
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    match findings.len() {
        0 => {
            let (all, doubled) = (metadata.packages.len(), DOUBLED.len());
            Ok(writeln!(
                out,
                "{all} packages: licences allowed, {doubled} doubled with a reason"
            )?)
        }
        n => Err(Error::Failed(format!("licences: {n} findings"))),
    }
}

/// Name and version of each crate that a build of everything on every platform compiles.
fn built() -> Result<BTreeSet<String>, Error> {
    let text = output(cargo().args([
        "tree",
        "--locked",
        "--workspace",
        "--all-features",
        "--target=all",
        "--edges=normal,build,dev",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}",
    ]))?;
    Ok(named(&text))
}

/// The first two words of each line: what follows says where a crate comes from and of what kind it is.
fn named(tree: &str) -> BTreeSet<String> {
    let first_two = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().filter_map(first_two).collect()
}

/// A line for each package that cannot be used under `allowed`.
fn unlicensed(packages: &[Package], allowed: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for Package {
        name,
        version,
        license,
        ..
    } in packages
    {
        let allowed_one = |licence: &str| allowed.contains(&licence);
        let verdict = license
            .as_deref()
            .map(|stated| (stated, spdx::satisfied(stated, &allowed_one)));
        findings.extend(match verdict {
            Some((_, Ok(true))) => None,
            Some((stated, Ok(false))) => {
                let list = allowed.join(", ");
                Some(format!("{name} {version}: `{stated}` cannot be met with {list}: use another crate, or allow it"))
            }
            Some((_, Err(error))) => Some(format!("{name} {version}: {error}")),
            None => Some(format!("{name} {version}: states no `license`: use a crate that does")),
        });
    }
    findings
}

/// A line for each doubled crate that `listed` lacks and each entry of `listed` that is not doubled.
fn unlisted_doubles(packages: &[Package], listed: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeMap<String, &str>> = BTreeMap::new();
    for Package { name, version, .. } in packages {
        versions
            .entry(name)
            .or_default()
            .insert(compatible_range(version), version);
    }
    versions.retain(|_, ranges| ranges.len() > 1);
    let unlisted = versions
        .iter()
        .filter(|(name, _)| !listed.iter().any(|(entry, _)| entry == *name));
    let mut findings: Vec<String> = unlisted
        .map(|(name, ranges)| {
            let versions: Vec<&str> = ranges.values().copied().collect();
            format!(
                "{name} is there as {}: unify them, or list it with the reason",
                versions.join(" and ")
            )
        })
        .collect();
    for (entry, _) in listed {
        if !versions.contains_key(entry) {
            findings.push(format!(
                "{entry} is listed as doubled and is not: delete the entry"
            ));
        }
    }
    findings
}

/// The part of a version within which cargo unifies: up to the first number that is not zero, and all
/// of a pre-release.
fn compatible_range(version: &str) -> String {
    let version = version
        .split_once('+')
        .map_or(version, |(version, _build)| version);
    if version.contains('-') {
        return version.to_owned();
    }
    let parts: Vec<&str> = version.split('.').collect();
    let first = parts
        .iter()
        .position(|part| *part != "0")
        .unwrap_or(parts.len() - 1);
    parts[..=first].join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            id: format!("{name}@{version}"),
            license: license.map(str::to_owned),
            rust_version: None,
            targets: Vec::new(),
        }
    }

    #[test]
    fn what_is_built_is_told_by_name_and_version() {
        let tree = "a v1.0.0 (proc-macro)\n\nb v0.2.0 (/somewhere/b)\na v1.0.0 (proc-macro)\n";
        let expected = ["a v1.0.0", "b v0.2.0"].map(str::to_owned);
        assert_eq!(named(tree), BTreeSet::from(expected));
    }

    #[test]
    fn a_package_needs_an_allowed_licence() {
        let allowed = &["MIT", "Unicode-3.0"];
        let one = |license| unlicensed(&[package("a", "1.0.0", license)], allowed);
        assert!(one(Some("MIT/Apache-2.0")).is_empty());
        assert!(one(Some("(MIT OR Apache-2.0) AND Unicode-3.0")).is_empty());
        for (stated, named) in [
            (Some("Apache-2.0"), "`Apache-2.0`"),
            (Some("MIT AND GPL-3.0-only"), "GPL-3.0-only"),
            (Some("MIT OR"), "MIT OR"),
            (None, "no `license`"),
        ] {
            let found = one(stated);
            assert_eq!(found.len(), 1, "{stated:?}");
            assert!(
                found[0].contains(named) && found[0].contains("a 1.0.0"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_double_is_listed_and_a_listed_one_is_double() {
        let of = |versions: &[&str], listed: &[(&str, &str)]| {
            let packages: Vec<_> = versions.iter().map(|v| package("a", v, None)).collect();
            unlisted_doubles(&packages, listed)
        };
        let list = &[("a", "because")][..];
        assert!(of(&["1.0.0"], &[]).is_empty());
        assert!(of(&["1.0.0", "2.0.0"], list).is_empty());
        assert!(of(&["1.0.0", "2.0.0"], &[])[0].contains("1.0.0 and 2.0.0"));
        assert!(of(&["1.0.0"], list)[0].contains("delete the entry"));
        assert!(of(&["0.1.0", "0.1.9"], list)[0].contains("delete the entry"));
    }

    #[test]
    fn versions_are_told_apart_as_cargo_does() {
        for (version, range) in [
            ("1.2.3", "1"),
            ("12.0.0", "12"),
            ("0.2.3", "0.2"),
            ("0.0.3", "0.0.3"),
            ("0.0.0", "0.0.0"),
            ("1.2.3+build-5", "1"),
            ("1.0.0-alpha.5", "1.0.0-alpha.5"),
        ] {
            assert_eq!(compatible_range(version), range, "{version}");
        }
    }
}
