//! `cargo xtask VERB`: everything that is done *to* this repository rather than by it.
//!
//! A verb is one file with a [`Verb`] in it and one row in [`VERBS`]. The help text, the check of the
//! command line and the steps of `ci` all come from that table.
//!
//! Exit codes: 0 done, 1 the verb failed (a finding, a command that exited non-zero), 2 the command
//! line was not understood.

mod apt;
mod build;
mod cargo;
mod chain;
mod ci;
mod contracts;
mod core_alone;
mod docs;
mod elf;
mod fuzz;
mod licences;
mod loom;
mod model;
mod msrv;
mod no_std;
mod planted;
mod sanitize;
mod sim;
mod smoke;
mod tidy;
mod verb;
mod vm;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::verb::{Args, Error, Verb};

/// Every verb, in the order in which the help lists them.
static VERBS: &[Verb] = &[
    ci::VERB,
    tidy::VERB,
    licences::VERB,
    core_alone::VERB,
    docs::VERB,
    no_std::VERB,
    loom::VERB,
    model::VERB,
    contracts::VERB,
    sim::VERB,
    fuzz::VERB,
    sanitize::VERB,
    msrv::VERB,
    build::VERB,
    smoke::VERB,
    chain::VERB,
    vm::VERB,
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    match enter_workspace().and_then(|()| dispatch(&words, &mut out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if stderr is closed too.
            let _ = writeln!(io::stderr(), "xtask: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Makes the workspace root the current folder, so that every path in this tool is relative to it.
fn enter_workspace() -> Result<(), Error> {
    // `cargo run` sets the variable; the constant serves a binary that is started by hand.
    let manifest = std::env::var("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&manifest).parent().unwrap_or(Path::new("."));
    std::env::set_current_dir(root).map_err(|source| Error::io("enter", root, source))
}

/// Runs the verb that `words` names.
fn dispatch(words: &[String], out: &mut dyn Write) -> Result<(), Error> {
    let Some((name, rest)) = words.split_first() else {
        return help(out);
    };
    if matches!(name.as_str(), "--help" | "-h" | "help") {
        return help(out);
    }
    let verb = find(name)?;
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        return verb.help(out);
    }
    (verb.run)(&Args::parse(verb, rest)?, out)
}

/// The verb called `name`.
fn find(name: &str) -> Result<&'static Verb, Error> {
    VERBS.iter().find(|verb| verb.name == name).ok_or_else(|| {
        let known: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        Error::Usage(format!(
            "unknown verb `{name}`: the verbs are {}",
            known.join(", ")
        ))
    })
}

/// The list of verbs, one line each.
fn help(out: &mut dyn Write) -> Result<(), Error> {
    writeln!(
        out,
        "cargo xtask VERB [FLAGS]   (VERB --help lists its flags)\n"
    )?;
    for verb in VERBS {
        writeln!(out, "  {:<12} {}", verb.name, verb.doc)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> Result<String, Error> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let mut out = Vec::new();
        dispatch(&words, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn help_has_a_line_for_every_verb() {
        for words in [&[][..], &["--help"], &["-h"], &["help"]] {
            let text = said(words).unwrap();
            for verb in VERBS {
                let line = format!("{:<12} {}", verb.name, verb.doc);
                assert!(text.contains(&line), "{words:?} lacks {line}");
            }
        }
    }

    #[test]
    fn every_verb_explains_its_flags() {
        for verb in VERBS {
            let text = said(&[verb.name, "--help"]).unwrap();
            assert!(text.contains(verb.doc), "{text}");
            for flag in verb.flags {
                assert!(
                    text.contains(flag.name) && text.contains(flag.doc),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), VERBS.len());
    }

    #[test]
    fn what_is_not_understood_names_itself_and_exits_2() {
        for (words, named) in [
            (&["tidi"][..], "`tidi`"),
            (&["tidy", "--lits"], "`--lits`"),
            (&["tidy", "--li"], "`--li`"),
            (&["tidy", "stray"], "`stray`"),
            (&["ci", "--from"], "STEP"),
            (&["ci", "--from", "nowhere"], "`nowhere`"),
            (&["ci", "--list", "--list"], "`--list`"),
        ] {
            let error = said(words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}: {error}");
            assert!(error.to_string().contains(named), "{words:?}: {error}");
        }
    }
}
