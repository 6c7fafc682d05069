//! What bounds a process changes while it runs.

use super::{Machine, Scenario, named};
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::{Job, Place};
use crate::guest::look::{doctor, expect, expect_all};
use crate::guest::probe::Probe;
use serde_json::{Value, json};
use std::fs;

/// A run that goes on until it is killed.
const ENDLESS: [&str; 6] = [
    "run",
    "--json",
    "--block-time",
    "100",
    "--blocks",
    "1000000",
];

pub(super) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = named([
        ("limit-changed", limit_changed),
        ("moved", |machine| moved(machine, false)),
        ("moved-and-the-group-removed", |machine| {
            moved(machine, true)
        }),
        ("group-gone", group_gone),
    ]);
    if machine.is_v2() && machine.cpus >= 8 {
        let name = "limit-changed-between-tiers";
        scenarios.extend(named([(name, limit_changed_between_tiers)]));
    }
    if machine.is_v2() {
        scenarios.extend(named([("cpuset-narrowed", cpuset_narrowed)]));
    }
    scenarios
}

/// A run in `group` that has got to its first block.
fn running(group: &Group) -> Result<Job, Failure> {
    let mut run = Place::group(group).regatta(&ENDLESS)?;
    run.wait_for_next_block()?;
    Ok(run)
}

/// What the log calls a group that bounds with `cores`.
fn bound(group: &Group, cores: &str) -> String {
    let hierarchy = group.hierarchy().name();
    format!("{cores} cores by {hierarchy} at {} (exact)", group.name())
}

fn limit_changed(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(2000)?;
    let mut run = running(&group)?;
    let plan = run.wait_for_record("plan", 1)?;
    expect_all(
        &plan,
        [
            ("/detected_milli", json!(2000)),
            ("/limiting_level", json!(group.name())),
            ("/limiting_file", json!(group.limit_file())),
        ],
    )?;
    let (two, less) = (bound(&group, "2"), bound(&group, "1.5"));
    group.limit(1500)?;
    run.wait_for_word(&format!("a limit changed: {two} -> {less}"))?;
    // Below what a fleet needs: it says so, and critical work goes on.
    run.wait_for_word("the fleet is not ready")?;
    run.wait_for_next_block()?;
    group.limit(2000)?;
    run.wait_for_word(&format!("a limit changed: {less} -> {two}"))?;
    run.wait_for_word("the fleet has enough again")?;
    run.wait_for_next_block().map(drop)
}

/// Whatever tier runs, it goes on under a limit that is another tier's.
fn limit_changed_between_tiers(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(6000)?;
    let mut run = running(&group)?;
    let mut before = bound(&group, "6");
    for (milli, cores) in [(4000, "4"), (7500, "7.5")] {
        let after = bound(&group, cores);
        group.limit(milli)?;
        run.wait_for_word(&format!("a limit changed: {before} -> {after}"))?;
        // The binding stays as booted, and that the shares do not fit it is said, in a line of its own.
        run.wait_for_word("the shares do not fit it")?;
        run.wait_for_next_block()?;
        before = after;
    }
    Ok(())
}

fn moved(machine: Machine, and_removed: bool) -> Result<(), Failure> {
    let from = Group::make(machine.hierarchy, "p")?;
    from.limit(2000)?;
    let to = Group::make(machine.hierarchy, "q")?;
    to.limit(1500)?;
    let mut run = running(&from)?;
    let (before, after) = (bound(&from, "2"), bound(&to, "1.5"));
    to.take(run.pid())?;
    if and_removed {
        // The file that it reads is gone at once.
        from.remove()?;
    }
    run.wait_for_word(&format!(
        "the process was moved to another group: {before} -> {after}"
    ))?;
    run.wait_for_next_block()?;
    let said = run.err()?;
    if said.contains("panicked") {
        return Err(Failure::Other(said));
    }
    Ok(())
}

/// A kept file of counters says that its group is gone, whatever has its name by then.
fn group_gone(machine: Machine) -> Result<(), Failure> {
    let first = Group::make(machine.hierarchy, "p")?;
    first.limit(500)?;
    let mut probe = Probe::start(&first)?;
    expect_all(
        &probe.read(0)?,
        [("/nr_throttled", json!(0)), ("/change", Value::Null)],
    )?;
    // Its start alone may have been too much for the limit.
    let before = first.counter("cpu.stat", "nr_throttled ")?;
    let mut work = Place::group(&first).agent(&["burn", "2"])?;
    work.wait_for("throttling", |_| {
        let throttled = first.counter("cpu.stat", "nr_throttled ")?;
        Ok((throttled > before).then_some(()))
    })?;
    let seen = probe.read(1)?["nr_throttled"].clone();
    if seen.as_u64().is_none_or(|events| events == 0) {
        return Err(Failure::Other(format!(
            "the group was throttled and the reader counted {seen}"
        )));
    }
    drop(work);
    let seen = probe.read(2)?["nr_throttled"].clone();

    // Another group of the same name: its past is not the process's own.
    probe_out_of(&first, &probe)?;
    first.remove()?;
    let second = Group::make(machine.hierarchy, "p")?;
    second.limit(1250)?;
    second.take(probe.pid())?;
    expect_all(
        &probe.read(3)?,
        [
            ("/change/cause", json!("GroupGone")),
            ("/change/before", json!(500)),
            ("/change/after", json!(1250)),
            ("/nr_throttled", seen.clone()),
        ],
    )?;
    expect_all(
        &probe.read(4)?,
        [("/change", Value::Null), ("/nr_throttled", seen)],
    )?;

    // And none at all.
    probe_out_of(&second, &probe)?;
    second.remove()?;
    expect_all(
        &probe.read(5)?,
        [
            ("/change/cause", json!("Moved")),
            ("/change/before", json!(1250)),
            ("/change/after", json!(machine.milli())),
            ("/nr_throttled", Value::Null),
        ],
    )
}

fn probe_out_of(group: &Group, probe: &Probe) -> Result<(), Failure> {
    group.take_out(probe.pid())
}

/// The CPUs, the budget and the running threads' affinity follow the group's set.
fn cpuset_narrowed(machine: Machine) -> Result<(), Failure> {
    let left = machine.cpus / 2;
    let list = |count: u16| match count {
        1 => "0".to_owned(),
        _ => format!("0-{}", count - 1),
    };
    let group = Group::make(machine.hierarchy, "p")?;
    group.cpus(&list(machine.cpus))?;
    let mut run = running(&group)?;
    group.cpus(&list(left))?;
    run.wait_for_word(&format!(
        "a limit changed: {} cores by affinity (exact) -> {left} cores by affinity (exact)",
        machine.cpus
    ))?;
    let status = format!("/proc/{}/status", run.pid());
    let text = fs::read_to_string(&status).map_err(Failure::io("read", &status))?;
    let allowed = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .map(str::trim);
    expect(&json!({ "affinity": allowed }), "/affinity", list(left))?;
    run.wait_for_next_block()?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/affinity_cpus", json!(left)),
            ("/cpus", json!(list(left))),
            ("/budget/milli", json!(u32::from(left) * 1000)),
            ("/budget/bounded_by", json!("affinity")),
        ],
    )
}
