//! Row N15: what a list says of pools is checked on the chain.

use crate::market::{FACTORY, Line, market, pool, run, token};
use alloy_primitives::{Address, U256};
use regatta_chain::pools::{self, Listed, Unfit};
use regatta_chain::read::Unanswered;
use regatta_fake_node::Script;
use regatta_fake_node::contracts::{address_word, input};

fn listed(number: u8) -> Listed {
    Listed {
        address: pool(number),
        token0: token(number),
        token1: token(number + 1),
    }
}

/// Each kind of lie is refused with what the chain says instead; the rows between them stand, in their order.
#[test]
fn mislabelled_pools_are_refused_and_the_others_stand() {
    run(async {
        let mut contracts = market(8);
        // Says to be of a factory that is another contract, and one that knows nothing of it.
        let stranger = Address::repeat_byte(0x57);
        contracts.factory(stranger);
        contracts.give(pool(4), "factory()", &address_word(stranger));
        // Its factory has another pool of its tokens.
        let tokens = [token(5), token(6)].map(address_word);
        let data = input("getPair(address,address)", &tokens);
        let other = alloy_primitives::Bytes::from(address_word(pool(7)));
        let reply = regatta_fake_node::Reply::Result(serde_json::json!(other));
        contracts.answer(FACTORY, data, reply);
        contracts.remove(pool(6));
        let line = Line::to(Script::new().contracts(contracts)).await;
        let mut list: Vec<_> = (0..8).map(listed).collect();
        list[1].token1 = token(7);
        let Listed { token0, token1, .. } = list[2];
        (list[2].token0, list[2].token1) = (token1, token0);
        let found = pools::of_list(&line.reader(), &list, &[FACTORY])
            .await
            .unwrap();
        let left: Vec<_> = found.pools.iter().map(|pool| pool.address).collect();
        assert_eq!(left, [pool(0), pool(3), pool(7)]);
        let why = |number| {
            let mut refused = found.refused.iter().filter(|(at, _)| *at == pool(number));
            let why = &refused.next().unwrap().1;
            assert_eq!(refused.next(), None);
            why
        };
        assert_eq!(
            *why(1),
            Unfit::Tokens {
                found: [token(1), token(2)],
                listed: [token(1), token(7)]
            }
        );
        assert_eq!(
            *why(2),
            Unfit::Tokens {
                found: [token(2), token(3)],
                listed: [token(3), token(2)]
            }
        );
        assert_eq!(*why(4), Unfit::Factory { found: stranger });
        assert_eq!(
            *why(5),
            Unfit::Unknown {
                factory: FACTORY,
                known: pool(7)
            }
        );
        assert_eq!(*why(6), Unanswered::NoCode(pool(6)).into());
    });
}

/// Without factories that were named, a pool's own word is checked against the factory that it names.
#[test]
fn a_factory_that_was_not_named_still_has_to_know_its_pool() {
    run(async {
        let mut contracts = market(3);
        let stranger = Address::repeat_byte(0x57);
        contracts.factory(stranger);
        contracts.give(pool(1), "factory()", &address_word(stranger));
        contracts.give(
            pool(2),
            "factory()",
            &address_word(Address::repeat_byte(0x66)),
        );
        let line = Line::to(Script::new().contracts(contracts)).await;
        let list: Vec<_> = (0..3).map(listed).collect();
        let found = pools::of_list(&line.reader(), &list, &[]).await.unwrap();
        assert_eq!(found.pools.len(), 1);
        assert_eq!(found.refused.len(), 2);
        let nobody = Address::repeat_byte(0x66);
        let no_code: Unfit = Unanswered::NoCode(nobody).into();
        assert_eq!(found.refused[1], (pool(2), no_code));
        let (at, Unfit::Unanswered(Unanswered::Refused { to, .. })) = &found.refused[0] else {
            panic!("{:?}", found.refused);
        };
        assert_eq!((*at, *to), (pool(1), stranger));
    });
}

/// Reserves as large as a pool can have, and none, are read as they are.
#[test]
fn reserves_are_read_to_the_last_bit() {
    run(async {
        let mut contracts = market(1);
        let most = (1 << 112) - 1;
        let empty = Address::repeat_byte(0xee);
        contracts.pool(FACTORY, empty, [token(0), token(9)], [0, most]);
        let line = Line::to(Script::new().contracts(contracts)).await;
        let asked = [empty, pool(0), token(0)];
        let read = pools::reserves(&line.reader(), &asked).await.unwrap();
        assert_eq!(read[..2], [Ok((0, most)), Ok((1000, 2000))]);
        assert!(read[2].is_err());
        assert_eq!(U256::from(most) + U256::from(1), U256::from(1) << 112);
    });
}
