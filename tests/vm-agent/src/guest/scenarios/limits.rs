//! Limits at rest: the smallest one holds, and the doctor names its level.

use super::{Machine, Scenario, named};
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::Place;
use crate::guest::look::{doctor, expect_all, expect_hint};
use serde_json::{Value, json};

pub(super) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = named([
        ("no-limit", no_limit),
        ("limit-of-the-leaf", |machine| {
            limited(machine, None, Some(machine.milli() - 500))
        }),
        ("limit-of-the-parent", |machine| {
            limited(machine, Some(machine.milli() - 250), None)
        }),
        ("both-limited-leaf-tighter", |machine| {
            let tighter = machine.milli() - 750;
            limited(machine, Some(machine.milli() - 500), Some(tighter))
        }),
        ("limit-above-the-cpus", above_the_cpus),
        ("counters-of-the-level-that-limits", counters),
    ]);
    if machine.is_v2() {
        // The first hierarchy refuses a limit above the parent's.
        scenarios.extend(named([("both-limited-parent-tighter", |machine| {
            let tighter = machine.milli() - 750;
            limited(machine, Some(tighter), Some(machine.milli() - 500))
        })]));
    }
    scenarios
}

fn no_limit(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/quota/milli", Value::Null),
            ("/quota/limiting_level", Value::Null),
            ("/quota/confidence", json!("exact")),
            ("/budget/milli", json!(machine.milli())),
            ("/budget/bounded_by", json!("affinity")),
            ("/affinity_cpus", json!(machine.cpus)),
            ("/levels/0/path", json!("/p")),
            ("/levels/0/says", json!("no limit")),
        ],
    )
}

fn limited(machine: Machine, parent: Option<u32>, leaf: Option<u32>) -> Result<(), Failure> {
    let above = Group::make(machine.hierarchy, "p")?;
    let own = above.child("l")?;
    if let Some(milli) = parent {
        above.limit(milli)?;
    }
    if let Some(milli) = leaf {
        own.limit(milli)?;
    }
    let own_holds = leaf.is_some_and(|leaf| parent.is_none_or(|parent| leaf <= parent));
    let (group, levels_above) = if own_holds { (&own, 0) } else { (&above, 1) };
    let milli = if own_holds { leaf } else { parent };
    let said = doctor(Place::group(&own))?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(milli)),
            ("/quota/limiting_level", json!(group.name())),
            ("/quota/levels_above", json!(levels_above)),
            ("/quota/file", json!(group.limit_file())),
            ("/quota/hierarchy", json!(machine.hierarchy.name())),
            ("/quota/confidence", json!("exact")),
            ("/levels/0/milli", json!(leaf)),
            ("/levels/1/milli", json!(parent)),
            ("/budget/milli", json!(milli)),
            ("/budget/bounded_by", json!(machine.hierarchy.name())),
            ("/throttle/measured", json!(true)),
        ],
    )
}

fn above_the_cpus(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(machine.milli() + 500)?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(machine.milli() + 500)),
            ("/budget/milli", json!(machine.milli())),
            ("/budget/bounded_by", json!("affinity")),
        ],
    )?;
    expect_hint(&said, "affinity_is_smaller", "")
}

/// The parent limits, the work is in the leaf: the leaf's own counters stay at zero.
fn counters(machine: Machine) -> Result<(), Failure> {
    let above = Group::make(machine.hierarchy, "p")?;
    let own = above.child("l")?;
    above.limit(machine.milli() / 4)?;
    let mut work = Place::group(&own).agent(&["burn", &machine.cpus.to_string()])?;
    work.wait_for("throttling", |_| {
        let throttled = above.counter("cpu.stat", "nr_throttled ")?;
        Ok((throttled > 1).then_some(()))
    })?;
    let least = above.counter("cpu.stat", "nr_throttled ")?;
    let said = doctor(Place::group(&own))?;
    let counted = said["throttle"]["nr_throttled"].as_u64();
    let time = said["throttle"]["throttled_ns"].as_u64();
    if counted.is_none_or(|counted| counted < least) || time.is_none_or(|ns| ns == 0) {
        let throttle = &said["throttle"];
        return Err(Failure::Other(format!(
            "the kernel counted at least {least} throttled periods, and the doctor says {throttle}"
        )));
    }
    let stat = above.file("cpu.stat").display().to_string();
    expect_all(&said, [("/throttle/source", json!(stat))])?;
    match own.counter("cpu.stat", "nr_throttled ")? {
        0 => Ok(()),
        events => Err(Failure::Other(format!(
            "the leaf without a limit has {events} throttled periods: the scenario shows nothing"
        ))),
    }
}
