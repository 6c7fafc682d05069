//! Contract code, analysed once and shared.
//!
//! # Invariants
//! - A [`Code`] is never changed. Its hash is the Keccak-256 of its bytes, as `EXTCODEHASH` has it.
//! - Cloning one shares the bytes and their analysis.

use alloy_primitives::{Address, B256, Bytes};
use revm::state::Bytecode;

/// The code of a contract: its bytes, their hash, and where they may be jumped to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    bytecode: Bytecode,
    hash: B256,
}

/// Why there is no such [`Code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeError {
    /// It begins with 0xef01, and is no delegation to an address.
    #[error(
        "the code begins with 0xef01 and is {length} bytes long: a delegation is 0xef0100 and 20 bytes of address"
    )]
    Delegation {
        /// Its length in bytes.
        length: usize,
    },
    /// An immutable does not lie in the code.
    #[error("the immutable at byte {at} needs 32 bytes, and the code is {length} bytes long")]
    Immutable {
        /// Where it was to begin.
        at: usize,
        /// The length of the code in bytes.
        length: usize,
    },
}

impl Code {
    /// Analyses the bytes, and hashes them: tens of microseconds for a large contract. No bytes are an account
    /// without code.
    pub fn new(bytes: Bytes) -> Result<Self, CodeError> {
        let length = bytes.len();
        let bytecode =
            Bytecode::new_raw_checked(bytes).map_err(|_| CodeError::Delegation { length })?;
        let hash = bytecode.hash_slow();
        Ok(Self { bytecode, hash })
    }

    /// Code as it is after deployment, if each of `places` is the first byte of an immutable that holds `address`.
    /// The compiler's artifact names them (`immutableReferences`).
    pub fn with_immutable(
        runtime: &[u8],
        places: &[usize],
        address: Address,
    ) -> Result<Self, CodeError> {
        let mut bytes = runtime.to_vec();
        let length = bytes.len();
        for &at in places {
            let word = at
                .checked_add(32)
                .and_then(|end| bytes.get_mut(at..end))
                .ok_or(CodeError::Immutable { at, length })?;
            word.copy_from_slice(address.into_word().as_slice());
        }
        Self::new(bytes.into())
    }

    /// The Keccak-256 of the bytes.
    #[must_use]
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytecode.original_byte_slice()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Whether no later block can change it at its address: it is there, and is no delegation (EIP-7702). From
    /// the Cancun rules on, a contract that was not created in the same transaction keeps its code (EIP-6780).
    #[must_use]
    pub fn is_final(&self) -> bool {
        !self.is_empty() && !self.bytecode.is_eip7702()
    }

    pub(crate) fn bytecode(&self) -> Bytecode {
        self.bytecode.clone()
    }
}
