//! Rules over Rust files.

use super::source::{Line, Source, macro_called, words};
use super::{Finding, Tree};

/// The longest that a Rust file may be.
const MAX_LINES: usize = 500;

pub(super) fn module_doc(tree: &Tree) -> Vec<Finding> {
    let lacks = tree.rust().filter(|(_, source)| {
        !source
            .lines()
            .first()
            .is_some_and(|line| line.comment.starts_with("//!"))
    });
    lacks
        .map(|(path, _)| {
            Finding::new(
                path,
                1,
                "begin the file with `//!` and what the module is for",
            )
        })
        .collect()
}

pub(super) fn file_length(tree: &Tree) -> Vec<Finding> {
    let long = tree
        .rust()
        .filter(|(_, source)| source.lines().len() > MAX_LINES);
    long.map(|(path, source)| {
        let n = source.lines().len();
        Finding::new(
            path,
            MAX_LINES + 1,
            format!("{n} lines: split it by subject, {MAX_LINES} at most"),
        )
    })
    .collect()
}

pub(super) fn no_stubs(tree: &Tree) -> Vec<Finding> {
    by_line(tree, |_, line| {
        let name = macro_called(&line.code, &["todo", "unimplemented", "dbg"])?;
        Some(format!(
            "`{name}!`: write what belongs there, or leave the item out until it can be"
        ))
    })
}

pub(super) fn no_prints(tree: &Tree) -> Vec<Finding> {
    by_line(tree, |path, line| {
        let in_src = path.starts_with("src/") || path.contains("/src/");
        let name = macro_called(&line.code, &["println", "eprintln", "print", "eprint"])?;
        in_src.then(|| format!("`{name}!`: take a writer and use `writeln!`, or `tracing`"))
    })
}

pub(super) fn reasons(tree: &Tree) -> Vec<Finding> {
    by_attribute(tree, |attribute| {
        let lifts = |(word, after): &(&str, &str)| {
            matches!(*word, "allow" | "expect") && after.starts_with('(')
        };
        let (lifts, _) = words(&attribute.content).find(lifts)?;
        (!attribute.has_word("reason")).then(|| {
            format!("`{lifts}` without a reason: add `reason = \"...\"`, or mend the code")
        })
    })
}

pub(super) fn no_sleep(tree: &Tree) -> Vec<Finding> {
    by_line(tree, |_, line| {
        let sleeps = line.code.contains("thread::sleep");
        sleeps.then(|| "`thread::sleep`: wait for the thing itself, with a deadline".to_owned())
    })
}

pub(super) fn no_ignored_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = by_attribute(tree, |attribute| {
        let may_ignore = matches!(attribute.name(), "ignore" | "cfg_attr");
        (may_ignore && attribute.has_word("ignore"))
            .then(|| "an ignored test: make it run, or delete it".to_owned())
    });
    findings.extend(by_line(tree, |_, line| {
        let text = line
            .comment
            .trim_start_matches(['/', '!', '*'])
            .trim_start();
        let fence = text.strip_prefix("```")?;
        let ignored = words(fence).any(|(word, _)| word == "ignore");
        ignored.then(|| "an ignored example: make it compile, or mark it `text`".to_owned())
    }));
    findings
}

pub(super) fn safety(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.rust() {
        for (i, line) in source.lines().iter().enumerate() {
            let opens = |(word, after): (&str, &str)| {
                let next = after.trim_start();
                // A block may open on the next line.
                word == "unsafe"
                    && (next.is_empty() || next.starts_with('{') || next.starts_with("impl"))
            };
            if words(&line.code).any(opens) && !explained(source, i) {
                let what = "`unsafe` without its reason: `// SAFETY: ...` belongs right above";
                findings.push(Finding::new(path, i + 1, what));
            }
        }
    }
    findings
}

/// Whether a `SAFETY:` comment stands on line `at` or above it, with no other statement between.
fn explained(source: &Source, at: usize) -> bool {
    let lines = source.lines();
    if lines[at].comment.contains("SAFETY:") {
        return true;
    }
    for line in lines[..at].iter().rev() {
        let code = line.code.trim();
        if code.is_empty() && line.comment.is_empty() {
            return false;
        }
        if line.comment.contains("SAFETY:") {
            return true;
        }
        if code.ends_with([';', '{', '}', ',']) {
            return false;
        }
    }
    false
}

/// A finding for each line of which `look` has something to say.
fn by_line(tree: &Tree, look: impl Fn(&str, &Line) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.rust() {
        for (i, line) in source.lines().iter().enumerate() {
            findings.extend(look(path, line).map(|what| Finding::new(path, i + 1, what)));
        }
    }
    findings
}

/// A finding for each attribute of which `look` has something to say.
fn by_attribute(
    tree: &Tree,
    look: impl Fn(&super::source::Attribute) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.rust() {
        for attribute in source.attributes() {
            findings.extend(look(&attribute).map(|what| Finding::new(path, attribute.line, what)));
        }
    }
    findings
}
