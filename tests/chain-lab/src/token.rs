//! The ERC-20 that stands at every token's address: its code and where it keeps what.
//!
//! # Invariants
//! - The slots are those of `contracts/testing/Token.sol`, and the code is that of the artifact beside it.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use serde::Deserialize;
use serde_json::json;

use crate::error::LabError;
use crate::market::{lab_holding, token_code};
use crate::rpc::{Call, Rpc};

/// The compiled contract.
const ARTIFACT: &str = include_str!("../../../contracts/testing/Token.json");

/// Slots of the state variables.
const BALANCE_OF: u64 = 0;
const TOTAL_SUPPLY: u64 = 2;
const SYMBOL: u64 = 3;
const DECIMALS_AND_TAX: u64 = 4;

/// Bytes of a text that fits into its own slot.
const SHORT: usize = 31;

/// A token's own facts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Its units have so many decimals.
    pub decimals: u8,
    /// Its symbol; the chain has the first 31 bytes, cut between characters.
    pub symbol: String,
    /// Of each transfer, so many parts in 10,000 are burnt.
    pub tax_bps: u16,
}

impl Token {
    /// Puts the token at `address`, outside of any block; the lab's account gets what it has of every token.
    pub(crate) fn put(
        &self,
        rpc: &mut Rpc,
        address: Address,
        lab: Address,
    ) -> Result<(), LabError> {
        let code = Call::new("anvil_setCode", json!([address, token_code()?]));
        let held = (balance_slot(lab), lab_holding());
        let slots = self.slots().into_iter().chain([held]);
        let slots = slots.map(|(slot, value)| Call::set_slot(address, slot, value));
        rpc.batch(&[code].into_iter().chain(slots).collect::<Vec<_>>())?;
        Ok(())
    }

    /// The slots that hold these facts.
    pub(crate) fn slots(&self) -> [(U256, U256); 3] {
        let packed = U256::from(self.decimals) | U256::from(self.tax_bps) << 8;
        [
            (U256::from(SYMBOL), short_text(&self.symbol)),
            (U256::from(DECIMALS_AND_TAX), packed),
            // More than all that the lab gives out; nothing depends on the exact number.
            (U256::from(TOTAL_SUPPLY), U256::ONE << 225),
        ]
    }
}

/// The slot of `holder`'s balance.
#[must_use]
pub(crate) fn balance_slot(holder: Address) -> U256 {
    let slot = B256::from(U256::from(BALANCE_OF));
    keccak256([holder.into_word(), slot].concat()).into()
}

/// A text of at most 31 bytes as Solidity stores it: from the left, and twice its length in the last byte.
fn short_text(text: &str) -> U256 {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let length = ends.take_while(|&end| end <= SHORT).last().unwrap_or(0);
    let mut word = [0; 32];
    for (to, from) in word.iter_mut().zip(text.bytes().take(length)) {
        *to = from;
    }
    U256::from_be_bytes(word) | U256::from(2 * length)
}

#[derive(Deserialize)]
struct Artifact {
    #[serde(rename = "runtimeBytecode")]
    runtime: Bytes,
}

/// The token's code as it stands on chain.
pub(crate) fn code() -> Result<Bytes, serde_json::Error> {
    serde_json::from_str(ARTIFACT).map(|artifact: Artifact| artifact.runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_artifact_is_of_the_source_beside_it() {
        use alloy_primitives::hex;
        use sha2::{Digest, Sha256};
        let source = include_str!("../../../contracts/testing/Token.sol");
        let artifact: serde_json::Value = serde_json::from_str(ARTIFACT).unwrap();
        let digest = hex::encode(Sha256::digest(source));
        assert_eq!(artifact["sourceSha256"], digest);
        assert!(!code().unwrap().is_empty());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let length = |text: &str| short_text(text).byte(0) / 2;
        assert_eq!(length(""), 0);
        assert_eq!(length("WETH"), 4);
        assert_eq!(length(&"x".repeat(31)), 31);
        assert_eq!(length(&"x".repeat(40)), 31);
        // Two bytes each: fifteen of them, not fifteen and a half.
        assert_eq!(length(&"é".repeat(20)), 30);
    }
}
