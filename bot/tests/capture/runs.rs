//! Runs of captures: they say what the run of the source says, and a replay says whether they still do.

use crate::{exits, read};
use regatta_bot::capture::Tail;
use regatta_bot::report::canonical;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a file, as an argument.
    fn arg(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A capture of so many blocks.
    fn captured(blocks: &str) -> (Self, String) {
        let folder = Self::new();
        let file = folder.arg("a.capture");
        exits(
            &["capture", "--out", &file, "--seed", "7", "--blocks", blocks],
            0,
        );
        (folder, file)
    }
}

/// `regatta run --json` on two cores: its records but for what depends on timing and the machine.
fn run(more: &[&str]) -> Vec<String> {
    let args = [
        &[
            "run", "--json", "--quota", "2000", "--top", "3", "--log", "off",
        ],
        more,
    ]
    .concat();
    let (out, _) = exits(&args, 0);
    out.lines().filter_map(canonical).collect()
}

#[test]
fn a_run_of_a_capture_says_what_the_run_of_its_source_says() {
    let (_folder, file) = Folder::captured("50");
    let of_source = run(&["--seed", "7", "--blocks", "50"]);
    assert_eq!(of_source.len(), 52);
    assert_eq!(run(&["--capture", &file]), of_source);
    // The first blocks of it.
    let few = run(&["--capture", &file, "--blocks", "20"]);
    assert_eq!(few[..21], of_source[..21]);
    assert_eq!(few.len(), 22);
}

#[test]
fn a_run_records_what_it_runs() {
    let folder = Folder::new();
    let file = folder.arg("run.capture");
    let ran = run(&["--seed", "7", "--blocks", "9", "--record", &file]);
    let bytes = std::fs::read(&file).unwrap();
    let read = read(&bytes).unwrap();
    assert_eq!((read.events.len(), read.ended), (9, Ok(Tail::Ended)));
    assert_eq!(run(&["--capture", &file]), ran);
    // What is there stays, and nothing runs without its record.
    let (out, err) = exits(
        &["run", "--quota", "2000", "--blocks", "1", "--record", &file],
        1,
    );
    assert_eq!(out, "");
    assert!(err.contains("--record"), "{err}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

/// Replays on the serial tier, or with what is given.
fn replay(file: &str, more: &[&str], code: i32) -> (String, String) {
    let binding: &[&str] = if more.contains(&"--profile") {
        &[]
    } else {
        &["--quota", "2000", "--profile", "serial"]
    };
    exits(
        &[&["replay", file, "--log", "off"], more, binding].concat(),
        code,
    )
}

#[test]
fn a_replay_holds_on_every_binding() {
    let (folder, file) = Folder::captured("12");
    let corpus = folder.arg("a.corpus");
    replay(&file, &["--write", &corpus], 0);
    let bindings: &[&[&str]] = &[
        &["--quota", "2000", "--profile", "serial"],
        &[
            "--quota",
            "5000",
            "--profile",
            "serial",
            "--set",
            "solver_pins=3",
        ],
        #[cfg(all(feature = "linux", target_os = "linux"))]
        &["--quota", "8000", "--profile", "pinned", "--wake", "futex"],
        #[cfg(all(feature = "linux", target_os = "linux"))]
        &[
            "--quota",
            "6000",
            "--profile",
            "pinned",
            "--wake",
            "eventfd",
        ],
    ];
    for binding in bindings {
        let more = [&["--expect", corpus.as_str()], *binding].concat();
        let (out, _) = replay(&file, &more, 0);
        assert_eq!(out, "14 lines as expected\n");
    }
}

/// The corpus with a line of it altered.
fn altered(corpus: &Path, alter: impl Fn(&mut Vec<String>)) {
    let text = std::fs::read_to_string(corpus).unwrap();
    let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
    alter(&mut lines);
    std::fs::write(corpus, lines.concat()).unwrap();
}

#[test]
fn a_replay_names_the_first_line_that_differs_and_shows_both() {
    let (folder, file) = Folder::captured("6");
    let (corpus, path) = (folder.arg("a.corpus"), folder.path("a.corpus"));
    let write = || drop(replay(&file, &["--write", &corpus], 0));
    let differs = |line: &str, parts: &[&str]| {
        let (out, err) = replay(&file, &["--expect", &corpus], 6);
        assert_eq!(out, "");
        assert!(
            err.contains(&format!("line {line} is not as expected")),
            "{err}"
        );
        for part in parts {
            assert!(err.contains(part), "{part}: {err}");
        }
    };
    write();
    altered(&path, |lines| {
        lines[4] = lines[4].replacen("\"number\":4", "\"number\":5", 1);
        lines[5].clear();
    });
    differs("5", &["\"number\":4", "\"number\":5"]);
    // The end of either is a difference too, and so is a byte at the end of a line.
    write();
    altered(&path, |lines| drop(lines.pop()));
    differs("8", &["expected: (the end)", "summary"]);
    write();
    altered(&path, |lines| lines.push("more\n".to_owned()));
    differs("9", &["expected: more", "found:    (the end)"]);
    write();
    altered(&path, |lines| {
        lines[1] = format!("{} \n", lines[1].trim_end());
    });
    differs("2", &[]);
    write();
    altered(&path, |lines| {
        let last = lines.last_mut().unwrap();
        last.pop();
    });
    differs("8", &[]);
    // What a corpus says reaches no terminal raw.
    std::fs::write(&path, "\u{1b}[2J\n").unwrap();
    differs("1", &["\\u{1b}[2J"]);
}

#[test]
fn a_torn_capture_is_run_to_its_end_and_refused_where_it_is_to_be_whole() {
    let (folder, file) = Folder::captured("6");
    let bytes = std::fs::read(&file).unwrap();
    let torn = folder.arg("torn.capture");
    std::fs::write(&torn, &bytes[..bytes.len() - 20]).unwrap();
    let (out, err) = exits(&["run", "--json", "--quota", "2000", "--capture", &torn], 0);
    assert!(
        err.contains("ends in the middle of a record: it was read up to byte"),
        "{err}"
    );
    let blocks = |out: &str| {
        out.lines()
            .filter(|l| l.contains(r#""type":"block""#))
            .count()
    };
    assert_eq!(blocks(&out), 5);
    let corpus = folder.arg("torn.corpus");
    let (_, err) = replay(&torn, &["--write", &corpus, "--strict"], 5);
    assert!(err.contains("the capture is not whole"), "{err}");
    // What did not go well leaves no corpus.
    assert!(!folder.path("torn.corpus").exists());
    replay(&torn, &["--write", &corpus], 0);
    replay(&file, &["--expect", &corpus], 6);
    // Damage is an error however it is read, and what came before it was run.
    let mut damaged = bytes;
    let at = damaged.len() - 40;
    damaged[at] ^= 1;
    std::fs::write(&torn, damaged).unwrap();
    let (out, err) = exits(&["run", "--json", "--quota", "2000", "--capture", &torn], 5);
    assert!(
        err.contains("the capture is damaged: the record at byte"),
        "{err}"
    );
    assert_eq!(blocks(&out), 5);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let (folder, file) = Folder::captured("2");
    for (more, part) in [
        (&["--seed", "3"][..], "--seed"),
        (&["--pools", "x.csv"], "--pools"),
        (&["--block-time", "1"], "--block-time"),
        (&["--scenario", "cordon-crawl"], "--scenario"),
    ] {
        let (_, err) = exits(&[&["run", "--capture", &file], more].concat(), 2);
        assert!(err.contains(part), "{err}");
    }
    exits(&["run", "--strict"], 2);
    exits(&["replay", &file], 2);
    exits(&["replay", &file, "--expect", "a", "--write", "b"], 2);
    // A file that is there is not written over, unless that is asked for.
    let before = std::fs::read(&file).unwrap();
    let (_, err) = exits(&["capture", "--out", &file, "--blocks", "3"], 2);
    assert!(err.contains("is there already"), "{err}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    exits(&["capture", "--out", &file, "--blocks", "3", "--force"], 0);
    assert_ne!(std::fs::read(&file).unwrap(), before);
    let missing = folder.arg("missing");
    let (_, err) = exits(&["run", "--capture", &missing], 5);
    assert!(err.contains("missing"), "{err}");
    exits(
        &["replay", &file, "--expect", &missing, "--quota", "2000"],
        1,
    );
    exits(
        &[
            "capture",
            "--out",
            &missing,
            "--base",
            "0x0000000000000000000000000000000000000001",
        ],
        3,
    );
    assert!(!folder.path("missing").exists());
}
