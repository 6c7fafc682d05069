//! The content of records: the header and the four events.

use super::error::{Problem, WriteError};
use super::wire::{Cursor, put_number, put_option, put_text};
use super::{Chain, Header, Kind, MAX_COUNT, Recorded};
use crate::market::{ExchangeId, MarketBuilder, Pool, PoolId, ReserveUpdate, Token, TokenId};
use crate::solver::Fee;
use crate::source::{Block, BlockHash, Event, Head, NewPool};
use core::time::Duration;

/// Bits of a reserve.
const RESERVE_BITS: u32 = 112;

/// The least bytes of an update: a pool and two reserves.
const UPDATE_LEAST: u64 = 3;

/// The least bytes of a token: an address, decimals and an empty symbol.
const TOKEN_LEAST: u64 = 22;

/// The least bytes of a pool: an address, an exchange, two tokens and two reserves.
const POOL_LEAST: u64 = 25;

/// The least bytes of a pool with its tokens.
const NEW_POOL_LEAST: u64 = 23 + 2 * TOKEN_LEAST;

/// The least bytes of an exchange: an empty name and a fee.
const EXCHANGE_LEAST: u64 = 3;

/// A problem and its byte in the payload.
type At<T> = Result<T, (u64, Problem)>;

fn counted(bytes: &mut Vec<u8>, what: &'static str, count: usize) -> Result<(), WriteError> {
    if count as u64 > MAX_COUNT {
        return Err(WriteError::Many { what, count });
    }
    put_number(bytes, count as u128);
    Ok(())
}

/// Adds the payload of a header record.
pub fn encode_header(header: &Header, bytes: &mut Vec<u8>) -> Result<(), WriteError> {
    put_text(bytes, &header.made_by);
    put_text(bytes, &header.source);
    put_text(bytes, &header.chain.name);
    put_option(bytes, header.chain.id.map(u128::from));
    bytes.extend_from_slice(header.base.as_bytes());
    put_text(bytes, &header.market_name);
    let market = &header.market;
    counted(bytes, "exchanges", market.exchanges().len())?;
    for exchange in market.exchanges() {
        put_text(bytes, &exchange.name);
        put_number(bytes, exchange.fee.num().into());
        put_number(bytes, exchange.fee.den().into());
    }
    counted(bytes, "tokens", market.tokens().len())?;
    for token in market.tokens() {
        put_token(bytes, token);
    }
    counted(bytes, "pools", market.pools().len())?;
    for pool in market.pools() {
        bytes.extend_from_slice(pool.address.as_bytes());
        put_number(bytes, pool.exchange.index() as u128);
        put_number(bytes, pool.token0.number().into());
        put_number(bytes, pool.token1.number().into());
        put_number(bytes, pool.reserve0);
        put_number(bytes, pool.reserve1);
    }
    Ok(())
}

/// Reads the payload of a header record; a problem comes with its byte.
pub fn decode_header(payload: &[u8]) -> Result<Header, (u64, Problem)> {
    let mut cursor = Cursor::new(payload);
    header(&mut cursor).map_err(|problem| (cursor.at(), problem))
}

fn header(cursor: &mut Cursor<'_>) -> Result<Header, Problem> {
    let made_by = cursor.text("the name of the maker")?;
    let source = cursor.text("the kind of source")?;
    let chain = Chain {
        name: cursor.text("the name of the chain")?,
        id: cursor
            .option("the id of the chain", 64)?
            .and_then(|id| u64::try_from(id).ok()),
    };
    let base = cursor.address("the base token")?;
    let market_name = cursor.text("the name of the market")?;
    let mut builder = MarketBuilder::new();
    let (mut exchanges, mut ids): (Vec<ExchangeId>, Vec<TokenId>) = (Vec::new(), Vec::new());
    for _ in 0..cursor.count("exchanges", EXCHANGE_LEAST)? {
        let name = cursor.text("the name of an exchange")?;
        let fee = Fee::new(
            cursor.u16("the numerator of a fee")?,
            cursor.u16("the denominator of a fee")?,
        )?;
        exchanges.push(builder.exchange(name, fee)?);
    }
    for number in 0..cursor.count("tokens", TOKEN_LEAST)? {
        let token = token(cursor)?;
        let id = builder.token(token.address, token.decimals, &token.symbol)?;
        // The builder finds a token that it has.
        if id.index() as u64 != number {
            let number = ids.len();
            return Err(Problem::Token { number });
        }
        ids.push(id);
    }
    for _ in 0..cursor.count("pools", POOL_LEAST)? {
        let address = cursor.address("the address of a pool")?;
        let exchange = listed(cursor, "exchange", &exchanges)?;
        let token0 = listed(cursor, "token", &ids)?;
        let token1 = listed(cursor, "token", &ids)?;
        let (reserve0, reserve1) = reserves(cursor)?;
        builder.pool(Pool {
            address,
            exchange,
            token0,
            token1,
            reserve0,
            reserve1,
        })?;
    }
    cursor.end()?;
    Ok(Header {
        made_by,
        source,
        chain,
        base,
        market_name,
        market: builder.build(),
    })
}

/// One of what was listed, by its place.
fn listed<T: Copy>(cursor: &mut Cursor<'_>, what: &'static str, all: &[T]) -> Result<T, Problem> {
    let number = cursor.u64(what)?;
    let found = usize::try_from(number).ok().and_then(|at| all.get(at));
    found.copied().ok_or(Problem::Unknown {
        what,
        number,
        count: all.len(),
    })
}

fn put_token(bytes: &mut Vec<u8>, token: &Token) {
    bytes.extend_from_slice(token.address.as_bytes());
    bytes.push(token.decimals);
    put_text(bytes, &token.symbol);
}

fn token(cursor: &mut Cursor<'_>) -> Result<Token, Problem> {
    Ok(Token {
        address: cursor.address("the address of a token")?,
        decimals: cursor.byte("the decimals of a token")?,
        symbol: cursor.text("the symbol of a token")?,
    })
}

fn reserves(cursor: &mut Cursor<'_>) -> Result<(u128, u128), Problem> {
    Ok((
        cursor.number("a reserve", RESERVE_BITS)?,
        cursor.number("a reserve", RESERVE_BITS)?,
    ))
}

fn put_head(bytes: &mut Vec<u8>, head: &Head) {
    put_number(bytes, head.number.into());
    bytes.extend_from_slice(head.hash.as_bytes());
    bytes.extend_from_slice(head.parent.as_bytes());
    put_number(bytes, head.timestamp.into());
    put_option(bytes, head.base_fee);
}

fn head(cursor: &mut Cursor<'_>) -> Result<Head, Problem> {
    Ok(Head {
        number: cursor.u64("the number of a block")?,
        hash: BlockHash::new(cursor.array("the hash of a block")?),
        parent: BlockHash::new(cursor.array("the hash of a parent")?),
        timestamp: cursor.u64("the time of a block")?,
        base_fee: cursor.option("the base fee", 128)?,
    })
}

fn put_updates(bytes: &mut Vec<u8>, updates: &[ReserveUpdate]) -> Result<(), WriteError> {
    counted(bytes, "updates", updates.len())?;
    for update in updates {
        put_number(bytes, update.pool.number().into());
        put_number(bytes, update.reserve0);
        put_number(bytes, update.reserve1);
    }
    Ok(())
}

fn updates(cursor: &mut Cursor<'_>) -> Result<Vec<ReserveUpdate>, Problem> {
    let mut updates = Vec::new();
    for _ in 0..cursor.count("updates", UPDATE_LEAST)? {
        let pool = PoolId::new(cursor.u32("the number of a pool")?);
        let (reserve0, reserve1) = reserves(cursor)?;
        updates.push(ReserveUpdate {
            pool,
            reserve0,
            reserve1,
        });
    }
    Ok(updates)
}

/// Adds the payload of an event's record. A time of more than 584 years is written as that.
pub fn encode_event(recorded: &Recorded, bytes: &mut Vec<u8>) -> Result<(), WriteError> {
    let at = u64::try_from(recorded.at.as_nanos()).unwrap_or(u64::MAX);
    put_number(bytes, at.into());
    match &recorded.event {
        Event::Block(block) => {
            put_head(bytes, &block.head());
            put_updates(bytes, &block.updates)?;
        }
        Event::Reverted { number, hash } => {
            put_number(bytes, (*number).into());
            bytes.extend_from_slice(hash.as_bytes());
        }
        Event::Pools(pools) => {
            counted(bytes, "pools", pools.len())?;
            for pool in pools {
                bytes.extend_from_slice(pool.address.as_bytes());
                put_number(bytes, pool.exchange.index() as u128);
                put_token(bytes, &pool.token0);
                put_token(bytes, &pool.token1);
                put_number(bytes, pool.reserve0);
                put_number(bytes, pool.reserve1);
            }
        }
        Event::Reread { head, reserves } => {
            put_head(bytes, head);
            put_updates(bytes, reserves)?;
        }
    }
    Ok(())
}

/// Reads the payload of an event's record in a capture with so many exchanges; a problem comes with its byte.
/// `None` for the kinds that are no events.
pub fn decode_event(kind: Kind, payload: &[u8], exchanges: u16) -> At<Option<Recorded>> {
    let mut cursor = Cursor::new(payload);
    event(kind, &mut cursor, exchanges).map_err(|problem| (cursor.at(), problem))
}

fn event(kind: Kind, cursor: &mut Cursor<'_>, exchanges: u16) -> Result<Option<Recorded>, Problem> {
    if matches!(kind, Kind::Header | Kind::End) {
        return Ok(None);
    }
    let at = Duration::from_nanos(cursor.u64("the time of a record")?);
    let event = match kind {
        Kind::Header | Kind::End => return Ok(None),
        Kind::Block => {
            let head = head(cursor)?;
            Event::Block(Block {
                number: head.number,
                hash: head.hash,
                parent: head.parent,
                timestamp: head.timestamp,
                base_fee: head.base_fee,
                updates: updates(cursor)?,
            })
        }
        Kind::Reverted => Event::Reverted {
            number: cursor.u64("the number of a block")?,
            hash: BlockHash::new(cursor.array("the hash of a block")?),
        },
        Kind::Pools => {
            let mut pools = Vec::new();
            for _ in 0..cursor.count("pools", NEW_POOL_LEAST)? {
                pools.push(new_pool(cursor, exchanges)?);
            }
            Event::Pools(pools)
        }
        Kind::Reread => Event::Reread {
            head: head(cursor)?,
            reserves: updates(cursor)?,
        },
    };
    cursor.end()?;
    Ok(Some(Recorded { at, event }))
}

fn new_pool(cursor: &mut Cursor<'_>, exchanges: u16) -> Result<NewPool, Problem> {
    let address = cursor.address("the address of a pool")?;
    let number = cursor.u16("the exchange of a pool")?;
    if number >= exchanges {
        return Err(Problem::Unknown {
            what: "exchange",
            number: number.into(),
            count: exchanges.into(),
        });
    }
    let (token0, token1) = (token(cursor)?, token(cursor)?);
    let (reserve0, reserve1) = reserves(cursor)?;
    Ok(NewPool {
        address,
        exchange: ExchangeId::new(number),
        token0,
        token1,
        reserve0,
        reserve1,
    })
}
