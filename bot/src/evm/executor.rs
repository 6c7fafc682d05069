//! The executor contract as it would stand on the chain, for simulations before there is one.
//!
//! # Invariants
//! - The code is that of the tracked artifact, with the owner that the simulated call comes from.

use alloy_primitives::{Address, address, hex};
use regatta_evm::{Code, CodeError, Executor};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// The tracked artifact.
const ARTIFACT: &str = include_str!("../../../contracts/Executor.json");

/// Where the executor is simulated. Nobody's: its key is not known, and the chain has nothing there.
const AT: Address = address!("00000000000000000000000000000000e8ec0701");

/// Who calls it. Nobody's either.
pub(super) const OWNER: Address = address!("00000000000000000000000000000000e8ec0702");

/// Why there is no executor to simulate with: the build is at fault.
#[derive(Debug, Error)]
pub enum ExecutorError {
    /// The artifact is no artifact.
    #[error("contracts/Executor.json of this build: {0}")]
    Artifact(#[from] serde_json::Error),
    /// Its code is no code.
    #[error("the runtime bytecode of contracts/Executor.json of this build: {0}")]
    Hex(#[from] hex::FromHexError),
    /// Its code is refused.
    #[error("the executor of this build: {0}")]
    Code(#[from] CodeError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    runtime_bytecode: String,
    immutable_references: BTreeMap<String, Vec<Place>>,
}

#[derive(Deserialize)]
struct Place {
    start: usize,
}

/// The executor, owned by [`OWNER`].
pub(super) fn executor() -> Result<Executor, ExecutorError> {
    let artifact: Artifact = serde_json::from_str(ARTIFACT)?;
    let runtime = hex::decode(artifact.runtime_bytecode)?;
    let references = artifact.immutable_references.values().flatten();
    let places: Vec<usize> = references.map(|place| place.start).collect();
    let code = Code::with_immutable(&runtime, &places, OWNER)?;
    Ok(Executor {
        address: AT,
        code: Some(code),
    })
}
