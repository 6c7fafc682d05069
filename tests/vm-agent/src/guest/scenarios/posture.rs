//! The posture under a real limit: throttling cordons, and the end of it lifts the cordon.

use super::{Machine, Scenario, named};
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::Place;
use crate::guest::look::expect_all;
use serde_json::json;

pub(super) fn all(machine: Machine) -> Vec<Scenario> {
    let mut scenarios = named([("posture", fleet)]);
    if machine.is_v2() && machine.cpus == 2 {
        // As long as the policy of a run wants the samples to be clean: once is enough.
        scenarios.extend(named([("posture-of-a-run", run)]));
    }
    scenarios
}

/// A fleet with short windows burns on every CPU of the machine under a quarter of them.
fn fleet(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    let limit = machine.milli() / 4;
    group.limit(limit)?;
    let threads = machine.cpus.to_string();
    let mut fleet = Place::group(&group).agent(&["fleet", &threads])?;
    fleet.exits(0)?;
    let records = json!(fleet.records()?);
    expect_all(
        &records,
        [
            ("/0/posture", json!("cordoned")),
            ("/0/limit", json!(limit)),
            ("/1/posture", json!("nominal")),
        ],
    )
}

/// A run that is given less than it takes is cordoned, goes on, and is nominal again with more.
fn run(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(200)?;
    let mut run = Place::group(&group)
        .regatta(&["run", "--json", "--quota", "2000", "--blocks", "1000000"])?;
    run.wait_for_word("to: Cordoned")?;
    cycle_in(&mut run, "cordoned")?;
    // More than it takes, so that nothing throttles.
    group.limit(2000)?;
    run.wait_for_word("to: Nominal")?;
    cycle_in(&mut run, "nominal")
}

/// Waits for a block after what there is that ended in this posture.
fn cycle_in(run: &mut crate::guest::job::Job, posture: &str) -> Result<(), Failure> {
    let so_far = run.records()?.len();
    run.wait_for(&format!("a block that ends {posture}"), |run| {
        let later = run.records()?.into_iter().skip(so_far);
        let mut blocks = later.filter(|record| record["type"] == "block");
        Ok(blocks
            .any(|block| block["timing"]["posture"] == posture)
            .then_some(()))
    })
}
