//! The tracked files as a value, so that the rules are pure functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::source::Source;
use crate::cargo::output;
use crate::verb::Error;

/// Tracked files by their path from the workspace root, with `/` between folders.
#[derive(Default)]
pub(crate) struct Tree {
    /// Files that are UTF-8 text.
    texts: BTreeMap<String, String>,
    /// The Rust files among them, scanned.
    sources: BTreeMap<String, Source>,
    /// Every file, and every folder with one in it.
    paths: BTreeSet<String>,
}

impl Tree {
    /// What git tracks here, as it stands in the work tree.
    pub(crate) fn tracked() -> Result<Self, Error> {
        let mut tree = Self::default();
        for path in tracked_paths("")? {
            match fs::read(&path) {
                // A corpus is bytes, whatever they happen to spell.
                Ok(_) if path.starts_with("fuzz/corpus/") => tree.insert(&path, None),
                Ok(bytes) => tree.insert(&path, String::from_utf8(bytes).ok()),
                // Deleted here and not yet from the index.
                Err(source) if source.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(Error::io("read", &path, source)),
            }
        }
        Ok(tree)
    }

    /// A tree of these files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.insert(path, Some((*text).to_owned()));
        }
        tree
    }

    fn insert(&mut self, path: &str, text: Option<String>) {
        let ends = path.match_indices('/').map(|(i, _)| i).chain([path.len()]);
        self.paths.extend(ends.map(|end| path[..end].to_owned()));
        let Some(text) = text else { return };
        if has_extension(path, "rs") {
            self.sources.insert(path.to_owned(), Source::new(&text));
        }
        self.texts.insert(path.to_owned(), text);
    }

    /// How many text files there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The text files.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.sources
            .iter()
            .map(|(path, source)| (path.as_str(), source))
    }

    /// Whether `path` is a file here or a folder with one in it.
    pub(crate) fn exists(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }
}

/// Whether the file's name ends in a dot and `extension`.
pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|found| found == extension)
}

/// The paths that git tracks under `folder` (all for an empty one), in byte order.
pub(crate) fn tracked_paths(folder: &str) -> Result<Vec<String>, Error> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z"]);
    if !folder.is_empty() {
        command.args(["--", folder]);
    }
    let listed = output(&mut command)?;
    let mut paths: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn files_and_their_folders_exist() {
        let tree = Tree::of(&[("a/b/c.rs", "//! C.\n"), ("d.md", "")]);
        for path in ["", "a", "a/b", "a/b/c.rs", "d.md"] {
            assert!(tree.exists(path), "{path}");
        }
        for path in ["b", "a/", "a/b/c", "c.rs"] {
            assert!(!tree.exists(path), "{path}");
        }
        assert_eq!(tree.rust().count(), 1);
        assert_eq!(tree.len(), 2);
    }
}
