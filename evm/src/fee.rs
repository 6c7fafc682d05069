//! Which fee a pair's code takes.
//!
//! The pair is asked directly: with its balances set so that exactly `amount_in` has been paid, the largest output
//! that it accepts is found. No token transfers in, so a transfer tax does not blur the answer. For a
//! constant-product pair that output is `getAmountOut` at its fee, exactly: both are the largest integer for which
//! the product, after the fee, does not fall (`UniswapV2Pair.swap` and `UniswapV2Library.getAmountOut`).
//!
//! # Invariants
//! - Nothing is left set in the scratch.
//! - The runs are bounded: twelve dozen at most.

use alloy_primitives::{Address, Bytes, U256, U512, address};
use alloy_sol_types::SolCall;
use revm::context::result::ExecutionResult;

use crate::call::{BlockEnv, abi};
use crate::machine::{Run, Scratch, Tx};
use crate::outcome::Revert;
use crate::pair::{self, Reserves};
use crate::state::{Key, State};

/// Who asks and is paid. Nobody's: its key is not known.
const NOBODY: Address = address!("00000000000000000000000000000000fee0fee0");
const MILLION: u32 = 1_000_000;

/// What is asked of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeeQuery {
    /// The block that it is in.
    pub block: BlockEnv,
    /// Gas for one swap.
    pub gas: u64,
    /// The pair.
    pub pool: Address,
    /// Whether its token 0 goes in.
    pub zero_for_one: bool,
    /// How much goes in. The larger against the reserve, the closer the fee is told; a tenth of it is plenty.
    pub amount_in: U256,
    /// The fee that is configured, in parts per million (0.3 % is 3000): tried first, in two runs.
    pub configured_ppm: u32,
}

/// The fee that a pair takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fee {
    /// The largest output that it accepts for the input.
    pub largest_out: U256,
    /// The least fee, in whole parts per million, whose formula gives just that output.
    pub least_ppm: u32,
    /// The largest such fee.
    pub most_ppm: u32,
}

impl Fee {
    /// Whether a fee, in parts per million, is right as far as the amount can tell.
    #[must_use]
    pub const fn fits(&self, ppm: u32) -> bool {
        self.least_ppm <= ppm && ppm <= self.most_ppm
    }
}

/// The answer of [`fee_of`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FeeAnswer {
    /// The fee.
    Takes(Fee),
    /// The state does not hold what decides it: tell it these and ask again.
    Missing(Vec<Key>),
    /// The pair refuses for another reason than its product.
    Refused(Revert),
    /// The token's balances cannot be set: they are not plainly in a slot.
    Balance(Address),
    /// No fee gives the output that the pair accepts: it is no constant-product pair, or its reserves lie.
    NoFee {
        /// The largest output that it accepts.
        largest_out: U256,
    },
}

/// Finds the fee that a pair's code takes.
#[must_use]
pub fn fee_of(state: &State, query: &FeeQuery, scratch: &mut Scratch) -> FeeAnswer {
    let answer = Asking {
        state,
        query,
        scratch: &mut *scratch,
    }
    .fee();
    scratch.db().overlay.clear();
    match answer {
        Ok(fee) => FeeAnswer::Takes(fee),
        Err(other) => other,
    }
}

struct Asking<'a> {
    state: &'a State,
    query: &'a FeeQuery,
    scratch: &'a mut Scratch,
}

impl Asking<'_> {
    fn fee(&mut self) -> Result<Fee, FeeAnswer> {
        let pool = self.query.pool;
        let wanted = pair::READ_BY_SWAP.map(|slot| Key::Slot(pool, slot));
        let missing: Vec<Key> = core::iter::once(Key::Account(pool))
            .filter(|_| self.state.code(pool).is_none())
            .chain(wanted.into_iter().filter(|&key| !self.state.knows(key)))
            .collect();
        if !missing.is_empty() {
            return Err(FeeAnswer::Missing(missing));
        }
        let word = |slot| self.state.slot(pool, slot).unwrap_or_default();
        let token = |slot| Address::from_word(word(slot).into());
        let reserves = Reserves::unpack(word(pair::RESERVES));
        let side0 = (token(pair::TOKEN_0), U256::from(reserves.reserve0));
        let side1 = (token(pair::TOKEN_1), U256::from(reserves.reserve1));
        let (into, out) = if self.query.zero_for_one {
            (side0, side1)
        } else {
            (side1, side0)
        };
        let amount = self.query.amount_in;
        self.set_balance(into.0, into.1.saturating_add(amount))?;
        self.set_balance(out.0, out.1)?;
        self.find(into.1, out.1)
    }

    fn find(&mut self, reserve_in: U256, reserve_out: U256) -> Result<Fee, FeeAnswer> {
        let amount = self.query.amount_in;
        let formula = |ppm| amount_out(amount, reserve_in, reserve_out, ppm);
        // The largest accepted lies at or above `accepted`, and below `refused`.
        let (mut accepted, mut refused) = (U256::ZERO, reserve_out);
        for out in [
            formula(self.query.configured_ppm),
            formula(self.query.configured_ppm).saturating_add(U256::ONE),
        ] {
            if accepted < out && out < refused {
                if self.accepts(out)? {
                    accepted = out;
                } else {
                    refused = out;
                }
            }
        }
        while refused.saturating_sub(accepted) > U256::ONE {
            let out: U256 = accepted + ((refused - accepted) >> 1);
            if self.accepts(out)? {
                accepted = out;
            } else {
                refused = out;
            }
        }
        // The formula falls as the fee grows.
        let least = first(|ppm| formula(ppm) <= accepted);
        let past = first(|ppm| formula(ppm) < accepted);
        match (least, past.checked_sub(1)) {
            (least, Some(most)) if least <= most => Ok(Fee {
                largest_out: accepted,
                least_ppm: least,
                most_ppm: most.min(MILLION),
            }),
            _ => Err(FeeAnswer::NoFee {
                largest_out: accepted,
            }),
        }
    }

    /// Whether the pair gives this much out.
    fn accepts(&mut self, out: U256) -> Result<bool, FeeAnswer> {
        let (amount0, amount1) = if self.query.zero_for_one {
            (U256::ZERO, out)
        } else {
            (out, U256::ZERO)
        };
        let swap = abi::swapCall {
            amount0Out: amount0,
            amount1Out: amount1,
            to: NOBODY,
            data: Bytes::new(),
        };
        match self.run(self.query.pool, swap.abi_encode().into())? {
            Ok(_) => Ok(true),
            Err(Revert::K) => Ok(false),
            Err(revert) => Err(FeeAnswer::Refused(revert)),
        }
    }

    /// Has the pair hold so much of a token, by setting the slot that its balance is read from.
    fn set_balance(&mut self, token: Address, wanted: U256) -> Result<(), FeeAnswer> {
        let held = self.balance(token)?;
        if held == Some(wanted) {
            return Ok(());
        }
        let held = held.ok_or(FeeAnswer::Balance(token))?;
        let read = self.scratch.db().touched.clone();
        for (account, slot) in read {
            let Some(word) = self.state.slot(account, slot) else {
                continue;
            };
            let set = word.wrapping_add(wanted).wrapping_sub(held);
            self.scratch.db().overlay.push((account, slot, set));
            if self.balance(token)? == Some(wanted) {
                return Ok(());
            }
            self.scratch.db().overlay.pop();
        }
        Err(FeeAnswer::Balance(token))
    }

    fn balance(&mut self, token: Address) -> Result<Option<U256>, FeeAnswer> {
        let ask = abi::balanceOfCall {
            holder: self.query.pool,
        };
        let answer = self.run(token, ask.abi_encode().into())?.ok();
        Ok(answer
            .filter(|word| word.len() == 32)
            .map(|word| U256::from_be_slice(&word)))
    }

    fn run(&mut self, to: Address, input: Bytes) -> Result<Result<Bytes, Revert>, FeeAnswer> {
        let (block, gas) = (&self.query.block, self.query.gas);
        let Run { end, missing } = self.scratch.run(
            self.state,
            Tx {
                block,
                executor: None,
                from: NOBODY,
                to,
                input,
                gas,
            },
        );
        if !missing.is_empty() {
            return Err(FeeAnswer::Missing(missing));
        }
        Ok(match end {
            Ok(ExecutionResult::Success { output, .. }) => Ok(output.into_data()),
            Ok(ExecutionResult::Revert { output, .. }) => Err(Revert::read(&output)),
            Ok(ExecutionResult::Halt { .. }) | Err(_) => Err(Revert::Other),
        })
    }
}

/// `UniswapV2Library.getAmountOut` at a fee in parts per million; 0 where it has no value.
fn amount_out(amount_in: U256, reserve_in: U256, reserve_out: U256, ppm: u32) -> U256 {
    let paid = U512::from(amount_in) * U512::from(MILLION.saturating_sub(ppm));
    let divisor = U512::from(reserve_in) * U512::from(MILLION) + paid;
    let out = (paid * U512::from(reserve_out))
        .checked_div(divisor)
        .unwrap_or_default();
    U256::saturating_from(out)
}

/// The first fee from 0 to a million at which this holds, which then holds at all larger ones; one past if none.
fn first(holds: impl Fn(u32) -> bool) -> u32 {
    let (mut below, mut above) = (0, MILLION + 1);
    while below < above {
        let middle = below + (above - below) / 2;
        if holds(middle) {
            above = middle;
        } else {
            below = middle + 1;
        }
    }
    below
}
