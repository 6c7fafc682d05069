//! Copies of machines for tests: one text file each under `machines/`.
//!
//! A file begins with its story. Then `== PATH` begins a file of the machine, whose lines follow;
//! `== PATH | escaped` one whose only line is written with escapes and ends where it ends; `== PATH/` is
//! a folder, which in place of a file is something that cannot be read. Paths take the same escapes.
//! `== expect` begins what must be found: a path into the doctor's JSON, and a value.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a fixture that cannot be used fails the test that uses it"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A machine of a file.
pub(crate) struct Machine {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// Its files.
    pub(crate) files: Vec<(Vec<u8>, Entry)>,
    /// What must be found: paths and JSON values.
    pub(crate) expect: Vec<(String, String)>,
}

/// Something of a machine.
pub(crate) enum Entry {
    /// A file.
    Text(Vec<u8>),
    /// A folder.
    Folder,
}

/// Every machine, by name.
pub(crate) fn machines() -> Vec<Machine> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-linux/tests/machines");
    let mut machines: Vec<Machine> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            parse(name, &fs::read_to_string(&path).unwrap())
        })
        .collect();
    machines.sort_by(|a, b| a.name.cmp(&b.name));
    machines
}

fn parse(name: String, text: &str) -> Machine {
    let (story, sections) = text.split_once("\n== ").expect("a story, then sections");
    assert!(!story.trim().is_empty(), "{name} has no story");
    let mut machine = Machine {
        name,
        files: Vec::new(),
        expect: Vec::new(),
    };
    for section in sections.split("\n== ") {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        if head == "expect" {
            machine.expect = body.lines().map(expectation).collect();
        } else if let Some(path) = head.strip_suffix(" | escaped") {
            machine
                .files
                .push((unescape(path), Entry::Text(unescape(body))));
        } else if let Some(path) = head.strip_suffix('/') {
            machine.files.push((unescape(path), Entry::Folder));
        } else {
            let text = format!("{body}\n").into_bytes();
            machine.files.push((unescape(head), Entry::Text(text)));
        }
    }
    machine
}

fn expectation(line: &str) -> (String, String) {
    let (path, value) = line.split_once(" = ").expect("PATH = VALUE");
    (path.to_owned(), value.to_owned())
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            bytes.extend(c.to_string().bytes());
            continue;
        }
        bytes.push(match rest.next() {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('0') => 0,
            Some('\\') => b'\\',
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).unwrap()
            }
            other => panic!("no such escape: {other:?}"),
        });
    }
    bytes
}

impl Machine {
    /// Writes the machine below `root`.
    pub(crate) fn write(&self, root: &Path) {
        for (path, entry) in &self.files {
            let path = root.join(OsStr::from_bytes(path));
            match entry {
                Entry::Folder => fs::create_dir_all(path).unwrap(),
                Entry::Text(text) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text).unwrap();
                }
            }
        }
    }
}
