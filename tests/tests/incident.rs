//! The incident: a cordon during the crawl with every posture edge lost, and what carries the fleet out.
#![cfg(test)]

use regatta_bot::cycles::CycleGraph;
use regatta_bot::exit::Exit;
use regatta_bot::pipeline::{Arbitrage, CrawlError, REGISTRATION_WINDOW, World, fleet_config};
use regatta_bot::scenario::{self, ScenarioError};
use regatta_bot::source::embedded::{MarketConfig, generate};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, LaneBinding, PlanInput, Profile};
use regatta_core::posture::Posture;
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{BINDINGS, Census, EdgeDelivery, Failure, Fleet};
use regatta_tests::harness::{ON_REAL_POOLS, regatta};
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

fn cordon_crawl<'a>(market: impl IntoIterator<Item = &'a str>) -> u64 {
    let args = ["--scenario", "cordon-crawl"];
    let ran = regatta(market.into_iter().chain(args)).unwrap();
    assert_eq!((ran.exit, ran.error), (Exit::Ok, None));
    let record = ran
        .records
        .iter()
        .find(|r| r["type"] == "scenario")
        .unwrap();
    for (key, value) in [
        ("scenario", json!("cordon-crawl")),
        ("registered_at_cordon", json!(9_955)),
        ("outstanding", json!(32)),
        ("held", json!(32)),
        ("hold_reason", json!("cordoned")),
        ("registered_under_cordon", json!(0)),
        ("edges_delivered", json!(0)),
        ("completed", json!(true)),
    ] {
        assert_eq!(record[key], value, "{key}");
    }
    assert_eq!(record["registered"], record["paths"]);
    assert!(record["timing"]["ticks"].as_u64() >= Some(1), "{record}");

    let summary = ran.records.last().unwrap();
    assert_eq!(summary["balanced"], true);
    let lane = &summary["ledger"][0];
    assert_eq!(lane["role"], "registrar");
    assert_eq!(
        (&lane["submitted"], &lane["resolved"]),
        (&record["paths"], &record["paths"])
    );
    record["paths"].as_u64().unwrap()
}

#[test]
fn the_crawl_of_the_real_pools_completes() {
    assert_eq!(cordon_crawl(ON_REAL_POOLS), 305_804);
}

#[test]
fn the_crawl_of_a_made_up_market_completes() {
    for seed in ["1", "2"] {
        assert!(cordon_crawl(["--seed", seed]) > 10_500);
    }
}

/// The fleet of the incident with another backstop.
fn fleet_with_backstop(interval: Duration, census: &Census) -> Fleet<Arbitrage> {
    let made = generate(&MarketConfig {
        tokens: scenario::TOKENS,
        ..MarketConfig::with_seed(1)
    })
    .unwrap();
    let graph = CycleGraph::new(&made.market, made.base, 4).unwrap();
    let world = World::new(made.market, Arc::new(graph));
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given),
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    })
    .unwrap();
    let bins = plan.keys(WorkerRole::Solver.id());
    let config = fleet_config(plan, bins)
        .edges(EdgeDelivery::Suppress)
        .backstop(interval, 8);
    Fleet::boot(Arbitrage::new(world, bins).unwrap(), config, census).unwrap()
}

/// With a backstop that does not come, the same script stops where the incident did: 32 held, nobody
/// awake, although the cordon has lifted.
#[test]
fn without_the_backstop_the_crawl_stops_for_ever() {
    let census = Census::new();
    let fleet = Arc::new(fleet_with_backstop(Duration::from_hours(1), &census));
    let (ended, end) = mpsc::channel();
    let spec = ThreadSpec {
        kernel_name: "rg-crawl".to_owned(),
        name: "regatta/tests/crawl".to_owned(),
        owner: "tests".to_owned(),
        role: "crawl".to_owned(),
        sizing: "one".to_owned(),
        binding: LaneBinding::Pinned,
    };
    let script = {
        let (fleet, census) = (Arc::clone(&fleet), census.clone());
        census.clone().spawn(spec, move || {
            ended.send(scenario::cordon_crawl(&fleet, &census))
        })
    }
    .unwrap();

    let registrar = WorkerRole::Registrar.id().index();
    let held = || fleet.status().lanes[registrar].ledger.backlog;
    let goes_on = |wait| matches!(end.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
    // The cordon sets in, holds a full window, and lifts: the script sees to that by itself.
    let lifted = (0..3_000).any(|_| {
        assert!(goes_on(Duration::from_millis(20)), "the script has ended");
        held() == u64::from(REGISTRATION_WINDOW) && fleet.posture().posture() == Posture::Nominal
    });
    assert!(lifted, "the cordon never held a full window and lifted");
    // Four times as long as the usual backstop takes.
    assert!(
        goes_on(Duration::from_secs(1)),
        "something else woke the host"
    );
    let status = fleet.status();
    assert_eq!(status.posture, Posture::Nominal);
    assert_eq!((held(), status.host.ticks, status.host.edges), (32, 0, 0));
    assert_eq!(status.lanes[registrar].ledger.resolved, 9_955);
    assert!(status.balanced());

    // Closing resolves what is held, so that the crawl ends at last.
    let closed = fleet.close(Duration::from_secs(10));
    assert_eq!(closed.not_run, 32);
    match end.recv_timeout(Duration::from_secs(10)) {
        Ok(Err(ScenarioError::Crawl(CrawlError::Failed {
            path,
            failure: Failure::NotRun,
        }))) => {
            assert_eq!(path, 9_955);
        }
        other => panic!("{other:?}"),
    }
    script.join().unwrap().unwrap();
}

/// The same fleet and script with a backstop complete, so it is the backstop that carries them.
#[test]
fn with_the_backstop_the_same_crawl_completes() {
    let census = Census::new();
    let fleet = Arc::new(fleet_with_backstop(Duration::from_millis(250), &census));
    let record = scenario::cordon_crawl(&fleet, &census).unwrap();
    assert!(record.completed && record.timing.ticks >= 1, "{record:?}");
    assert_eq!(record.edges_delivered, 0);
}
