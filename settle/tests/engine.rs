//! The engine in a world where everything goes wrong that can: what holds whatever happens.

#![cfg(test)]

mod model;

use model::{Fate, PROFIT, World};
use proptest::prelude::*;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Offer(u8, u8),
    Act(usize, u8),
    Tell,
    Mine(u8, bool),
    Evict(u8),
    Reorg(u8, bool, bool),
    Crash,
    Foreign(bool),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..5, 0_u8..5).prop_map(|(a, b)| Step::Offer(a, b)),
        30 => (any::<usize>(), 0_u8..20).prop_map(|(pick, fate)| Step::Act(pick, fate)),
        8 => Just(Step::Tell),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(fee, include)| Step::Mine(fee, include)),
        1 => any::<u8>().prop_map(Step::Evict),
        1 => (1_u8..4, any::<bool>(), any::<bool>()).prop_map(|(n, kept, again)| Step::Reorg(n, kept, again)),
        1 => Just(Step::Crash),
        1 => any::<bool>().prop_map(Step::Foreign),
        1 => Just(Step::Tick),
    ]
}

fn fate(of: u8) -> Fate {
    match of {
        0 => Fate::Lost,
        1 => Fate::Refused,
        _ => Fate::Fair,
    }
}

fn base_fee(of: u8) -> u128 {
    // From far below the cap to above it.
    500 + 90 * u128::from(of)
}

fn run(steps: &[Step], foreign: bool) -> World {
    let mut world = World::new(|_| {});
    for step in steps {
        match *step {
            Step::Offer(a, b) if a != b => {
                let _ = world.offer(&[a, b], PROFIT);
            }
            Step::Act(pick, of) => {
                world.act(pick, fate(of));
            }
            Step::Tell => {
                world.tell();
            }
            Step::Mine(fee, include) => world.mine(base_fee(fee), |_| include),
            Step::Evict(pick) => {
                let nonces: Vec<u64> = world.node.pool.keys().copied().collect();
                if let Some(nonce) = nonces.get(usize::from(pick) % nonces.len().max(1)) {
                    world.node.pool.remove(nonce);
                }
            }
            Step::Reorg(depth, kept, again) => {
                world.reorg(usize::from(depth), kept, 600, again);
            }
            Step::Crash => world.crash(),
            Step::Foreign(over) if foreign => {
                let nonce = if over {
                    world.node.latest()
                } else {
                    world.node.pending()
                };
                world.foreign(nonce);
            }
            Step::Offer(..) | Step::Foreign(_) => {}
            Step::Tick => {
                if let Some(deadline) = world.engine.next_deadline() {
                    world.now = world.now.max(deadline);
                    world.todo.retain(|action| {
                        matches!(action, regatta_settle::engine::Action::Record { .. })
                    });
                    world.engine.tick(world.now);
                }
            }
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_everything_ends_once_and_adds_up(
        steps in proptest::collection::vec(step(), 1..250),
    ) {
        let mut world = run(&steps, false);
        world.finish();
        world.check_totals();
    }

    #[test]
    fn the_same_while_somebody_else_sends_from_the_account(
        steps in proptest::collection::vec(step(), 1..250),
    ) {
        let mut world = run(&steps, true);
        world.finish();
        world.check_totals();
    }
}
