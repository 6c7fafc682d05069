//! Determinism, the rules of a pool, and that the market neither freezes nor drifts.

use std::path::PathBuf;

use num_bigint::BigUint;

use super::fixed::ONE_Q32;
use super::*;
use crate::cycles::CycleGraph;
use crate::market::csv::{PoolIsToken, load};
use crate::market::tests::{address, market_of};
use crate::market::{Address, MAX_RESERVE, Pool};

fn real() -> (Market, TokenId) {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data");
    let paths = [
        data.join("uniswap_v2_pairs.csv"),
        data.join("sushiswap_v2_pairs.csv"),
    ];
    let market = load(&paths, PoolIsToken::Keep).unwrap().market;
    let weth: Address = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
        .parse()
        .unwrap();
    let base = market.token_by_address(weth).unwrap();
    (market, base)
}

fn made_up(seed: u64) -> (Market, TokenId) {
    let Generated { market, base } = generate(&MarketConfig::with_seed(seed)).unwrap();
    let base = market.token_by_address(base).unwrap();
    (market, base)
}

fn blocks(source: &mut EmbeddedSource, count: usize) -> Vec<Block> {
    (0..count)
        .map(|_| match source.next_event().unwrap() {
            Some(Event::Block(block)) => block,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn k(pool: &Pool) -> BigUint {
    BigUint::from(pool.reserve0) * BigUint::from(pool.reserve1)
}

/// Whether some cycle of up to three hops gains at the margin.
fn has_gap(market: &Market) -> bool {
    let base = market.tokens()[0].address;
    let graph = CycleGraph::new(market, base, 3).unwrap();
    graph.crawl().any(|cycle| {
        let (mut gain, mut cost) = (BigUint::from(1_u8), BigUint::from(1_u8));
        for &edge in cycle.edges() {
            let edge = graph.edge(edge);
            let hop = market.hop(edge.pool, edge.direction);
            gain *= BigUint::from(hop.reserve_out) * hop.fee.num();
            cost *= BigUint::from(hop.reserve_in) * hop.fee.den();
        }
        gain > cost
    })
}

#[test]
fn the_same_seed_gives_the_same_blocks_and_another_seed_others() {
    let run = |seed| {
        let (market, base) = made_up(7);
        blocks(
            &mut EmbeddedSource::new(market, base, Config::with_seed(seed)).unwrap(),
            50,
        )
    };
    assert_eq!(run(1), run(1));
    let (one, two) = (run(1), run(2));
    assert!(
        one.iter()
            .zip(&two)
            .all(|(a, b)| a.hash != b.hash && a.updates != b.updates)
    );
}

/// Numbers from an earlier run: a change in them means that recorded runs no longer replay, whether it
/// came from a platform or from an edit.
#[test]
fn the_blocks_of_a_seed_do_not_change() {
    let (market, base) = made_up(1);
    let mut source = EmbeddedSource::new(market, base, Config::with_seed(1)).unwrap();
    let last = blocks(&mut source, 100).pop().unwrap();
    assert_eq!(
        last.hash.to_string(),
        "0x0ad356e49384d95a72a6a16ec61f33d2e0a778a939783e5708bf9099dc853202"
    );
    let (market, base) = real();
    let mut source = EmbeddedSource::new(market, base, Config::with_seed(1)).unwrap();
    let last = blocks(&mut source, 100).pop().unwrap();
    assert_eq!(
        last.hash.to_string(),
        "0x260ae47cc02729f8e9a604547deb7e1bdca1fcb22501298a47290a7ed0cedc02"
    );
}

#[test]
fn blocks_form_a_chain_and_end_when_they_should() {
    let (market, base) = made_up(3);
    let config = Config {
        blocks: Some(5),
        ..Config::with_seed(3)
    };
    let mut source = EmbeddedSource::new(market, base, config).unwrap();
    let chain = blocks(&mut source, 5);
    assert!(
        chain
            .windows(2)
            .all(|w| w[0].hash == w[1].parent && w[0].number + 1 == w[1].number)
    );
    assert_eq!(chain[0].number, 1);
    assert_eq!(source.next_event(), Ok(None));
    assert_eq!(source.next_event(), Ok(None));
}

#[test]
fn every_move_is_a_swap_that_a_pool_would_allow() {
    for (market, base) in [made_up(4), real()] {
        let mut copy = market.clone();
        let mut source = EmbeddedSource::new(market, base, Config::with_seed(4)).unwrap();
        for block in blocks(&mut source, 300) {
            for update in &block.updates {
                let before = *copy.pool(update.pool);
                copy.apply(update).unwrap();
                let after = copy.pool(update.pool);
                assert!(k(after) >= k(&before), "{before:?} {after:?}");
                assert!(
                    [after.reserve0, after.reserve1]
                        .iter()
                        .all(|r| (1..=MAX_RESERVE).contains(r))
                );
                assert_ne!(
                    (after.reserve0, after.reserve1),
                    (before.reserve0, before.reserve1)
                );
            }
        }
        assert_eq!(&copy, source.market());
    }
}

#[test]
fn a_block_moves_about_as_many_pools_as_asked_and_large_ones_more_often() {
    let (market, base) = real();
    let count = market.pools().len();
    let mut source = EmbeddedSource::new(market, base, Config::with_seed(5)).unwrap();
    let ranked = source.prices.ranked().to_vec();
    assert_eq!(ranked.len(), count);
    // Sides of a pool are worth about the same, so the most of the base is in one of the largest.
    let of_base = |&id: &PoolId| {
        let pool = source.market.pool(id);
        let sides = [(pool.token0, pool.reserve0), (pool.token1, pool.reserve1)];
        sides
            .iter()
            .find(|side| side.0 == base)
            .map_or(0, |side| side.1)
    };
    let deepest = ranked.iter().copied().max_by_key(of_base).unwrap();
    assert!(
        ranked[..3].contains(&deepest),
        "{deepest:?} is not in {:?}",
        &ranked[..3]
    );

    let chain = blocks(&mut source, 400);
    let mean = chain.iter().map(|b| b.updates.len()).sum::<usize>() / chain.len();
    assert!((17..=22).contains(&mean), "{mean}");
    assert!(chain.iter().all(|b| b.updates.len() <= 30));
    let moves: Vec<_> = chain
        .iter()
        .flat_map(|b| &b.updates)
        .map(|u| u.pool)
        .collect();
    let among = |pools: &[PoolId]| moves.iter().filter(|id| pools.contains(id)).count();
    let (large, small) = (among(&ranked[..100]), among(&ranked[count - 100..]));
    assert!(
        large > 50 * small.max(1) && small + large < moves.len(),
        "{large} {small} of {}",
        moves.len()
    );
}

#[test]
fn gaps_open_and_the_market_stays_near_where_it_started() {
    for seed in 0..20 {
        assert!(
            !has_gap(&made_up(seed).0),
            "market {seed} is not calm at the start"
        );
    }
    let (market, base) = made_up(6);
    let widest = |percent| {
        let config = Config {
            arbitrage_percent: percent,
            ..Config::with_seed(6)
        };
        let mut source = EmbeddedSource::new(market.clone(), base, config).unwrap();
        blocks(&mut source, 20);
        assert!(has_gap(source.market()), "no arbitrage appeared");
        blocks(&mut source, 5_000);
        let gaps = source
            .prices
            .ranked()
            .iter()
            .map(|&id| source.prices.gap(&source.market, id).abs());
        gaps.max().unwrap()
    };
    // With the arbitrageur no pool is off by more than half; without, some are off by far more.
    assert!(widest(50) < ONE_Q32 / 2);
    assert!(widest(0) > ONE_Q32);
}

#[test]
fn small_and_extreme_pools_are_left_alone() {
    let mut market = market_of(&[(1, 2), (1, 2), (3, 4)]);
    let [a, b, c] = [0, 1, 2].map(PoolId::new);
    market
        .apply(&ReserveUpdate {
            pool: a,
            reserve0: 1,
            reserve1: 1,
        })
        .unwrap();
    market
        .apply(&ReserveUpdate {
            pool: b,
            reserve0: MAX_RESERVE,
            reserve1: MAX_RESERVE,
        })
        .unwrap();
    market
        .apply(&ReserveUpdate {
            pool: c,
            reserve0: 0,
            reserve1: 5,
        })
        .unwrap();
    let base = market.token_by_address(address(1)).unwrap();
    let mut source = EmbeddedSource::new(market.clone(), base, Config::with_seed(8)).unwrap();
    // Neither can move: the one would pay nothing, the other cannot hold more, the third is empty.
    assert!(
        blocks(&mut source, 100)
            .iter()
            .all(|block| block.updates.is_empty())
    );
    assert_eq!(source.market(), &market);
}

#[test]
fn what_cannot_be_made_up_is_refused() {
    let (market, base) = made_up(1);
    let config = Config {
        arbitrage_percent: 101,
        ..Config::with_seed(1)
    };
    assert_eq!(
        EmbeddedSource::new(market, base, config)
            .unwrap_err()
            .to_string(),
        "101 % of the moves cannot be arbitrage; the share is from 0 to 100"
    );
    let mut market = market_of(&[(1, 2)]);
    market
        .apply(&ReserveUpdate {
            pool: PoolId::new(0),
            reserve0: 0,
            reserve1: 5,
        })
        .unwrap();
    let base = market.token_by_address(address(1)).unwrap();
    assert_eq!(
        EmbeddedSource::new(market, base, Config::with_seed(1))
            .unwrap_err()
            .to_string(),
        "none of the market's 1 pools has both reserves, so no block can move any"
    );
    let message = |tokens, noise_ppm| {
        generate(&MarketConfig {
            tokens,
            noise_ppm,
            seed: 1,
        })
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        message(1, 0),
        "a market of 1 tokens cannot be made; it has from 2 to 8000"
    );
    assert_eq!(
        message(8001, 0),
        "a market of 8001 tokens cannot be made; it has from 2 to 8000"
    );
    assert_eq!(
        message(2, 500_001),
        "noise of 500001 millionths is more than a price can bear; it is at most 500000"
    );
}

#[test]
fn markets_of_any_size_can_be_made_and_have_cycles() {
    for tokens in [2, 3, 5, 6, 48, MarketConfig::MAX_TOKENS] {
        for seed in [0, 1, u64::MAX] {
            let config = MarketConfig {
                tokens,
                ..MarketConfig::with_seed(seed)
            };
            let made = generate(&config).unwrap();
            assert_eq!(made, generate(&config).unwrap());
            assert_eq!(made.market.tokens().len(), tokens as usize);
            assert_eq!(made.market.exchanges().len(), 2);
            // Enough that rounding is no wider than the noise.
            let reserves = made
                .market
                .pools()
                .iter()
                .flat_map(|p| [p.reserve0, p.reserve1]);
            assert!(reserves.min().unwrap() >= 990_000);
            assert!(CycleGraph::new(&made.market, made.base, 2).is_ok());
            assert!(CycleGraph::new(&made.market, made.base, 4).is_ok());
        }
    }
}
