//! Exact swaps, and the search for a profit over every integer input.
//!
//! Every hop rounds down, so the output of a cycle is a staircase over the input. [`search`] climbs it:
//! an input of x or more that is to yield a profit of L must give x + L or more, so it is no smaller
//! than the least input that gives so much. Taken again and again from below, that step cannot pass
//! over an input that has the profit, and it stops at the first one.

use super::curve::Curve;
use num_bigint::BigUint;
use std::sync::LazyLock;

/// What a pair contract keeps of 1000 parts of the input.
pub(super) const TRADED: u32 = 997;
const PARTS: u32 = 1000;

/// The largest reserve that a pair contract can hold: 2^112 - 1.
pub static RESERVE_MAX: LazyLock<BigUint> =
    LazyLock::new(|| (BigUint::from(1_u8) << 112_u8) - 1_u8);

/// One pool traded one way.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The most that can still go in.
    room: BigUint,
    reserve_out: BigUint,
    /// 1000·a for the reserve a of what goes in.
    pub(super) scaled_in: BigUint,
    /// 997·b for the reserve b of what comes out.
    pub(super) scaled_out: BigUint,
}

impl Hop {
    /// A hop over these reserves, which are from 1 to 2^112 - 1.
    #[must_use]
    pub fn new(reserve_in: &BigUint, reserve_out: &BigUint) -> Self {
        Self {
            room: &*RESERVE_MAX - reserve_in,
            reserve_out: reserve_out.clone(),
            scaled_in: reserve_in * PARTS,
            scaled_out: reserve_out * TRADED,
        }
    }

    /// floor(997·x·b / (1000·a + 997·x)), or none if the pool cannot hold what goes in.
    #[must_use]
    pub fn output(&self, input: &BigUint) -> Option<BigUint> {
        let gives = || input * &self.scaled_out / (&self.scaled_in + input * TRADED);
        (*input <= self.room).then(gives)
    }

    /// The least input that gives `output` or more: from 997·x·b ≥ y·(1000·a + 997·x) it is
    /// 1000·a·y / (997·(b − y)), rounded up.
    #[must_use]
    pub fn least_input(&self, output: &BigUint) -> Option<BigUint> {
        if *output >= self.reserve_out {
            return None;
        }
        let divisor = (&self.reserve_out - output) * TRADED;
        let input = (&self.scaled_in * output + &divisor - 1_u8) / divisor;
        (input <= self.room).then_some(input)
    }
}

/// What comes out of the last hop.
#[must_use]
pub fn output(hops: &[&Hop], input: &BigUint) -> Option<BigUint> {
    let mut hops = hops.iter();
    let first = hops.next()?.output(input)?;
    hops.try_fold(first, |amount, hop| hop.output(&amount))
}

/// The least input with which `output` or more comes out of the last hop, as far as the pools hold what
/// goes in.
#[must_use]
pub fn least_input(hops: &[&Hop], output: &BigUint) -> Option<BigUint> {
    let mut hops = hops.iter().rev();
    let last = hops.next()?.least_input(output)?;
    hops.try_fold(last, |amount, hop| hop.least_input(&amount))
}

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Search {
    /// The smallest input that has the profit.
    Least(BigUint),
    /// No input has it.
    Nowhere,
    /// Neither is known after as many steps as were allowed.
    Open,
}

/// The smallest input of all that yield a profit of `level`, which is 1 or more, in at most `limit`
/// steps.
#[must_use]
pub fn search(hops: &[&Hop], level: &BigUint, limit: u32) -> Search {
    // Where even real numbers do not yield the profit there is nothing to climb.
    let Some((low, high)) = Curve::of(hops).and_then(|curve| curve.inputs_reaching(level)) else {
        return Search::Nowhere;
    };
    let mut at = low;
    for _ in 0..limit {
        if at > high {
            return Search::Nowhere;
        }
        let Some(next) = least_input(hops, &(&at + level)) else {
            return Search::Nowhere;
        };
        if next <= at {
            // Enough comes out, if the pools hold what goes in. If not, they do not hold more either.
            return match output(hops, &at) {
                Some(_) => Search::Least(at),
                None => Search::Nowhere,
            };
        }
        at = next;
    }
    Search::Open
}
