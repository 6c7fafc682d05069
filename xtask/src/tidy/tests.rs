//! Every rule is seen to find what it forbids and to pass what it asks for.

use super::{RULES, Tree};

type Files = &'static [(&'static str, &'static str)];

/// A rule's name with trees that it must fault and trees that it must pass.
struct Example {
    rule: &'static str,
    bad: &'static [Files],
    good: &'static [Files],
}

static EXAMPLES: &[Example] = &[
    Example {
        rule: "module-doc",
        bad: &[
            &[("a.rs", "use std::fs;\n")],
            &[("a.rs", "")],
            &[("a.rs", "// A.\n")],
            &[("a.rs", "\n//! Late.\n")],
        ],
        good: &[&[("a.rs", "//! A.\n")], &[("a.md", "A.\n")]],
    },
    Example {
        rule: "no-stubs",
        bad: &[
            &[("a.rs", "fn f() { todo!() }\n")],
            &[(
                "a.rs",
                "#[cfg(never)]\nfn f() {\n    unimplemented!(\"later\")\n}\n",
            )],
            &[("tests/a.rs", "fn f() { std::dbg!(1); }\n")],
        ],
        good: &[&[(
            "a.rs",
            "//! No `todo!()`.\nfn f() { g(\"dbg!(x)\"); } // unimplemented!()\n",
        )]],
    },
    Example {
        rule: "no-prints",
        bad: &[
            &[("core/src/a.rs", "fn f() { println!(\"x\"); }\n")],
            &[("bot/src/main.rs", "fn f() { eprint!(\"x\"); }\n")],
            &[("xtask/src/main.rs", "fn f() { print!(\"x\"); }\n")],
        ],
        good: &[&[
            (
                "core/src/a.rs",
                "//! `println!(\"x\")`\nfn f(w: &mut impl Write) { writeln!(w); }\n",
            ),
            ("core/examples/a.rs", "fn main() { println!(\"x\"); }\n"),
            (
                "core/build.rs",
                "fn main() { println!(\"cargo:rerun\"); }\n",
            ),
        ]],
    },
    Example {
        rule: "reasons",
        bad: &[
            &[("a.rs", "#[allow(dead_code)]\nfn f() {}\n")],
            &[("a.rs", "#![expect(\n    clippy::panic,\n    unused\n)]\n")],
            &[("a.rs", "#[cfg_attr(test, allow(unused))]\nfn f() {}\n")],
            &[(
                "a.rs",
                "#[allow(unused)] // reason = \"in a comment\"\nfn f() {}\n",
            )],
        ],
        good: &[&[(
            "a.rs",
            "#[expect(unused, reason = \"x\")]\n#[x(allow = 1)]\nfn f() { g.expect(\"x\"); }\n#[allow(\n    a,\n    reason = \"b\"\n)]\nfn h() {}\n",
        )]],
    },
    Example {
        rule: "no-sleep",
        bad: &[
            &[("tests/a.rs", "fn f() { std::thread::sleep(d); }\n")],
            &[("a.rs", "use std::thread::sleep;\n")],
        ],
        good: &[&[(
            "a.rs",
            "//! No `thread::sleep`.\nfn f(d: &Driver) { d.sleep(); }\n",
        )]],
    },
    Example {
        rule: "no-ignored-tests",
        bad: &[
            &[("a.rs", "#[test]\n#[ignore]\nfn f() {}\n")],
            &[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n")],
            &[("a.rs", "#[cfg_attr(miri, ignore)]\nfn f() {}\n")],
            &[("a.rs", "/// ```ignore\n/// f();\n/// ```\nfn f() {}\n")],
            &[("a.rs", "//! ```rust,ignore\n//! ```\n")],
        ],
        good: &[&[(
            "a.rs",
            "/// ```no_run\n/// ignore();\n/// ```\n#[arg(ignore_case)]\n#[field(ignore)]\nfn ignore() {}\n",
        )]],
    },
    Example {
        rule: "safety",
        bad: &[
            &[("a.rs", "fn f() {\n    unsafe { g() }\n}\n")],
            &[("a.rs", "unsafe impl Send for A {}\n")],
            &[(
                "a.rs",
                "// SAFETY: of another one.\nlet x = unsafe { g() };\nlet y = unsafe { g() };\n",
            )],
            &[(
                "a.rs",
                "// SAFETY: too far away.\n\nlet x = unsafe { g() };\n",
            )],
            &[("a.rs", "let x = unsafe\n{ g() };\n")],
        ],
        good: &[
            &[(
                "a.rs",
                "// SAFETY: g needs nothing.\nlet x = unsafe { g() };\n",
            )],
            &[(
                "a.rs",
                "// SAFETY: g needs\n// nothing.\nlet x =\n    unsafe { g() };\n",
            )],
            &[(
                "a.rs",
                "fn f() {\n    unsafe { g() } // SAFETY: g needs nothing.\n}\n",
            )],
            &[(
                "a.rs",
                "// SAFETY: no data.\nunsafe impl Send for A {}\n/// Not `unsafe {`.\nunsafe fn f();\n",
            )],
            &[("a.rs", "#![deny(unsafe_code)]\n")],
        ],
    },
    Example {
        rule: "machine-paths",
        bad: &[
            &[("a.md", concat!("See `/", "tmp/x`.\n"))],
            &[("a.rs", concat!("fn f() { open(\"/", "home/me/x\"); }\n"))],
            &[("a.toml", concat!("path = \"/", "work/x\"\n"))],
            &[(".ci/run", concat!("cd /", "root/x\n"))],
        ],
        good: &[&[
            (
                "a.md",
                "See target/tmp/x, https://x.org/home/y and $ROOT/work/z.\n",
            ),
            (
                "a.rs",
                "fn f() { open(\"/sys/fs/cgroup/work/cpu.max\"); }\n",
            ),
        ]],
    },
    Example {
        rule: "trailing-space",
        bad: &[
            &[("a.md", "a \nb\n")],
            &[("a.rs", "a\t\n")],
            &[("a.csv", "a,b")],
        ],
        good: &[&[
            ("a.md", "a\n\nb\n"),
            ("a.csv", "a,b\r\nc,d\r\n"),
            ("empty", ""),
        ]],
    },
    Example {
        rule: "inherits",
        bad: &[
            &[(
                "a/Cargo.toml",
                "[package]\nedition.workspace = true\nrust-version.workspace = true\n[lints]\nworkspace = true\n[other]\nlicense.workspace = true\n",
            )],
            &[(
                "a/Cargo.toml",
                "[package]\nedition = \"2021\"\nrust-version.workspace = true\nlicense.workspace = true\n\n[lints]\nworkspace = true\n",
            )],
            &[(
                "a/Cargo.toml",
                "[package]\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\n[lints]\n\n[other]\nworkspace = true\n",
            )],
        ],
        good: &[&[
            ("Cargo.toml", "[workspace]\n"),
            (
                "a/Cargo.toml",
                "[package]\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\n[lints]\nworkspace = true\n",
            ),
        ]],
    },
    Example {
        rule: "links",
        bad: &[
            &[("docs/a.md", "[b](b.md)\n")],
            &[("docs/a.md", "[b](../../b.md)\n"), ("b.md", "")],
            &[("a.md", "[b](/b.md)\n"), ("b.md", "")],
            &[("a.md", "# A\n\n[b](#c)\n")],
            &[("a.md", "[b](b.md#c)\n"), ("b.md", "# B\n")],
            &[("a.md", "See [b].\n\n[b]: b.md\n")],
            &[("a.md", "[fine](a.md) and ![not](b.png \"title\")\n")],
        ],
        good: &[&[
            (
                "docs/a.md",
                "# A-z `b`: c?\n\n[b](../b.md), [c](.) [a](#a-z-b-c) [w](https://x.org/y) [m](mailto:a@x.org)\n",
            ),
            (
                "b.md",
                "[A](docs/a.md#a-z-b-c) `[no](link)`\n```\n[no](link)\n# no heading\n```\n[d](docs/)\n",
            ),
        ]],
    },
    Example {
        rule: "decisions",
        bad: &[
            &[("docs/adr/README.md", "- [0001: A](0001-a.md)\n")],
            &[("docs/adr/README.md", ""), ("docs/adr/0001-a.md", RECORD)],
            &[
                (
                    "docs/adr/README.md",
                    "- [0001: B](0001-a.md)\n- [0001: A](0001-a.md)\n",
                ),
                ("docs/adr/0001-a.md", RECORD),
            ],
            &[
                ("docs/adr/README.md", ""),
                ("docs/adr/0002-a.md", "# 0002: A\n"),
            ],
            &[
                ("docs/adr/README.md", "- [0001: A](0001-a.md)\n"),
                ("docs/adr/0001-a.md", SHORT),
            ],
            &[("docs/adr/README.md", ""), ("docs/adr/0001-a.md", "# A\n")],
            &[("docs/adr/README.md", ""), ("docs/adr/notes.txt", "")],
        ],
        good: &[
            &[],
            &[
                (
                    "docs/adr/README.md",
                    "# Records\n\n- [0001: A](0001-a.md)\n",
                ),
                ("docs/adr/0001-a.md", RECORD),
            ],
        ],
    },
    Example {
        rule: "test-command",
        bad: &[
            &[
                ("README.md", "## Test\n\n```sh\ncargo test\n```\n"),
                (".ci/run", "cargo xtask ci\n"),
            ],
            &[("README.md", "## Test\n\n```sh\ncargo xtask ci\n```\n")],
            &[
                ("README.md", "## Run\n\n```sh\ncargo xtask ci\n```\n"),
                (".ci/run", "cargo xtask ci\n"),
            ],
            &[
                ("README.md", "## Test\n\n```sh\nx\n```\n"),
                (".ci/run", "x\ny\n"),
            ],
        ],
        good: &[&[
            (
                "README.md",
                "## Run\n\n```sh\ncargo run\n```\n\n## Test\n\n```sh\ncargo xtask ci\n```\n",
            ),
            (
                ".ci/run",
                "#!/usr/bin/env bash\nset -e\n\nexec cargo xtask ci\n",
            ),
        ]],
    },
];

const SHORT: &str = "# 0001: A\n\n## Status\n\n## Decision\n\n## Consequences\n";

const RECORD: &str = "# 0001: A\n\n## Status\n\n## Context\n\n## Decision\n\n## Consequences\n";

fn findings(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let rule = RULES.iter().find(|known| known.name == rule).unwrap();
    (rule.check)(&Tree::of(files))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn every_rule_faults_its_bad_examples_and_passes_its_good_ones() {
    for example in EXAMPLES {
        for files in example.bad {
            let found = findings(example.rule, files);
            assert_eq!(found.len(), 1, "{}: {files:?}: {found:?}", example.rule);
        }
        for files in example.good {
            let found = findings(example.rule, files);
            assert!(found.is_empty(), "{}: {files:?}: {found:?}", example.rule);
        }
    }
}

#[test]
fn the_file_length_counts_every_line() {
    let lines = |n| "//! Line.\n".repeat(n);
    assert!(findings("file-length", &[("a.rs", &lines(500))]).is_empty());
    let found = findings(
        "file-length",
        &[("a.rs", &lines(501)), ("a.csv", &lines(501))],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("a.rs:501: "), "{found:?}");
}

#[test]
fn no_rule_is_without_examples() {
    for rule in RULES.iter().filter(|rule| rule.name != "file-length") {
        let example = EXAMPLES.iter().find(|example| example.rule == rule.name);
        let complete = example.is_some_and(|e| !e.bad.is_empty() && !e.good.is_empty());
        assert!(complete, "{} needs a bad and a good example", rule.name);
    }
}

#[test]
fn a_finding_says_where() {
    let found = findings(
        "no-stubs",
        &[("core/src/a.rs", "//! A.\n\nfn f() { todo!() }\n")],
    );
    assert!(
        found[0].starts_with("core/src/a.rs:3: `todo!`"),
        "{found:?}"
    );
}
