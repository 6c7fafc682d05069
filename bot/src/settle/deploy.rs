//! `regatta settle deploy`: creates the executor.

use super::SettleError;
use super::calls::{parsed, receipt};
use super::open::base_fee;
use crate::cli::DeployArgs;
use crate::node::{AskError, Asker, Node, NodeConfig};
use alloy_primitives::{U64, U256};
use regatta_chain::rpc::{CallError, Request};
use regatta_portable::Census;
use regatta_settle::abi::artifact;
use regatta_settle::key::Key;
use regatta_settle::price;
use regatta_settle::tx::Transaction;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the receipt is asked for.
const LOOK: Duration = Duration::from_millis(500);

/// In how many blocks the creation is paid for, whatever the base fee does.
const BLOCKS: u64 = 10;

fn ask(
    asker: &Asker,
    requests: Vec<Request>,
) -> Result<Vec<Result<Value, CallError>>, SettleError> {
    Ok(asker.ask_apart(requests, PATIENCE)?)
}

/// Until the next look: a node announces no receipts, they can only be looked for.
fn pause() {
    std::thread::park_timeout(LOOK);
}

pub(super) fn deploy(args: &DeployArgs, mut out: impl Write) -> Result<(), SettleError> {
    let key = Key::read(&args.key)?;
    let config = NodeConfig {
        chain_id: args.chain_id,
        ..NodeConfig::new(args.rpc.clone())
    };
    let node = Node::start(config, &Census::new())?;
    let asker = node.asker();
    let owner = key.address();
    let code = artifact::creation_code();
    let count = |of| Request::new("eth_getTransactionCount", json!([owner, of]));
    let mut answers = ask(
        asker,
        vec![
            Request::new("eth_chainId", json!([])),
            count("latest"),
            count("pending"),
            Request::new("eth_getBlockByNumber", json!(["latest", false])),
            Request::new("eth_estimateGas", json!([{ "from": owner, "data": code }])),
        ],
    )?
    .into_iter();
    let mut next = || {
        let answer = answers.next().unwrap_or(Ok(Value::Null));
        answer.map_err(AskError::from)
    };
    let number = |method: &str, value| {
        parsed::<U64>(method, value)
            .map(|number| number.to::<u64>())
            .map_err(SettleError::Answer)
    };
    let chain_id = number("eth_chainId", next()?)?;
    let nonce = number("eth_getTransactionCount", next()?)?;
    let pending = number("eth_getTransactionCount", next()?)?;
    if pending != nonce {
        return Err(SettleError::NotDeployed(format!(
            "transactions of {owner} wait at the node, and this one would be behind them"
        )));
    }
    let base_fee = base_fee(&next()?)?;
    let gas = number("eth_estimateGas", next()?)?;
    let cap = args.max_fee_per_gas;
    let fees = price::offer(base_fee, BLOCKS, args.priority_fee, cap);
    let fees = fees.ok_or(SettleError::TooDear { cap })?;
    let signed = Transaction {
        chain_id,
        nonce,
        max_priority_fee_per_gas: fees.priority,
        max_fee_per_gas: fees.max,
        gas_limit: gas.saturating_add(gas / 4),
        to: None,
        value: U256::ZERO,
        input: code,
    }
    .sign(&key)?;
    tracing::info!("transaction {} creates the executor", signed.hash);
    let sent = ask(
        asker,
        vec![Request::new("eth_sendRawTransaction", json!([signed.raw]))],
    )?;
    if let Some(Err(error)) = sent.into_iter().next() {
        return Err(SettleError::NotDeployed(error.to_string()));
    }
    let until = Instant::now() + Duration::from_secs(args.wait);
    loop {
        let question = Request::new("eth_getTransactionReceipt", json!([signed.hash]));
        let answer = ask(asker, vec![question])?.into_iter().next();
        let answer = answer.unwrap_or(Ok(Value::Null)).map_err(AskError::from)?;
        match receipt(signed.hash, answer).map_err(SettleError::Answer)? {
            Some(receipt) if receipt.succeeded => break,
            Some(receipt) => {
                return Err(SettleError::NotDeployed(format!(
                    "transaction {} was undone in block {}",
                    signed.hash, receipt.block
                )));
            }
            None if Instant::now() >= until => {
                return Err(SettleError::NotDeployed(format!(
                    "no block has transaction {} after {} seconds (--wait); one still may",
                    signed.hash, args.wait
                )));
            }
            None => pause(),
        }
    }
    writeln!(out, "{}", crate::node::address(owner.create(nonce)))?;
    out.flush()?;
    Ok(())
}
