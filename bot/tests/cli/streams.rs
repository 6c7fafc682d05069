//! Streams that nobody reads, or that cannot be written.

use super::*;
use std::process::Stdio;

/// A pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Whoever reads the output may have had enough: that is no failure, and there is nothing to say.
#[test]
fn a_closed_stdout_ends_the_run_quietly() {
    for args in [
        &["--blocks", "500"][..],
        &["--blocks", "500", "--json"],
        &["--blocks", "500", "--block-time", "1"],
    ] {
        let mut command = run_logging("error", args);
        command.stdout(unread());
        let ran = ran(command).exits(0);
        assert_eq!(ran.stderr, "", "{args:?}");
    }
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let mut logging = run_logging("debug", &["--blocks", "40", "--json"]);
    logging.stderr(unread());
    let ran_on = ran(logging).exits(0);
    assert_eq!(record(&ran_on.records(), "summary")["balanced"], true);
    let mut refused = run_command(&["--set", "nothing"]);
    refused.stderr(unread());
    assert_eq!(ran(refused).code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure_that_is_named() {
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for args in [&[][..], &["--json"]] {
        let mut command = run_command(args);
        command.stdout(full());
        let ran = ran(command).exits(1);
        assert!(
            ran.stderr
                .contains("regatta: the output could not be written: ")
                && ran.stderr.contains("No space left"),
            "{}",
            ran.stderr
        );
    }
    let mut command = run_logging("debug", &["--blocks", "40"]);
    command.stderr(full());
    ran(command).exits(0);
}
