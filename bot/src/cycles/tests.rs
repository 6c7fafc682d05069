//! Crawl and index against plain searches, and the known numbers of the real pools.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::market::csv::{PoolIsToken, load};
use crate::market::tests::{address, market_of};
use crate::market::{Address, Market, PoolId, TokenId};

const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";

fn real_market() -> Market {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data");
    let paths = [
        data.join("uniswap_v2_pairs.csv"),
        data.join("sushiswap_v2_pairs.csv"),
    ];
    load(&paths, PoolIsToken::Keep).unwrap().market
}

fn registered(graph: &CycleGraph) -> CycleTable {
    let mut table = CycleTable::with_capacity(graph.crawl().count());
    for cycle in graph.crawl() {
        table.register(cycle).unwrap();
    }
    table
}

/// A cycle as a list of pools with the token that goes into each.
type Hops = Vec<(PoolId, TokenId)>;

fn hops(graph: &CycleGraph, cycle: Cycle) -> Hops {
    cycle
        .edges()
        .iter()
        .map(|&e| (graph.edge(e).pool, graph.edge(e).token_in))
        .collect()
}

/// Every cycle by plain depth-first search: any pool at any step, checked afterwards.
fn naive(market: &Market, base: TokenId, max_hops: usize) -> BTreeSet<Hops> {
    fn go(
        market: &Market,
        base: TokenId,
        at: TokenId,
        left: usize,
        path: &mut Hops,
        out: &mut BTreeSet<Hops>,
    ) {
        for id in market.pool_ids() {
            let pool = market.pool(id);
            let next = match at {
                t if t == pool.token0 => pool.token1,
                t if t == pool.token1 => pool.token0,
                _ => continue,
            };
            path.push((id, at));
            if next == base {
                let pools: BTreeSet<_> = path.iter().map(|h| h.0).collect();
                let tokens: BTreeSet<_> = path.iter().map(|h| h.1).collect();
                if path.len() >= 2 && pools.len() == path.len() && tokens.len() == path.len() {
                    out.insert(path.clone());
                }
            } else if left > 1 {
                go(market, base, next, left - 1, path, out);
            }
            path.pop();
        }
    }
    let mut out = BTreeSet::new();
    go(market, base, base, max_hops, &mut Vec::new(), &mut out);
    out
}

#[test]
fn the_real_pools_have_the_known_number_of_cycles() {
    let market = real_market();
    let graph = CycleGraph::new(&market, WETH.parse().unwrap(), 4).unwrap();
    assert_eq!(graph.count(), [182, 6_172, 299_450]);
    let graph = CycleGraph::new(&market, WETH.parse().unwrap(), 3).unwrap();
    assert_eq!(graph.count(), [182, 6_172, 0]);
    let graph = CycleGraph::new(&market, WETH.parse().unwrap(), 2).unwrap();
    assert_eq!(graph.count(), [182, 0, 0]);
}

#[test]
fn a_registered_cycle_takes_at_most_32_bytes_with_all_that_belongs_to_it() {
    let market = real_market();
    let graph = CycleGraph::new(&market, WETH.parse().unwrap(), 4).unwrap();
    let table = registered(&graph);
    let index = CycleIndex::new(&graph, &table);
    let mut touched = Touched::new();
    // The largest query there is: everything.
    assert_eq!(
        index.touched(market.pool_ids(), &mut touched).len(),
        305_804
    );
    let bytes = table.memory() + index.memory() + touched.memory();
    assert!(
        bytes <= 32 * table.len(),
        "{} bytes a cycle",
        bytes / table.len()
    );

    let warm = touched.memory();
    index.touched(market.pool_ids().step_by(7), &mut touched);
    index.touched(market.pool_ids(), &mut touched);
    assert_eq!(touched.memory(), warm);
}

#[test]
fn two_runs_give_the_same_cycles_under_the_same_ids() {
    let table = || {
        let market = real_market();
        registered(&CycleGraph::new(&market, WETH.parse().unwrap(), 4).unwrap())
    };
    let (one, two) = (table(), table());
    assert_eq!(one, two);
    let third = CycleId::new(3);
    assert_eq!(one.get(third), Some(&one.cycles()[3]));
    assert_eq!(one.get(CycleId::new(305_804)), None);
}

#[test]
fn bases_that_lead_nowhere_are_refused() {
    // A line, and a far triangle that does not contain the base.
    let market = market_of(&[(1, 2), (2, 3), (3, 4), (4, 5), (5, 3)]);
    let message = |base: Address, hops| {
        CycleGraph::new(&market, base, hops)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(address(77), 4),
        format!(
            "base token {} is in no pool; the market has 5 other tokens",
            address(77)
        )
    );
    assert_eq!(
        message(address(1), 4),
        format!(
            "base token {} has 1 pools but no cycle of up to 4 hops leads back to it; that takes a \
             second pool for the same pair of tokens or a third token between",
            address(1)
        )
    );
    assert_eq!(
        message(address(3), 2),
        format!(
            "base token {} has 3 pools but no cycle of up to 2 hops leads back to it; that takes a \
             second pool for the same pair of tokens or a third token between",
            address(3)
        )
    );
    for hops in [0, 1, 5, 255] {
        assert_eq!(
            message(address(3), hops),
            format!(
                "cycles of up to {hops} hops cannot be searched; the most hops are from 2 to 4"
            )
        );
    }
    assert!(CycleGraph::new(&market, address(3), 3).is_ok());
}

#[test]
fn more_pools_than_edge_ids_can_name_are_refused() {
    let parallel = |count: usize| market_of(&vec![(1, 2); count]);
    let error = CycleGraph::new(&parallel(MAX_LIVE_POOLS + 1), address(1), 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "32768 pools may lie on cycles of up to 2 hops from {}; at most 32767 can be handled: \
             allow fewer hops or list fewer pools",
            address(1)
        )
    );
    let graph = CycleGraph::new(&parallel(MAX_LIVE_POOLS), address(1), 2).unwrap();
    let last = PoolId::new(u32::try_from(MAX_LIVE_POOLS - 1).unwrap());
    let [forth, back] = graph.edges_of(last).unwrap();
    assert_eq!((graph.edge(forth).pool, forth.reverse()), (last, back));
    // Each cycle of the last first step is the last pool and another.
    let mut crawl = graph.crawl();
    let first = crawl.next().unwrap();
    assert_eq!(hops(&graph, first)[1].0, PoolId::new(1));
}

#[test]
fn pools_off_every_cycle_have_no_edges() {
    let market = market_of(&[(1, 2), (1, 2), (2, 9), (9, 8)]);
    let graph = CycleGraph::new(&market, address(1), 4).unwrap();
    assert_eq!(graph.pools(), [PoolId::new(0), PoolId::new(1)]);
    assert_eq!(graph.edges_of(PoolId::new(2)), None);
    assert_eq!(graph.edges_of(PoolId::new(99)), None);
    let index = CycleIndex::new(&graph, &registered(&graph));
    assert_eq!(index.count_of(PoolId::new(3)), 0);
    assert_eq!(index.count_of(PoolId::new(u32::MAX)), 0);
    assert_eq!(index.count_of(PoolId::new(1)), 2);
}

/// Small dense graphs with parallel pools.
fn graphs() -> impl Strategy<Value = Vec<(u32, u32)>> {
    (2_u32..7).prop_flat_map(|tokens| {
        let pair = (0..tokens, 1..tokens).prop_map(move |(a, by)| (a, (a + by) % tokens));
        prop::collection::vec(pair, 1..16)
    })
}

proptest! {
    #[test]
    fn a_crawl_yields_exactly_the_cycles_of_a_naive_search(pairs in graphs(), max_hops in 2_u8..=4) {
        let market = market_of(&pairs);
        let base = market.tokens()[0].address;
        let expected = naive(&market, market.token_by_address(base).unwrap(), max_hops.into());
        match CycleGraph::new(&market, base, max_hops) {
            Err(error) => {
                let no_cycle = matches!(error, GraphError::NoCycle { .. });
                prop_assert!(no_cycle);
                prop_assert!(expected.is_empty());
            }
            Ok(graph) => {
                let crawled: Vec<_> = graph.crawl().map(|c| hops(&graph, c)).collect();
                let set: BTreeSet<_> = crawled.iter().cloned().collect();
                prop_assert_eq!(set.len(), crawled.len());
                prop_assert_eq!(set, expected);
                let lengths: Vec<_> = crawled.iter().map(Vec::len).collect();
                prop_assert!(lengths.is_sorted());
            }
        }
    }

    /// `next`, `for_each` and a crawl that stops and goes on anywhere agree.
    #[test]
    fn a_crawl_can_stop_and_go_on_anywhere(pairs in graphs(), window in 1_usize..40) {
        let market = market_of(&pairs);
        let base = market.tokens()[0].address;
        let Ok(graph) = CycleGraph::new(&market, base, 4) else { return Ok(()) };
        let mut all = Vec::new();
        graph.crawl().for_each(|cycle| all.push(cycle));
        let mut pieces = Vec::new();
        let mut cursor = Cursor::START;
        loop {
            let mut crawl = graph.crawl_from(cursor);
            let before = pieces.len();
            pieces.extend(crawl.by_ref().take(window));
            if pieces.len() == before {
                break;
            }
            cursor = crawl.cursor();
        }
        prop_assert_eq!(&pieces, &all);
        let mut crawl = graph.crawl();
        let head: Vec<_> = crawl.by_ref().take(window).collect();
        let rest = crawl.fold(head, |mut v, cycle| { v.push(cycle); v });
        prop_assert_eq!(rest, all);
    }

    #[test]
    fn the_index_agrees_with_a_scan(
        pairs in graphs(),
        queries in prop::collection::vec(prop::collection::vec(0_u32..20, 0..6), 1..5),
    ) {
        let market = market_of(&pairs);
        let base = market.tokens()[0].address;
        let Ok(graph) = CycleGraph::new(&market, base, 4) else { return Ok(()) };
        let table = registered(&graph);
        let index = CycleIndex::new(&graph, &table);
        let mut touched = Touched::new();
        for query in queries {
            let pools: Vec<_> = query.iter().copied().map(PoolId::new).collect();
            let scan: Vec<_> = (0..).map(CycleId::new).zip(table.cycles())
                .filter(|(_, cycle)| cycle.edges().iter().any(|&e| pools.contains(&graph.edge(e).pool)))
                .map(|(id, _)| id)
                .collect();
            prop_assert_eq!(index.touched(pools, &mut touched), scan);
        }
    }
}

#[test]
fn a_graph_of_too_many_cycles_is_refused_without_counting_them_all() {
    let market = real_market();
    let graph = CycleGraph::new(&market, WETH.parse().unwrap(), 4).unwrap();
    let cycles = usize::try_from(graph.count().iter().sum::<u64>()).unwrap();
    assert_eq!(graph.at_most(cycles), Ok(()));
    assert_eq!(
        graph.at_most(cycles - 1),
        Err(GraphError::TooManyCycles {
            max_hops: 4,
            limit: cycles - 1
        })
    );
}
