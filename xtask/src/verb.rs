//! What a verb is, how its command line is read, and how it fails.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// One thing that `cargo xtask` can do.
pub(crate) struct Verb {
    /// The word on the command line.
    pub(crate) name: &'static str,
    /// One line for the help.
    pub(crate) doc: &'static str,
    /// The flags it takes.
    pub(crate) flags: &'static [Flag],
    /// Does it; what it has to say goes to the writer.
    pub(crate) run: fn(&Args, &mut dyn Write) -> Result<(), Error>,
}

/// The name of the flag after which the words are somebody else's.
pub(crate) const REST: &str = "--";

/// A flag of a verb.
pub(crate) struct Flag {
    /// With its dashes.
    pub(crate) name: &'static str,
    /// What stands for its value in the help, if it takes one.
    pub(crate) value: Option<&'static str>,
    /// One line for the help.
    pub(crate) doc: &'static str,
}

impl Verb {
    /// The verb's line and one for each of its flags.
    pub(crate) fn help(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "cargo xtask {}: {}", self.name, self.doc)?;
        for flag in self.flags {
            let usage = format!("{} {}", flag.name, flag.value.unwrap_or(""));
            writeln!(out, "  {usage:<14} {}", flag.doc)?;
        }
        Ok(())
    }
}

/// The flags that were given, each with its value (empty for a flag that takes none).
#[derive(Default)]
pub(crate) struct Args {
    given: BTreeMap<&'static str, String>,
    rest: Vec<String>,
}

impl Args {
    /// Reads `words` as flags of `verb`: each at most once, nothing else; after `--`, for a verb that takes it, whatever
    /// comes.
    pub(crate) fn parse(verb: &Verb, words: &[String]) -> Result<Self, Error> {
        let mut given = BTreeMap::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let flag = verb.flags.iter().find(|flag| flag.name == word);
            let Some(flag) = flag else {
                let known: Vec<&str> = verb.flags.iter().map(|flag| flag.name).collect();
                let takes = if known.is_empty() {
                    "no flags".to_owned()
                } else {
                    known.join(", ")
                };
                let name = verb.name;
                return Err(Error::Usage(format!(
                    "{name}: unexpected `{word}`: it takes {takes}"
                )));
            };
            if flag.name == REST {
                let rest = words.cloned().collect();
                return Ok(Self { given, rest });
            }
            let value = match flag.value {
                None => String::new(),
                Some(what) => words.next().cloned().ok_or_else(|| {
                    Error::Usage(format!("{}: `{}` needs a {what}", verb.name, flag.name))
                })?,
            };
            if given.insert(flag.name, value).is_some() {
                let (verb, flag) = (verb.name, flag.name);
                return Err(Error::Usage(format!(
                    "{verb}: `{flag}` given twice: once will do"
                )));
            }
        }
        let rest = Vec::new();
        Ok(Self { given, rest })
    }

    /// Whether the flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.given.contains_key(flag)
    }

    /// The flag's value, if it was given.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        self.given.get(flag).map(String::as_str)
    }

    /// The words after `--`.
    pub(crate) fn rest(&self) -> &[String] {
        &self.rest
    }
}

/// Why a verb did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line was not understood.
    #[error("{0}")]
    Usage(String),
    /// What was checked is not as it should be; the findings are already printed.
    #[error("{0}")]
    Failed(String),
    /// A command could not be started or exited non-zero.
    #[error("`{command}`: {what}")]
    Command {
        /// The command as it would be typed.
        command: String,
        /// The exit status, or why there is none.
        what: String,
    },
    /// What a command printed was not what its format promises.
    #[error("`{command}` printed something unexpected: {source}")]
    Json {
        /// The command as it would be typed.
        command: String,
        /// Where the text departs from the format.
        source: serde_json::Error,
    },
    /// A file could not be read or written.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// Read, write, copy and so on.
        what: &'static str,
        /// The file or folder.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The verb's own output could not be written (a closed pipe, mostly).
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// A failure to `what` the file at `path`.
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().display().to_string();
        Self::Io { what, path, source }
    }

    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }
}
