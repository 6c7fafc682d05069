//! Walks at the smallest size, and what they must find.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do, and clippy knows only functions marked as such"
)]

use regatta_core::role::RoleId;
use regatta_explorer::action::{Action, Alphabet};
use regatta_explorer::rule::{Coverage, Rule};
use regatta_explorer::search::walk;
use regatta_explorer::state::State;
use regatta_explorer::step::Scene;
use regatta_explorer::trace;
use regatta_explorer::world::{Size, WORLDS, World};

fn scene(world: &'static str) -> Scene<'static> {
    Scene::new(World::named(world).unwrap(), Size::named("tiny").unwrap()).unwrap()
}

#[test]
fn every_property_holds_and_every_transition_is_walked() {
    let mut covered = Coverage::default();
    for world in WORLDS {
        let found = walk(scene(world.name), Alphabet::Whole).unwrap();
        assert_eq!(found.violation, None, "{}", world.name);
        assert!(found.states > 1_000, "{}: {found:?}", world.name);
        covered.merge(found.covered);
    }
    assert_eq!(covered.missing().0, [""; 0]);
}

/// The dead state of a cut alphabet: its trace, and the test that comes of it.
fn dead(alphabet: Alphabet, name: &str) -> (Vec<Action>, String) {
    let scene = scene("fleet");
    let found = walk(scene, alphabet).unwrap();
    let (violation, actions) = found.violation.unwrap();
    assert_eq!(violation.rule, Rule::Alive);
    let test = trace::as_test(scene, name, &actions, &violation);
    (actions, test)
}

#[test]
fn enqueue_and_seat_done_alone_lead_to_the_dead_state() {
    let (actions, test) = dead(Alphabet::TwoInputs, "two_inputs");
    let chore = Action::Enqueue { role: 0, key: 0 };
    let poll = Action::Poll;
    let (on, off) = (Action::Cordon(true), Action::Cordon(false));
    assert_eq!(actions, [on, chore, poll, chore, poll, off]);
    assert_eq!(test, include_str!("traces/two_inputs.txt"));
}

#[test]
fn a_timer_that_is_armed_by_the_backlog_forgets_what_is_queued() {
    let (actions, test) = dead(Alphabet::BacklogTimer, "backlog_timer");
    let walk = Action::Enqueue { role: 2, key: 0 };
    let poll = Action::Poll;
    let (no, yes) = (Action::Permits(1), Action::Permits(0));
    assert_eq!(actions, [no, walk, poll, walk, poll, yes]);
    assert_eq!(test, include_str!("traces/backlog_timer.txt"));
}

/// The tests that the explorer prints, as someone would paste them.
mod pasted {
    include!("traces/two_inputs.txt");
    include!("traces/backlog_timer.txt");
}

/// A walk by hand, with a driver that claims to have polled grants and has not.
fn walk_by_hand(actions: &[Action], polls: bool) -> Result<(), Rule> {
    let scene = scene("fleet");
    let mut state = State::initial(scene.world).unwrap();
    for action in actions {
        let stepped = scene.step(&state, *action, &mut Coverage::default());
        let stepped = stepped.map_err(|violation| violation.rule)?;
        state = stepped.state;
        state.normalise(stepped.elapsed, scene.gone, &mut []);
        while polls && !state.env.pumped {
            let polled = scene.step(&state, Action::Poll, &mut Coverage::default());
            state = polled.map_err(|violation| violation.rule)?.state;
        }
        state.env.pumped = true;
        scene.check(&state).map_err(|violation| violation.rule)?;
    }
    assert!(state.host.ledger(RoleId::new(1)).is_some());
    Ok(())
}

#[test]
fn a_driver_that_polls_no_grants_is_found() {
    let tick = Action::Tick { late: false };
    let actions = [Action::Enqueue { role: 1, key: 0 }, tick, tick];
    assert_eq!(walk_by_hand(&actions, false), Err(Rule::Silent));
    assert_eq!(walk_by_hand(&actions[..1], true), Ok(()));
}
