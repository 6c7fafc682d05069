//! What a process can see: a container's namespace, an unprivileged user, files that may not be read.

use super::{Machine, Scenario, named};
use crate::guest::enter::Sight;
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::{NOBODY, Place};
use crate::guest::look::{doctor, expect, expect_all, expect_hint};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

pub(super) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = named([
        ("nobody", nobody),
        ("unreadable-limit", unreadable_limit),
        ("unreadable-counters", unreadable_counters),
    ]);
    if machine.is_v2() {
        scenarios.extend(named([
            ("container", container),
            ("container-below-a-limit", container_below_a_limit),
            ("namespace-with-the-hosts-mount", namespace_only),
        ]));
    }
    scenarios
}

fn container(machine: Machine) -> Result<(), Failure> {
    let above = Group::make(machine.hierarchy, "p")?;
    let own = above.child("l")?;
    let milli = machine.milli() - 500;
    own.limit(milli)?;
    let said = doctor(Place::group(&own).sight(Sight::Container))?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(milli)),
            ("/quota/limiting_level", json!("/")),
            ("/quota/levels_above", json!(0)),
            ("/quota/file", json!("/sys/fs/cgroup/cpu.max")),
            ("/quota/confidence", json!("exact")),
            ("/throttle/measured", json!(true)),
            ("/throttle/source", json!("/sys/fs/cgroup/cpu.stat")),
        ],
    )?;
    expect_hint(&said, "levels_hidden", "not shown")
}

/// What limits is out of sight, and the doctor says that there may be something.
fn container_below_a_limit(machine: Machine) -> Result<(), Failure> {
    let above = Group::make(machine.hierarchy, "p")?;
    let own = above.child("l")?;
    above.limit(machine.milli() - 500)?;
    let said = doctor(Place::group(&own).sight(Sight::Container))?;
    expect_all(
        &said,
        [
            ("/quota/milli", Value::Null),
            ("/budget/milli", json!(machine.milli())),
            ("/throttle/measured", json!(false)),
        ],
    )?;
    expect_hint(&said, "levels_hidden", "not shown")
}

/// The mount shows the host's root, and nobody tells the names on the way from there to the process's
/// group: what limits is unknown, and never taken for none.
fn namespace_only(machine: Machine) -> Result<(), Failure> {
    let above = Group::make(machine.hierarchy, "p")?;
    let own = above.child("l")?;
    own.limit(machine.milli() - 500)?;
    let said = doctor(Place::group(&own).sight(Sight::NamespaceOnly))?;
    expect_all(
        &said,
        [
            ("/quota/milli", Value::Null),
            ("/quota/confidence", json!("unknown")),
            ("/plan/binding", json!("serial")),
            ("/plan/tier_refused", json!("QuotaUnknown")),
            ("/throttle/measured", json!(false)),
        ],
    )?;
    expect_hint(&said, "quota_unknown", "--quota")
}

/// Limits and counters are readable by everybody, and a run needs no privilege.
fn nobody(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(2000)?;
    let place = Place::group(&group).user(NOBODY);
    let said = doctor(place)?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(2000)),
            ("/quota/confidence", json!("exact")),
            ("/throttle/measured", json!(true)),
            (
                "/throttle/source",
                json!(group.file("cpu.stat").display().to_string()),
            ),
        ],
    )?;
    let mut run = place.regatta(&["run", "--json", "--blocks", "3"])?;
    run.exits(0)?;
    let summary = run.wait_for_record("summary", 1)?;
    expect_all(
        &summary,
        [("/blocks", json!(3)), ("/balanced", json!(true))],
    )
}

fn hide(group: &Group, file: &str) -> Result<(), Failure> {
    let path = group.file(file);
    fs::set_permissions(&path, Permissions::from_mode(0o600))
        .map_err(Failure::io("change the mode of", &path))
}

/// A limit that may not be read is unknown, and never taken for none.
fn unreadable_limit(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(2000)?;
    hide(&group, machine.hierarchy.limit_file())?;
    let place = Place::group(&group).user(NOBODY);
    let said = doctor(place)?;
    expect_all(
        &said,
        [
            ("/quota/milli", Value::Null),
            ("/quota/confidence", json!("unknown")),
            ("/levels/0/says", json!("could not be read")),
            ("/plan/binding", json!("serial")),
            ("/plan/tier_refused", json!("QuotaUnknown")),
        ],
    )?;
    expect_hint(&said, "quota_unknown", "--quota")?;
    let mut run = place.regatta(&["run", "--json", "--blocks", "3"])?;
    run.exits(0)?;
    expect(&run.wait_for_record("plan", 1)?, "/confidence", "unknown")
}

/// Counters that may not be read are unmeasured, which is not zero.
fn unreadable_counters(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(2000)?;
    hide(&group, "cpu.stat")?;
    let place = Place::group(&group).user(NOBODY);
    let said = doctor(place)?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(2000)),
            ("/throttle/measured", json!(false)),
            ("/throttle/nr_throttled", Value::Null),
            ("/throttle/throttled_ns", Value::Null),
        ],
    )?;
    expect_hint(&said, "throttling_unmeasured", "")?;
    place.regatta(&["run", "--json", "--blocks", "3"])?.exits(0)
}
