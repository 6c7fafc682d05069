//! Rules over every text file.

use super::{Finding, Tree};

/// Top-level folders that differ from machine to machine.
const MACHINE_FOLDERS: &[&str] = &["tmp", "root", "home", "work"];

pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let patterns: Vec<String> = MACHINE_FOLDERS
        .iter()
        .map(|name| format!("/{name}/"))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (i, line) in text.lines().enumerate() {
            if let Some(found) = patterns.iter().find(|pattern| is_rooted_in(line, pattern)) {
                let what = format!(
                    "`{found}`: use a path from the workspace, or a temporary folder of the test's own"
                );
                findings.push(Finding::new(path, i + 1, what));
            }
        }
    }
    findings
}

/// Whether `folder` stands in `line` as the beginning of a path, not as a part of a longer one.
fn is_rooted_in(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/*})".contains(c))
    })
}

pub(super) fn trailing_space(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (i, line) in text.lines().enumerate() {
            if line.ends_with([' ', '\t']) {
                findings.push(Finding::new(path, i + 1, "blanks at the end: delete them"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            let what = "the last line does not end: add a newline";
            findings.push(Finding::new(path, text.lines().count(), what));
        }
    }
    findings
}
