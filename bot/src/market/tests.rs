//! What a market promises, and the small markets that other tests use.

use crate::solver::Fee;
use proptest::prelude::*;

use super::*;

/// An address that is `n` in its last bytes.
pub(crate) fn address(n: u32) -> Address {
    let mut bytes = [0; 20];
    bytes[16..].copy_from_slice(&n.to_be_bytes());
    Address::new(bytes)
}

/// A market of one exchange with a pool for each pair of token numbers, all reserves 1000.
pub(crate) fn market_of(pairs: &[(u32, u32)]) -> Market {
    let mut builder = MarketBuilder::new();
    let exchange = builder
        .exchange(UntrustedText::new("x"), Fee::default())
        .unwrap();
    for (i, &(a, b)) in pairs.iter().enumerate() {
        let symbol = UntrustedText::new("T");
        let token0 = builder.token(address(a), 18, &symbol).unwrap();
        let token1 = builder.token(address(b), 18, &symbol).unwrap();
        let pool = 1_000_000 + u32::try_from(i).unwrap();
        let (reserve0, reserve1) = (1000, 1000);
        builder
            .pool(Pool {
                address: address(pool),
                exchange,
                token0,
                token1,
                reserve0,
                reserve1,
            })
            .unwrap();
    }
    builder.build()
}

#[test]
fn ids_follow_the_order_of_adding() {
    let market = market_of(&[(7, 3), (3, 9)]);
    let addresses: Vec<_> = market.tokens().iter().map(|t| t.address).collect();
    assert_eq!(addresses, [address(7), address(3), address(9)]);
    assert_eq!(
        market.token_by_address(address(9)).map(TokenId::number),
        Some(2)
    );
    assert_eq!(market.token_by_address(address(8)), None);
    assert_eq!(
        market.pool_by_address(address(1_000_001)),
        Some(PoolId::new(1))
    );
    assert_eq!(
        market.pool_ids().collect::<Vec<_>>(),
        [PoolId::new(0), PoolId::new(1)]
    );
}

#[test]
fn what_would_break_the_market_is_refused_and_changes_nothing() {
    let mut builder = MarketBuilder::new();
    let symbol = UntrustedText::new("T");
    let exchange = builder
        .exchange(UntrustedText::new("dex"), Fee::default())
        .unwrap();
    let token0 = builder.token(address(1), 18, &symbol).unwrap();
    let token1 = builder.token(address(2), 255, &symbol).unwrap();
    let pool = Pool {
        address: address(9),
        exchange,
        token0,
        token1,
        reserve0: MAX_RESERVE,
        reserve1: 0,
    };
    builder.pool(pool).unwrap();
    let before = builder.clone().build();

    assert_eq!(
        builder
            .token(address(1), 6, &symbol)
            .unwrap_err()
            .to_string(),
        format!(
            "token {} has 18 decimals already and cannot have 6 too",
            address(1)
        )
    );
    assert_eq!(
        builder.pool(pool),
        Err(BuildError::DuplicatePool {
            address: address(9)
        })
    );
    assert_eq!(
        builder.pool(Pool {
            address: address(10),
            token1: token0,
            ..pool
        }),
        Err(BuildError::SameToken {
            address: address(10),
            token: address(1)
        })
    );
    let reserve = MAX_RESERVE + 1;
    assert_eq!(
        builder.pool(Pool {
            address: address(10),
            reserve1: reserve,
            ..pool
        }),
        Err(BuildError::ReserveTooLarge {
            address: address(10),
            reserve
        })
    );
    assert_eq!(builder.build(), before);
}

#[test]
fn a_bad_update_is_refused_and_changes_nothing() {
    let mut market = market_of(&[(1, 2)]);
    let before = market.clone();
    let pool = PoolId::new(1);
    assert_eq!(
        market
            .apply(&ReserveUpdate {
                pool,
                reserve0: 1,
                reserve1: 1
            })
            .unwrap_err()
            .to_string(),
        "pool number 1 is not in the market, which has 1 pools"
    );
    let pool = PoolId::new(0);
    let reserve1 = MAX_RESERVE + 1;
    assert_eq!(
        market.apply(&ReserveUpdate {
            pool,
            reserve0: 1,
            reserve1
        }),
        Err(ApplyError::ReserveTooLarge {
            address: address(1_000_000),
            reserve: reserve1
        })
    );
    assert_eq!(market, before);
}

#[test]
fn a_zero_reserve_is_applied_and_makes_the_pool_unusable() {
    let mut market = market_of(&[(1, 2)]);
    let pool = PoolId::new(0);
    assert!(market.pool(pool).is_usable());
    market
        .apply(&ReserveUpdate {
            pool,
            reserve0: 0,
            reserve1: 1,
        })
        .unwrap();
    assert!(!market.pool(pool).is_usable());
}

#[test]
fn a_hop_takes_the_side_and_the_fee_of_its_direction() {
    let mut market = market_of(&[(1, 2)]);
    let pool = PoolId::new(0);
    market
        .apply(&ReserveUpdate {
            pool,
            reserve0: 5,
            reserve1: 8,
        })
        .unwrap();
    let fee = Fee::new(9975, 10_000).unwrap();
    market.set_fee(market.pool(pool).exchange, fee);
    let forward = market.hop(pool, Direction::ZeroForOne);
    assert_eq!(
        forward,
        HopState {
            reserve_in: 5,
            reserve_out: 8,
            fee
        }
    );
    let back = market.hop(pool, Direction::OneForZero);
    assert_eq!((back.reserve_in, back.reserve_out), (8, 5));
}

#[test]
fn a_pool_that_is_a_token_is_known_as_such() {
    let market = market_of(&[(1, 2), (1_000_000, 2)]);
    assert!(market.is_pool_a_token(PoolId::new(0)));
    assert!(!market.is_pool_a_token(PoolId::new(1)));
}

proptest! {
    #[test]
    fn undoing_in_reverse_restores_the_market(
        updates in prop::collection::vec((0..3_u32, 0..=MAX_RESERVE, 0..=MAX_RESERVE), 0..20),
    ) {
        let before = market_of(&[(1, 2), (2, 3), (3, 1)]);
        let mut market = before.clone();
        let mut journal = Vec::new();
        for (pool, reserve0, reserve1) in updates {
            let update = ReserveUpdate { pool: PoolId::new(pool), reserve0, reserve1 };
            journal.push(market.apply(&update).unwrap());
            let pool = market.pool(update.pool);
            prop_assert_eq!((pool.reserve0, pool.reserve1), (reserve0, reserve1));
        }
        for undo in journal.iter().rev() {
            market.apply(undo).unwrap();
        }
        prop_assert_eq!(market, before);
    }
}

proptest! {
    /// A market that grows is the one that a builder makes of the same pools, less their reserves; what the builder
    /// refuses is refused for the same reason and changes nothing.
    #[test]
    fn a_market_that_grows_is_built_alike(
        pools in prop::collection::vec((0_u32..12, 0_u32..6, 0_u32..6, 17_u8..20, 0_u8..8), 1..30),
        first in 0_usize..10,
    ) {
        let symbol = UntrustedText::new("T");
        let mut builder = MarketBuilder::new();
        let exchange = builder.exchange(UntrustedText::new("x"), Fee::default()).unwrap();
        let mut grown = None;
        for (place, (number, a, b, decimals, shift)) in pools.into_iter().enumerate() {
            if place == first {
                grown = Some(builder.clone().build());
            }
            // Now and then a token has other decimals, or a reserve too many bits.
            let token = |n: u32| Token {
                address: address(n),
                decimals: if n == 0 { decimals } else { 18 },
                symbol: symbol.clone(),
            };
            let reserve0 = (MAX_RESERVE >> 3 << shift).min(MAX_RESERVE + 1);
            let before = builder.clone();
            let built = (|| {
                if a == b {
                    return Err(BuildError::SameToken { address: address(100 + number), token: address(a) });
                }
                let reserve = reserve0.max(1);
                if reserve > MAX_RESERVE {
                    return Err(BuildError::ReserveTooLarge { address: address(100 + number), reserve });
                }
                if before.clone().build().pool_by_address(address(100 + number)).is_some() {
                    return Err(BuildError::DuplicatePool { address: address(100 + number) });
                }
                let [token0, token1] = [token(a), token(b)];
                let token0 = builder.token(token0.address, token0.decimals, &symbol)?;
                let token1 = builder.token(token1.address, token1.decimals, &symbol)?;
                builder.pool(Pool {
                    address: address(100 + number), exchange, token0, token1, reserve0: 0, reserve1: 0,
                })
            })();
            if built.is_err() {
                // A builder keeps the first token of a pool that it refuses for the second.
                builder = before;
            }
            if let Some(grown) = &mut grown {
                let new = crate::source::NewPool {
                    address: address(100 + number),
                    exchange,
                    token0: token(a),
                    token1: token(b),
                    reserve0,
                    reserve1: 1,
                };
                prop_assert_eq!(grown.extend(&new), built);
                prop_assert_eq!(&*grown, &builder.clone().build());
            }
        }
    }
}

#[test]
fn an_exchange_that_the_market_does_not_have_is_refused() {
    let mut market = market_of(&[(1, 2)]);
    let before = market.clone();
    let token = |n| Token {
        address: address(n),
        decimals: 18,
        symbol: UntrustedText::new("T"),
    };
    let new = crate::source::NewPool {
        address: address(9),
        exchange: ExchangeId(1),
        token0: token(1),
        token1: token(3),
        reserve0: 1,
        reserve1: 1,
    };
    let (address, exchanges) = (new.address, 1);
    let refused = BuildError::UnknownExchange { address, exchanges };
    assert_eq!(market.extend(&new), Err(refused));
    assert_eq!(market, before);
}
