//! A frozen drainer ends its process, and says in what state; a slow one does not. Each test runs itself
//! again as a child, in which the drain has its own way.
#![cfg(unix)]

use super::writers::{Kept, gated};
use super::*;
use regatta_core::dispatch::StallRule;
use regatta_core::time::Duration as Span;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

const CHILD: &str = "DRAIN_TEST_CHILD";
const SIGABRT: i32 = 6;

/// How long the child's drainer may go without a completion.
const WINDOW: Duration = Duration::from_secs(1);

/// Runs `test` again with `child` in it: the signal that ended it, whether it succeeded, and its stderr.
fn as_child(test: &str, child: impl FnOnce()) -> Option<(Option<i32>, bool, String)> {
    if std::env::var_os(CHILD).is_some() {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
        child();
        return None;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Some((output.status.signal(), output.status.success(), stderr))
}

fn aborting() -> DrainConfig {
    DrainConfig {
        queue: 64,
        spool: 64,
        rule: StallRule {
            window: WINDOW.into(),
            interval: Span::from_millis(10),
            ..StallRule::default()
        },
        ..small()
    }
}

fn prompt() -> Drain {
    start(vec![("out", lines(Kept::default()))], aborting())
}

/// Nothing is dispatched after the fault: the timer alone tells.
#[test]
fn a_frozen_drainer_aborts_with_a_dump() {
    let ended = as_child("aborts::a_frozen_drainer_aborts_with_a_dump", || {
        let drain = prompt();
        let (_never, nothing) = channel::<()>();
        drain.send(Item::publish(record(0))).unwrap();
        let freeze = move || {
            let _ = nothing.recv();
        };
        drain.send(Item::finalize(freeze)).unwrap();
        drain.send(Item::publish(record(1))).unwrap();
        let (_never, nothing) = channel::<()>();
        let _ = nothing.recv();
    });
    let Some((signal, _, stderr)) = ended else {
        return;
    };
    assert_eq!(signal, Some(SIGABRT), "{stderr}");
    for part in [
        "the drain has stalled: 2 items are owed and none was completed for",
        "drain: 3 accepted, 1 completed, 1 queued, 0 rejected, 0 handed back; drainer has a finalizer in hand",
        "sink out: 1 taken, 1 written, 0 lost, 0 behind, spool of 64; open",
    ] {
        assert!(stderr.contains(part), "{part:?} is not in: {stderr}");
    }
}

#[test]
fn a_slow_drainer_that_progresses_is_not_aborted() {
    let ended = as_child(
        "aborts::a_slow_drainer_that_progresses_is_not_aborted",
        || {
            let drain = prompt();
            // Three windows' worth of items, a tenth of a window each, and all are owed from the beginning.
            for _ in 0..30 {
                drain.send(Item::finalize(|| pass(WINDOW / 10))).unwrap();
            }
            assert_eq!(drain.drain(far()).remaining, 0);
        },
    );
    let Some((signal, success, stderr)) = ended else {
        return;
    };
    assert!(success, "signal {signal:?}: {stderr}");
}

/// A sink that lets the drainer wait for two windows is no stall, and no excuse for one that follows.
#[test]
fn a_drainer_that_freezes_after_a_slow_sink_aborts_then() {
    let ended = as_child(
        "aborts::a_drainer_that_freezes_after_a_slow_sink_aborts_then",
        || {
            let (writer, gate) = gated(&Kept::default());
            let config = DrainConfig {
                spool: 1,
                ..aborting()
            };
            let drain = start(vec![("out", lines(writer))], config);
            for number in 0..3 {
                drain.send(Item::publish(record(number))).unwrap();
            }
            let (_never, nothing) = channel::<()>();
            let freeze = move || {
                let _ = nothing.recv();
            };
            drain.send(Item::finalize(freeze)).unwrap();
            drain.send(Item::publish(record(3))).unwrap();
            pass(WINDOW * 2);
            drop(gate);
            let (_never, nothing) = channel::<()>();
            let _ = nothing.recv();
        },
    );
    let Some((signal, _, stderr)) = ended else {
        return;
    };
    assert_eq!(signal, Some(SIGABRT), "{stderr}");
    let part = "drainer has a finalizer in hand";
    assert!(stderr.contains(part), "{stderr}");
}

#[test]
fn a_drainer_that_is_gone_aborts_at_once() {
    let ended = as_child("aborts::a_drainer_that_is_gone_aborts_at_once", || {
        let drain = prompt();
        // One item is no backlog, and starts no window.
        drain.send(Item::finalize(|| panic!("planted"))).unwrap();
        let (_never, nothing) = channel::<()>();
        let _ = nothing.recv();
    });
    let Some((signal, _, stderr)) = ended else {
        return;
    };
    assert_eq!(signal, Some(SIGABRT), "{stderr}");
    let part = "the drain has stalled: the pipe's consumer is gone with 1 items owed";
    assert!(stderr.contains(part), "{stderr}");
}

/// A process that was stopped for longer than the window, with items owed, has not stalled.
#[test]
fn a_stopped_process_is_no_stall() {
    const TEST: &str = "aborts::a_stopped_process_is_no_stall";
    // More than a loaded machine needs from the word to the signal.
    let window = WINDOW * 5;
    if std::env::var_os(CHILD).is_some() {
        let config = DrainConfig {
            rule: StallRule {
                window: window.into(),
                ..aborting().rule
            },
            ..aborting()
        };
        let drain = start(vec![("out", lines(Kept::default()))], config);
        let wait = || {
            writeln!(std::io::stderr(), "owed").unwrap();
            // Until the parent closes it.
            let _ = std::io::stdin().read(&mut [0]);
        };
        drain.send(Item::finalize(wait)).unwrap();
        drain.send(Item::publish(record(1))).unwrap();
        assert_eq!(drain.drain(far()).remaining, 0);
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.unwrap().success());
    };
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "owed\n");
    signal("-STOP");
    pass(window + WINDOW);
    signal("-CONT");
    // The timer looks by now, and sees how much time has passed.
    pass(WINDOW / 2);
    drop(child.stdin.take());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {rest}");
}
