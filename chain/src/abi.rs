//! What pools, factories and tokens are asked, and what they say in logs.
//!
//! The signatures are those of Uniswap's second version (<https://docs.uniswap.org/contracts/v2/reference/smart-contracts>),
//! which its forks share, and of ERC-20.
//!
//! # Invariants
//! - A log is only read as an event if its topics and its data have exactly the event's form.

use alloy_primitives::{Address, B256};
use alloy_sol_types::{SolCall, SolEvent, sol};

use crate::types::Log;

sol! {
    /// A pool.
    interface Pair {
        /// The reserves after the last move, and when that was.
        function getReserves() external view returns (uint112 reserve0, uint112 reserve1, uint32 blockTimestampLast);
        /// The first token.
        function token0() external view returns (address);
        /// The second token.
        function token1() external view returns (address);
        /// Who made it.
        function factory() external view returns (address);
        /// The reserves changed to these.
        event Sync(uint112 reserve0, uint112 reserve1);
    }

    /// What makes pools.
    interface Factory {
        /// How many it made.
        function allPairsLength() external view returns (uint256);
        /// The one of that place.
        function allPairs(uint256 index) external view returns (address);
        /// The one of two tokens.
        function getPair(address token0, address token1) external view returns (address);
        /// It made one.
        event PairCreated(address indexed token0, address indexed token1, address pair, uint256 pairs);
    }

    /// A token.
    interface Token {
        /// Decimal places, for display.
        function decimals() external view returns (uint8);
        /// The name, for display.
        function symbol() external view returns (string);
        /// What an account has of it.
        function balanceOf(address owner) external view returns (uint256);
    }
}

/// The first topic of a pool's [`Sync`](Pair::Sync).
pub const SYNC: B256 = Pair::Sync::SIGNATURE_HASH;

/// The first topic of a factory's [`PairCreated`](Factory::PairCreated).
pub const PAIR_CREATED: B256 = Factory::PairCreated::SIGNATURE_HASH;

/// The reserves that a log says its pool has, if it is a pool's `Sync`.
#[must_use]
pub fn sync(log: &Log) -> Option<(u128, u128)> {
    if log.topics != [SYNC] {
        return None;
    }
    let decoded =
        Pair::Sync::decode_raw_log_validate(log.topics.iter().copied(), &log.data).ok()?;
    Some((decoded.reserve0.to(), decoded.reserve1.to()))
}

/// The reserves in the answer of a pool's `getReserves`.
#[must_use]
pub fn reserves(answer: &[u8]) -> Option<(u128, u128)> {
    let decoded = Pair::getReservesCall::abi_decode_returns_validate(answer).ok()?;
    Some((decoded.reserve0.to(), decoded.reserve1.to()))
}

/// The pool that a log says was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Created {
    /// Who made it: the contract that the log is of. Anyone can emit such a log; ask whether it is a known factory.
    pub factory: Address,
    /// The pool.
    pub pair: Address,
    /// Its first token.
    pub token0: Address,
    /// Its second token.
    pub token1: Address,
}

/// The pool that a log says was made, if it is a factory's `PairCreated`.
#[must_use]
pub fn created(log: &Log) -> Option<Created> {
    if log.topics.first() != Some(&PAIR_CREATED) {
        return None;
    }
    let topics = log.topics.iter().copied();
    let decoded = Factory::PairCreated::decode_raw_log_validate(topics, &log.data).ok()?;
    Some(Created {
        factory: log.address,
        pair: decoded.pair,
        token0: decoded.token0,
        token1: decoded.token1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Bytes, U256, b256};

    fn log(topics: Vec<B256>, words: &[U256]) -> Log {
        let data: Vec<u8> = words.iter().flat_map(U256::to_be_bytes::<32>).collect();
        Log {
            address: Address::repeat_byte(7),
            topics,
            data: Bytes::from(data),
            block_hash: B256::ZERO,
            block_number: alloy_primitives::U64::ZERO,
            transaction_hash: None,
            log_index: alloy_primitives::U64::ZERO,
            removed: false,
        }
    }

    /// The topic is written down where the contracts are documented.
    #[test]
    fn the_signature_of_sync_is_the_known_one() {
        let known = b256!("1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1");
        assert_eq!(SYNC, known);
    }

    #[test]
    fn a_sync_is_read_exactly_and_nothing_else_is() {
        let most = (U256::from(1) << 112) - U256::from(1);
        let good = log(vec![SYNC], &[U256::from(5), most]);
        assert_eq!(sync(&good), Some((5, (1 << 112) - 1)));
        let too_large = log(vec![SYNC], &[U256::from(5), most + U256::from(1)]);
        for bad in [
            too_large,
            log(vec![SYNC], &[U256::from(5)]),
            log(vec![SYNC, SYNC], &[U256::from(5), U256::from(6)]),
            log(vec![PAIR_CREATED], &[U256::from(5), U256::from(6)]),
            log(vec![], &[U256::from(5), U256::from(6)]),
        ] {
            assert_eq!(sync(&bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_new_pool_is_read_with_who_made_it() {
        let word = |byte: u8| B256::left_padding_from(&[byte; 20]);
        let pair = U256::from_be_bytes(word(3).0);
        let good = log(vec![PAIR_CREATED, word(1), word(2)], &[pair, U256::from(9)]);
        let expected = Created {
            factory: Address::repeat_byte(7),
            pair: Address::repeat_byte(3),
            token0: Address::repeat_byte(1),
            token1: Address::repeat_byte(2),
        };
        assert_eq!(created(&good), Some(expected));
        // An address with dirt above it is none.
        let dirty = log(
            vec![PAIR_CREATED, B256::repeat_byte(1), word(2)],
            &[pair, U256::from(9)],
        );
        assert_eq!(created(&dirty), None);
        assert_eq!(
            created(&log(vec![PAIR_CREATED, word(1)], &[pair, U256::from(9)])),
            None
        );
        assert_eq!(
            created(&log(vec![PAIR_CREATED, word(1), word(2)], &[pair])),
            None
        );
    }
}
