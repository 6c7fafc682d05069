//! What settling needs, checked before anything starts: the key, the executor, the ledger.
//!
//! # Invariants
//! - Nothing starts unless the executor is the contract that this build knows, owned by the key's account, and the ledger
//!   is of this chain, executor and account.

use super::calls::parsed;
use crate::cli::{RunArgs, SettleMode};
use crate::exit::Exit;
use crate::node::{AskError, Asker, plain};
use alloy_primitives::{Address, Bytes, U256};
use regatta_chain::rpc::{CallError, Request};
use regatta_settle::abi::{artifact, owner_calldata};
use regatta_settle::engine::{Config, Mode};
use regatta_settle::key::{Key, KeyError};
use regatta_settle::ledger::{Header, Ledger, LedgerError};
use regatta_settle::tx::SignError;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How long the executor may take to be looked at.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why nothing is settled.
#[derive(Debug, Error)]
pub enum SettleError {
    /// An option that the others leave no meaning.
    #[error("{0}")]
    Options(&'static str),
    /// The key cannot be used.
    #[error("--key: {0}")]
    Key(#[from] KeyError),
    /// The node did not answer.
    #[error("--rpc: {0}")]
    Node(#[from] AskError),
    /// What it answered is no answer.
    #[error("--rpc: the node's answer is malformed: {0}")]
    Answer(String),
    /// There is no contract.
    #[error("--executor: {executor} has no code: `regatta settle deploy` makes one")]
    NoCode {
        /// The executor.
        executor: Address,
    },
    /// It is another contract.
    #[error(
        "--executor: the code at {executor} is not that of the executor this build knows, owned by {owner}: `regatta settle deploy` makes one"
    )]
    OtherCode {
        /// The executor.
        executor: Address,
        /// Who it says its owner is.
        owner: Address,
    },
    /// Somebody else owns it.
    #[error("--executor: {executor} is owned by {owner}, and the key is that of {account}")]
    Owner {
        /// The executor.
        executor: Address,
        /// Its owner.
        owner: Address,
        /// The key's account.
        account: Address,
    },
    /// The chain has no base fee.
    #[error("--rpc: the chain's blocks have no base fee, and transactions here offer one")]
    NoBaseFee,
    /// The base fee is above what may be offered.
    #[error(
        "the next block may cost more than {cap} wei a unit of gas, which --max-fee-per-gas allows"
    )]
    TooDear {
        /// What may be offered.
        cap: u128,
    },
    /// The ledger cannot be used.
    #[error("--ledger: {0}")]
    Ledger(#[from] LedgerError),
    /// The transaction cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A contract was not created.
    #[error("the executor was not created: {0}")]
    NotDeployed(String),
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[from] std::io::Error),
    /// A thread could not be had.
    #[error(transparent)]
    Thread(#[from] regatta_portable::census::CensusError),
}

impl SettleError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Options(_) => Exit::Usage,
            Self::Node(AskError::Interrupted) => Exit::Ok,
            Self::Node(_) | Self::Answer(_) => Exit::Node,
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Output(_) | Self::Thread(_) => Exit::Failed,
            _ => Exit::Settle,
        }
    }
}

/// What is known before the node is asked.
pub(crate) struct Prepared {
    mode: Mode,
    key: Option<Arc<Key>>,
    executor: Address,
    ledger: PathBuf,
}

/// Everything that settling needs.
pub(crate) struct Opened {
    pub(super) config: Config,
    pub(super) key: Option<Arc<Key>>,
    pub(super) ledger: Ledger,
}

impl Prepared {
    /// Reads the key, if settling is asked for.
    pub(crate) fn of(args: &RunArgs) -> Result<Option<Self>, SettleError> {
        let settle = &args.settle;
        let Some(mode) = settle.settle else {
            return Ok(None);
        };
        let (Some(executor), Some(ledger)) = (settle.executor, settle.ledger.clone()) else {
            return Err(SettleError::Options(
                "--settle needs --executor and --ledger",
            ));
        };
        if settle.priority_fee > settle.max_fee_per_gas {
            return Err(SettleError::Options(
                "--priority-fee is a part of --max-fee-per-gas and cannot be above it",
            ));
        }
        let (mode, key) = match (mode, &settle.key) {
            (SettleMode::Live, Some(path)) => (Mode::Live, Some(Arc::new(Key::read(path)?))),
            (SettleMode::Live, None) => {
                return Err(SettleError::Options("--settle live needs --key"));
            }
            (SettleMode::Shadow, None) => (Mode::Shadow, None),
            (SettleMode::Shadow, Some(_)) => {
                return Err(SettleError::Options(
                    "--settle shadow signs nothing: leave --key out",
                ));
            }
        };
        Ok(Some(Self {
            mode,
            key,
            executor: plain(executor),
            ledger,
        }))
    }

    /// Looks at the executor and opens the ledger.
    pub(crate) fn open(
        self,
        args: &RunArgs,
        asker: &Asker,
        chain_id: u64,
    ) -> Result<Opened, SettleError> {
        let owner = owner(asker, self.executor, self.key.as_deref())?;
        let header = Header::new(chain_id, self.executor, owner);
        let (ledger, torn) = Ledger::open(&self.ledger, header)?;
        if let Some(torn) = torn {
            tracing::warn!(
                "the ledger's last entry was cut short by a crash: {} bytes at {} were dropped",
                torn.length,
                torn.offset
            );
        }
        let settle = &args.settle;
        let config = Config {
            window: usize::from(settle.settle_window),
            expiry_blocks: settle.expiry_blocks,
            min_profit: U256::from(settle.min_settle_profit),
            max_fee_cap: settle.max_fee_per_gas,
            max_replacement_fee: settle.max_fee_per_gas.saturating_mul(2),
            priority_fee: settle.priority_fee,
            loss_limit: U256::from(settle.loss_limit),
            ..Config::new(self.mode, chain_id, self.executor, owner)
        };
        Ok(Opened {
            config,
            key: self.key,
            ledger,
        })
    }
}

/// The executor's owner, if it is the contract that this build knows and the key's account owns it.
fn owner(asker: &Asker, executor: Address, key: Option<&Key>) -> Result<Address, SettleError> {
    let call = json!({ "to": executor, "data": owner_calldata() });
    let questions = vec![
        Request::new("eth_getCode", json!([executor, "latest"])),
        Request::new("eth_call", json!([call, "latest"])),
        Request::new("eth_getBlockByNumber", json!(["latest", false])),
    ];
    let mut answers = asker.ask_apart(questions, PATIENCE)?.into_iter();
    let mut next = || answers.next().unwrap_or(Ok(Value::Null));
    let value = |answer: Result<Value, CallError>| answer.map_err(AskError::from);
    let code: Bytes = parsed("eth_getCode", value(next())?).map_err(SettleError::Answer)?;
    if code.is_empty() {
        return Err(SettleError::NoCode { executor });
    }
    // Another contract may answer with anything.
    let owner = next()
        .ok()
        .and_then(|word| serde_json::from_value::<Bytes>(word).ok());
    let owner = owner.filter(|word| word.len() == 32);
    let owner = owner.map(|word| Address::from_word(alloy_primitives::B256::from_slice(&word)));
    let owner = owner.unwrap_or_default();
    if code != artifact::runtime_code(owner) {
        return Err(SettleError::OtherCode { executor, owner });
    }
    if let Some(account) = key.map(Key::address).filter(|account| *account != owner) {
        return Err(SettleError::Owner {
            executor,
            owner,
            account,
        });
    }
    base_fee(&value(next())?)?;
    Ok(owner)
}

/// The base fee of a block.
pub(super) fn base_fee(block: &Value) -> Result<u128, SettleError> {
    let fee = block.get("baseFeePerGas").cloned().unwrap_or_default();
    if fee.is_null() {
        return Err(SettleError::NoBaseFee);
    }
    let fee: U256 = parsed("eth_getBlockByNumber", fee).map_err(SettleError::Answer)?;
    u128::try_from(fee).map_err(|_| SettleError::Answer(format!("a base fee of {fee} wei")))
}
