//! What a seat does of it: one run of the machine over a snapshot of the state.
//!
//! # Invariants
//! - A unit reads nothing but its own snapshot, so the state may go on meanwhile.
//! - What a seat keeps between units changes no outcome, only what is asked for ahead of need.

use regatta_evm::{
    Blame, Call, FeeAnswer, FeeQuery, Key, Outcome, Scratch, State, blame, fee_of, simulate,
};

/// What a seat keeps between units: the machine and its memory, once it was needed.
#[derive(Debug, Default)]
pub struct EvmArena(Option<(u64, Box<Scratch>)>);

impl EvmArena {
    fn scratch(&mut self, chain_id: u64) -> &mut Scratch {
        if self.0.as_ref().is_none_or(|(id, _)| *id != chain_id) {
            self.0 = None;
        }
        let kept = self
            .0
            .get_or_insert_with(|| (chain_id, Box::new(Scratch::new(chain_id))));
        &mut kept.1
    }
}

/// A unit of the role `SimDriver` for the machine.
#[derive(Debug)]
pub struct EvmJob {
    pub(super) chain_id: u64,
    pub(super) state: State,
    pub(super) ask: Ask,
}

/// What is asked of the machine.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// What comes of a cycle.
    Run(Call),
    /// Who makes it fail.
    Blame(Call),
    /// Which fee a pool takes.
    Fee(FeeQuery),
}

/// What the machine answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvmAnswer {
    /// What came of a cycle.
    Ran(Outcome),
    /// Who makes it fail.
    Blamed(Option<Blame>),
    /// Which fee a pool takes.
    Fee(FeeAnswer),
}

impl EvmAnswer {
    /// What has to be told first.
    pub(super) fn missing(&self) -> Option<&[Key]> {
        match self {
            Self::Ran(Outcome::Missing(keys)) | Self::Fee(FeeAnswer::Missing(keys)) => Some(keys),
            _ => None,
        }
    }
}

impl EvmJob {
    pub(crate) fn run(self, arena: &mut EvmArena) -> EvmAnswer {
        let scratch = arena.scratch(self.chain_id);
        match &self.ask {
            Ask::Run(call) => EvmAnswer::Ran(simulate(&self.state, call, scratch)),
            Ask::Blame(call) => EvmAnswer::Blamed(blame(&self.state, call, scratch)),
            Ask::Fee(query) => EvmAnswer::Fee(fee_of(&self.state, query, scratch)),
        }
    }
}
