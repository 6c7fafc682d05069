//! How a scenario fails.

use super::PATIENCE;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a scenario failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The system refused something.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// Read, write, make and so on.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Something is not what it must be.
    #[error("{what} is {found} and must be {wanted}")]
    Differs {
        /// What.
        what: String,
        /// As it is.
        found: Value,
        /// As it must be.
        wanted: Value,
    },
    /// Something that must happen did not.
    #[error("{what} did not happen within {PATIENCE:?}; last seen: {tail}")]
    TimedOut {
        /// What.
        what: String,
        /// What was seen last.
        tail: String,
    },
    /// A process ended, and not as it must.
    #[error("`{what}` ended with {found} and must with {wanted}; it said: {tail}")]
    Ended {
        /// The command.
        what: String,
        /// Its status.
        found: String,
        /// What it must be.
        wanted: String,
        /// The end of its output.
        tail: String,
    },
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// The system's refusal to `what` the file at `path`.
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// The last lines of a text, each cut.
pub(crate) fn tail(text: &str, count: usize) -> String {
    const LETTERS: usize = 240;
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    let cut = |line: &&str| line.chars().take(LETTERS).collect::<String>();
    last.iter().map(cut).collect::<Vec<_>>().join(" | ")
}
