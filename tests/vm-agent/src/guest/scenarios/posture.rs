//! The posture under a real limit: throttling cordons, and the end of it lifts the cordon.

use super::{Machine, Scenario, named};
use crate::guest::failure::Failure;
use crate::guest::group::Group;
use crate::guest::job::{Job, Place};
use crate::guest::look::expect_all;
use serde_json::json;

/// A run that takes several times the least limit here, until it is killed.
const BUSY: [&str; 6] = ["run", "--json", "--block-time", "20", "--blocks", "1000000"];

/// A limit at which nothing throttles. A group that may use every CPU is throttled all the same when the
/// host stops the machine for longer than a period: the time counts as used.
const PLENTY: u32 = 100_000;

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

/// A run that is given less than it takes is cordoned and goes on, and is nominal again with more.
fn run(machine: Machine) -> Result<(), Failure> {
    let group = Group::make(machine.hierarchy, "p")?;
    group.limit(PLENTY)?;
    let mut run = Place::group(&group).regatta(&BUSY)?;
    // Past the crawl, which a cordon would hold.
    run.wait_for_next_block()?;
    group.limit(100)?;
    run.wait_for_word("to: Cordoned")?;
    block_that_ends(&mut run, "cordoned")?;
    group.limit(PLENTY)?;
    run.wait_for_word("to: Nominal")?;
    block_that_ends(&mut run, "nominal")
}

/// Waits for a block, after those that there are, that ended in this posture.
fn block_that_ends(run: &mut Job, posture: &str) -> Result<(), Failure> {
    let so_far = run.records()?.len();
    run.wait_for(&format!("a block that ends {posture}"), |run| {
        let later = run.records()?.into_iter().skip(so_far);
        let mut blocks = later.filter(|record| record["type"] == "block");
        Ok(blocks
            .any(|block| block["timing"]["posture"] == posture)
            .then_some(()))
    })
}
