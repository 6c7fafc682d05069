//! A made-up market.
//!
//! Every token has a fair price in the base token. A pool gets a value, and both its sides are worth
//! that value at fair prices but for a little noise: such a market is calm, and arbitrage comes from
//! what blocks do to it.

use crate::solver::Fee;
use std::collections::BTreeSet;

use super::super::rng::SplitMix64;
use super::fixed::pow2;
use crate::market::{
    Address, BuildError, ExchangeId, Market, MarketBuilder, Pool, TokenId, UntrustedText,
};

/// The tokens that others have pools with besides the base.
const HUBS: usize = 4;

/// Median value of a pool: 2⁶⁷ of the base token's smallest unit, 148 tokens of 18 decimals.
const MEDIAN_VALUE_BITS: i64 = 67;

/// Pools of hubs are worth 2⁵ times as much as others.
const HUB_VALUE_BITS: i64 = 5;

/// Two standard deviations of a pool's value are a factor of 2⁵ and of a price 2⁴.
const VALUE_SPREAD: i64 = 5;
const PRICE_SPREAD: i64 = 4;

/// Pools are worth enough for this much of either token: with less, rounding would be larger than the
/// noise.
const MIN_RESERVE: u128 = 1_000_000;

/// What market to make up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarketConfig {
    /// All follows from it.
    pub seed: u64,
    /// How many tokens, the base among them: from 2 to [`MarketConfig::MAX_TOKENS`].
    pub tokens: u32,
    /// By how much the two sides of a pool differ in value at most, in millionths: up to
    /// [`MarketConfig::MAX_NOISE_PPM`].
    pub noise_ppm: u32,
}

impl MarketConfig {
    /// The most tokens. Each brings up to four pools, and all of them lie on cycles.
    pub const MAX_TOKENS: u32 = 8_000;

    /// The most noise: half of a pool's value.
    pub const MAX_NOISE_PPM: u32 = 500_000;

    /// 48 tokens in about 110 pools, whose prices are within 0.1 % of one another.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            tokens: 48,
            noise_ppm: 1_000,
        }
    }
}

/// Why no market was made up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// Too few or too many tokens.
    #[error(
        "a market of {tokens} tokens cannot be made; it has from 2 to {}",
        MarketConfig::MAX_TOKENS
    )]
    Tokens {
        /// How many were asked for.
        tokens: u32,
    },
    /// Too much noise.
    #[error(
        "noise of {noise_ppm} millionths is more than a price can bear; it is at most {}",
        MarketConfig::MAX_NOISE_PPM
    )]
    Noise {
        /// How much was asked for.
        noise_ppm: u32,
    },
    /// The parts do not make a market.
    #[error(transparent)]
    Market(#[from] BuildError),
}

/// A made-up market.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The market.
    pub market: Market,
    /// The token that prices are in and cycles start from.
    pub base: Address,
}

/// A token in the making.
struct Listed {
    id: TokenId,
    address: Address,
    /// Fair value of one smallest unit in the base's smallest unit, with 32 fractional bits.
    price: u128,
}

/// Makes up a market: a base, hubs that have pools with the base and with one another on both
/// exchanges, and other tokens that have pools with the base and with some of the hubs.
pub fn generate(config: &MarketConfig) -> Result<Generated, GenerateError> {
    let &MarketConfig {
        seed,
        tokens,
        noise_ppm,
    } = config;
    if !(2..=MarketConfig::MAX_TOKENS).contains(&tokens) {
        return Err(GenerateError::Tokens { tokens });
    }
    if noise_ppm > MarketConfig::MAX_NOISE_PPM {
        return Err(GenerateError::Noise { noise_ppm });
    }
    let mut maker = Maker {
        rng: SplitMix64::new(seed),
        builder: MarketBuilder::new(),
        addresses: BTreeSet::new(),
        noise_ppm: noise_ppm.into(),
    };
    let [a, b] = ["dex-a", "dex-b"].map(UntrustedText::new);
    let (a, b) = (
        maker.builder.exchange(a, Fee::default())?,
        maker.builder.exchange(b, Fee::default())?,
    );
    let listed = (0..tokens)
        .map(|n| maker.token(n))
        .collect::<Result<Vec<_>, _>>()?;
    let Some((base, others)) = listed.split_first() else {
        return Err(GenerateError::Tokens { tokens });
    };
    let (hubs, rest) = others.split_at(HUBS.min(others.len()));
    for (n, hub) in hubs.iter().enumerate() {
        for other in hubs[..n].iter().chain([base]) {
            maker.pool(a, hub, other, HUB_VALUE_BITS)?;
            maker.pool(b, hub, other, HUB_VALUE_BITS)?;
        }
    }
    for token in rest {
        maker.pool(a, token, base, 0)?;
        for (exchange, with_base, with_hub) in [(a, 0, 50), (b, 35, 25)] {
            if maker.rng.percent(with_base) {
                maker.pool(exchange, token, base, 0)?;
            }
            let hub = maker.rng.below(hubs.len() as u64);
            if maker.rng.percent(with_hub)
                && let Some(hub) = usize::try_from(hub).ok().and_then(|hub| hubs.get(hub))
            {
                maker.pool(exchange, token, hub, 0)?;
            }
        }
    }
    Ok(Generated {
        base: base.address,
        market: maker.builder.build(),
    })
}

struct Maker {
    rng: SplitMix64,
    builder: MarketBuilder,
    addresses: BTreeSet<Address>,
    noise_ppm: u64,
}

impl Maker {
    /// An address that nothing has yet.
    fn address(&mut self) -> Address {
        loop {
            let mut bytes = [0; 20];
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&self.rng.next_u64().to_be_bytes()[..chunk.len()]);
            }
            let address = Address::new(bytes);
            if self.addresses.insert(address) {
                return address;
            }
        }
    }

    /// Token number `n`, the base being 0.
    fn token(&mut self, n: u32) -> Result<Listed, BuildError> {
        let address = self.address();
        let (decimals, symbol) = match n {
            0 => (18, "BASE".to_owned()),
            _ => (if self.rng.percent(80) { 18 } else { 6 }, format!("T{n}")),
        };
        // 10¹² is the factor from 18 to 6 decimals.
        let unit = if decimals == 6 { 1_000_000_000_000 } else { 1 };
        let exponent = if n == 0 {
            0
        } else {
            self.rng.normal_q16() * PRICE_SPREAD / 2
        };
        let price = pow2((32 << 16) + exponent) * unit;
        let id = self
            .builder
            .token(address, decimals, &UntrustedText::new(&symbol))?;
        Ok(Listed { id, address, price })
    }

    /// A pool of `one` and `other`, each side worth 2^`bits` times the median more or less.
    fn pool(
        &mut self,
        exchange: ExchangeId,
        one: &Listed,
        other: &Listed,
        bits: i64,
    ) -> Result<(), BuildError> {
        let address = self.address();
        let spread = self.rng.normal_q16() * VALUE_SPREAD / 2;
        let least = (MIN_RESERVE * one.price.max(other.price)) >> 32;
        let value = pow2(((MEDIAN_VALUE_BITS + bits) << 16) + spread).max(least);
        // Spreads end at six standard deviations: values at 2^(67 + 5 + 15) and prices, before the
        // fraction's 32 bits, at 2^-12. So reserves end at 2^99, and nothing here passes 128 bits.
        let mut reserve = |token: &Listed| {
            let noise = 1_000_000 - self.noise_ppm / 2 + self.rng.between(0, self.noise_ppm);
            (value << 32) / token.price * u128::from(noise) / 1_000_000
        };
        let mut sides = [
            (one.address, one.id, reserve(one)),
            (other.address, other.id, reserve(other)),
        ];
        // As on chain: the lower address is the first token.
        sides.sort_unstable_by_key(|side| side.0);
        let [(_, token0, reserve0), (_, token1, reserve1)] = sides;
        self.builder.pool(Pool {
            address,
            exchange,
            token0,
            token1,
            reserve0,
            reserve1,
        })?;
        Ok(())
    }
}
