//! `tidy`: the house rules, checked over the files that git tracks.
//!
//! Each rule is one row of [`RULES`], and that row is the only place where the rule is stated:
//! `cargo xtask tidy --list` prints them. Some of them clippy knows too. Clippy sees what one build
//! compiles; these see every tracked line, whatever its `cfg`, in well under a second.

mod manifests;
mod markdown;
mod records;
mod rust;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use std::fmt;
use std::io::Write;

pub(crate) use self::source::{Line, Source};
pub(crate) use self::tree::{Tree, tracked_paths};
use crate::verb::{Args, Error, Flag, Verb};

pub(crate) const VERB: Verb = Verb {
    name: "tidy",
    doc: "the house rules, over every file that git tracks",
    flags: &[Flag {
        name: "--list",
        value: None,
        doc: "print the rules, check nothing",
    }],
    run,
};

/// A house rule.
struct Rule {
    name: &'static str,
    /// The rule itself, in one sentence.
    says: &'static str,
    /// Finds where the tree departs from it.
    check: fn(&Tree) -> Vec<Finding>,
}

/// A place where a rule does not hold.
struct Finding {
    file: String,
    /// From 1.
    line: usize,
    /// What is there and what would be right.
    what: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Every rule, in the order in which findings are printed.
static RULES: &[Rule] = &[
    Rule {
        name: "module-doc",
        says: "a Rust file begins with its module doc (`//!`)",
        check: rust::module_doc,
    },
    Rule {
        name: "file-length",
        says: "a Rust file has at most 500 lines, its tests included: split it by subject",
        check: rust::file_length,
    },
    Rule {
        name: "no-stubs",
        says: "no `todo!`, `unimplemented!` or `dbg!`",
        check: rust::no_stubs,
    },
    Rule {
        name: "no-prints",
        says: "nothing under a `src` folder prints to a stream of its own choice: text goes to a writer that \
               the caller gives, records go through `tracing`",
        check: rust::no_prints,
    },
    Rule {
        name: "reasons",
        says: "an `allow` or `expect` of a lint carries its `reason`",
        check: rust::reasons,
    },
    Rule {
        name: "no-sleep",
        says: "no `thread::sleep`, in tests neither: wait for the thing itself, with a deadline",
        check: rust::no_sleep,
    },
    Rule {
        name: "no-ignored-tests",
        says: "no test and no documentation example is ignored",
        check: rust::no_ignored_tests,
    },
    Rule {
        name: "safety",
        says: "an `unsafe` block or impl has a `// SAFETY:` comment right above it",
        check: rust::safety,
    },
    Rule {
        name: "machine-paths",
        says: "no path of one machine (temporary, home or work folders) in a tracked file",
        check: text::machine_paths,
    },
    Rule {
        name: "trailing-space",
        says: "no line ends in blanks, and the last line ends",
        check: text::trailing_space,
    },
    Rule {
        name: "inherits",
        says: "a crate takes edition, rust-version, license and lints from the workspace",
        check: manifests::inherits,
    },
    Rule {
        name: "links",
        says: "a relative link in a Markdown file leads to a tracked file or folder, and to a heading if it names one",
        check: markdown::links,
    },
    Rule {
        name: "decisions",
        says: "decision records are numbered without gaps, have their four sections and stand in the index",
        check: records::decisions,
    },
    Rule {
        name: "test-command",
        says: "`.ci/run` ends with the test command of the README",
        check: records::test_command,
    },
];

fn run(args: &Args, out: &mut dyn Write) -> Result<(), Error> {
    if args.has("--list") {
        for rule in RULES {
            writeln!(out, "{:<17} {}", rule.name, rule.says)?;
        }
        return Ok(());
    }
    let tree = Tree::tracked()?;
    let mut count = 0;
    for rule in RULES {
        for Finding { file, line, what } in (rule.check)(&tree) {
            writeln!(out, "{file}:{line}: {}: {what}", rule.name)?;
            count += 1;
        }
    }
    match count {
        0 => Ok(writeln!(
            out,
            "{} files, {} rules: tidy",
            tree.len(),
            RULES.len()
        )?),
        n => Err(Error::Failed(format!(
            "tidy: {n} findings (`tidy --list` prints the rules)"
        ))),
    }
}
