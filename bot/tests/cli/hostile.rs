//! Text from outside on its way to a terminal or a log.

use super::*;

/// What nobody wants in a terminal: sequences that clear it, set its title, end the line, turn the
/// direction of text around, or cannot be seen.
const HOSTILE: [&str; 8] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{9b}31mred",
    "a\rb\nc\td\u{8}\u{7f}",
    "\u{202e}HTEW",
    "\u{2066}x\u{2069}\u{200f}",
    "zero\u{200b}width\u{feff}\u{ad}",
    "line\u{2028}paragraph\u{2029}\u{85}",
    "\u{5d0}\u{5d1} 12",
];

/// Whether a character is harmless wherever it is shown.
fn harmless(character: char) -> bool {
    let invisible = matches!(u32::from(character), 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff);
    let right_to_left = matches!(u32::from(character), 0x590..=0x8ff);
    !character.is_control() && !invisible && !right_to_left
}

#[track_caller]
fn assert_harmless(text: &str) {
    let found = text.chars().find(|c| *c != '\n' && !harmless(*c));
    assert_eq!(found, None, "in {text:?}");
}

/// The strings of a record, with JSON's own escapes undone: what a reader prints.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, into)),
        Value::Object(fields) => {
            into.extend(fields.keys().cloned());
            fields.values().for_each(|value| strings(value, into));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn no_symbol_reaches_the_output_raw() {
    for hostile in HOSTILE {
        let mut rows = rows();
        for row in &mut rows {
            row.symbols = [hostile.to_owned(), hostile.to_owned()];
        }
        let pools = Pools::new().file("pools.csv", file_of(&rows));
        let text = pools.run_logging("debug", &["--blocks", "20"]).exits(0);
        assert_harmless(&text.stdout);
        assert_harmless(&text.stderr);
        // The symbol of the base token is shown, escaped.
        assert!(
            text.stdout.contains("\\u{") || text.stdout.contains("\\r"),
            "{}",
            text.stdout
        );

        let json = pools.run(&["--blocks", "20", "--json"]).exits(0);
        assert_harmless(&json.stdout);
        let mut all = Vec::new();
        json.records()
            .iter()
            .for_each(|record| strings(record, &mut all));
        for string in &all {
            assert_harmless(string);
            assert!(!string.contains('\n'), "{string:?}");
        }
    }
}

#[test]
fn no_message_quotes_a_file_raw() {
    for hostile in HOSTILE {
        let quoted = format!("\"{hostile}\"");
        let file = file_of(&rows());
        for content in [
            file.replacen("symbol0", &quoted, 1),
            file.replacen(&address(101), &quoted, 1),
            file.replacen(",18,", &format!(",{quoted},"), 1),
            file.replacen(",1000000000000000000000,", &format!(",{quoted},"), 1),
        ] {
            let ran = Pools::new().file("pools.csv", content).run(&[]).exits(3);
            assert_harmless(&ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        }
    }
}

#[cfg(unix)]
#[test]
fn no_name_of_a_file_reaches_the_output_raw() {
    for hostile in HOSTILE {
        let name = format!("{hostile}.csv");
        let pools = Pools::new().file(&name, file_of(&rows()));
        let ran = pools.run(&["--blocks", "1"]).exits(0);
        assert_harmless(&ran.stdout);
        let ran = Pools::new().file(&name, "").run(&[]).exits(3);
        assert_harmless(&ran.stderr);
        assert_harmless(&Pools::new().named(&name).run(&[]).exits(3).stderr);
    }
}

#[test]
fn no_override_is_quoted_raw() {
    for hostile in HOSTILE {
        for set in [
            hostile.to_owned(),
            format!("{hostile}=1"),
            format!("solver_pins={hostile}"),
        ] {
            let ran = run(&["--set", &set]).exits(2);
            // Letters that read from right to left are the operator's own.
            assert_harmless(&ran.stderr.replace(['\u{5d0}', '\u{5d1}'], ""));
        }
        let mut command = run_command(&[]);
        command.env("REGATTA_SOLVER_PINS", hostile);
        let ran = ran(command).exits(2);
        assert_harmless(&ran.stderr.replace(['\u{5d0}', '\u{5d1}'], ""));
    }
}

#[test]
fn absurd_decimals_are_shown_in_the_smallest_unit() {
    for (decimals, shown) in [
        ("255", "smallest units of WETH"),
        ("37", "smallest units of WETH"),
        ("36", "WETH"),
        ("0", "WETH"),
    ] {
        let mut rows = rows();
        for row in &mut rows {
            row.decimals[0] = decimals.to_owned();
        }
        let pools = Pools::new().file("pools.csv", file_of(&rows));
        let ran = pools.run(&["--blocks", "20"]).exits(0);
        let best = ran
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with("best"))
            .unwrap();
        assert!(best.contains(shown), "{best} for {decimals}");
        assert_eq!(
            best.contains("smallest"),
            shown.contains("smallest"),
            "{best}"
        );
    }
}
