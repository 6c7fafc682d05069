//! What tokens say of themselves is for people: whatever they say refuses nothing, and is bounded.

use crate::market::{Line, market, run, token};
use alloy_primitives::Address;
use regatta_chain::pools::{self, TokenFacts};
use regatta_fake_node::contracts::{input, string, word};
use regatta_fake_node::{Reply, Script};
use serde_json::json;

async fn facts(signature: &str, said: Reply) -> TokenFacts {
    let mut contracts = market(0);
    contracts.answer(token(0), input(signature, &[]), said);
    let line = Line::to(Script::new().contracts(contracts)).await;
    let facts = pools::tokens_of(&line.reader(), &[token(0)]).await.unwrap();
    assert_eq!(facts.len(), 1);
    facts[&token(0)].clone()
}

fn hex(bytes: &[u8]) -> Reply {
    Reply::Result(json!(alloy_primitives::Bytes::copy_from_slice(bytes)))
}

/// Strings as they are now, 32 bytes as they were, and garbage of every other kind.
#[test]
fn symbols_come_in_two_forms_and_in_none() {
    run(async {
        let mut old = [0; 32];
        old[..3].copy_from_slice(b"MKR");
        // Terminals obey such; here it is kept as it came, and cut.
        let control = "\u{1b}[2J\u{202e}\0\n".repeat(40);
        let mut endless = string("x");
        endless[32..64].copy_from_slice(&[0xff; 32]);
        for (said, symbol) in [
            (hex(&string("WETH")), "WETH".to_owned()),
            (hex(&old), "MKR".to_owned()),
            (hex(&[0xff; 32]), "\u{fffd}".repeat(21)),
            (hex(&string(&control)), control[..64].to_owned()),
            (hex(&string(&"é".repeat(1000))), "é".repeat(32)),
            (hex(&endless), String::new()),
            (hex(&[]), String::new()),
            (hex(&[7; 31]), String::new()),
            (Reply::error(3, "execution reverted"), String::new()),
            (Reply::Result(json!(null)), String::new()),
        ] {
            let facts = facts("symbol()", said.clone()).await;
            assert_eq!(facts.symbol, symbol, "{said:?}");
            assert_eq!(facts.decimals, 18);
        }
    });
}

/// No decimals, and more than a byte of them, are none.
#[test]
fn decimals_that_make_no_sense_are_zero() {
    run(async {
        for (said, decimals) in [
            (hex(&word(6)), 6),
            (hex(&word(255)), 255),
            (hex(&word(256)), 0),
            (hex(&[0xff; 32]), 0),
            (hex(&[]), 0),
            (Reply::error(-32015, "VM execution error"), 0),
            (Reply::Result(json!(18)), 0),
        ] {
            let facts = facts("decimals()", said.clone()).await;
            assert_eq!(facts.decimals, decimals, "{said:?}");
            assert_eq!(facts.symbol, "T0");
        }
    });
}

/// An address without a contract is a token that says nothing of itself.
#[test]
fn a_token_without_code_says_nothing() {
    run(async {
        let line = Line::to(Script::new().contracts(market(0))).await;
        let nobody = Address::repeat_byte(9);
        let asked = [nobody, token(0)];
        let facts = pools::tokens_of(&line.reader(), &asked).await.unwrap();
        assert_eq!(facts[&nobody].symbol, "");
        assert_eq!(facts[&token(0)].symbol, "T0");
        assert_eq!(
            pools::tokens_of(&line.reader(), &[]).await.unwrap().len(),
            0
        );
    });
}

/// Tokens of anybody are asked together. What they can say within the gas that they are given fits a message, so
/// none can end the connection; and no token can make the node work for long.
#[test]
fn tokens_are_given_so_little_gas_that_their_answers_fit_a_message() {
    run(async {
        let (sender, asked) = std::sync::mpsc::channel();
        let script = Script::new().on("eth_call", move |call| {
            let gas = call.params[0]["gas"].as_str().map(str::to_owned);
            sender.send((call.id.as_u64().unwrap(), gas)).unwrap();
            Reply::error(3, "execution reverted")
        });
        let line = Line::to(script).await;
        let tokens: Vec<_> = (0..100).map(token).collect();
        drop(pools::tokens_of(&line.reader(), &tokens).await.unwrap());
        let asked: Vec<_> = asked.try_iter().collect();
        assert!(asked.len() >= 200);
        for (_, gas) in asked {
            let gas = u64::from_str_radix(gas.unwrap().trim_start_matches("0x"), 16).unwrap();
            // Memory of so many words costs words²/512 + 3·words of gas (Yellow Paper, appendix H).
            let words = (1..1 << 20)
                .find(|words| words * words / 512 + 3 * words > gas)
                .unwrap();
            assert!(
                words * 64 * pools::TOKENS_AT_ONCE as u64 * 2 < 16 << 20,
                "{gas}"
            );
        }
    });
}
