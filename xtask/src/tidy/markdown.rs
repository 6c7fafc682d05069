//! Rules over Markdown files.

use super::tree::has_extension;
use super::{Finding, Tree};

pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| has_extension(path, "md")) {
        for (line, target) in targets(text) {
            if let Some(what) = broken(tree, path, text, &target) {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    findings
}

/// What is wrong with a link to `target` in the file at `path`, if something is.
fn broken(tree: &Tree, path: &str, text: &str, target: &str) -> Option<String> {
    let has_scheme = target
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.contains(['/', '#']));
    if has_scheme {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let (whole, linked) = if file.is_empty() {
        (path.to_owned(), Some(text))
    } else {
        let Some(whole) = resolve(path, file) else {
            return Some(format!(
                "`{target}` leads out of the repository: link to a file in it"
            ));
        };
        let linked = tree.text(&whole);
        (whole, linked)
    };
    if !tree.exists(&whole) {
        return Some(format!(
            "`{target}` leads to `{whole}`, which git does not track"
        ));
    }
    let has_heading = linked.is_some_and(|text| headings(text).any(|slug| slug == anchor));
    (!anchor.is_empty() && !has_heading)
        .then(|| format!("`{target}`: `{whole}` has no heading `#{anchor}`"))
}

/// `target` as seen from the folder of `from`, as a path from the root; `None` if it leads out.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((i + 1, line))
    })
}

/// The targets of links, `[text](target)` and `[label]: target`, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in prose(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let inner = &line[at + 2..];
            let inner = inner.find(')').map_or("", |end| &inner[..end]);
            found.extend(
                inner
                    .split_whitespace()
                    .next()
                    .map(|target| (n, target.to_owned())),
            );
        }
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            found.extend(
                target
                    .split_whitespace()
                    .next()
                    .map(|target| (n, target.to_owned())),
            );
        }
    }
    found
}

/// The line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The anchors of the headings, as the common hosts make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}
