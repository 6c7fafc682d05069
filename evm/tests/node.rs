//! The embedded machine and a real node say the same of a cycle: its profit, its gas, and whether it reverts.
#![cfg(test)]

mod support;

use std::path::Path;

use alloy_primitives::aliases::U112;
use alloy_primitives::{Address, B256, Bytes, U256};
use regatta_chain_lab::anvil::{Anvil, Options};
use regatta_chain_lab::fetch::Kit;
use regatta_chain_lab::market::{Market, Pool};
use regatta_chain_lab::rows::{self, WETH};
use regatta_chain_lab::rpc;
use regatta_evm::pair::{self, Reserves};
use regatta_evm::{
    BlockEnv, BlockId, Call, Code, Done, Executor, Hop, Key, Outcome, Revert, Scratch, State,
    agrees, simulate,
};
use serde_json::{Value, json};
use support::{EXECUTOR, amount_out, entry, profit};

fn head(node: &mut Anvil) -> (BlockId, BlockEnv) {
    let block: Value = node
        .rpc()
        .call("eth_getBlockByNumber", json!(["latest", false]))
        .unwrap();
    let number = |key: &str| {
        block[key]
            .as_str()
            .unwrap()
            .parse::<U256>()
            .unwrap()
            .to::<u64>()
    };
    let env = BlockEnv {
        number: number("number"),
        timestamp: number("timestamp"),
        base_fee: number("baseFeePerGas"),
        gas_limit: number("gasLimit"),
        beneficiary: block["miner"].as_str().unwrap().parse().unwrap(),
        random: block["mixHash"].as_str().unwrap().parse().unwrap(),
    };
    (
        BlockId {
            number: env.number,
            hash: block["hash"].as_str().unwrap().parse().unwrap(),
        },
        env,
    )
}

/// Answers as the bot does: by the hash of the block that the state is at.
fn answer(node: &mut Anvil, state: &mut State, keys: &[Key]) {
    let at = state.head().hash;
    let block = json!({"blockHash": at, "requireCanonical": true});
    for key in keys {
        match *key {
            Key::Account(address) => {
                let code: Bytes = node
                    .rpc()
                    .ask("eth_getCode", json!([address, block]))
                    .unwrap();
                let balance: U256 = node
                    .rpc()
                    .ask("eth_getBalance", json!([address, block]))
                    .unwrap();
                let nonce: U256 = node
                    .rpc()
                    .ask("eth_getTransactionCount", json!([address, block]))
                    .unwrap();
                state
                    .set_account(address, Code::new(code).unwrap(), balance, nonce.to(), at)
                    .unwrap();
            }
            Key::Slot(address, slot) => {
                let value: U256 = node
                    .rpc()
                    .ask(
                        "eth_getStorageAt",
                        json!([address, format!("{slot:#x}"), block]),
                    )
                    .unwrap();
                state.set_slot(address, slot, value, at).unwrap();
            }
        }
    }
}

fn settle(node: &mut Anvil, state: &mut State, call: &Call, scratch: &mut Scratch) -> Outcome {
    for _ in 0..20 {
        match simulate(state, call, scratch) {
            Outcome::Missing(keys) => answer(node, state, &keys),
            outcome => return outcome,
        }
    }
    panic!("it never has enough");
}

/// Cycles of three pairs from the base token and back.
fn cycles(market: &Market) -> Vec<[(Pool, bool); 3]> {
    let from = |token: Address| {
        let pools = market
            .pools
            .iter()
            .filter(move |pool| pool.tokens.contains(&token));
        pools.map(move |pool| (*pool, pool.tokens[0] == token))
    };
    let out = |(pool, zero_for_one): (Pool, bool)| pool.tokens[usize::from(zero_for_one)];
    let mut found = Vec::new();
    for first in from(WETH) {
        for second in from(out(first)).filter(|second| second.0 != first.0 && out(*second) != WETH)
        {
            found.extend(
                from(out(second))
                    .filter(|third| out(*third) == WETH)
                    .map(|third| [first, second, third]),
            );
        }
    }
    found
}

fn sell(cycle: &[(Pool, bool); 3], owner: Address, env: BlockEnv) -> Call {
    let amount_in = U256::from(1_000_000_000_000_000u64);
    let mut amount = amount_in;
    let hops = cycle.iter().map(|(pool, zero_for_one)| {
        let [reserve0, reserve1] = pool.reserves.map(U256::from);
        let (into, out) = if *zero_for_one {
            (reserve0, reserve1)
        } else {
            (reserve1, reserve0)
        };
        amount = amount_out(amount, into, out);
        Hop {
            pool: pool.address,
            zero_for_one: *zero_for_one,
            amount_out: amount,
        }
    });
    Call {
        block: env,
        gas: regatta_evm::DEFAULT_GAS,
        owner,
        executor: Executor {
            address: EXECUTOR,
            code: None,
        },
        base: WETH,
        amount_in,
        hops: hops.collect(),
        min_profit: U256::ZERO,
        expiry_block: u64::MAX,
    }
}

/// Doubles what the last pair of a cycle holds of the base token, reserve and balance alike.
fn enrich(node: &mut Anvil, (pool, zero_for_one): &mut (Pool, bool), timestamp: u64) {
    let gives = usize::from(*zero_for_one);
    pool.reserves[gives] *= 2;
    let reserves = Reserves {
        reserve0: U112::from(pool.reserves[0]),
        reserve1: U112::from(pool.reserves[1]),
        timestamp: u32::try_from(timestamp).unwrap(),
    };
    let held = U256::from(pool.reserves[gives]);
    let set = [
        rpc::Call::set_slot(pool.address, pair::RESERVES, reserves.pack()),
        rpc::Call::set_slot(WETH, entry(pool.address, 0), held),
    ];
    node.rpc().batch(&set).unwrap();
}

fn by_the_node(node: &mut Anvil, call: &Call, at: B256) -> Option<U256> {
    let transaction = json!({"from": call.owner, "to": EXECUTOR, "data": call.input(), "gas": format!("{:#x}", call.gas)});
    node.rpc()
        .ask("eth_call", json!([transaction, {"blockHash": at}]))
        .ok()
}

#[test]
fn over_real_pools_the_machine_and_a_node_agree_on_profit_gas_and_reverts() {
    let mut node = Anvil::start(&Kit::fetch().unwrap(), Options::default()).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/uniswap_v2_pairs.csv");
    let rows = rows::choose(&rows::read(&file).unwrap(), 60, WETH).unwrap();
    let market = Market::lay_out(&mut node, &rows).unwrap();
    let owner = node.accounts()[0].address;
    let code = Bytes::copy_from_slice(support::executor_of(owner).bytes());
    node.rpc()
        .call("anvil_setCode", json!([EXECUTOR, code]))
        .unwrap();
    let mut cycles = cycles(&market);
    assert!(cycles.len() > 20, "{} cycles", cycles.len());
    let (_, before) = head(&mut node);
    let pick = cycles.len() / 2;
    enrich(&mut node, &mut cycles[pick][2], before.timestamp);
    let (enriched, pool) = (cycles[pick][2].0, cycles[pick][2].0.address);
    for hop in cycles
        .iter_mut()
        .flatten()
        .filter(|hop| hop.0.address == pool)
    {
        hop.0 = enriched;
    }
    node.rpc().call("anvil_mine", json!(["0x1"])).unwrap();

    let (at, env) = head(&mut node);
    let (mut state, mut scratch) = (State::new(at), Scratch::new(1));
    let (mut done, mut reverted) = (Vec::new(), 0);
    for cycle in &cycles {
        let call = sell(
            cycle,
            owner,
            BlockEnv {
                number: env.number + 1,
                ..env
            },
        );
        let outcome = settle(&mut node, &mut state, &call, &mut scratch);
        let by_node = by_the_node(&mut node, &call, at.hash);
        match &outcome {
            Outcome::Done(Done { profit: found, .. }) => {
                assert_eq!(by_node, Some(*found));
                assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()));
                done.push(call);
            }
            Outcome::Reverted(other) => {
                assert_eq!(by_node, None, "{other:?}");
                assert!(!matches!(other.revert, Revert::K), "{other:?}");
                reverted += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(
        !done.is_empty() && reverted > 0,
        "{} ran, {reverted} reverted",
        done.len()
    );

    // Sent for real: the gas is that of the receipt.
    let call = &done[0];
    let transaction = json!({"from": owner, "to": EXECUTOR, "data": call.input(), "gas": format!("{:#x}", call.gas)});
    let hash: B256 = node
        .rpc()
        .ask("eth_sendTransaction", json!([transaction]))
        .unwrap();
    node.rpc().call("anvil_mine", json!(["0x1"])).unwrap();
    let receipt: Value = node
        .rpc()
        .call("eth_getTransactionReceipt", json!([hash]))
        .unwrap();
    assert_eq!(receipt["status"], "0x1");
    let (_, mined) = head(&mut node);
    let there = Call {
        block: mined,
        ..call.clone()
    };
    let Outcome::Done(Done { gas_used, .. }) = simulate(&state, &there, &mut scratch) else {
        panic!("not done")
    };
    assert_eq!(receipt["gasUsed"], format!("{gas_used:#x}"));
}
