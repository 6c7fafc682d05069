//! What is written is what is read, and there is one way to write it.

use crate::{events, header, read, written};
use proptest::collection::vec;
use proptest::prelude::*;
use regatta_bot::capture::{Chain, Header, MAX_TEXT, Reader, Recorded, Tail, encode_event};
use regatta_bot::market::{
    Address, ExchangeId, Market, MarketBuilder, Pool, PoolId, ReserveUpdate, Token, TokenId,
    UntrustedText,
};
use regatta_bot::solver::Fee;
use regatta_bot::source::{Block, BlockHash, Event, Head, NewPool};
use std::time::Duration;

const EXCHANGES: u16 = 3;

/// Numbers of every length.
fn number(bits: u32) -> impl Strategy<Value = u128> {
    (any::<u128>(), 0..=bits).prop_map(|(number, keep)| number.checked_shr(128 - keep).unwrap_or(0))
}

fn u64s() -> impl Strategy<Value = u64> {
    number(64).prop_map(|number| u64::try_from(number).unwrap())
}

fn text() -> impl Strategy<Value = UntrustedText> {
    let short = vec(any::<char>(), 0..60)
        .prop_map(|text| UntrustedText::new(&text.into_iter().collect::<String>()));
    prop_oneof![
        8 => short,
        1 => Just(UntrustedText::with_limit(&"\u{1d11e}".repeat(MAX_TEXT), MAX_TEXT)),
    ]
}

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::new)
}

fn token() -> impl Strategy<Value = Token> {
    (address(), any::<u8>(), text()).prop_map(|(address, decimals, symbol)| Token {
        address,
        decimals,
        symbol,
    })
}

fn hash() -> impl Strategy<Value = BlockHash> {
    any::<[u8; 32]>().prop_map(BlockHash::new)
}

fn head() -> impl Strategy<Value = Head> {
    let base_fee = prop::option::of(number(128));
    (u64s(), hash(), hash(), u64s(), base_fee).prop_map(
        |(number, hash, parent, timestamp, base_fee)| Head {
            number,
            hash,
            parent,
            timestamp,
            base_fee,
        },
    )
}

fn updates() -> impl Strategy<Value = Vec<ReserveUpdate>> {
    let update = (any::<u32>(), number(112), number(112));
    vec(
        update.prop_map(|(pool, reserve0, reserve1)| ReserveUpdate {
            pool: PoolId::new(pool),
            reserve0,
            reserve1,
        }),
        0..20,
    )
}

fn new_pool() -> impl Strategy<Value = NewPool> {
    let reserves = (number(112), number(112));
    (address(), 0..EXCHANGES, token(), token(), reserves).prop_map(
        |(address, exchange, token0, token1, (reserve0, reserve1))| NewPool {
            address,
            exchange: ExchangeId::new(exchange),
            token0,
            token1,
            reserve0,
            reserve1,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (head(), updates()).prop_map(|(head, updates)| Event::Block(Block {
            number: head.number,
            hash: head.hash,
            parent: head.parent,
            timestamp: head.timestamp,
            base_fee: head.base_fee,
            updates,
        })),
        1 => (u64s(), hash()).prop_map(|(number, hash)| Event::Reverted { number, hash }),
        1 => vec(new_pool(), 0..4).prop_map(Event::Pools),
        1 => (head(), updates()).prop_map(|(head, reserves)| Event::Reread { head, reserves }),
    ]
}

fn recorded() -> impl Strategy<Value = Vec<Recorded>> {
    vec((u64s(), event()), 0..24).prop_map(|mut events| {
        events.sort_by_key(|(at, _)| *at);
        let recorded = |(at, event)| Recorded {
            at: Duration::from_nanos(at),
            event,
        };
        events.into_iter().map(recorded).collect()
    })
}

/// A market from what was drawn; what does not fit into it is left out.
fn market(tokens: &[Token], pools: Vec<(Address, u16, usize, usize, u128, u128)>) -> Market {
    let mut builder = MarketBuilder::new();
    let exchanges: Vec<ExchangeId> = (1..=EXCHANGES)
        .map(|n| {
            let fee = Fee::new(n, 1000 * n).unwrap();
            builder.exchange(UntrustedText::new("e"), fee).unwrap()
        })
        .collect();
    let ids: Vec<TokenId> = tokens
        .iter()
        .filter_map(|t| builder.token(t.address, t.decimals, &t.symbol).ok())
        .collect();
    for (address, exchange, token0, token1, reserve0, reserve1) in pools {
        let pool = Pool {
            address,
            exchange: exchanges[usize::from(exchange)],
            token0: ids[token0 % ids.len()],
            token1: ids[token1 % ids.len()],
            reserve0,
            reserve1,
        };
        let _ = builder.pool(pool);
    }
    builder.build()
}

fn any_header() -> impl Strategy<Value = Header> {
    let pool = (
        address(),
        0..EXCHANGES,
        any::<usize>(),
        any::<usize>(),
        number(112),
        number(112),
    );
    let chain = (text(), prop::option::of(u64s()));
    let market = (vec(token(), 1..8), vec(pool, 0..12)).prop_map(|(t, p)| market(&t, p));
    (text(), text(), chain, address(), text(), market).prop_map(
        |(made_by, source, (name, id), base, market_name, market)| Header {
            made_by,
            source,
            chain: Chain { name, id },
            base,
            market_name,
            market,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_what_is_read(header in any_header(), events in recorded()) {
        let bytes = written(&header, &events, true);
        let reader = Reader::new(bytes.as_slice()).unwrap();
        prop_assert_eq!(reader.header(), &header);
        let read = read(&bytes).unwrap();
        prop_assert_eq!(&read.events, &events);
        prop_assert_eq!(read.ended, Ok(Tail::Ended));
        prop_assert_eq!(written(&header, &read.events, true), bytes);
    }
}

#[test]
fn reverts_new_pools_and_reread_markets_survive() {
    let events = events();
    let read = read(&written(&header(), &events, true)).unwrap();
    assert_eq!(read.events, events);
    // One of each kind is among them.
    let is = |wanted: fn(&Event) -> bool| events.iter().any(|recorded| wanted(&recorded.event));
    assert!(is(|event| matches!(event, Event::Block(_))));
    assert!(is(|event| matches!(event, Event::Reverted { .. })));
    assert!(is(
        |event| matches!(event, Event::Pools(pools) if !pools.is_empty())
    ));
    assert!(is(|event| matches!(event, Event::Reread { .. })));
}

/// Payloads of any length around that of the pieces in which they are unpacked, which are 32 KiB.
#[test]
fn long_payloads_survive_whatever_their_length() {
    let block = |number, updates: Vec<ReserveUpdate>| Recorded {
        at: Duration::ZERO,
        event: Event::Block(Block {
            number,
            hash: BlockHash::new([1; 32]),
            parent: BlockHash::new([2; 32]),
            timestamp: 0,
            base_fee: None,
            updates,
        }),
    };
    let update = |pool| ReserveUpdate {
        pool: PoolId::new(pool),
        reserve0: 0,
        reserve1: 0,
    };
    let mut lengths = Vec::new();
    // Three bytes an update, and one to three for the number: every length. All alike, and not.
    for pool in [|_| 0_u32, |n: u32| n.wrapping_mul(37) % 128] {
        for updates in (10_890..10_910).chain(21_810..21_830) {
            for number in [1, 200, 20_000] {
                let event = block(number, (0..updates).map(|n| update(pool(n))).collect());
                let mut payload = Vec::new();
                encode_event(&event, &mut payload).unwrap();
                lengths.push(payload.len());
                let events = [event];
                assert_eq!(
                    read(&written(&header(), &events, true)).unwrap().events,
                    events
                );
            }
        }
    }
    for length in [32_767, 32_768, 32_769, 65_535, 65_536, 65_537] {
        assert!(lengths.contains(&length), "{length}");
    }
}
