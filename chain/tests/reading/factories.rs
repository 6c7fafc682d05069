//! The pools of a factory.

use crate::market::{FACTORY, Line, market, pool, run, token};
use alloy_primitives::{Address, U256};
use regatta_chain::pools::{self, FactoryError, Unfit};
use regatta_chain::read::Unanswered;
use regatta_fake_node::contracts::{address_word, input, sync, word};
use regatta_fake_node::{Reply, Script};

/// Everything that a factory made, in its order, with its tokens and with the reserves of the block that is read at.
#[test]
fn the_pools_of_a_factory_are_read_at_one_block() {
    run(async {
        let line = Line::to(Script::new().contracts(market(3))).await;
        let reader = line.reader();
        // It moves after the block that is read at.
        line.node.extend(vec![sync(pool(1), 5, 6)]);
        let found = pools::of_factory(&reader, FACTORY, 3).await.unwrap();
        assert_eq!(found.refused, []);
        let read: Vec<_> = found
            .pools
            .iter()
            .map(|pool| (pool.address, pool.reserve0, pool.reserve1))
            .collect();
        assert_eq!(
            read,
            [0, 1, 2].map(|n| (pool(n), 1000 + u128::from(n), 2000 + u128::from(n)))
        );
        assert_eq!(found.pools[2].token0.symbol, "T2");
        assert_eq!(found.pools[2].token1.address, token(3));
        assert!(found.pools.iter().all(|pool| pool.factory == FACTORY));
        let now = pools::reserves(&line.reader(), &[pool(1), pool(0)]).await;
        assert_eq!(now.unwrap(), [Ok((5, 6)), Ok((1000, 2000))]);
    });
}

/// One more than may be is a typed refusal before a pool is read, and so is a count that no machine could hold.
#[test]
fn a_factory_with_too_many_pools_is_refused() {
    run(async {
        let line = Line::to(Script::new().contracts(market(3))).await;
        let error = pools::of_factory(&line.reader(), FACTORY, 2)
            .await
            .unwrap_err();
        let pools = U256::from(3);
        let limit = 2;
        let factory = FACTORY;
        assert_eq!(
            error,
            FactoryError::TooMany {
                factory,
                pools,
                limit
            }
        );
        assert_eq!(line.calls("eth_call"), 1);
        line.node
            .contracts(|c| c.give(FACTORY, "allPairsLength()", &[0xff; 32]));
        let error = pools::of_factory(&line.reader(), FACTORY, usize::MAX).await;
        assert!(
            matches!(error, Err(FactoryError::TooMany { .. })),
            "{error:?}"
        );
    });
}

#[test]
fn what_is_no_factory_is_named() {
    run(async {
        let line = Line::to(Script::new().contracts(market(1))).await;
        let nobody = Address::repeat_byte(0x99);
        let error = pools::of_factory(&line.reader(), nobody, 9)
            .await
            .unwrap_err();
        assert_eq!(
            error,
            FactoryError::NotAFactory {
                factory: nobody,
                why: Unanswered::NoCode(nobody)
            }
        );
        let error = pools::of_factory(&line.reader(), token(0), 9)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, FactoryError::NotAFactory { factory, why: Unanswered::Refused { .. } } if *factory == token(0)),
            "{error}"
        );
    });
}

/// A pool of a factory that cannot be read, or is not of it, or is unfit, costs itself and nobody else.
#[test]
fn a_bad_pool_of_a_factory_is_refused_with_its_reason() {
    run(async {
        let mut contracts = market(5);
        contracts.remove(pool(0));
        contracts.answer(
            pool(1),
            input("token1()", &[]),
            Reply::error(3, "execution reverted"),
        );
        contracts.give(pool(2), "factory()", &address_word(token(0)));
        contracts.give(pool(3), "token1()", &address_word(token(3)));
        let line = Line::to(Script::new().contracts(contracts)).await;
        let found = pools::of_factory(&line.reader(), FACTORY, 9).await.unwrap();
        let left: Vec<_> = found.pools.iter().map(|pool| pool.address).collect();
        assert_eq!(left, [pool(4)]);
        let why = |number| {
            let refused = found.refused.iter().find(|(at, _)| *at == pool(number));
            &refused.unwrap().1
        };
        assert_eq!(found.refused.len(), 4);
        assert_eq!(*why(0), Unanswered::NoCode(pool(0)).into());
        assert!(matches!(
            why(1),
            Unfit::Unanswered(Unanswered::Refused { .. })
        ));
        assert_eq!(*why(2), Unfit::Factory { found: token(0) });
        assert_eq!(*why(3), Unfit::SameToken(token(3)));
    });
}

/// A place of its list that a factory does not tell of is counted.
#[test]
fn a_place_that_a_factory_does_not_tell_of_is_counted() {
    run(async {
        let mut contracts = market(2);
        let data = input("allPairs(uint256)", &[word(0)]);
        contracts.answer(FACTORY, data, Reply::error(3, "execution reverted"));
        let line = Line::to(Script::new().contracts(contracts)).await;
        let found = pools::of_factory(&line.reader(), FACTORY, 9).await.unwrap();
        assert_eq!(found.pools.len(), 1);
        assert_eq!(found.refused.len(), 1);
        assert_eq!(found.refused[0].0, FACTORY);
    });
}

/// Of pools that are known nothing but the address is read.
#[test]
fn what_is_known_is_not_read_again() {
    run(async {
        let line = Line::to(Script::new().contracts(market(4))).await;
        let known = |at| at != pool(2);
        let found = pools::unknown_of(&line.reader(), FACTORY, 9, known).await;
        let found = found.unwrap();
        assert_eq!(found.pools.len(), 1);
        assert_eq!(found.pools[0].address, pool(2));
        // How many there are, where they are, four questions to the one, two to each of its tokens.
        assert_eq!(line.calls("eth_call"), 1 + 4 + 4 + 4);
    });
}
