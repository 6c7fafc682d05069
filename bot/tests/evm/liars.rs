//! What the formula cannot know decides by its bytecode, and is marked for good.

use super::support::*;
use regatta_bot::evm::{EvmResult, Limits, Mark, Marked, Reason};
use regatta_bot::market::{ExchangeId, PoolId, TokenId};
use regatta_bot::pipeline::{Arbitrage, BlockResult};
use regatta_bot::source::embedded::Generated;
use regatta_portable::Fleet;
use std::collections::BTreeMap;

/// What most winners of a run without the machine go through.
fn favourite<K: Ord + Copy>(
    results: &[BlockResult],
    fleet: &Fleet<Arbitrage>,
    keys: impl Fn(PoolId) -> Vec<K>,
) -> K {
    let mut counts: BTreeMap<K, usize> = BTreeMap::new();
    let traded = results.iter().flat_map(|result| pools(result, fleet));
    for key in traded.flat_map(&keys) {
        *counts.entry(key).or_default() += 1;
    }
    *counts.iter().max_by_key(|(_, count)| **count).unwrap().0
}

fn tokens(made: &Generated, pool: PoolId) -> Vec<TokenId> {
    let base = made.market.token_by_address(made.base).unwrap();
    let pool = made.market.pool(pool);
    let tokens = [pool.token0, pool.token1].into_iter();
    tokens.filter(|token| *token != base).collect()
}

fn sum(results: &[BlockResult], of: impl Fn(&EvmResult) -> usize) -> usize {
    results
        .iter()
        .map(|result| of(result.evm.as_ref().unwrap()))
        .sum()
}

fn marks(results: &[BlockResult]) -> Vec<Mark> {
    let evm = results.iter().filter_map(|result| result.evm.as_ref());
    evm.flat_map(|evm| evm.marks.clone()).collect()
}

/// Property (N14): a token that keeps 1 % of each transfer is in no winner, though the integers see a profit; it is
/// marked once, all its pools are out of trade, and others are traded on.
#[test]
fn a_taxed_token_is_marked_and_never_traded() {
    let made = market();
    let blocks = blocks_of(&made, 12);
    let (seen, fleet) = run(&made, &blocks, None);
    let taxed = favourite(&seen, &fleet, |pool| tokens(&made, pool));
    let reader = Reader::over(Chain {
        tax: Some(taxed),
        ..Chain::new(&made, &blocks)
    });
    let (results, fleet) = run(&made, &blocks, Some(machine(&reader, Limits::default())));
    let over = |pool: &PoolId| tokens(&made, *pool).contains(&taxed);
    let all: Vec<PoolId> = made.market.pool_ids().filter(over).collect();
    for result in &results {
        assert!(!pools(result, &fleet).iter().any(over), "{result:?}");
    }
    let marks = marks(&results);
    let [mark] = marks.as_slice() else {
        panic!("{marks:?}")
    };
    let token = made.market.token(taxed).address;
    assert_eq!(
        (&mark.marked, mark.reason),
        (&Marked::Token(token), Reason::TokenLies)
    );
    assert_eq!(mark.pools, all.len());
    let world = fleet.workload().world();
    assert!(all.iter().all(|pool| world.quarantined().contains(pool)));
    assert_eq!(world.quarantined().len(), all.len());
    let first = results
        .iter()
        .position(|result| sum(std::slice::from_ref(result), |evm| evm.disagreed) > 0);
    let after = &results[first.unwrap() + 1..];
    assert!(sum(&results, |evm| evm.disagreed) > 0);
    assert_eq!(sum(after, |evm| evm.disagreed), 0, "it is out of trade");
    assert!(after.iter().any(|result| !result.winners.is_empty()));
}

/// Property (N16): an exchange whose code takes another fee than is configured is told before it is traded, with the fee
/// that it takes; none of its pools is traded.
#[test]
fn a_fork_with_another_fee_is_named_with_what_it_takes() {
    let made = market();
    let blocks = blocks_of(&made, 8);
    let (seen, fleet) = run(&made, &blocks, None);
    let fork: ExchangeId = favourite(&seen, &fleet, |pool| vec![made.market.pool(pool).exchange]);
    let reader = Reader::over(Chain {
        fork: Some(fork),
        ..Chain::new(&made, &blocks)
    });
    let (results, fleet) = run(&made, &blocks, Some(machine(&reader, Limits::default())));
    let marks = marks(&results[..1]);
    let [mark] = marks.as_slice() else {
        panic!("{marks:?}")
    };
    let name = made.market.exchange(fork).name.clone();
    assert_eq!(mark.marked, Marked::Exchange(name));
    let Reason::FeeDiffers {
        configured,
        least,
        most,
    } = mark.reason
    else {
        panic!("{mark:?}")
    };
    assert_eq!(configured, 3000);
    assert!(least <= 2500 && (2500..3000).contains(&most), "{mark:?}");
    assert!(mark.to_string().contains("--factory ADDRESS:25"), "{mark}");
    for result in &results {
        let traded = pools(result, &fleet);
        assert!(
            traded
                .iter()
                .all(|pool| made.market.pool(*pool).exchange != fork)
        );
    }
    assert_eq!(
        sum(&results, |evm| evm.disagreed),
        0,
        "nothing of it was tried"
    );
}

/// Property: a pool whose own reserves are not what its logs say is marked alone, and no token for it.
#[test]
fn a_pool_with_other_reserves_is_marked_alone() {
    let made = market();
    let blocks = blocks_of(&made, 8);
    let (seen, fleet) = run(&made, &blocks, None);
    let pool = favourite(&seen, &fleet, |pool| vec![pool]);
    let reader = Reader::over(Chain {
        drained: Some(pool),
        ..Chain::new(&made, &blocks)
    });
    let (results, fleet) = run(&made, &blocks, Some(machine(&reader, Limits::default())));
    let marks = marks(&results);
    let [mark] = marks.as_slice() else {
        panic!("{marks:?}")
    };
    assert_eq!(
        (&mark.marked, mark.reason),
        (&Marked::Pool, Reason::ReservesDiffer)
    );
    assert_eq!((mark.pool, mark.pools), (made.market.pool(pool).address, 1));
    assert!(
        results
            .iter()
            .all(|result| !pools(result, &fleet).contains(&pool))
    );
}
