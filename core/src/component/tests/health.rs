//! Ready and alive.

use super::rig::{A, B, Rig, at, control, spec};
use crate::component::ComponentState::{Degraded, Running};
use crate::component::{
    ComponentSpec, ComponentState, Graph, Input, Liveness, Probe, RuntimeState, readiness,
};
use crate::time::Duration;
use std::string::ToString;

const PROBES: [Probe; 2] = [Probe::Ready, Probe::NotReady("lagging")];

#[test]
fn ready_is_what_every_required_component_says_and_nothing_else() {
    for required in [[true, true], [true, false], [false, false]] {
        let with = |name, required| ComponentSpec {
            required,
            ..spec(name, &[])
        };
        let specs = [with("a", required[0]), with("b", required[1])];
        let graph = Graph::<2>::new(&specs, &[]).unwrap();
        for runtime in RuntimeState::ALL.iter().copied() {
            for states in pairs(ComponentState::ALL) {
                for probes in pairs(&PROBES) {
                    for reconciled in [false, true] {
                        let found = readiness(&graph, runtime, &states, &probes, reconciled);
                        let fine = |i: usize| states[i] == Running && probes[i] == Probe::Ready;
                        let all = (0..2).all(|i| fine(i) || !required[i]);
                        let ready = runtime == RuntimeState::Running && reconciled && all;
                        assert_eq!(found.is_ready(), ready, "{found:?}");
                        let named = found.missing.len() + found.degraded.len();
                        assert_eq!(named, (0..2).filter(|i| !fine(*i)).count());
                    }
                }
            }
        }
    }
}

fn pairs<T: Copy>(of: &[T]) -> impl Iterator<Item = [T; 2]> {
    of.iter().flat_map(|a| of.iter().map(|b| [*a, *b]))
}

#[test]
fn the_answer_says_what_is_missing() {
    let optional = ComponentSpec {
        required: false,
        ..spec("cache", &[])
    };
    let graph = Graph::<3>::new(&[spec("fleet", &[]), optional, control("log", &[])], &[]).unwrap();
    let text = |states: &[_], probes: &[_], reconciled| {
        readiness(&graph, RuntimeState::Running, states, probes, reconciled).to_string()
    };
    let ready = [Probe::Ready; 3];
    assert_eq!(text(&[Running; 3], &ready, true), "ready");
    assert_eq!(
        text(&[Running, Degraded, Running], &ready, true),
        "ready\ncache: degraded (optional)"
    );
    assert_eq!(
        text(&[Running, Running, Running], &[PROBES[1], PROBES[1]], false),
        "not ready\nthreads: not_reconciled\nfleet: lagging\nlog: not_probed\ncache: lagging (optional)"
    );
    let none = readiness(&graph, RuntimeState::Idle, &[], &[], true);
    assert_eq!(none.missing.len(), 2);
}

#[test]
fn ready_ends_with_the_request_to_stop_and_alive_does_not() {
    let mut rig = Rig::up(&[spec("fleet", &[]), control("health", &[])]);
    let ready = |rig: &Rig| {
        rig.supervisor
            .readiness(&[Probe::Ready; 2], true)
            .is_ready()
    };
    assert!(ready(&rig));
    rig.stop();
    // Before any intake has closed.
    assert!(!ready(&rig));
    assert_eq!(rig.poll(), [('Q', A)]);
    rig.quiesced(A);
    // The drain takes all its time and the work stands still: that ends by itself.
    rig.pass(16);
    assert_eq!(rig.supervisor.liveness(true, rig.now), Liveness::Alive);
    assert_eq!(rig.pass(1), [('F', A), ('P', B)]);
    assert!(rig.supervisor.liveness(true, rig.now).is_alive());
    rig.stopped(B);
    assert_eq!(rig.supervisor.runtime(), RuntimeState::Stopped);
    assert!(rig.supervisor.liveness(true, at(1_000)).is_alive());
}

#[test]
fn a_stall_is_death_while_running_and_a_driver_that_is_away_always() {
    let mut rig = Rig::up(&[spec("fleet", &[])]);
    assert_eq!(rig.supervisor.liveness(false, at(9_999)), Liveness::Alive);
    assert_eq!(rig.supervisor.liveness(true, rig.now), Liveness::Stalled);
    rig.stop();
    rig.poll();
    let due = rig.supervisor.next_deadline().unwrap();
    let patience = Duration::from_secs(2);
    assert!(rig.supervisor.liveness(false, due + patience).is_alive());
    let late = due + patience + Duration::from_millis(1);
    assert_eq!(
        rig.supervisor.liveness(false, late).to_string(),
        "supervisor: late by 2001 ms"
    );
    rig.ok(Input::Tick);
}
