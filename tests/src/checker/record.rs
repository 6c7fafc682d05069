//! The bot's JSON, as far as it is checked. Amounts are strings of decimal digits.

use num_bigint::BigUint;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A block that ran.
#[derive(Clone, Debug, Deserialize)]
#[expect(
    missing_docs,
    reason = "the bot's documentation of its output has the meaning of each"
)]
pub struct Block {
    pub number: u64,
    pub moved: Vec<Moved>,
    pub touched: u64,
    pub solved: u64,
    pub suppressed: u64,
    pub failed: u64,
    pub profitable: u64,
    pub unproved: u64,
    pub sim_failed: u64,
    pub winners: Vec<Winner>,
}

/// A pool that moved, with its reserves at the end of the block.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "as above")]
pub struct Moved {
    pub pool: String,
    #[serde(deserialize_with = "amount")]
    pub reserve0: BigUint,
    #[serde(deserialize_with = "amount")]
    pub reserve1: BigUint,
}

/// A published trade.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "as above")]
pub struct Winner {
    pub path: String,
    #[serde(deserialize_with = "amount")]
    pub input: BigUint,
    #[serde(deserialize_with = "amount")]
    pub output: BigUint,
    #[serde(deserialize_with = "amount")]
    pub profit: BigUint,
    pub hops: Vec<Hop>,
}

/// One swap of it.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "as above")]
pub struct Hop {
    pub pool: String,
    pub token_in: String,
    pub token_out: String,
    #[serde(deserialize_with = "amount")]
    pub amount_in: BigUint,
    #[serde(deserialize_with = "amount")]
    pub amount_out: BigUint,
}

/// The blocks among the lines of a run, in order.
pub fn blocks<S: AsRef<str>>(lines: &[S]) -> Result<Vec<Block>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    let mut blocks = Vec::new();
    for line in lines {
        let typed: Typed = serde_json::from_str(line.as_ref())?;
        if typed.r#type == "block" {
            blocks.push(serde_json::from_str(line.as_ref())?);
        }
    }
    Ok(blocks)
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BigUint, D::Error> {
    let text = String::deserialize(deserializer)?;
    super::market::decimal(&text)
        .ok_or_else(|| D::Error::custom(format!("{text:?} is no string of decimal digits")))
}
