//! A cycle of two to four hops, from the base token back to it, evaluated exactly hop by hop.
//!
//! Tokens of a cycle are numbered along it: 0 is the base token that goes in, token j is what hop
//! j gives (counting hops from 1), and token n of an n-hop cycle is the base token that comes out.
//!
//! # Invariants
//! - A cycle has 2 to 4 hops.
//! - Its pools are distinct: that is the caller's to see to, the reserves do not tell. (A pool used
//!   twice would have changed by its second use.)

use super::hop::Hop;

/// The fewest hops of a cycle.
pub const HOPS_MIN: usize = 2;
/// The most hops of a cycle: the exact solver's integers are sized for it.
pub const HOPS_MAX: usize = 4;

/// A sequence of hops that is no cycle the solver takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cycle of {hops} hops: must have {HOPS_MIN} to {HOPS_MAX}")]
pub struct CycleError {
    /// The number of hops that were given.
    pub hops: usize,
}

/// A view of the hops of one cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycle<'a> {
    hops: &'a [Hop],
}

impl<'a> Cycle<'a> {
    /// The cycle through `hops` in this order.
    pub const fn new(hops: &'a [Hop]) -> Result<Self, CycleError> {
        if hops.len() < HOPS_MIN || hops.len() > HOPS_MAX {
            return Err(CycleError { hops: hops.len() });
        }
        Ok(Self { hops })
    }

    /// The hops in their order.
    #[must_use]
    pub const fn hops(&self) -> &'a [Hop] {
        self.hops
    }

    /// The base token that comes out for `input` of it.
    ///
    /// `None` above [`Cycle::input_limit`].
    #[inline]
    #[must_use]
    pub fn forward(&self, input: u128) -> Option<u128> {
        self.forward_from(0, input)
    }

    /// The least input whose output is `output` or more; `None` where no input gives as much.
    #[inline]
    #[must_use]
    pub fn backward(&self, output: u128) -> Option<u128> {
        self.backward_from(self.hops.len(), output)
    }

    /// The base token that comes out for `amount` of token `token`.
    ///
    /// `None` where a hop on the way refuses the amount.
    #[inline]
    #[must_use]
    pub fn forward_from(&self, token: usize, amount: u128) -> Option<u128> {
        let (_, onward) = self.hops.split_at_checked(token)?;
        onward
            .iter()
            .try_fold(amount, |amount, hop| hop.forward(amount))
    }

    /// What `input` of the base token has become at token `token`.
    ///
    /// `None` where a hop on the way refuses the amount.
    #[inline]
    #[must_use]
    pub fn forward_to(&self, token: usize, input: u128) -> Option<u128> {
        let (before, _) = self.hops.split_at_checked(token)?;
        before
            .iter()
            .try_fold(input, |amount, hop| hop.forward(amount))
    }

    /// The least input that has become `amount` or more at token `token`.
    ///
    /// `None` where no input does.
    #[inline]
    #[must_use]
    pub fn backward_from(&self, token: usize, amount: u128) -> Option<u128> {
        let (before, _) = self.hops.split_at_checked(token)?;
        before
            .iter()
            .rev()
            .try_fold(amount, |amount, hop| hop.backward(amount))
    }

    /// The largest input that every hop on the way takes.
    ///
    /// Each hop has a limit of its own, and outputs grow with inputs, so the limits are carried back:
    /// what a hop may give is one less than the first amount that its successor refuses.
    #[must_use]
    pub fn input_limit(&self) -> u128 {
        self.hops.iter().rev().fold(u128::MAX, |successor, hop| {
            successor
                .checked_add(1)
                .and_then(|refused| hop.backward(refused))
                .map_or(hop.input_limit(), |too_much| too_much.saturating_sub(1))
        })
    }
}
