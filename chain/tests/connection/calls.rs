//! Calls and batches.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{join, join_all, poll_immediate};
use regatta_chain::rpc::{CallError, Counts, Limits, Request};
use regatta_fake_node::{Batches, FakeNode, Reply, Script};
use serde_json::{Value, json};

use super::{join as joined, patient, run, sockets};

#[test]
fn each_call_gets_its_own_answer_in_whatever_order_they_come() {
    for script in sockets() {
        run(async {
            let held = script().on("held", |call| Reply::Hold(call.params.clone()));
            let node = FakeNode::start(held.on("said", |call| Reply::Result(call.params.clone())))
                .unwrap();
            let (client, _notifications, _session) = joined(&node, &patient()).await;
            let late = join_all((0..50).map(|at| client.call::<Value>("held", json!([at]))));
            let soon = async {
                for at in 0..50 {
                    assert_eq!(
                        client.call::<Value>("said", json!([at])).await.unwrap(),
                        json!([at])
                    );
                }
                node.until("the held calls", |seen| seen.held == 50)
                    .await
                    .unwrap();
                node.release()
            };
            let (late, released) = join(late, soon).await;
            assert_eq!(released, 50);
            for (at, answer) in late.into_iter().enumerate() {
                assert_eq!(answer.unwrap(), json!([at]));
            }
            assert_eq!(client.counts(), Counts::default());
        });
    }
}

#[test]
fn an_error_of_the_node_is_kept_and_shown_bounded_and_escaped() {
    run(async {
        let node = FakeNode::start(Script::new().on("eth_call", |_| Reply::Error {
            code: 3,
            message: format!("reverted\u{1b}[2J\n{}", "x".repeat(100_000)),
            data: Some(json!("0x08c379a0")),
        }))
        .unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        let error = client
            .call::<Value>("eth_call", json!([]))
            .await
            .unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.starts_with(r"eth_call: the node answered with error 3: `reverted\u{1b}[2J\nxxx"),
            "{shown}"
        );
        assert!(shown.len() < 400, "{shown}");
        let CallError::Node {
            code: 3,
            message,
            data,
            ..
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!(
            (message.chars().count(), data),
            (1024, Some(json!("0x08c379a0")))
        );
    });
}

#[test]
fn an_answer_of_another_shape_is_malformed_for_its_call_alone() {
    run(async {
        let script = Script::new()
            .on("hollow", |_| Reply::Hollow)
            .on("number", |_| Reply::Result(json!(7)))
            .on("null", |_| Reply::Result(Value::Null));
        let node = FakeNode::start(script).unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        let hollow = client.call::<Value>("hollow", json!([])).await.unwrap_err();
        assert!(matches!(hollow, CallError::Malformed { .. }), "{hollow}");
        for method in ["number", "null"] {
            let error = client.call::<String>(method, json!([])).await.unwrap_err();
            assert!(
                matches!(&error, CallError::Malformed { method: of, .. } if of == method),
                "{error}"
            );
        }
        assert_eq!(
            client
                .call::<Option<String>>("null", json!([]))
                .await
                .unwrap(),
            None
        );
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
    });
}

#[test]
fn a_call_without_an_answer_ends_at_its_deadline_and_a_late_answer_is_ignored() {
    run(async {
        let script = Script::new()
            .on("late", |_| Reply::Hold(json!("late")))
            .on("wrong", |_| Reply::WrongId(json!("wrong")))
            .on("twice", |_| Reply::Twice(json!("twice")));
        let node = FakeNode::start(script).unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        let soon = Duration::from_millis(50);
        for method in ["late", "wrong"] {
            let error = client
                .call_within::<String>(method, json!([]), soon)
                .await
                .unwrap_err();
            assert_eq!(
                error,
                CallError::TimedOut {
                    method: method.to_owned(),
                    after: soon
                }
            );
        }
        assert_eq!(client.in_flight(), 0);
        node.until("the late call", |seen| seen.held == 1)
            .await
            .unwrap();
        assert_eq!(node.release(), 1);
        assert_eq!(
            client.call::<String>("twice", json!([])).await.unwrap(),
            "twice"
        );
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        // One late, one to an id that was never used, one said again.
        assert_eq!(
            client.counts(),
            Counts {
                unknown_answers: 3,
                ..Counts::default()
            }
        );
    });
}

#[test]
fn no_id_is_used_twice_whatever_becomes_of_the_calls() {
    run(async {
        let ids = Arc::new(Mutex::new(Vec::new()));
        let log = |reply: Reply| {
            let ids = Arc::clone(&ids);
            move |call: &regatta_fake_node::Call| {
                ids.lock().unwrap().push(call.id.as_u64().unwrap());
                reply.clone()
            }
        };
        let script = Script::new()
            .on("a", log(Reply::Result(json!(1))))
            .on("b", log(Reply::Silence));
        let node = FakeNode::start(script).unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        for _ in 0..10 {
            let one = client
                .call_within::<Value>("b", json!([]), Duration::from_millis(5))
                .await;
            assert!(matches!(one, Err(CallError::TimedOut { .. })));
            client.call::<Value>("a", json!([])).await.unwrap();
            client
                .batch(vec![
                    Request::new("a", json!([])),
                    Request::new("a", json!([])),
                ])
                .await
                .unwrap();
        }
        node.until("all calls", |seen| seen.calls("b") == 10)
            .await
            .unwrap();
        let ids = ids.lock().unwrap();
        assert_eq!(
            (ids.len(), ids.iter().collect::<BTreeSet<_>>().len()),
            (40, 40)
        );
    });
}

#[test]
fn more_calls_than_the_limit_are_refused_and_a_dropped_one_makes_room() {
    run(async {
        let node = FakeNode::start(Script::new().on("held", |_| Reply::Hold(json!(1)))).unwrap();
        let (client, _notifications, _session) = joined(
            &node,
            &Limits {
                in_flight: 3,
                ..patient()
            },
        )
        .await;
        let two = vec![Request::new("held", json!([])); 2];
        let mut first = Box::pin(client.batch(two.clone()));
        let mut second = Box::pin(client.call::<Value>("held", json!([])));
        assert!(
            poll_immediate(&mut first).await.is_none()
                && poll_immediate(&mut second).await.is_none()
        );
        node.until("three", |seen| seen.held == 3).await.unwrap();
        let busy = |wanted| CallError::Busy {
            method: "held".to_owned(),
            in_flight: 3,
            wanted,
            limit: 3,
        };
        assert_eq!(
            client.call::<Value>("held", json!([])).await.unwrap_err(),
            busy(1)
        );
        assert_eq!(client.batch(two).await.unwrap_err(), busy(2));
        drop(first);
        assert_eq!(client.in_flight(), 1);
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
    });
}

#[test]
fn calls_that_were_given_up_leave_nothing_behind() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let (client, _notifications, session) = super::connect(&node, &patient()).await;
        for _ in 0..10_000 {
            assert!(
                poll_immediate(Box::pin(client.call::<Value>("given_up", json!([]))))
                    .await
                    .is_none()
            );
        }
        assert_eq!(client.in_flight(), 0);
        let _session = tokio::spawn(session);
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        assert_eq!(
            node.seen().calls("given_up"),
            0,
            "what nobody waits for is not asked"
        );
    });
}

#[test]
fn a_call_over_the_limit_is_refused_before_it_is_sent() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let mut limits = patient();
        limits.transport.message_bytes = 1000;
        let (client, _notifications, _session) = joined(&node, &limits).await;
        let error = client
            .call::<Value>("large", json!(["x".repeat(1000)]))
            .await
            .unwrap_err();
        assert!(
            error.is_too_large()
                && matches!(
                    error,
                    CallError::TooLarge {
                        limit: 1000,
                        size: 1001..,
                        ..
                    }
                ),
            "{error}"
        );
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        assert_eq!((client.in_flight(), node.seen().calls("large")), (0, 0));
    });
}

/// Ten calls, of which the fourth fails.
fn ten() -> (Script, Vec<Request>) {
    let script = Script::new().on("token", |call| match call.params.get(0) {
        Some(bad) if *bad == json!(3) => Reply::error(-32000, "execution reverted"),
        good => Reply::Result(good.cloned().unwrap()),
    });
    (
        script,
        (0..10)
            .map(|at| Request::new("token", json!([at])))
            .collect(),
    )
}

fn of_token(at: usize, result: &Result<Value, CallError>) {
    match result {
        Err(CallError::Node { code: -32000, .. }) => assert_eq!(at, 3),
        Ok(value) => assert_eq!(*value, json!(at)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_bad_call_of_a_batch_fails_alone_however_the_answers_are_ordered() {
    for batches in [Batches::InOrder, Batches::Reversed, Batches::Apart] {
        run(async {
            let (script, requests) = ten();
            let node = FakeNode::start(script.batches(batches)).unwrap();
            let (client, _notifications, _session) = joined(&node, &patient()).await;
            let results = client.batch(requests).await.unwrap();
            assert_eq!(results.len(), 10);
            results
                .iter()
                .enumerate()
                .for_each(|(at, result)| of_token(at, result));
            assert_eq!(
                (client.in_flight(), client.counts()),
                (0, Counts::default())
            );
        });
    }
}

#[test]
fn a_missing_answer_and_a_doubled_one_fail_for_their_calls_alone() {
    for (batches, what) in [
        (Batches::Without(7), "answered without it"),
        (Batches::Doubled(7), "came twice"),
    ] {
        run(async {
            let (script, requests) = ten();
            let node = FakeNode::start(script.batches(batches)).unwrap();
            let (client, _notifications, _session) = joined(&node, &patient()).await;
            let results = client.batch(requests).await.unwrap();
            for (at, result) in results.iter().enumerate() {
                if at == 7 {
                    let error = result.as_ref().unwrap_err();
                    assert!(
                        matches!(error, CallError::Malformed { .. })
                            && error.to_string().contains(what),
                        "{error}"
                    );
                } else {
                    of_token(at, result);
                }
            }
        });
    }
}

#[test]
fn a_batch_that_is_refused_as_a_whole_fails_in_each_call_and_at_once() {
    run(async {
        let script = Script::new().on("token", |_| Reply::Unaddressed {
            code: -32600,
            message: "batch too large".into(),
        });
        let node = FakeNode::start(script).unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        let results = client.batch(ten().1).await.unwrap();
        assert_eq!(results.len(), 10);
        assert!(
            results
                .iter()
                .all(|result| matches!(result, Err(CallError::Node { code: -32600, .. }))),
            "{results:?}"
        );
        assert_eq!(client.batch(Vec::new()).await.unwrap(), Vec::new());
    });
}

#[test]
fn an_error_for_nobody_is_counted_where_it_could_be_for_several() {
    run(async {
        let refuse = |_: &regatta_fake_node::Call| Reply::Unaddressed {
            code: -32700,
            message: "parse error".into(),
        };
        let node = FakeNode::start(
            Script::new()
                .on("held", |_| Reply::Hold(json!(1)))
                .on("odd", refuse),
        )
        .unwrap();
        let (client, _notifications, _session) = joined(&node, &patient()).await;
        let mut held = Box::pin(client.call::<u64>("held", json!([])));
        assert!(poll_immediate(&mut held).await.is_none());
        let odd = client
            .call_within::<Value>("odd", json!([]), Duration::from_millis(50))
            .await;
        assert!(matches!(odd, Err(CallError::TimedOut { .. })), "{odd:?}");
        node.release();
        assert_eq!(held.await.unwrap(), 1);
        assert_eq!(
            client.counts(),
            Counts {
                unaddressed_errors: 1,
                ..Counts::default()
            }
        );
    });
}
