//! Addresses and hashes as the client has them, and as the bot does.

use crate::market::Address;
use crate::source::BlockHash;

pub(crate) fn address(address: alloy_primitives::Address) -> Address {
    Address::new(address.into_array())
}

pub(crate) fn plain(address: Address) -> alloy_primitives::Address {
    alloy_primitives::Address::new(*address.as_bytes())
}

pub(crate) const fn hash(hash: alloy_primitives::B256) -> BlockHash {
    BlockHash::new(hash.0)
}

pub(crate) const fn plain_hash(hash: BlockHash) -> alloy_primitives::B256 {
    alloy_primitives::B256::new(*hash.as_bytes())
}
