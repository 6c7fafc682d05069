//! Every reachable state of small runtimes.

use crate::shape::{Shape, all};
use crate::world::World;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Takes every step from every state that can be reached; returns how many there are. No path is endless:
/// each step uses up an answer, a deadline or a signal.
fn explore<const N: usize>(shape: Shape<N>, signals: u8, errors: u8) -> usize {
    let hasher = RandomState::new();
    let mut seen = HashSet::new();
    let mut open = vec![World::new(shape, signals, errors)];
    let mut ends = 0;
    while let Some(world) = open.pop() {
        let steps = world.steps();
        ends += usize::from(steps.is_empty());
        assert!(!steps.is_empty() || world.is_over(), "stuck: {world:?}");
        for step in steps {
            let mut next = world.clone();
            next.step(step);
            if seen.insert(hasher.hash_one(&next)) {
                open.push(next);
            }
        }
    }
    assert!(ends > 0, "no run ends");
    seen.len()
}

/// Every graph in which each component depends on earlier ones only. Any other is one of these under other
/// numbers, which decide no more than who comes first where either may.
fn numbered<const N: usize>() -> impl Iterator<Item = Shape<N>> {
    let earlier = |shape: &Shape<N>| (0..N).all(|i| shape.depends[i] < 1 << i);
    all().filter(move |shape| earlier(shape) && !shape.crosses())
}

#[test]
fn every_run_of_every_graph_of_two() {
    let states: usize = numbered::<2>().map(|shape| explore(shape, 2, 8)).sum();
    assert!(states > 10_000, "{states}");
}

#[test]
fn every_run_of_every_graph_of_three_with_an_error_and_a_second_signal() {
    let states: usize = numbered::<3>().map(|shape| explore(shape, 1, 1)).sum();
    assert!(states > 100_000, "{states}");
}

#[test]
fn every_run_of_every_graph_of_four_of_the_data_plane() {
    let data = numbered::<4>().filter(|shape| shape.control == 0);
    let states: usize = data.map(|shape| explore(shape, 0, 0)).sum();
    assert!(states > 100_000, "{states}");
}
