//! Rules over documents with a set form: the decision records and the test command.

use super::tree::has_extension;
use super::{Finding, Tree};

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";
const SECTIONS: &[&str] = &["## Status", "## Context", "## Decision", "## Consequences"];

pub(super) fn decisions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let index = tree.text(INDEX).unwrap_or_default();
    let mut expected_links = Vec::new();
    let files = tree
        .texts()
        .filter_map(|(path, text)| Some((path, path.strip_prefix(FOLDER)?, text)));
    for (i, (path, name, text)) in files.filter(|(path, ..)| *path != INDEX).enumerate() {
        let number = format!("{:04}", i + 1);
        if !name.starts_with(&format!("{number}-")) || !has_extension(name, "md") {
            findings.push(Finding::new(
                path,
                1,
                format!("the next record is `{number}-SUBJECT.md`"),
            ));
            continue;
        }
        let title = text.lines().next().unwrap_or_default();
        if !title.starts_with(&format!("# {number}: ")) {
            findings.push(Finding::new(
                path,
                1,
                format!("the first line is `# {number}: TITLE`"),
            ));
            continue;
        }
        for section in SECTIONS
            .iter()
            .filter(|section| !text.lines().any(|line| line == **section))
        {
            findings.push(Finding::new(
                path,
                1,
                format!("the section `{section}` is missing"),
            ));
        }
        let link = format!("- [{}]({name})", &title[2..]);
        if !index.lines().any(|line| line == link) {
            findings.push(Finding::new(
                INDEX,
                1,
                format!("the line `{link}` is missing"),
            ));
        }
        expected_links.push(link);
    }
    for (i, line) in index.lines().enumerate() {
        if line.starts_with("- [0") && !expected_links.iter().any(|link| link == line) {
            findings.push(Finding::new(
                INDEX,
                i + 1,
                format!("`{line}` is not the title of a record"),
            ));
        }
    }
    findings
}

/// The heading in the README under which the first fenced block is the test command.
const TEST_HEADING: &str = "## Test";

pub(super) fn test_command(tree: &Tree) -> Vec<Finding> {
    let last = tree
        .text(".ci/run")
        .and_then(|script| script.lines().last())
        .unwrap_or_default();
    let ran = last.strip_prefix("exec ").unwrap_or(last);
    let readme = tree.text("README.md").unwrap_or_default();
    let mut lines = readme.lines().skip_while(|line| *line != TEST_HEADING);
    let told = lines
        .find(|line| line.starts_with("```"))
        .and_then(|_| lines.next())
        .unwrap_or_default();
    if told.is_empty() {
        let what = format!("a fenced block with the test command belongs under `{TEST_HEADING}`");
        return vec![Finding::new("README.md", 1, what)];
    }
    if ran == told {
        return Vec::new();
    }
    let line = tree
        .text(".ci/run")
        .map_or(1, |script| script.lines().count());
    vec![Finding::new(
        ".ci/run",
        line,
        format!("it ends with `{ran}`, the README says `{told}`"),
    )]
}
