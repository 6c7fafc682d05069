//! How `UniswapV2Pair` lays out its storage.
//!
//! Source: `UniswapV2ERC20.sol` and `UniswapV2Pair.sol` of v2-core 1.0.1, by the Solidity rules for storage layout.
//!
//! # Invariants
//! - Packing reserves and unpacking them gives the same reserves.

use alloy_primitives::{U256, aliases::U112};

/// The slot of `token0`.
pub const TOKEN_0: U256 = U256::from_limbs([6, 0, 0, 0]);
/// The slot of `token1`.
pub const TOKEN_1: U256 = U256::from_limbs([7, 0, 0, 0]);
/// The slot of both reserves and the time of their last update.
pub const RESERVES: U256 = U256::from_limbs([8, 0, 0, 0]);
/// The slot of `price0CumulativeLast`.
pub const PRICE_0: U256 = U256::from_limbs([9, 0, 0, 0]);
/// The slot of `price1CumulativeLast`.
pub const PRICE_1: U256 = U256::from_limbs([10, 0, 0, 0]);
/// The slot of the lock: 1 whenever no call of the pair is under way.
pub const LOCK: U256 = U256::from_limbs([12, 0, 0, 0]);

/// What a swap reads. Slot 11 (`kLast`) is read by `mint` and `burn` alone.
pub(crate) const READ_BY_SWAP: [U256; 6] = [TOKEN_0, TOKEN_1, RESERVES, PRICE_0, PRICE_1, LOCK];
/// What no transaction changes once the pair is there.
pub(crate) const FIXED: [U256; 3] = [TOKEN_0, TOKEN_1, LOCK];
/// What `_update` alone writes, which always emits `Sync`.
pub(crate) const BY_UPDATE: [U256; 3] = [RESERVES, PRICE_0, PRICE_1];

/// What slot 8 of a pair holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserves {
    /// Of token 0, in its smallest unit.
    pub reserve0: U112,
    /// Of token 1, in its smallest unit.
    pub reserve1: U112,
    /// Seconds since 1970 of the last update, modulo 2³².
    pub timestamp: u32,
}

impl Reserves {
    /// The slot's word: `reserve0` in the low 112 bits, `reserve1` above it, the time in the high 32.
    #[must_use]
    pub fn pack(self) -> U256 {
        U256::from(self.reserve0)
            | (U256::from(self.reserve1) << 112)
            | (U256::from(self.timestamp) << 224)
    }

    /// What a slot's word says.
    #[must_use]
    pub fn unpack(word: U256) -> Self {
        let reserve1: U256 = word >> 112;
        let timestamp: U256 = word >> 224;
        Self {
            reserve0: word.wrapping_to(),
            reserve1: reserve1.wrapping_to(),
            timestamp: timestamp.wrapping_to(),
        }
    }
}
