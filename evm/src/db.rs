//! The state as the machine reads it.
//!
//! # Invariants
//! - A read of what is not known is noted, and answered with a guess so that the run goes on and finds what else is
//!   not known. Whatever such a run ends with is not used, but for what it noted.
//! - What is noted first is needed: until then the run saw the true state only.

use alloy_primitives::{Address, B256, U256};
use revm::Database;
use revm::context::DBErrorMarker;
use revm::state::{AccountInfo, Bytecode};

use crate::call::Executor;
use crate::code::Code;
use crate::state::{Key, State};

/// The most keys that one run may note.
const MOST_MISSING: usize = 512;

/// A guess for a slot that is not known: as a balance, more than most and less than a pair can hold (2¹¹²); as a
/// flag in the lowest byte, false; as an address, one that is nobody's.
const GUESS: U256 = U256::from_limbs([0, 1 << 46, 0, 0]);

/// A contract asked for what no state holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the hash of block {0} is not known")]
pub(crate) struct NoBlockHash(pub(crate) u64);

impl DBErrorMarker for NoBlockHash {}

/// A run's view of the state.
#[derive(Default, Debug)]
pub(crate) struct Db {
    state: State,
    executor: Option<(Address, Code)>,
    /// Slots that hold something else than the state says, for one run.
    pub(crate) overlay: Vec<(Address, U256, U256)>,
    missing: Vec<Key>,
    /// The slots that were read, in the order of their first reads.
    pub(crate) touched: Vec<(Address, U256)>,
}

impl Db {
    /// Begins a run.
    pub(crate) fn begin(&mut self, state: &State, executor: Option<&Executor>) {
        self.state.clone_from(state);
        self.executor = executor.and_then(|e| Some((e.address, e.code.clone()?)));
        self.missing.clear();
        self.touched.clear();
    }

    /// Ends a run: what was missing. Lets go of the state.
    pub(crate) fn end(&mut self) -> Vec<Key> {
        self.state = State::default();
        self.executor = None;
        core::mem::take(&mut self.missing)
    }

    /// A contract makes use of an account's balance or nonce.
    pub(crate) fn uses_funds(&mut self, address: Address) {
        if self.state.funds(address).is_none() && !self.is_replaced(address) {
            self.note(Key::Account(address));
        }
    }

    fn is_replaced(&self, address: Address) -> bool {
        self.executor.as_ref().is_some_and(|(at, _)| *at == address)
    }

    fn note(&mut self, key: Key) {
        // After the first, a key may be due to a guess.
        let of_a_guess = match key {
            Key::Account(address) => address.into_word() == B256::from(GUESS),
            Key::Slot(..) => false,
        };
        let counts = self.missing.is_empty() || !of_a_guess;
        if counts && self.missing.len() < MOST_MISSING && !self.missing.contains(&key) {
            self.missing.push(key);
        }
    }
}

impl Database for Db {
    type Error = NoBlockHash;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, NoBlockHash> {
        if let Some((_, code)) = self.executor.as_ref().filter(|(at, _)| *at == address) {
            let info = AccountInfo {
                nonce: 1,
                code_hash: code.hash(),
                code: Some(code.bytecode()),
                ..AccountInfo::default()
            };
            return Ok(Some(info));
        }
        let Some(code) = self.state.code(address) else {
            self.note(Key::Account(address));
            return Ok(None);
        };
        // Whoever makes use of these says so before (`uses_funds`), so a guess is never used unnoticed.
        let code = code.clone();
        if code.is_empty() {
            // Whether there is an account at all is told by them.
            self.uses_funds(address);
        }
        let (balance, nonce) = self.state.funds(address).unwrap_or((U256::ZERO, 1));
        let info = AccountInfo {
            balance,
            nonce,
            code_hash: code.hash(),
            code: Some(code.bytecode()),
            account_id: None,
        };
        Ok(Some(info))
    }

    fn code_by_hash(&mut self, _: B256) -> Result<Bytecode, NoBlockHash> {
        // Every account is told with its code.
        Ok(Bytecode::default())
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, NoBlockHash> {
        self.touched.push((address, slot));
        if let Some((_, _, value)) = self
            .overlay
            .iter()
            .find(|(a, s, _)| *a == address && *s == slot)
        {
            return Ok(*value);
        }
        if let Some(value) = self.state.slot(address, slot) {
            return Ok(value);
        }
        if self.is_replaced(address) {
            return Ok(U256::ZERO);
        }
        self.note(Key::Slot(address, slot));
        Ok(GUESS)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, NoBlockHash> {
        Err(NoBlockHash(number))
    }
}
