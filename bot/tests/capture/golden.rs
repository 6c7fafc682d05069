//! The captures of the repository, each with what it is to say.

use crate::{exits, read};
use regatta_bot::capture::ReadError;
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

#[test]
fn so_do_three_bins() {
    replayed(&[
        "--quota",
        "5000",
        "--profile",
        "serial",
        "--set",
        "solver_pins=3",
    ]);
}

/// In the capture of the test chain and in the other: one flipped byte is an error at the record that has it, after
/// everything before it.
#[test]
fn damage_is_found_at_its_record() {
    for (capture, _) in captures() {
        let whole = std::fs::read(&capture).unwrap();
        let expected = read(&whole).unwrap();
        let last = *expected.ends.last().unwrap();
        // A prime, so that heads and payloads are both met.
        for at in (expected.ends[0]..last).step_by(211) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let found = read(&bytes).unwrap();
            let record = expected.ends.iter().filter(|end| **end <= at).count() - 1;
            assert_eq!(found.events, expected.events[..record], "{at}");
            let begins = expected.ends[record] as u64;
            match found.ended {
                Err(ReadError::Damaged { offset, .. }) => assert_eq!(offset, begins, "{at}"),
                other => panic!("{at}: {other:?}"),
            }
        }
    }
}

/// The corpora say everything that a chain can do.
#[test]
fn reverts_readings_and_new_pools_are_among_them() {
    let corpora: String = captures()
        .iter()
        .map(|(_, corpus)| std::fs::read_to_string(corpus).unwrap())
        .collect();
    for part in [
        r#""type":"retract""#,
        r#""type":"registered""#,
        r#""reread":true"#,
    ] {
        assert!(corpora.contains(part), "{part}");
    }
}

// The portable build has one binding.
#[cfg(all(feature = "linux", target_os = "linux"))]
#[test]
fn the_pinned_tier_says_what_it_is_to_say() {
    for wake in ["futex", "eventfd", "io_uring"] {
        replayed(&["--quota", "8000", "--profile", "pinned", "--wake", wake]);
    }
}
