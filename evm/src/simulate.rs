//! A cycle, run.
//!
//! # Invariants
//! - The outcome depends on the call and on what the state says, and not on what was simulated before: only which
//!   further keys an [`Outcome::Missing`] names does.
//! - It ends: gas is bounded.

use alloy_primitives::{Log, U256};
use alloy_sol_types::SolEvent;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};

use crate::call::{Call, abi};
use crate::machine::{Error, Run, Scratch, Tx};
use crate::outcome::{Done, Halt, Outcome, REASON_BYTES, Revert, Reverted, Swapped};
use crate::state::State;

/// Runs a call over the state. It does not wait: what the state does not know is the answer
/// ([`Outcome::Missing`]).
#[must_use]
pub fn simulate(state: &State, call: &Call, scratch: &mut Scratch) -> Outcome {
    let Run { end, missing } = scratch.run(state, tx(call));
    if missing.is_empty() {
        return outcome(call, end);
    }
    let touched = core::mem::take(&mut scratch.db().touched);
    scratch.learned.learn(call, state, &touched);
    scratch.db().touched = touched;
    Outcome::Missing(scratch.learned.complete(call, state, missing))
}

pub(crate) fn tx(call: &Call) -> Tx<'_> {
    Tx {
        block: &call.block,
        executor: Some(&call.executor),
        from: call.owner,
        to: call.executor.address,
        input: call.input(),
        gas: call.gas,
    }
}

pub(crate) fn outcome(call: &Call, end: Result<ExecutionResult, Error>) -> Outcome {
    let gas = call.gas.min(call.block.gas_limit);
    match end {
        Ok(ExecutionResult::Success {
            gas, logs, output, ..
        }) => {
            let output = output.data();
            if output.len() != 32 {
                return Outcome::Halted(Halt::NoExecutor {
                    executor: call.executor.address,
                    length: output.len(),
                });
            }
            Outcome::Done(Done {
                profit: U256::from_be_slice(output),
                gas_used: gas.tx_gas_used(),
                hops: swaps(call, &logs),
            })
        }
        Ok(ExecutionResult::Revert { gas, output, .. }) => Outcome::Reverted(Reverted {
            revert: Revert::read(&output),
            // Copied: a slice would keep all of what the contract gave.
            data: output
                .get(..REASON_BYTES)
                .unwrap_or(&output)
                .to_vec()
                .into(),
            gas_used: gas.tx_gas_used(),
        }),
        Ok(ExecutionResult::Halt {
            reason: HaltReason::OutOfGas(_),
            ..
        }) => Outcome::Halted(Halt::OutOfGas { gas }),
        Ok(ExecutionResult::Halt { reason, .. }) => {
            Outcome::Halted(Halt::Machine(reason.to_string()))
        }
        Err(EVMError::Database(asked)) => Outcome::Halted(Halt::BlockHash(asked.0)),
        // The only thing that is checked of the transaction.
        Err(EVMError::Transaction(_)) => Outcome::Halted(Halt::TooLittleGas { gas }),
        Err(error) => Outcome::Halted(Halt::Machine(error.to_string())),
    }
}

/// What each hop's pair logged. The first pair logs last, for all others are paid inside its callback.
fn swaps(call: &Call, logs: &[Log]) -> Vec<Option<Swapped>> {
    let mut logs: Vec<Option<&Log>> = logs.iter().map(Some).collect();
    let mut swaps = vec![None; call.hops.len()];
    let order = (1..call.hops.len()).chain(core::iter::once(0));
    for index in order {
        let (Some(hop), Some(swap)) = (call.hops.get(index), swaps.get_mut(index)) else {
            continue;
        };
        for place in &mut logs {
            let Some(log) = place.filter(|log| log.address == hop.pool) else {
                continue;
            };
            let Ok(event) = abi::Swap::decode_log_data(&log.data) else {
                continue;
            };
            let (amount_in, amount_out) = if hop.zero_for_one {
                (event.amount0In, event.amount1Out)
            } else {
                (event.amount1In, event.amount0Out)
            };
            *swap = Some(Swapped {
                amount_in,
                amount_out,
            });
            *place = None;
            break;
        }
    }
    swaps
}
