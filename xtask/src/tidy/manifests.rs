//! Rules over the crates' manifests.

use super::{Finding, Tree};

/// What every crate takes from the workspace: a section and the line in it that says so.
const INHERITED: &[(&str, &str)] = &[
    ("[package]", "edition.workspace = true"),
    ("[package]", "rust-version.workspace = true"),
    ("[package]", "license.workspace = true"),
    ("[lints]", "workspace = true"),
];

pub(super) fn inherits(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .texts()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
    {
        for (section, wanted) in INHERITED {
            if !section_has(text, section, wanted) {
                findings.push(Finding::new(
                    path,
                    1,
                    format!("`{wanted}` belongs under `{section}`"),
                ));
            }
        }
    }
    findings
}

/// Whether `wanted` is a line of the section of `manifest` that `header` opens.
fn section_has(manifest: &str, header: &str, wanted: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line == header)
        && lines
            .take_while(|line| !line.starts_with('['))
            .any(|line| line == wanted)
}
