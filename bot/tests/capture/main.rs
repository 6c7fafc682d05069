//! Captures: what is written is what is read, whatever happens to the file in between.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, in a helper too"
)]

mod content;
mod damage;
mod golden;
mod killed;
mod of_node;
mod round_trip;
mod runs;
mod writing;

use regatta_bot::capture::{Chain, Header, ReadError, Reader, Recorded, Tail, Writer};
use regatta_bot::market::{
    Address, ExchangeId, MAX_RESERVE, MarketBuilder, Pool, PoolId, ReserveUpdate, Token,
    UntrustedText,
};
use regatta_bot::solver::Fee;
use regatta_bot::source::{Block, BlockHash, Event, Head, NewPool};
use std::process::{Command, Output};
use std::time::Duration;

fn address(n: u32) -> Address {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    Address::new(bytes)
}

fn token(n: u32) -> Token {
    Token {
        address: address(n),
        decimals: 18,
        symbol: UntrustedText::new("T\u{1b}[2J"),
    }
}

/// Two exchanges, three tokens, three pools.
fn header() -> Header {
    let mut market = MarketBuilder::new();
    let exchanges = [(997, 1000), (1, 10_000)].map(|(num, den)| {
        let fee = Fee::new(num, den).unwrap();
        market.exchange(UntrustedText::new("x"), fee).unwrap()
    });
    let tokens = [1, 2, 3].map(|n| {
        let token = token(n);
        market
            .token(token.address, token.decimals, &token.symbol)
            .unwrap()
    });
    for (n, reserve) in [(10, 0), (11, 7), (12, MAX_RESERVE)] {
        let pool = Pool {
            address: address(n),
            exchange: exchanges[n as usize % 2],
            token0: tokens[n as usize % 3],
            token1: tokens[(n as usize + 1) % 3],
            reserve0: reserve,
            reserve1: 1000,
        };
        market.pool(pool).unwrap();
    }
    Header {
        made_by: UntrustedText::new("test"),
        source: UntrustedText::new("made by hand"),
        chain: Chain {
            name: UntrustedText::new("test"),
            id: Some(u64::MAX),
        },
        base: address(1),
        market_name: UntrustedText::new("three pools"),
        market: market.build(),
    }
}

fn update(pool: u32, reserve0: u128) -> ReserveUpdate {
    ReserveUpdate {
        pool: PoolId::new(pool),
        reserve0,
        reserve1: MAX_RESERVE,
    }
}

/// One of each kind, and an empty block.
fn events() -> Vec<Recorded> {
    let hash = BlockHash::new([7; 32]);
    let head = Head {
        number: 300,
        hash,
        parent: BlockHash::new([9; 32]),
        timestamp: 1_700_000_000,
        base_fee: Some(1_000_000_007),
    };
    let block = |updates, base_fee| {
        Event::Block(Block {
            number: head.number,
            hash: head.hash,
            parent: head.parent,
            timestamp: head.timestamp,
            base_fee,
            updates,
        })
    };
    let pool = NewPool {
        address: address(13),
        exchange: ExchangeId::new(1),
        token0: token(1),
        token1: token(4),
        reserve0: 5,
        reserve1: 6,
    };
    let events = [
        block(vec![update(0, 1), update(2, 0), update(0, 300)], None),
        Event::Reverted { number: 300, hash },
        Event::Pools(vec![pool]),
        block(Vec::new(), head.base_fee),
        Event::Reread {
            head,
            reserves: vec![update(3, 1 << 77)],
        },
    ];
    (0..)
        .zip(events)
        .map(|(n, event)| Recorded {
            at: Duration::from_nanos(n * 1_000_003),
            event,
        })
        .collect()
}

/// A capture, ended or not.
fn written(header: &Header, events: &[Recorded], ended: bool) -> Vec<u8> {
    let bytes = Kept::default();
    let mut writer = Writer::new(bytes.clone(), header).unwrap();
    for event in events {
        writer.recorded(event).unwrap();
    }
    if ended {
        writer.finish().unwrap();
    }
    bytes.bytes()
}

/// All that can be read of a capture: the events, where each ends, and how it ended.
struct Read {
    events: Vec<Recorded>,
    /// The end of the header and of each event.
    ends: Vec<usize>,
    ended: Result<Tail, ReadError>,
}

fn read(bytes: &[u8]) -> Result<Read, ReadError> {
    let mut reader = Reader::new(bytes)?;
    let place = |reader: &Reader<&[u8]>| usize::try_from(reader.offset()).unwrap();
    let (mut events, mut ends) = (Vec::new(), vec![place(&reader)]);
    let ended = loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                events.push(event);
                ends.push(place(&reader));
            }
            Ok(None) => break Ok(reader.tail().unwrap()),
            Err(error) => {
                // It stays that error.
                assert_eq!(reader.next_event(), Err(error.clone()));
                break Err(error);
            }
        }
    };
    Ok(Read {
        events,
        ends,
        ended,
    })
}

/// A place that can be looked at while it is written to.
#[derive(Clone, Default)]
struct Kept(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Kept {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl regatta_bot::capture::Durable for Kept {
    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `regatta` with these arguments and nothing in its environment.
fn regatta(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.env_clear().args(args);
    command
}

/// What it came to.
#[track_caller]
fn exits(args: &[&str], code: i32) -> (String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = regatta(args).output().unwrap();
    let (out, err) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    assert_eq!(status.code(), Some(code), "{args:?}: {err}");
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}
