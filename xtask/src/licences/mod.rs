//! `licences`: what the workspace's dependencies are licensed under, and which of them it has twice.
//!
//! Both are read from `cargo metadata` over all features and platforms, development and build
//! dependencies included: whoever builds the repository has them on disk.

mod spdx;

use std::collections::BTreeMap;
use std::io::Write;

use crate::cargo::{Metadata, Package};
use crate::verb::{Args, Error, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "licences",
    doc: "every dependency is under an allowed licence, and no crate is there twice without a reason",
    flags: &[],
    run,
};

/// The licences that a dependency may be used under. A choice (`OR`) needs one of them, a
/// combination (`AND`) only of them; a licence with an exception is an entry of its own.
const ALLOWED: &[&str] = &["Apache-2.0", "MIT", "Unicode-3.0"];

/// Crates that are there in versions which cargo cannot unify, each with the reason.
const DOUBLED: &[(&str, &str)] = &[
    (
        "bitflags",
        "defmt 1 depends on bitflags 1, rustix on bitflags 2; defmt is off by default",
    ),
    (
        "syn",
        "loom's Windows bindings derive with syn 2, our derives with syn 3; loom is for its own tests only",
    ),
    (
        "windows-link",
        "loom's Windows bindings and the terminal's are a version apart; neither is built here",
    ),
];

fn run(_: &Args, out: &mut dyn Write) -> Result<(), Error> {
    let metadata = Metadata::load()?;
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
