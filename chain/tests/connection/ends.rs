//! How connections end.

use std::time::Duration;

use futures_util::future::poll_immediate;
use regatta_chain::rpc::{CallError, Limits};
use regatta_chain::transport::Closed;
use regatta_fake_node::{FakeNode, Reply, Script};
use serde_json::{Value, json};

use super::{connect, join, patient, run, sockets};

/// What the connection ends with when the node gives `reply`, which a call that waits is told as well.
fn end_of(script: Script, reply: Reply, limits: &Limits) -> Closed {
    run(async {
        let script = script
            .on("bad", move |_| reply.clone())
            .on("held", |_| Reply::Hold(json!(1)));
        let node = FakeNode::start(script).unwrap();
        let (client, mut notifications, session) = join(&node, limits).await;
        let mut held = Box::pin(client.call::<Value>("held", json!([])));
        assert!(poll_immediate(&mut held).await.is_none());
        let bad = client.call::<Value>("bad", json!([])).await.unwrap_err();
        let ended = session.await.unwrap();
        assert_eq!(
            bad,
            CallError::Closed {
                method: "bad".to_owned(),
                why: ended.clone()
            }
        );
        assert_eq!(
            held.await.unwrap_err(),
            CallError::Closed {
                method: "held".to_owned(),
                why: ended.clone()
            }
        );
        assert_eq!(notifications.next().await, None);
        let after = client.call::<Value>("after", json!([])).await.unwrap_err();
        assert_eq!(
            after,
            CallError::Closed {
                method: "after".to_owned(),
                why: ended.clone()
            }
        );
        node.until("the socket to close", |seen| seen.open == 0)
            .await
            .unwrap();
        assert_eq!(client.in_flight(), 0);
        ended
    })
}

#[test]
fn what_is_no_json_rpc_ends_the_connection() {
    let garbage = [
        "{\"jsonrpc\": nonsense}",
        "{}",
        "[1, 2]",
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
        r#"{"jsonrpc":"2.0","method":5}"#,
        r#"{"jsonrpc":"2.0","method":"eth_subscription","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1"}}"#,
        r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":1,"result":1}}"#,
    ];
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    for text in garbage.into_iter().chain([deep.as_str()]) {
        for script in sockets() {
            let ended = end_of(script(), Reply::Raw(text.to_owned()), &patient());
            assert!(
                matches!(&ended, Closed::Garbage { start, .. } if text.starts_with(start)),
                "{text}: {ended}"
            );
            assert!(ended.to_string().len() < 500);
        }
    }
    for text in ["5", "\"text\"", "<html>\u{1b}"] {
        let ended = end_of(Script::new(), Reply::Raw(text.to_owned()), &patient());
        assert!(
            matches!(&ended, Closed::Garbage { start, .. } if start == text),
            "{text}: {ended}"
        );
        assert!(!ended.to_string().contains('\u{1b}'));
    }
}

#[test]
fn bytes_that_are_no_message_end_the_connection() {
    let ended = end_of(
        Script::new(),
        Reply::Bytes(b"\x82\x04\x00\xff\x00\xff".to_vec()),
        &patient(),
    );
    assert!(
        matches!(
            ended,
            Closed::Garbage {
                what: "a message is binary",
                ..
            }
        ),
        "{ended}"
    );
    let ended = end_of(
        Script::new(),
        Reply::Bytes(b"\x81\x02\xc3\x28".to_vec()),
        &patient(),
    );
    assert!(matches!(ended, Closed::Garbage { .. }), "{ended}");
    let ended = end_of(
        Script::new(),
        Reply::Bytes(b"\xff\xff garbage \xff".to_vec()),
        &patient(),
    );
    assert!(matches!(ended, Closed::Protocol { .. }), "{ended}");
    for bytes in [
        b"garbage".to_vec(),
        b"]".to_vec(),
        b"{\"\xc3\x28\"}".to_vec(),
    ] {
        let ended = end_of(Script::new().ipc(), Reply::Bytes(bytes), &patient());
        assert!(matches!(ended, Closed::Garbage { .. }), "{ended}");
    }
}

#[test]
fn a_connection_that_is_dropped_inside_a_message_ends() {
    for script in sockets() {
        for reply in [Reply::MidFrame(json!("x".repeat(100_000))), Reply::Drop] {
            let ended = end_of(script(), reply, &patient());
            assert!(matches!(ended, Closed::Ended | Closed::Lost(_)), "{ended}");
        }
    }
}

#[test]
fn a_close_in_due_form_says_its_code_and_words() {
    let ended = end_of(
        Script::new(),
        Reply::Close(1013, "try\nlater".to_owned()),
        &patient(),
    );
    assert_eq!(
        ended,
        Closed::ByNode {
            code: 1013,
            reason: "try\nlater".to_owned()
        }
    );
    assert!(ended.to_string().contains(r"1013: `try\nlater`"));
}

#[test]
fn a_message_over_the_limit_ends_the_connection_and_names_both_sizes() {
    const FIFTY: usize = 50_000_000;
    let limit = patient().transport.message_bytes;
    assert_eq!(limit, 16 << 20);
    let ended = end_of(Script::new(), Reply::Huge(FIFTY), &patient());
    assert!(
        matches!(
            ended,
            Closed::TooLarge {
                size: 49_999_900..=FIFTY,
                ..
            }
        ),
        "{ended}"
    );
    assert!(ended.to_string().contains("16777216"), "{ended}");
    // A fragment has half a megabyte, a read of the Unix socket at most as much.
    let fragments = end_of(Script::new(), Reply::HugeInFragments(FIFTY), &patient());
    let ipc = end_of(Script::new().ipc(), Reply::Huge(FIFTY), &patient());
    for ended in [fragments, ipc] {
        let Closed::TooLarge { limit: named, size } = ended else {
            panic!("{ended}")
        };
        assert!(
            named == limit && size > limit && size <= limit + 500_000,
            "{ended}"
        );
    }
}

#[test]
fn a_message_of_the_very_limit_comes_through() {
    for script in sockets() {
        run(async {
            let node =
                FakeNode::start(script().on("long", |_| Reply::Result(json!("x".repeat(1_000)))))
                    .unwrap();
            let mut limits = patient();
            limits.transport.message_bytes =
                r#"{"id":1,"jsonrpc":"2.0","result":""}"#.len() + 1_000;
            let (client, _notifications, _session) = join(&node, &limits).await;
            assert_eq!(
                client
                    .call::<String>("long", json!([]))
                    .await
                    .unwrap()
                    .len(),
                1_000
            );
            limits.transport.message_bytes -= 1;
            let (client, _notifications, _session) = join(&node, &limits).await;
            assert!(
                client
                    .call::<String>("long", json!([]))
                    .await
                    .unwrap_err()
                    .is_too_large()
            );
        });
    }
}

#[test]
fn a_node_that_goes_silent_is_noticed_though_nobody_calls() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let mut limits = patient();
        let (quiet, deadline) = (Duration::from_millis(40), Duration::from_millis(400));
        (limits.transport.ping_after, limits.transport.ping_deadline) = (quiet, deadline);
        let (client, _notifications, session) = join(&node, &limits).await;
        // Idle, and alive: pings are answered.
        node.until("pings", |seen| seen.pings >= 3).await.unwrap();
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        node.go_silent();
        assert_eq!(session.await.unwrap(), Closed::Silent { quiet, deadline });
        node.until("the socket to close", |seen| seen.open == 0)
            .await
            .unwrap();
    });
}

#[test]
fn a_node_that_goes_silent_with_a_call_unanswered_ends_it() {
    run(async {
        let node = FakeNode::start(Script::new().silent_after(2)).unwrap();
        let mut limits = patient();
        limits.transport.ping_after = Duration::from_millis(200);
        limits.transport.ping_deadline = Duration::from_millis(200);
        let (client, _notifications, _session) = join(&node, &limits).await;
        for _ in 0..2 {
            assert_eq!(
                client
                    .call::<String>("eth_chainId", json!([]))
                    .await
                    .unwrap(),
                "0x1"
            );
        }
        let error = client
            .call::<String>("eth_chainId", json!([]))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                CallError::Closed {
                    why: Closed::Silent { .. },
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_closer_on_another_thread_ends_the_session_and_every_call() {
    for script in sockets() {
        run(async {
            let node = FakeNode::start(script().on("held", |_| Reply::Hold(json!(1)))).unwrap();
            let (client, _notifications, session) = join(&node, &patient()).await;
            let closer = client.closer();
            let mut held = Box::pin(client.call::<Value>("held", json!([])));
            assert!(poll_immediate(&mut held).await.is_none());
            tokio::task::spawn_blocking(move || closer.close())
                .await
                .unwrap();
            let why = Closed::Stopped;
            assert_eq!(
                held.await.unwrap_err(),
                CallError::Closed {
                    method: "held".to_owned(),
                    why
                }
            );
            assert_eq!(session.await.unwrap(), Closed::Stopped);
            node.until("the socket to close", |seen| {
                seen.accepted == 1 && seen.open == 0
            })
            .await
            .unwrap();
        });
    }
}

#[test]
fn dropping_the_session_or_the_last_client_closes_the_socket_and_ends_the_calls() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let (client, mut notifications, session) = connect(&node, &patient()).await;
        let mut call = Box::pin(client.call::<Value>("eth_chainId", json!([])));
        assert!(poll_immediate(&mut call).await.is_none());
        drop(session);
        assert!(matches!(
            call.await,
            Err(CallError::Closed {
                why: Closed::Dropped,
                ..
            })
        ));
        assert_eq!(notifications.next().await, None);
        node.until("the socket to close", |seen| {
            seen.accepted == 1 && seen.open == 0
        })
        .await
        .unwrap();

        let (client, _notifications, session) = join(&node, &patient()).await;
        let other = client.clone();
        drop(client);
        assert_eq!(
            other
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        drop(other);
        assert_eq!(session.await.unwrap(), Closed::Dropped);
        node.until("the socket to close", |seen| {
            seen.accepted == 2 && seen.open == 0
        })
        .await
        .unwrap();
    });
}
