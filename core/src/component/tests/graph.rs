//! The registry: what it refuses, by name, and the orders it yields.

use super::rig::{A, B, C, control, reconnecting, spec};
use crate::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use crate::component::{
    BackoffPolicy, ComponentSpec, Graph, GraphError, ThreadClaim, check_threads,
};
use crate::plan::{Bindings, FleetPlan, PlanInput, Profile};
use crate::role::FLEET_ROLES;
use std::string::ToString;
use std::vec::Vec;

fn graph(specs: &[ComponentSpec<'_>]) -> Result<Graph<4>, GraphError> {
    Graph::new(specs, &[])
}

fn names(specs: &[ComponentSpec<'_>]) -> Vec<&'static str> {
    let graph = graph(specs).unwrap();
    let order = graph.start_order().iter();
    order.map(|id| graph.name(*id)).collect()
}

#[test]
fn a_chain_starts_from_its_end_and_stops_from_its_beginning() {
    let chain = [spec("a", &["b"]), spec("b", &["c"]), spec("c", &[])];
    assert_eq!(names(&chain), ["c", "b", "a"]);
    let graph = graph(&chain).unwrap();
    assert!(graph.stop_order().eq([A, B, C]));
}

#[test]
fn where_dependencies_leave_a_choice_registration_decides() {
    let specs = [
        spec("a", &["d"]),
        spec("b", &[]),
        spec("c", &[]),
        spec("d", &[]),
    ];
    assert_eq!(names(&specs), ["b", "c", "d", "a"]);
}

#[test]
fn what_is_independent_stops_at_the_same_time_and_the_control_plane_last() {
    let specs = [
        control("health", &[]),
        spec("fleet", &[]),
        spec("http", &["fleet"]),
        spec("feed", &["fleet"]),
    ];
    let graph = graph(&specs).unwrap();
    let waves = graph.stop_waves();
    let waves: Vec<Vec<&str>> = waves
        .iter()
        .map(|wave| wave.iter().map(|id| graph.name(id)).collect())
        .collect();
    assert_eq!(
        waves,
        [
            ["http", "feed"].to_vec(),
            ["fleet"].to_vec(),
            ["health"].to_vec()
        ]
    );
}

#[test]
fn each_refusal_names_who_is_meant() {
    let policy = BackoffPolicy::DEFAULT;
    let without_adapter = ComponentSpec {
        reconnects: false,
        ..reconnecting("feed", policy)
    };
    let never = BackoffPolicy {
        factor: 0,
        ..policy
    };
    let five = ["a", "b", "c", "d", "e"].map(|name| spec(name, &[]));
    for (specs, text) in [
        (&five[..], "5 components and there is room for 4"),
        (
            &[spec("a", &[]), spec("b", &[]), spec("a", &["b"])],
            "two components are called a: names are unique",
        ),
        (
            &[spec("a", &["flet"])],
            "a depends on \"flet\", and no component is called that",
        ),
        (&[spec("a", &["a"])], "a cycle of dependencies: a -> a"),
        (
            &[
                spec("in", &["b"]),
                spec("b", &["c"]),
                spec("c", &["d"]),
                spec("d", &["b"]),
            ],
            "a cycle of dependencies: b -> c -> d -> b",
        ),
        (
            &[without_adapter],
            "feed has a reconnect policy and nothing that could reconnect it",
        ),
        (
            &[reconnecting("feed", never)],
            "the reconnect policy of feed: the factor is zero: a peer that is away would be asked \
             without end",
        ),
        (
            &[spec("fleet", &[]), control("health", &["fleet"])],
            "health of the control plane depends on fleet of the data plane, which stops before it: \
             let it read what it shows, or put it in the data plane",
        ),
    ] {
        assert_eq!(graph(specs).unwrap_err().to_string(), text);
    }
}

#[test]
fn the_data_plane_may_depend_on_the_control_plane() {
    assert_eq!(
        names(&[spec("http", &["log"]), control("log", &[])]),
        ["log", "http"]
    );
}

#[test]
fn no_graph_has_more_components_than_a_set_has_bits() {
    let names: Vec<&'static str> = (0..65)
        .map(|index: usize| std::format!("c{index}").leak() as &str)
        .collect();
    let specs: Vec<_> = names.iter().map(|name| spec(name, &[])).collect();
    let full = Graph::<80>::new(&specs[..64], &[]).unwrap();
    assert_eq!(full.stop_waves()[0].iter().count(), 64);
    let refused = Graph::<80>::new(&specs, &[]).unwrap_err();
    assert_eq!(
        refused,
        GraphError::TooMany {
            count: 65,
            room: 64
        }
    );
}

const fn claim(resource: &'static str, owner: &'static str, count: u16) -> ThreadClaim<'static> {
    ThreadClaim {
        resource,
        owner,
        count,
    }
}

#[test]
fn every_thread_has_one_owner() {
    let specs = [spec("fleet", &[]), spec("http", &[])];
    let claims = [
        claim("solver", "fleet", 6),
        claim("merge", "fleet", 1),
        claim("ambient_io", "http", 2),
    ];
    let graph = Graph::<4>::new(&specs, &claims).unwrap();
    assert_eq!([graph.threads(A), graph.threads(B)], [7, 2]);
    let refused = |claims: &[ThreadClaim<'_>]| Graph::<4>::new(&specs, claims).unwrap_err();
    assert_eq!(
        refused(&[claim("ambient_io", "htpp", 2)]).to_string(),
        "the 2 threads of ambient_io are owned by \"htpp\", and no component is called that"
    );
    assert_eq!(
        refused(&[claims[0], claims[0]]).to_string(),
        "fleet claims threads of solver twice: one claim says how many"
    );
}

#[test]
fn the_plan_grants_threads_before_there_are_any() {
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota: Quota::exact(MilliCpu::new(8_000), BoundedBy::Cgroup2, Reason::LimitRead),
        profile: Profile::Auto,
        overrides: &Overrides::none(),
        bindings: Bindings { pinned: true },
    });
    let census = plan.unwrap().census();
    let own: Vec<_> = census.iter().filter(|row| row.threads.is_some()).collect();
    let mut claims: Vec<_> = own
        .iter()
        .map(|row| claim(row.resource, "fleet", row.count))
        .collect();
    assert_eq!(check_threads(&claims, &census), Ok(()));
    // A row may be shared, up to its count.
    claims.push(claim(own[0].resource, "http", 1));
    let over = check_threads(&claims, &census).unwrap_err();
    assert_eq!(
        (over.resource, over.asked, over.granted),
        (own[0].resource, own[0].count + 1, own[0].count)
    );
    // What has no threads of its own, and what the plan does not know, grants none.
    let logical = census.iter().find(|row| row.threads.is_none()).unwrap();
    for resource in [logical.resource, "gpu"] {
        let refused = check_threads(&[claim(resource, "fleet", 1)], &census).unwrap_err();
        assert_eq!((refused.asked, refused.granted), (1, 0));
    }
}
