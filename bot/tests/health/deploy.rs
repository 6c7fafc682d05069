//! The files for deployment say what the code does: the same times, paths, port, exit codes and options.

use crate::client::{Told, ask, serve};
use clap::Parser;
use regatta_bot::cli::Cli;
use regatta_bot::exit::Exit;
use regatta_bot::health::{DEFAULT_HEALTH_PORT, DEFAULT_STOP_BUDGET, Limits, STOP_MARGIN};
use std::collections::BTreeSet;
use std::process::Command;

const UNIT: &str = include_str!("../../../docs/deploy/regatta.service");
const MANIFEST: &str = include_str!("../../../docs/deploy/kubernetes.yaml");

/// The value of `key` in the unit, which has it once.
fn unit(key: &str) -> &'static str {
    let values: Vec<&str> = UNIT
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .collect();
    assert_eq!(values.len(), 1, "{key} in the unit: {values:?}");
    values[0]
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines of YAML in `text` that are below the key at the end of `path`, without comments.
fn below(text: &str, path: &[&str]) -> String {
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty())
        .collect();
    for key in path {
        let head = format!("{key}:");
        let at = lines
            .iter()
            .position(|line| line.trim_start().trim_start_matches("- ") == head)
            .unwrap_or_else(|| panic!("{key} of {path:?} is not in the manifest"));
        let depth = indent(lines[at]);
        lines.drain(..=at);
        let end = lines.iter().position(|line| indent(line) <= depth);
        lines.truncate(end.unwrap_or(lines.len()));
    }
    lines.join("\n")
}

/// The value of `key` below `path` in the manifest, where it stands once.
fn manifest(path: &[&str], key: &str) -> String {
    let block = below(MANIFEST, path);
    let values: Vec<&str> = block
        .lines()
        .filter_map(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            line.strip_prefix(key)?.strip_prefix(": ")
        })
        .collect();
    assert_eq!(values.len(), 1, "{key} below {path:?}: {values:?}");
    values[0].trim_matches('"').to_owned()
}

#[test]
fn force_comes_after_the_stop_budget_and_its_margin() {
    let patience = (DEFAULT_STOP_BUDGET + STOP_MARGIN).as_secs().to_string();
    assert_eq!(unit("TimeoutStopSec"), patience);
    assert_eq!(
        manifest(&["template", "spec"], "terminationGracePeriodSeconds"),
        patience
    );
}

#[test]
fn the_unit_waits_for_the_process_itself() {
    assert_eq!(unit("Type"), "notify");
    assert_eq!(unit("NotifyAccess"), "main");
    assert_eq!(unit("KillSignal"), "SIGTERM");
    assert!(unit("WatchdogSec").parse::<u32>().unwrap() > 0);
}

/// Whether starting again may end otherwise, with nobody having looked.
fn restart_may_help(exit: Exit) -> bool {
    match exit {
        Exit::Ok
        | Exit::Failed
        // It may be back, or have caught up.
        | Exit::Node
        | Exit::FleetFailed
        | Exit::StartFailed
        | Exit::StopIncomplete
        | Exit::StopTimedOut => true,
        Exit::Usage
        | Exit::Input
        | Exit::Scenario
        | Exit::Capture
        | Exit::Differs
        | Exit::Settle
        | Exit::BelowHostFloor
        | Exit::BindingUnavailable
        | Exit::Overrun
        | Exit::TooManySeats
        | Exit::BootConfig
        | Exit::FuseTripped
        | Exit::LedgerUnbalanced
        | Exit::PoolsQuarantined => false,
    }
}

#[test]
fn exits_that_a_restart_would_repeat_or_hide_prevent_it() {
    assert_eq!(unit("Restart"), "on-failure");
    let listed: BTreeSet<u8> = unit("RestartPreventExitStatus")
        .split(' ')
        .map(|code| code.parse().unwrap())
        .collect();
    let kept_down = Exit::ALL
        .into_iter()
        .filter(|&exit| !restart_may_help(exit))
        .map(|exit| exit as u8);
    assert_eq!(listed, kept_down.collect());
}

#[test]
fn probes_ask_where_the_endpoint_answers() {
    assert_eq!(manifest(&["livenessProbe"], "path"), "/livez");
    assert_eq!(manifest(&["readinessProbe"], "path"), "/readyz");
    assert_eq!(manifest(&["startupProbe"], "path"), "/livez");
    let (server, _census) = serve(&Told::well(), Limits::default());
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        assert_eq!(ask(&server, "GET", &manifest(&[probe], "path")).status, 200);
        assert_eq!(
            manifest(&[probe], "port"),
            manifest(&["containers", "ports"], "name")
        );
    }
    assert_eq!(
        manifest(&["containers", "ports"], "containerPort"),
        DEFAULT_HEALTH_PORT.to_string()
    );
}

#[test]
fn the_pod_gets_the_whole_cores_that_it_is_limited_to() {
    for what in ["cpu", "memory"] {
        assert_eq!(
            manifest(&["resources", "limits"], what),
            manifest(&["resources", "requests"], what)
        );
    }
    assert_eq!(manifest(&["resources", "limits"], "cpu"), "2");
}

/// Checks a command line without its program: the bot takes it whole, and the endpoint is at `host`.
fn check_command(words: &[String], host: &str) {
    let at = words.iter().position(|word| word == "--health").unwrap();
    assert_eq!(words[at + 1], format!("{host}:{DEFAULT_HEALTH_PORT}"));
    let line = std::iter::once("regatta").chain(words.iter().map(String::as_str));
    Cli::try_parse_from(line).unwrap();
}

#[test]
fn the_command_lines_are_ones_that_the_bot_takes() {
    let start: Vec<String> = unit("ExecStart").split(' ').map(str::to_owned).collect();
    check_command(&start[1..], "127.0.0.1");
    let args: Vec<String> = below(MANIFEST, &["containers", "args"])
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches("- ")
                .trim_matches('"')
                .to_owned()
        })
        .collect();
    check_command(&args, "0.0.0.0");
}

#[test]
fn systemd_takes_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("regatta.service");
    // The program has to be there for this check: the test's own stands in for it.
    let program = std::env::current_exe().unwrap();
    let installed = unit("ExecStart").split(' ').next().unwrap();
    let text = UNIT.replace(installed, program.to_str().unwrap());
    std::fs::write(&path, text).unwrap();
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(&path)
        .output();
    let Ok(output) = verify else {
        eprintln!("left out: there is no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    // It also says what it finds in units that are none of ours.
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("regatta.service"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{said}");
}
