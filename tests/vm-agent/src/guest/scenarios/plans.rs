//! The plan that follows from a limit, as the doctor makes it and as a run follows it.

use super::{Machine, Scenario, named};
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::Place;
use crate::guest::look::{doctor, expect, expect_all, expect_hint};
use serde_json::{Value, json};
use std::fs;

/// What `docs/operations.md` calls `BelowHostFloor`.
const BELOW_HOST_FLOOR: i32 = 10;

/// The fewest CPUs of a machine that the pinned tier runs on, with limits on both sides of its floor.
const LARGE: u16 = 8;

/// How the names of the solver's threads begin.
const SOLVER_THREADS: &str = "work-solve-";

pub(super) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = named([("refused-at-150000", refused)]);
    if machine.is_v2() && machine.cpus >= 4 {
        scenarios.extend(named([("serial-at-400000", serial)]));
    }
    if machine.is_v2() && machine.cpus >= LARGE {
        scenarios.extend(named([
            ("plan-at-600000", |machine| planned(machine, 6000)),
            ("plan-at-800000", |machine| planned(machine, 8000)),
        ]));
    }
    scenarios
}

/// Runs that need the pinned binding.
pub(super) fn runs_of_the_pinned_tier(machine: Machine) -> Vec<Scenario> {
    if machine.is_v2() && machine.cpus >= LARGE {
        return named([
            ("pinned-at-600000", |machine| pinned(machine, 6000)),
            ("pinned-at-800000", |machine| pinned(machine, 8000)),
        ]);
    }
    Vec::new()
}

fn refused(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(1500)?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/plan/refused", json!("BelowHostFloor")),
            ("/cores/whole", json!(1)),
            ("/cores/fraction_milli", json!(500)),
        ],
    )?;
    expect_hint(&said, "below_floor", &group.limit_file())?;
    let mut run = Place::group(&group).regatta(&["run", "--json", "--blocks", "3"])?;
    run.exits(BELOW_HOST_FLOOR)?;
    let (out, err) = (run.out()?, run.err()?);
    if !out.is_empty() || !err.contains("1.5 cores") {
        return Err(Failure::Other(format!(
            "the refused run must say nothing but why, with the quota: {out:?} {err:?}"
        )));
    }
    Ok(())
}

fn serial(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(4000)?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/plan/binding", json!("serial")),
            ("/plan/tier_refused", json!("QuotaTooSmallForPinnedRoles")),
        ],
    )?;
    let mut run = Place::group(&group).regatta(&["run", "--json", "--blocks", "5"])?;
    run.exits(0)?;
    expect_all(
        &run.wait_for_record("plan", 1)?,
        [
            ("/binding", json!("serial")),
            ("/quota_milli", json!(4000)),
            ("/limiting_level", json!(group.name())),
        ],
    )?;
    expect(&run.wait_for_record("summary", 1)?, "/balanced", true)
}

fn planned(machine: Machine, milli: u32) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(milli)?;
    let said = doctor(Place::group(&group))?;
    expect_all(
        &said,
        [
            ("/quota/milli", json!(milli)),
            ("/plan/binding", json!("pinned")),
            ("/plan/profile", json!("auto")),
            ("/plan/tier_refused", Value::Null),
            ("/plan/oversubscribed", json!(false)),
            ("/budget/milli", json!(milli)),
        ],
    )
}

/// A run of the pinned tier has the solver's threads, and accounts for everything.
fn pinned(machine: Machine, milli: u32) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(milli)?;
    let place = Place::group(&group);
    let mut run = place.regatta(&[
        "run",
        "--json",
        "--block-time",
        "100",
        "--blocks",
        "1000000",
    ])?;
    let plan = run.wait_for_record("plan", 1)?;
    expect_all(
        &plan,
        [
            ("/binding", json!("pinned")),
            ("/tier_refused", Value::Null),
            ("/quota_milli", json!(milli)),
        ],
    )?;
    run.wait_for_next_block()?;
    let names = thread_names(run.pid())?;
    let solvers = names
        .iter()
        .filter(|name| name.starts_with(SOLVER_THREADS))
        .count();
    let bins = plan["bins"].as_u64();
    if bins != u64::try_from(solvers).ok() {
        return Err(Failure::Other(format!(
            "the plan has {bins:?} bins, and the threads are {names:?}"
        )));
    }
    drop(run);
    let mut run = place.regatta(&["run", "--json", "--blocks", "5"])?;
    run.exits(0)?;
    expect(&run.wait_for_record("summary", 1)?, "/balanced", true)
}

fn thread_names(pid: u32) -> Result<Vec<String>, Failure> {
    let folder = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(&folder).map_err(Failure::io("list", &folder))?;
    // A thread that ended meanwhile has no name.
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| name(task.ok()?));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}
