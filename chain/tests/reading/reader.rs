//! Many questions at one block, some of which go wrong.

use crate::market::{Line, market, pool, quick, run, token};
use alloy_primitives::{Address, Bytes};
use proptest::prelude::*;
use regatta_chain::abi::{Pair, Token};
use regatta_chain::read::{Limits, Question, Reader, Unanswered};
use regatta_chain::rpc::{self, CallError};
use regatta_fake_node::contracts::input;
use regatta_fake_node::{Batches, Call, Faults, Reply, Script};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// A question about the number of a contract that says its number.
fn question(number: u8) -> Question {
    Question {
        to: token(number),
        data: Bytes::from_static(b"who"),
    }
}

/// A node whose contracts say their number, except those that take the whole message with them.
fn numbers(
    poison: BTreeSet<u8>,
    mut instead: impl FnMut(&Call) -> Reply + Send + 'static,
) -> Script {
    Script::new().on("eth_call", move |call| {
        let to: Address = serde_json::from_value(call.params[0]["to"].clone()).unwrap();
        let number = to.0[19];
        if poison.contains(&number) {
            instead(call)
        } else {
            Reply::Result(json!(Bytes::from(vec![number])))
        }
    })
}

/// Whole messages are refused in different ways by different nodes: an error for nobody, with whatever code, or for one
/// of the questions alone.
fn refused(way: u8, call: &Call) -> Reply {
    let unaddressed = |code, words: &str| Reply::Unaddressed {
        code,
        message: words.to_owned(),
    };
    match way {
        0 => unaddressed(-32600, "batch too large"),
        1 => unaddressed(429, "slow down"),
        _ => {
            let error = json!({"code": -32000, "message": "response too large"});
            Reply::Raw(json!([{"jsonrpc": "2.0", "id": call.id, "error": error}]).to_string())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Row N11: whatever contracts sink the message that they are asked in, they cost themselves alone; every other question has
    /// its own answer at its own place, and the number of calls is bounded.
    #[test]
    fn a_bad_contract_sinks_only_itself(
        count in 0u8..40,
        batch in 1usize..16,
        poison in proptest::collection::btree_set(0u8..40, 0..4),
        way in 0u8..3,
    ) {
        run(async {
            let line = Line::to(numbers(poison.clone(), move |call| refused(way, call))).await;
            let limits = Limits { batch, attempts: 1, ..quick() };
            let reader = Reader::new(&line.client, line.head(), limits);
            let questions: Vec<_> = (0..count).map(question).collect();
            let answers = reader.raw(&questions).await.unwrap();
            assert_eq!(answers.len(), questions.len());
            for (number, answer) in (0..count).zip(&answers) {
                let is_refused = matches!(
                    answer,
                    Err(Unanswered::Refused { to, .. }) if *to == token(number)
                );
                if poison.contains(&number) {
                    assert!(is_refused, "{number}: {answer:?}");
                } else {
                    assert_eq!(*answer, Ok(Bytes::from(vec![number])));
                }
            }
            // A question is in one message per level of the halving, and there are five levels for fifteen.
            assert!(line.calls("eth_call") <= usize::from(count) * 5);
        });
    }
}

/// A node that answers in any order, or forgets one, is understood.
#[test]
fn answers_out_of_order_are_put_in_order() {
    run(async {
        for batches in [Batches::Reversed, Batches::Apart, Batches::Doubled(2)] {
            let line =
                Line::to(numbers(BTreeSet::new(), |_| Reply::Silence).batches(batches)).await;
            let questions: Vec<_> = (0..10).map(question).collect();
            let answers = line.reader().raw(&questions).await.unwrap();
            let numbers: Vec<_> = (0..10).map(|n| Ok(Bytes::from(vec![n]))).collect();
            assert_eq!(answers, numbers, "{batches:?}");
        }
        let line = Line::to(numbers(BTreeSet::new(), |_| Reply::Silence)).await;
        line.node.batches(Batches::Without(0));
        let questions: Vec<_> = (0..3).map(question).collect();
        let limits = Limits {
            attempts: 1,
            ..quick()
        };
        let reader = Reader::new(&line.client, line.head(), limits);
        let answers = reader.raw(&questions).await.unwrap();
        assert!(
            matches!(
                &answers[0],
                Err(Unanswered::Refused {
                    error: CallError::Malformed { .. },
                    ..
                })
            ),
            "{answers:?}"
        );
        assert_eq!(answers[1..], [Ok(vec![1].into()), Ok(vec![2].into())]);
    });
}

/// Row N12: a call of an address without code succeeds and says nothing; a contract may say nothing too. They are told apart.
#[test]
fn no_contract_is_told_from_one_that_says_nothing() {
    run(async {
        let mut contracts = market(1);
        let silent = Address::repeat_byte(0x51);
        let data = input("factory()", &[]);
        contracts.answer(silent, data, Reply::Result(json!("0x")));
        let line = Line::to(Script::new().contracts(contracts)).await;
        let nobody = Address::repeat_byte(0x99);
        let of = |to| (to, Pair::factoryCall {});
        let questions = [of(nobody), of(silent), of(pool(0)), of(token(0))];
        let limits = Limits {
            attempts: 1,
            ..quick()
        };
        let reader = Reader::new(&line.client, line.head(), limits);
        let answers = reader.ask(&questions).await.unwrap();
        assert_eq!(answers[0], Err(Unanswered::NoCode(nobody)));
        assert_eq!(answers[1], Err(Unanswered::Silent(silent)));
        assert_eq!(answers[2], Ok(crate::market::FACTORY));
        // A token has no such function: it reverts, with the node's code for that.
        let Err(Unanswered::Refused { to, error }) = &answers[3] else {
            panic!("{answers:?}");
        };
        assert_eq!(*to, token(0));
        assert!(matches!(error, CallError::Node { code: 3, .. }), "{error}");
        // The code is asked only of those who said nothing.
        assert_eq!(line.calls("eth_getCode"), 2);
    });
}

/// An answer of another form than the function's is no answer: too short, too long a number, no bytes at all.
#[test]
fn an_answer_of_another_form_is_typed() {
    run(async {
        for (said, is_form) in [
            (json!("0x01"), true),
            (json!(format!("0x{}", "ff".repeat(32))), true),
            (json!("0x1"), false),
            (json!("garbage"), false),
            (json!(7), false),
            (json!({"a": []}), false),
        ] {
            let mut contracts = market(0);
            let data = input("decimals()", &[]);
            contracts.answer(token(0), data, Reply::Result(said.clone()));
            let line = Line::to(Script::new().contracts(contracts)).await;
            let asked = [(token(0), Token::decimalsCall {})];
            let answers = line.reader().ask(&asked).await.unwrap();
            match &answers[0] {
                Err(Unanswered::Form { to, .. }) if is_form => assert_eq!(*to, token(0)),
                Err(Unanswered::Refused {
                    to,
                    error: CallError::Malformed { .. },
                }) if !is_form => assert_eq!(*to, token(0)),
                other => panic!("{said}: {other:?}"),
            }
        }
    });
}

/// Row N6: a block that was just announced may not be known yet; it is asked for again, and not for ever.
#[test]
fn a_block_whose_state_comes_late_is_asked_for_again() {
    run(async {
        let asked = [(pool(0), Pair::token0Call {})];
        for (late, attempts, comes) in [(0, 1, true), (3, 4, true), (4, 4, false), (2, 0, false)] {
            let faults = Faults {
                stateless_for: late,
                ..Faults::default()
            };
            let script = Script::new().contracts(market(1)).faults(faults);
            let line = Line::to(script).await;
            let limits = Limits {
                attempts,
                ..quick()
            };
            let reader = Reader::new(&line.client, line.head(), limits);
            let answers = reader.ask(&asked).await.unwrap();
            assert_eq!(answers[0].is_ok(), comes, "{late} {attempts}: {answers:?}");
            let tries = u32::try_from(line.calls("eth_call")).unwrap();
            assert!(tries <= attempts.max(1), "{tries}");
        }
    });
}

/// A question that was answered is not asked again with those that were not.
#[test]
fn only_what_failed_is_asked_again() {
    run(async {
        let mut contracts = market(3);
        contracts.answer(
            token(1),
            input("decimals()", &[]),
            Reply::error(-32000, "no"),
        );
        let line = Line::to(Script::new().contracts(contracts)).await;
        let asked: Vec<_> = (0..4).map(|n| (token(n), Token::decimalsCall {})).collect();
        let answers = line.reader().ask(&asked).await.unwrap();
        assert_eq!(answers.iter().filter(|a| a.is_ok()).count(), 3);
        assert_eq!(line.calls("eth_call"), 4 + 3);
    });
}

/// The connection is all that ends a reading, and it ends at once.
#[test]
fn the_end_of_the_connection_ends_a_reading() {
    run(async {
        let line = Line::to(numbers(BTreeSet::from([3]), |_| Reply::Drop)).await;
        let questions: Vec<_> = (0..10).map(question).collect();
        let error = line.reader().raw(&questions).await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        let asked = line.calls("eth_call");
        assert!(line.reader().raw(&questions).await.unwrap_err().is_closed());
        assert_eq!(line.calls("eth_call"), asked);
        assert_eq!(line.reader().raw(&[]).await, Ok(vec![]));
    });
}

/// A node that is there and never answers calls costs a bounded number of deadlines, not one for each question.
#[test]
fn a_node_that_answers_nothing_is_given_up() {
    run(async {
        let limits = rpc::Limits {
            call: Duration::from_millis(20),
            ..rpc::Limits::default()
        };
        let script = Script::new().on("eth_call", |_| Reply::Silence);
        let line = Line::within(script, &limits).await;
        let questions: Vec<_> = (0..200).map(question).collect();
        let error = line.reader().raw(&questions).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        assert!(line.calls("eth_call") <= 2 * 200, "{:?}", line.node.seen());
    });
}
