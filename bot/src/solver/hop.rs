//! One swap through one constant-product pool, exact in both directions.
//!
//! With reserves a (in) and b (out) and a fee that keeps num/den of the input, x units in give
//! floor(num·x·b / (den·a + num·x)) units out, as the pair contracts compute it.
//!
//! # Invariants
//! - Reserves are 1 to 2^112 − 1, and 0 < num ≤ den ≤ 10,000: the types hold nothing else.
//! - No product wraps. With den < 2^13.3 and a + x < 2^112: num·x and den·a + num·x ≤ den·(a + x)
//!   stay below 2^126; num·x·b and den·a·y stay below 2^238, in 256 bits.

use super::mul_div::mul_div;

/// The largest reserve a pair contract can hold: 2^112 − 1.
pub const RESERVE_MAX: u128 = (1 << 112) - 1;

/// The largest denominator of a fee: hundredths of a per cent.
pub const FEE_DEN_MAX: u16 = 10_000;

/// The part of the input that a pool trades, num/den; the rest is its fee.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fee {
    num: u16,
    den: u16,
}

/// A fee that no pool can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "fee {num}/{den}: the part of the input that is traded must be 0 < num <= den <= {FEE_DEN_MAX}"
)]
pub struct FeeError {
    /// The numerator that was given.
    pub num: u16,
    /// The denominator that was given.
    pub den: u16,
}

impl Fee {
    /// The fee under which `num` of `den` parts of the input are traded.
    pub const fn new(num: u16, den: u16) -> Result<Self, FeeError> {
        if num == 0 || num > den || den > FEE_DEN_MAX {
            return Err(FeeError { num, den });
        }
        Ok(Self { num, den })
    }

    /// The traded parts.
    #[must_use]
    pub const fn num(self) -> u16 {
        self.num
    }

    /// The parts in all.
    #[must_use]
    pub const fn den(self) -> u16 {
        self.den
    }
}

impl Default for Fee {
    /// 997/1000, the fee of Uniswap V2 and SushiSwap pairs.
    fn default() -> Self {
        Self {
            num: 997,
            den: 1000,
        }
    }
}

/// Which of the two reserves of a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The reserve that the input is added to.
    In,
    /// The reserve that the output is taken from.
    Out,
}

impl core::fmt::Display for Side {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::In => "input",
            Self::Out => "output",
        })
    }
}

/// A reserve that no pool can trade with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{side} reserve {value}: must be 1 to 2^112 - 1 ({RESERVE_MAX})")]
pub struct ReserveError {
    /// The reserve's side.
    pub side: Side,
    /// The value that was given.
    pub value: u128,
}

/// One direction of one pool: what goes in meets `reserve_in`, what comes out leaves `reserve_out`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    reserve_in: u128,
    reserve_out: u128,
    fee: Fee,
}

impl Hop {
    /// A hop over reserves in the smallest units of their tokens.
    pub const fn new(reserve_in: u128, reserve_out: u128, fee: Fee) -> Result<Self, ReserveError> {
        if reserve_in == 0 || reserve_in > RESERVE_MAX {
            return Err(ReserveError {
                side: Side::In,
                value: reserve_in,
            });
        }
        if reserve_out == 0 || reserve_out > RESERVE_MAX {
            return Err(ReserveError {
                side: Side::Out,
                value: reserve_out,
            });
        }
        Ok(Self {
            reserve_in,
            reserve_out,
            fee,
        })
    }

    /// The reserve that the input is added to.
    #[must_use]
    pub const fn reserve_in(&self) -> u128 {
        self.reserve_in
    }

    /// The reserve that the output is taken from.
    #[must_use]
    pub const fn reserve_out(&self) -> u128 {
        self.reserve_out
    }

    /// The pool's fee.
    #[must_use]
    pub const fn fee(&self) -> Fee {
        self.fee
    }

    /// The largest input that the input reserve can still hold.
    #[must_use]
    pub const fn input_limit(&self) -> u128 {
        RESERVE_MAX - self.reserve_in
    }

    /// What `input` units give: floor(num·x·b / (den·a + num·x)).
    ///
    /// `None` above [`Hop::input_limit`], where the pair contract reverts.
    #[inline]
    #[must_use]
    pub fn forward(&self, input: u128) -> Option<u128> {
        if input > self.input_limit() {
            return None;
        }
        let traded = u128::from(self.fee.num) * input;
        let divisor = self.scaled_in() + traded;
        mul_div(traded, self.reserve_out, divisor).map(|(quotient, _)| quotient)
    }

    /// The least input that gives `output` units or more: ceil(den·a·y / (num·(b − y))).
    ///
    /// From floor(φ(x)) ≥ y ⇔ φ(x) ≥ y for an integer y. The pair contracts' own quote of an input
    /// adds one to the quotient rounded down, which is one too many where the division is exact.
    ///
    /// `None` where no input up to [`Hop::input_limit`] gives as much.
    #[inline]
    #[must_use]
    pub fn backward(&self, output: u128) -> Option<u128> {
        let left = self.reserve_out.checked_sub(output)?;
        // A zero divisor (everything is asked for) has no quotient either.
        let divisor = u128::from(self.fee.num) * left;
        let (quotient, inexact) = mul_div(self.scaled_in(), output, divisor)?;
        let input = quotient.checked_add(u128::from(inexact))?;
        (input <= self.input_limit()).then_some(input)
    }

    /// den·a, below 2^126.
    #[inline]
    pub(super) fn scaled_in(&self) -> u128 {
        u128::from(self.fee.den) * self.reserve_in
    }

    /// num·b, below 2^126.
    #[inline]
    pub(super) fn scaled_out(&self) -> u128 {
        u128::from(self.fee.num) * self.reserve_out
    }
}
