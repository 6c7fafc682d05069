//! What the executor is told and what it answers: calldata, the profit it reports, and why it reverted.
//!
//! The contract is `contracts/Executor.sol`; its compiled form is [`artifact`].
//!
//! # Invariants
//! - Bytes from a node decode to a value or to a reason that says what they are: never a panic, never text that is
//!   unbounded or unescaped.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use alloy_sol_types::{Panic, Revert, SolCall, SolError, SolEvent};
use serde::{Deserialize, Serialize};

/// The contract's interface, as its source has it.
pub mod bindings {
    alloy_sol_types::sol! {
        struct Hop { address pool; bool zeroForOne; uint256 amountOut; }
        error NotOwner();
        error Expired(uint256 expiryBlock);
        error NotThePool(address caller);
        error NoHops();
        error ProfitTooSmall(uint256 profit, uint256 minProfit);
        error Busy();
        error TransferFailed(address token);
        event Settled(address indexed base, uint256 profit);
        function execute(address base, uint256 amountIn, Hop[] hops, uint256 minProfit, uint256 expiryBlock)
            external returns (uint256 profit);
        function withdraw(address token, address to, uint256 amount) external;
        function owner() external view returns (address);
    }
}

/// The compiled contract.
pub mod artifact {
    use std::collections::BTreeMap;

    use alloy_primitives::{Address, Bytes, hex};
    use serde::Deserialize;

    /// The tracked artifact.
    const JSON: &str = include_str!("../../contracts/Executor.json");

    /// What of it is read.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Artifact {
        bytecode: String,
        runtime_bytecode: String,
        immutable_references: BTreeMap<String, Vec<Place>>,
    }

    /// Where an immutable stands in the code.
    #[derive(Deserialize)]
    struct Place {
        start: usize,
        length: usize,
    }

    /// What deploys the executor: the data of a transaction to nobody. Its sender is the owner; the constructor takes no
    /// arguments. Empty if the artifact this was built with is not one, which a test rules out.
    #[must_use]
    pub fn creation_code() -> Bytes {
        let artifact: Option<Artifact> = serde_json::from_str(JSON).ok();
        let code = artifact.and_then(|artifact| hex::decode(artifact.bytecode).ok());
        code.unwrap_or_default().into()
    }

    /// The code of an executor whose owner is `owner`: the owner is its only immutable. Empty as [`creation_code`] is.
    #[must_use]
    pub fn runtime_code(owner: Address) -> Bytes {
        let code = || {
            let artifact: Artifact = serde_json::from_str(JSON).ok()?;
            let mut code = hex::decode(artifact.runtime_bytecode).ok()?;
            let word = owner.into_word();
            for place in artifact.immutable_references.into_values().flatten() {
                let end = place.start.checked_add(place.length)?;
                let to = code.get_mut(place.start..end)?;
                if to.len() != word.len() {
                    return None;
                }
                to.copy_from_slice(word.as_slice());
            }
            Some(code)
        };
        code().unwrap_or_default().into()
    }
}

/// One swap of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hop {
    /// The pair.
    pub pool: Address,
    /// Whether its token 0 goes in and its token 1 comes out.
    pub zero_for_one: bool,
    /// What comes out, in the token's smallest unit.
    pub amount_out: U256,
}

/// What the executor is asked to run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cycle {
    /// The token it begins and ends with.
    pub base: Address,
    /// What goes into the first pair, in the base token's smallest unit.
    pub amount_in: U256,
    /// The swaps, in order.
    pub hops: Vec<Hop>,
    /// What must be left over, in the base token's smallest unit.
    pub min_profit: U256,
    /// The last block in which it may run.
    pub expiry: u64,
}

impl Cycle {
    /// The call's data.
    #[must_use]
    pub fn calldata(&self) -> Bytes {
        let hops = self.hops.iter().map(|hop| bindings::Hop {
            pool: hop.pool,
            zeroForOne: hop.zero_for_one,
            amountOut: hop.amount_out,
        });
        let call = bindings::executeCall {
            base: self.base,
            amountIn: self.amount_in,
            hops: hops.collect(),
            minProfit: self.min_profit,
            expiryBlock: U256::from(self.expiry),
        };
        call.abi_encode().into()
    }

    /// The cycle that a call's data asks for; nothing if the data is not of such a call.
    #[must_use]
    pub fn from_calldata(data: &[u8]) -> Option<Self> {
        let call = bindings::executeCall::abi_decode(data).ok()?;
        let hops = call.hops.iter().map(|hop| Hop {
            pool: hop.pool,
            zero_for_one: hop.zeroForOne,
            amount_out: hop.amountOut,
        });
        Some(Self {
            base: call.base,
            amount_in: call.amountIn,
            hops: hops.collect(),
            min_profit: call.minProfit,
            expiry: u64::try_from(call.expiryBlock).ok()?,
        })
    }
}

/// The profit that a call of `execute` returned; nothing if `output` is not one word.
#[must_use]
pub fn profit(output: &[u8]) -> Option<U256> {
    // An address without code answers with nothing.
    (output.len() == 32).then(|| U256::from_be_slice(output))
}

/// The data of the call that asks who the executor's owner is; the answer is one word, an address.
#[must_use]
pub fn owner_calldata() -> Bytes {
    bindings::ownerCall {}.abi_encode().into()
}

/// The data of the call that sends `amount` of `token`, which the executor has, to `to`.
#[must_use]
pub fn withdraw_calldata(token: Address, to: Address, amount: U256) -> Bytes {
    let call = bindings::withdrawCall { token, to, amount };
    call.abi_encode().into()
}

/// The profit that a log reports, if it is `executor`'s about `base`.
#[must_use]
pub fn settled(
    executor: Address,
    base: Address,
    address: Address,
    topics: &[B256],
    data: &[u8],
) -> Option<U256> {
    let of = [bindings::Settled::SIGNATURE_HASH, base.into_word()];
    (address == executor && topics == of).then(|| profit(data))?
}

/// The topics and data of the log by which an executor reports `profit`.
#[must_use]
pub fn settled_log(base: Address, profit: U256) -> ([B256; 2], Bytes) {
    let topics = [bindings::Settled::SIGNATURE_HASH, base.into_word()];
    (topics, profit.to_be_bytes::<32>().into())
}

/// Why a call or a transaction failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The sender is not the executor's owner.
    NotOwner,
    /// It came after this block.
    Expired(U256),
    /// Somebody else than the pair called back.
    NotThePool(Address),
    /// The cycle had no hops.
    NoHops,
    /// It left `profit`, not `min`.
    ProfitTooSmall {
        /// What was left.
        profit: U256,
        /// What was asked for.
        min: U256,
    },
    /// A cycle was running.
    Busy,
    /// This token refused a transfer and gave no reason.
    TransferFailed(Address),
    /// `Error(string)`, as pairs and tokens give: escaped, cut at [`MAX_TEXT`] characters.
    Text(String),
    /// `Panic(uint256)`: the compiler's code.
    Panic(U256),
    /// It used all gas that it was given.
    OutOfGas,
    /// It ended without data.
    Empty,
    /// Bytes of no known form: their first [`MAX_BYTES`].
    Bytes(Bytes),
    /// It succeeded, and its answer was not the predicted profit.
    ProfitDiffers {
        /// What was predicted.
        predicted: U256,
        /// What came out; nothing if the answer was no profit at all.
        realised: Option<U256>,
    },
    /// After gas at its dearest it leaves less than is asked for.
    TooLittleAfterGas {
        /// The predicted profit in wei.
        profit: U256,
        /// Wei for gas at most.
        gas: U256,
    },
    /// The offer for gas that the next block may need is above what is allowed.
    AboveCap {
        /// The head's base fee, in wei for a unit of gas.
        base_fee: U256,
        /// What may be offered, in wei for a unit of gas.
        cap: U256,
    },
    /// It failed in its block and succeeds in the state after it.
    NotReproduced,
    /// The node failed to say; escaped, cut at [`MAX_TEXT`] characters.
    Node(String),
}

/// The longest text of a reason, in characters.
pub const MAX_TEXT: usize = 200;

/// How many bytes of an unknown form are kept.
pub const MAX_BYTES: usize = 68;

/// `text` escaped and cut.
#[must_use]
pub fn bounded(text: &str) -> String {
    text.escape_debug().take(MAX_TEXT).collect()
}

impl Reason {
    /// What the data of a revert says.
    #[must_use]
    pub fn decode(data: &[u8]) -> Self {
        use bindings as b;
        if data.is_empty() {
            return Self::Empty;
        }
        let known = data.first_chunk().and_then(|selector: &[u8; 4]| {
            Some(match *selector {
                b::NotOwner::SELECTOR if data.len() == 4 => Self::NotOwner,
                b::NoHops::SELECTOR if data.len() == 4 => Self::NoHops,
                b::Busy::SELECTOR if data.len() == 4 => Self::Busy,
                b::Expired::SELECTOR => {
                    Self::Expired(b::Expired::abi_decode(data).ok()?.expiryBlock)
                }
                b::NotThePool::SELECTOR => {
                    Self::NotThePool(b::NotThePool::abi_decode(data).ok()?.caller)
                }
                b::TransferFailed::SELECTOR => {
                    Self::TransferFailed(b::TransferFailed::abi_decode(data).ok()?.token)
                }
                b::ProfitTooSmall::SELECTOR => {
                    let error = b::ProfitTooSmall::abi_decode(data).ok()?;
                    Self::ProfitTooSmall {
                        profit: error.profit,
                        min: error.minProfit,
                    }
                }
                Revert::SELECTOR => Self::Text(bounded(Revert::abi_decode(data).ok()?.reason())),
                Panic::SELECTOR => Self::Panic(Panic::abi_decode(data).ok()?.code),
                _ => return None,
            })
        });
        known.unwrap_or_else(|| {
            let kept = data.get(..MAX_BYTES).unwrap_or(data);
            Self::Bytes(Bytes::copy_from_slice(kept))
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOwner => write!(f, "the sender is not the executor's owner"),
            Self::Expired(block) => write!(f, "expired after block {block}"),
            Self::NotThePool(caller) => write!(f, "called back by {caller}, not by the pair"),
            Self::NoHops => write!(f, "a cycle without hops"),
            Self::ProfitTooSmall { profit, min } => write!(f, "profit {profit}, not {min} or more"),
            Self::Busy => write!(f, "the executor was running a cycle"),
            Self::TransferFailed(token) => write!(f, "token {token} refused a transfer"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Panic(code) => write!(f, "panic {code:#x}"),
            Self::OutOfGas => write!(f, "out of gas"),
            Self::Empty => write!(f, "no data"),
            Self::Bytes(bytes) => write!(f, "unknown data {}", hex::encode_prefixed(bytes)),
            Self::ProfitDiffers {
                predicted,
                realised: Some(realised),
            } => write!(f, "profit {realised}, not {predicted} as predicted"),
            Self::ProfitDiffers { predicted, .. } => {
                write!(f, "no profit reported, not {predicted} as predicted")
            }
            Self::TooLittleAfterGas { profit, gas } => {
                write!(f, "profit {profit} leaves too little after {gas} for gas")
            }
            Self::AboveCap { base_fee, cap } => {
                write!(f, "base fee {base_fee} may rise above the cap {cap}")
            }
            Self::NotReproduced => write!(f, "it succeeds in the state after its block"),
            Self::Node(text) => write!(f, "the node: {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;
    use proptest::prelude::*;

    #[test]
    fn the_artifact_has_code() {
        assert!(artifact::creation_code().len() > 1000);
    }

    #[test]
    fn selectors_are_those_of_the_artifact() {
        let signature = "execute(address,uint256,(address,bool,uint256)[],uint256,uint256)";
        assert_eq!(bindings::executeCall::SIGNATURE, signature);
        // The runtime compares with each selector, so that its code holds them all.
        let code = hex::encode(artifact::creation_code());
        for signature in [
            signature,
            "withdraw(address,address,uint256)",
            "owner()",
            "NotOwner()",
            "Expired(uint256)",
            "NotThePool(address)",
            "NoHops()",
            "ProfitTooSmall(uint256,uint256)",
            "Busy()",
            "TransferFailed(address)",
        ] {
            let selector = hex::encode(&keccak256(signature)[..4]);
            // A constant's leading and trailing zeros may be written as a shift.
            let selector = selector.trim_matches('0');
            assert!(code.contains(selector), "{signature}: {selector}");
        }
    }

    #[test]
    fn reasons_are_told_apart() {
        let text = Revert::from("UniswapV2: K").abi_encode();
        assert_eq!(Reason::decode(&text), Reason::Text("UniswapV2: K".into()));
        let expired = bindings::Expired {
            expiryBlock: U256::from(7),
        };
        assert_eq!(
            Reason::decode(&expired.abi_encode()),
            Reason::Expired(U256::from(7))
        );
        let panic = Panic::from(0x11).abi_encode();
        assert_eq!(Reason::decode(&panic), Reason::Panic(U256::from(0x11)));
        assert_eq!(Reason::decode(&[]), Reason::Empty);
        assert_eq!(Reason::decode(&[1, 2]), Reason::Bytes(vec![1, 2].into()));
        let evil = Revert::from(format!("\u{1b}[2J{}", "x".repeat(5000))).abi_encode();
        let Reason::Text(text) = Reason::decode(&evil) else {
            panic!("no text")
        };
        assert!(text.len() <= MAX_TEXT && !text.contains('\u{1b}'), "{text}");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_bounded_reason(data: Vec<u8>, known in 0_usize..4) {
            let heads = [Revert::SELECTOR, Panic::SELECTOR, bindings::ProfitTooSmall::SELECTOR, [0; 4]];
            let mut bytes = heads[known].to_vec();
            bytes.extend(&data);
            prop_assert!(Reason::decode(&bytes).to_string().len() < 1000);
            prop_assert!(Reason::decode(&data).to_string().len() < 1000);
        }

        #[test]
        fn calldata_reads_back(n in 0_usize..6, seed: [u8; 20], amount: u128, flag: bool, expiry: u64) {
            let hop = Hop { pool: seed.into(), zero_for_one: flag, amount_out: U256::from(amount) };
            let cycle = Cycle {
                base: seed.into(),
                amount_in: U256::from(amount) << 100,
                hops: vec![hop; n],
                min_profit: U256::from(amount),
                expiry,
            };
            prop_assert_eq!(Cycle::from_calldata(&cycle.calldata()), Some(cycle));
        }
    }
}
