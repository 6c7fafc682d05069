//! The captures of the repository, each with what it is to say.

use crate::exits;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");

/// Each capture, with its corpus beside it.
fn captures() -> Vec<(PathBuf, PathBuf)> {
    let all = std::fs::read_dir(FOLDER).unwrap();
    let paths: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    let of = |extension: &str| {
        let is = |path: &&PathBuf| path.extension().is_some_and(|found| found == extension);
        let mut found: Vec<PathBuf> = paths.iter().filter(is).cloned().collect();
        found.sort();
        found
    };
    let (captures, corpora) = (of("capture"), of("corpus"));
    let expected: Vec<PathBuf> = captures
        .iter()
        .map(|c| c.with_extension("corpus"))
        .collect();
    assert_eq!(
        expected, corpora,
        "each capture has a corpus, and each corpus a capture"
    );
    assert!(!captures.is_empty());
    captures.into_iter().zip(corpora).collect()
}

fn replayed(binding: &[&str]) {
    for (capture, corpus) in captures() {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (capture, corpus) = (text(&capture), text(&corpus));
        let args = [
            "replay", &capture, "--expect", &corpus, "--strict", "--log", "off",
        ];
        let (out, _) = exits(&[&args, binding].concat(), 0);
        assert!(out.ends_with(" lines as expected\n"), "{out}");
    }
}

#[test]
fn the_serial_tier_says_what_it_is_to_say() {
    replayed(&["--quota", "2000", "--profile", "serial"]);
}

// The portable build has one binding.
#[cfg(target_os = "linux")]
#[test]
fn the_pinned_tier_says_what_it_is_to_say() {
    replayed(&["--quota", "8000", "--profile", "pinned"]);
}
