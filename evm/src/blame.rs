//! Whether the exact integers and the machine agree, and if not, who makes them differ.
//!
//! # Invariants
//! - [`agrees`] compares the profit and, where a pair said them, each hop's amounts: to the last unit.
//! - [`blame`] runs the call again over the same state, and looks on: it never changes an outcome.

use alloy_primitives::{Address, U256};

use crate::call::Call;
use crate::machine::{Run, Scratch};
use crate::outcome::{Halt, Outcome, Revert, Swapped};
use crate::pair::{self, Reserves};
use crate::simulate::{outcome, tx};
use crate::state::State;
use crate::trace::Trace;

/// How an outcome differs from the exact integers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Disagreement {
    /// The profit is another.
    #[error("the profit is {found} by the bytecode and {exact} by the formula")]
    Profit {
        /// By the formula.
        exact: U256,
        /// By the bytecode.
        found: U256,
    },
    /// A pair says that other amounts went in or came out.
    #[error(
        "hop {hop} took {} and gave {} by the bytecode, and {} and {} by the formula",
        found.amount_in, found.amount_out, exact.amount_in, exact.amount_out
    )]
    Amounts {
        /// The hop, from 0.
        hop: usize,
        /// By the formula.
        exact: Swapped,
        /// By the bytecode.
        found: Swapped,
    },
    /// A hop's pair did not say what it swapped, as `UniswapV2Pair` does.
    #[error("hop {hop} is over a pair that did not log its swap")]
    Silent {
        /// The hop, from 0.
        hop: usize,
    },
    /// A contract undid it.
    #[error("the bytecode reverts: {0}")]
    Reverted(Revert),
    /// It ended otherwise.
    #[error("the bytecode does not end: {0}")]
    Halted(Halt),
    /// The state does not hold what decides it: no disagreement yet.
    #[error("{0} keys of the state are missing")]
    Undecided(usize),
}

/// Compares an outcome with what the exact integers say: the amounts in the call's hops, and this profit.
pub fn agrees(call: &Call, exact_profit: U256, outcome: &Outcome) -> Result<(), Disagreement> {
    let done = match outcome {
        Outcome::Done(done) => done,
        Outcome::Reverted(reverted) => return Err(Disagreement::Reverted(reverted.revert.clone())),
        Outcome::Halted(halt) => return Err(Disagreement::Halted(halt.clone())),
        Outcome::Missing(keys) => return Err(Disagreement::Undecided(keys.len())),
    };
    for (hop, wanted) in call.hops.iter().enumerate() {
        let Some(found) = done.hops.get(hop).copied().flatten() else {
            return Err(Disagreement::Silent { hop });
        };
        let exact = Swapped {
            amount_in: call.amount_in_of(hop).unwrap_or_default(),
            amount_out: wanted.amount_out,
        };
        if found != exact {
            return Err(Disagreement::Amounts { hop, exact, found });
        }
    }
    if done.profit != exact_profit {
        return Err(Disagreement::Profit {
            exact: exact_profit,
            found: done.profit,
        });
    }
    Ok(())
}

/// Who makes a cycle fail or pay less than its amounts say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blame {
    /// The hop at which it shows, from 0. For [`Cause::Short`] of the base token at the end, the last.
    pub hop: usize,
    /// The pair of that hop.
    pub pool: Address,
    /// The token to be marked. `None`: no token, but the pair.
    pub token: Option<Address>,
    /// What was seen.
    pub cause: Cause,
}

/// What was seen of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Less of the token was there than was sent, or left: a transfer tax, a balance that lies, or one that was
    /// taken from without the pair's knowledge.
    Short {
        /// What should have been there, in the token's smallest unit.
        due: U256,
        /// What was there.
        came: U256,
    },
    /// The token refused a transfer or a question.
    Refused,
    /// The pair was paid what was due, and asks for more: its fee or its reserves are not as configured.
    /// [`crate::fee_of`] tells which.
    Fee,
    /// The pair failed otherwise.
    Pair,
}

/// Finds who makes a call fail, or pay less than its amounts say. `None`: the state does not hold what decides it, or
/// neither a token nor a pair is to blame.
#[must_use]
pub fn blame(state: &State, call: &Call, scratch: &mut Scratch) -> Option<Blame> {
    let Run { end, missing } = scratch.run_traced(state, tx(call));
    if !missing.is_empty() {
        return None;
    }
    let outcome = outcome(call, end);
    Inquiry {
        state,
        call,
        trace: scratch.trace(),
    }
    .verdict(&outcome)
}

struct Inquiry<'a> {
    state: &'a State,
    call: &'a Call,
    trace: &'a Trace,
}

impl Inquiry<'_> {
    fn verdict(&self, outcome: &Outcome) -> Option<Blame> {
        // In the order in which the pairs are paid.
        let hops = self.call.hops.len();
        let short = (1..hops)
            .chain(0..hops.min(1))
            .find_map(|hop| self.paid_short(hop).or_else(|| self.left_short(hop)));
        short
            .or_else(|| self.refused())
            .or_else(|| self.pair(outcome))
            .or_else(|| self.base_short())
    }

    fn tokens(&self, hop: usize) -> Option<(Address, Address)> {
        let hop = self.call.hops.get(hop)?;
        let read = |slot| Some(Address::from_word(self.state.slot(hop.pool, slot)?.into()));
        let (token0, token1) = (read(pair::TOKEN_0)?, read(pair::TOKEN_1)?);
        Some(if hop.zero_for_one {
            (token0, token1)
        } else {
            (token1, token0)
        })
    }

    fn blame(&self, hop: usize, token: Option<Address>, cause: Cause) -> Option<Blame> {
        Some(Blame {
            hop,
            pool: self.call.hops.get(hop)?.pool,
            token,
            cause,
        })
    }

    /// What a pair last found on its account of a token, if it looked.
    fn found(&self, hop: usize, token: Address) -> Option<U256> {
        let at = self.call.hops.get(hop)?;
        self.trace.answers(at.pool, token).map(|(_, last)| last)
    }

    /// A pair's reserves: of what goes in and of what comes out.
    fn reserves(&self, hop: usize) -> Option<(U256, U256)> {
        let at = self.call.hops.get(hop)?;
        let reserves = Reserves::unpack(self.state.slot(at.pool, pair::RESERVES)?);
        let (of_0, of_1) = (U256::from(reserves.reserve0), U256::from(reserves.reserve1));
        Some(if at.zero_for_one {
            (of_0, of_1)
        } else {
            (of_1, of_0)
        })
    }

    fn paid_short(&self, hop: usize) -> Option<Blame> {
        let (token, _) = self.tokens(hop)?;
        let (reserve, _) = self.reserves(hop)?;
        let came = self.found(hop, token)?.saturating_sub(reserve);
        let due = self.call.amount_in_of(hop)?;
        (came < due).then(|| self.blame(hop, Some(token), Cause::Short { due, came }))?
    }

    /// A pair that has less left of what it gave than its reserve less that.
    fn left_short(&self, hop: usize) -> Option<Blame> {
        let (_, token) = self.tokens(hop)?;
        let (_, reserve) = self.reserves(hop)?;
        let due = reserve.saturating_sub(self.call.hops.get(hop)?.amount_out);
        let came = self.found(hop, token)?;
        (came < due).then(|| self.blame(hop, Some(token), Cause::Short { due, came }))?
    }

    /// A token that failed, or of which the pair or the executor says that it did not transfer.
    fn refused(&self) -> Option<Blame> {
        let failure = self.trace.failure.as_ref()?;
        if let Some(hop) = self
            .call
            .hops
            .iter()
            .position(|hop| hop.pool == failure.callee)
        {
            let Revert::Text(text) = Revert::read(&failure.data) else {
                return None;
            };
            let (_, token) = self.tokens(hop)?;
            return (text.as_str() == "UniswapV2: TRANSFER_FAILED")
                .then(|| self.blame(hop, Some(token), Cause::Refused))?;
        }
        let token = match Revert::read(&failure.data) {
            Revert::TransferFailed(token) if failure.callee == self.call.executor.address => token,
            _ if failure.callee == self.call.executor.address => return None,
            // A token may call others: what failed is put down to the token whose call it was under, if it is known.
            _ => failure.callee,
        };
        let hops = 0..self.call.hops.len();
        let gives = |hop: &usize| self.tokens(*hop).is_some_and(|(_, out)| out == token);
        // A token that a pair sends fails under that pair; one that the executor sends came from the first.
        let sender = |hop: &usize| {
            self.call
                .hops
                .get(*hop)
                .is_some_and(|hop| hop.pool == failure.caller)
        };
        let hop = hops
            .clone()
            .filter(gives)
            .find(sender)
            .or_else(|| hops.clone().find(gives))?;
        self.blame(hop, Some(token), Cause::Refused)
    }

    fn pair(&self, outcome: &Outcome) -> Option<Blame> {
        if matches!(outcome, Outcome::Done(_)) {
            return None;
        }
        let failure = self.trace.failure.as_ref()?;
        let hop = self
            .call
            .hops
            .iter()
            .position(|hop| hop.pool == failure.callee)?;
        let cause = if Revert::read(&failure.data) == Revert::K {
            Cause::Fee
        } else {
            Cause::Pair
        };
        self.blame(hop, None, cause)
    }

    /// The base token that came to the executor, by its own balance: the profit and what it paid the first pair.
    fn base_short(&self) -> Option<Blame> {
        let last = self.call.hops.len().checked_sub(1)?;
        let (before, after) = self
            .trace
            .answers(self.call.executor.address, self.call.base)?;
        let due = self.call.hops.get(last)?.amount_out;
        let came = after
            .checked_add(self.call.amount_in)?
            .saturating_sub(before);
        (came < due).then(|| self.blame(last, Some(self.call.base), Cause::Short { due, came }))?
    }
}
