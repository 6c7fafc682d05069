//! The world: updates, verification, and pools that cannot be traded through.

use super::*;
use crate::cycles::{Cycle, EdgeId};
use crate::market::tests::{address, market_of};
use crate::market::{ApplyError, MAX_RESERVE};
use crate::pipeline::WorldError;
use proptest::prelude::*;

/// Plainly: what a cycle of this world is.
fn is_cycle(world: &World, cycle: Cycle) -> bool {
    let edges = world.graph().edges();
    let path: Option<Vec<_>> = cycle
        .edges()
        .iter()
        .map(|id| edges.get(id.index()))
        .collect();
    let Some(path) = path else { return false };
    let base = world.graph().base();
    let mut tokens: Vec<_> = path.iter().map(|edge| edge.token_out).collect();
    let mut pools: Vec<_> = path.iter().map(|edge| edge.pool).collect();
    let closed = path[0].token_in == base && tokens.last() == Some(&base);
    let joined = path
        .windows(2)
        .all(|pair| pair[0].token_out == pair[1].token_in);
    tokens.sort_unstable();
    tokens.dedup();
    pools.sort_unstable();
    pools.dedup();
    closed && joined && tokens.len() == path.len() && pools.len() == path.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Edges of a small market in any order are a cycle by chance, and often nearly one. Those of a larger
    /// one are not there at all.
    #[test]
    fn only_cycles_are_registered(
        pairs in prop::collection::vec((0_u32..4, 0_u32..4), 4..8),
        picks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 2..5), 200),
    ) {
        let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a != b).collect();
        let market = market_of(&pairs);
        prop_assume!(CycleGraph::new(&market, address(0), 4).is_ok());
        let world = world_of(&Generated { market, base: address(0) }, 4);
        prop_assert!(world.table().cycles().iter().all(|cycle| world.graph().is_cycle(cycle)));

        let large = made_up(1, 6);
        let large = CycleGraph::new(&large.market, large.base, 4).unwrap();
        let foreign = large.crawl().last().unwrap().edges()[1];
        let mut edges: Vec<_> = world.graph().pools().iter().filter_map(|pool| world.graph().edges_of(*pool)).flatten().collect();
        prop_assert!(foreign.index() >= edges.len());
        edges.push(foreign);
        for pick in picks {
            let mut places = [EdgeId::NONE; 4];
            for (place, index) in places.iter_mut().zip(&pick) {
                *place = *index.get(&edges);
            }
            let cycle = Cycle::from_edges(places);
            prop_assert_eq!(world.graph().is_cycle(&cycle), is_cycle(&world, cycle), "{:?}", cycle);
        }
    }

    /// After any updates the world is the one that is built of the market they lead to, in both
    /// directions of every pool.
    #[test]
    fn an_updated_world_is_a_fresh_one(
        seed in 0_u64..1 << 40,
        updates in prop::collection::vec(
            (any::<prop::sample::Index>(), reserve(), reserve()), 1..40),
    ) {
        let mut made = made_up(seed, 12);
        let mut world = world_of(&made, 3);
        let updates: Vec<_> = updates
            .into_iter()
            .map(|(pool, reserve0, reserve1)| {
                let pool = made.market.pool_ids().nth(pool.index(made.market.pools().len())).unwrap();
                ReserveUpdate { pool, reserve0, reserve1 }
            })
            .collect();
        let mut changed = Vec::new();
        world.apply(&updates, &mut changed).unwrap();
        prop_assert_eq!(changed, updates.iter().map(|update| update.pool).collect::<Vec<_>>());
        for update in &updates {
            made.market.apply(update).unwrap();
        }
        let fresh = world_of(&made, 3);
        prop_assert_eq!(world.market(), fresh.market());
        for (id, cycle) in (0..).map(CycleId::new).zip(fresh.table().cycles()) {
            prop_assert_eq!(world.rates_of(*cycle), fresh.rates_of(*cycle));
            let hops = world.hops_of(id);
            prop_assert_eq!(hops, fresh.hops_of(id));
            let usable = cycle.edges().iter().all(|edge| {
                fresh.market().pool(fresh.graph().edge(*edge).pool).is_usable()
            });
            prop_assert_eq!(hops.is_some(), usable);
        }
    }
}

fn reserve() -> impl Strategy<Value = u128> {
    prop_oneof![1 => Just(0), 1 => Just(MAX_RESERVE), 8 => 1_u128..1 << 112]
}

#[test]
fn an_update_that_is_refused_leaves_those_before_it_and_no_other() {
    let made = made_up(1, 12);
    let mut world = world_of(&made, 3);
    let pools: Vec<_> = made.market.pool_ids().take(3).collect();
    let update = |pool, reserve0| ReserveUpdate {
        pool,
        reserve0,
        reserve1: 7,
    };
    let mut changed = Vec::new();
    let error = world
        .apply(
            &[
                update(pools[0], 5),
                update(pools[1], MAX_RESERVE + 1),
                update(pools[2], 5),
            ],
            &mut changed,
        )
        .unwrap_err();
    assert!(matches!(
        error,
        WorldError::Apply(ApplyError::ReserveTooLarge { .. })
    ));
    assert_eq!(changed, [pools[0]]);
    assert_eq!(world.market().pool(pools[0]).reserve0, 5);
    for pool in &pools[1..] {
        assert_eq!(world.market().pool(*pool), made.market.pool(*pool));
    }
}

#[test]
fn an_id_that_is_not_registered_has_no_hops() {
    let world = world_of(&made_up(1, 12), 4);
    let count = u32::try_from(world.table().len()).unwrap();
    assert!(world.hops_of(CycleId::new(count - 1)).is_some());
    assert!(world.hops_of(CycleId::new(count)).is_none());
}
