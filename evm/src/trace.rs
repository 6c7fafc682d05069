//! What a failing run is looked at for.
//!
//! # Invariants
//! - What is kept is bounded by the calls that a run's gas allows.

use alloy_primitives::{Address, Bytes, U256};
use revm::Inspector;
use revm::interpreter::{CallInputs, CallOutcome, CallScheme};

use crate::machine::Ctx;

/// A call that did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) caller: Address,
    pub(crate) callee: Address,
    pub(crate) data: Bytes,
}

/// What was seen of a run.
#[derive(Default, Debug)]
pub(crate) struct Trace {
    /// Answers of one word to static calls, so to `balanceOf` where a pair or the executor asks a token: who
    /// asked, whom, and the answer.
    answers: Vec<(Address, Address, U256)>,
    /// The first that ended in failure: the innermost.
    pub(crate) failure: Option<Failure>,
}

impl Trace {
    pub(crate) fn clear(&mut self) {
        self.answers.clear();
        self.failure = None;
    }

    /// The first and the last answer that `from` had from the token `of`.
    pub(crate) fn answers(&self, from: Address, of: Address) -> Option<(U256, U256)> {
        let mut all = self
            .answers
            .iter()
            .filter(|(asker, token, _)| *asker == from && *token == of)
            .map(|(_, _, word)| *word);
        let first = all.next()?;
        Some((first, all.next_back().unwrap_or(first)))
    }
}

impl Inspector<Ctx> for Trace {
    fn call_end(&mut self, _: &mut Ctx, inputs: &CallInputs, outcome: &mut CallOutcome) {
        let output = &outcome.result.output;
        if !outcome.result.result.is_ok() {
            self.failure.get_or_insert_with(|| Failure {
                caller: inputs.caller,
                callee: inputs.target_address,
                data: output.clone(),
            });
        } else if inputs.scheme == CallScheme::StaticCall && output.len() == 32 {
            self.answers.push((
                inputs.caller,
                inputs.target_address,
                U256::from_be_slice(output),
            ));
        }
    }
}
