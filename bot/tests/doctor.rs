//! The doctor on copies of machines: what it says as JSON, and that it says it in text too.
#![cfg(all(feature = "linux", target_os = "linux"))]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "the helpers of a test fail as the test does; what is left out is said"
)]

#[path = "../../backend-linux/tests/common/mod.rs"]
mod common;

use clap::Parser;
use regatta_bot::cli::{Cli, Command, DoctorArgs};
use regatta_bot::doctor::doctor;
use regatta_bot::exit::Exit;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn args(root: &Path, more: &[&str]) -> DoctorArgs {
    let root = root.to_str().unwrap();
    let line = ["regatta", "doctor", "--root", root];
    match Cli::try_parse_from(line.iter().chain(more))
        .unwrap()
        .command
    {
        Command::Doctor(args) => args,
        _ => unreachable!(),
    }
}

fn says(root: &Path, more: &[&str]) -> String {
    let mut out = Vec::new();
    doctor(&args(root, more), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(root: &Path, more: &[&str]) -> Value {
    let more: Vec<&str> = more.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&says(root, &more)).unwrap()
}

/// What the JSON has at `a.b.c`; nothing is different from null.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Whether `got` has all that `want` has.
fn holds(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => want
            .iter()
            .all(|(key, want)| got.get(key).is_some_and(|got| holds(want, got))),
        _ => want == got,
    }
}

#[test]
fn every_machine_is_diagnosed() {
    let mut wrong = Vec::new();
    for machine in common::machines() {
        let folder = tempfile::tempdir().unwrap();
        machine.write(folder.path());
        let got = json(folder.path(), &[]);
        for (path, want) in &machine.expect {
            let want: Value = serde_json::from_str(want).unwrap();
            if at(&got, path) != Some(&want) {
                let got = at(&got, path);
                wrong.push(format!(
                    "{}: {path} is {got:?}, must be {want}",
                    machine.name
                ));
            }
        }
        let text = says(folder.path(), &[]);
        let milli = at(&got, "quota.milli").and_then(Value::as_u64);
        let number = milli.map(|milli| format!("{}.{:03} cores", milli / 1000, milli % 1000));
        let shown = number.unwrap_or_else(|| "no limit found".to_owned());
        assert!(text.contains(&shown), "{}: {text}", machine.name);
        if at(&got, "throttle.measured") == Some(&Value::Bool(false)) {
            assert!(
                text.contains("throttle unmeasured"),
                "{}: {text}",
                machine.name
            );
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Other people's machines: folders with an `expect.json`, where a checkout has them beside it. The
/// test passes, and says so, where there are none.
#[test]
fn machines_beside_the_checkout_are_diagnosed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases/cgroup");
    let Ok(cases) = fs::read_dir(&folder) else {
        eprintln!("{} is not there: nothing compared", folder.display());
        return;
    };
    for case in cases {
        let case = case.unwrap().path();
        let want = fs::read_to_string(case.join("expect.json")).unwrap();
        let want: Value = serde_json::from_str(&want).unwrap();
        let got = json(&case, &[]);
        assert!(holds(&want, &got), "{}: {want} {got}", case.display());
    }
}

/// A machine with a limit of `max` and sixteen CPUs.
fn machine(max: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("affinity", "0-15\n");
    write("proc/self/cgroup", "0::/job\n");
    write(
        "proc/self/mountinfo",
        "29 21 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    write("sys/fs/cgroup/job/cpu.max", max);
    folder
}

fn hints(diagnosis: &Value) -> Vec<&str> {
    let hints = diagnosis["hints"].as_array().unwrap();
    hints
        .iter()
        .filter_map(|hint| hint["name"].as_str())
        .collect()
}

#[test]
fn an_override_holds_and_the_quota_stays_what_it_is() {
    let folder = machine("150000 100000");
    let got = json(folder.path(), &["--quota", "2000"]);
    assert_eq!(got["quota"]["milli"], 1500);
    assert_eq!(got["budget"]["milli"], 2000);
    assert_eq!(got["budget"]["bounded_by"], "override");
    assert_eq!(got["plan"]["binding"], "serial");
    assert!(hints(&got).contains(&"more_than_enforced"), "{got}");
}

#[test]
fn profile_and_shares_are_planned_as_a_run_would() {
    let folder = machine("400000 100000");
    let forced = json(folder.path(), &["--profile", "pinned"]);
    assert_eq!(forced["plan"]["binding"], "pinned");
    assert_eq!(forced["plan"]["oversubscribed"], true);
    let over = json(folder.path(), &["--set", "ambient_io_cores=9"]);
    assert_eq!(over["plan"]["refused"], "Overrun");
    let malformed = doctor(&args(folder.path(), &["--set", "nothing"]), Vec::new());
    assert_eq!(malformed.unwrap_err().exit(), Exit::Usage);
}

#[test]
fn a_hint_says_what_floors_away_what_is_too_small_and_what_cannot_be_counted() {
    let small = json(machine("125000 100000").path(), &[]);
    assert_eq!(
        hints(&small),
        ["below_floor", "fraction", "throttling_unmeasured"]
    );
    assert_eq!(small["tiers"][0]["lacks_milli"], 750);
    assert_eq!(small["tiers"][1]["lacks_milli"], 4750);
    let pinned = json(machine("800000 100000").path(), &[]);
    assert!(hints(&pinned).contains(&"shared_pins"), "{pinned}");
    let unknown = json(machine("junk").path(), &[]);
    assert!(hints(&unknown).contains(&"quota_unknown"), "{unknown}");
    let stated = json(machine("junk").path(), &["--quota", "8000"]);
    assert_eq!(stated["plan"]["binding"], "pinned");
}

#[test]
fn a_copy_that_cannot_be_used_is_refused() {
    let folder = machine("max 100000");
    let exit = |args: &DoctorArgs| doctor(args, Vec::new()).unwrap_err();
    let missing = exit(&args(&folder.path().join("missing"), &[]));
    assert_eq!(missing.exit(), Exit::Input);
    fs::write(folder.path().join("affinity"), "0-3,many\n").unwrap();
    let wrong = exit(&args(folder.path(), &[]));
    assert_eq!(wrong.exit(), Exit::Input);
    assert!(wrong.to_string().contains("many"), "{wrong}");
}
