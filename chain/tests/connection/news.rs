//! Notifications.

use futures_util::future::poll_immediate;
use regatta_chain::rpc::{Counts, Limits};
use regatta_chain::transport::Closed;
use regatta_fake_node::{FakeNode, Reply, Script};
use serde_json::{Value, json};

use super::{join, patient, run, sockets};

#[test]
fn what_comes_before_the_subscriptions_answer_is_kept_in_its_order() {
    for script in sockets() {
        run(async {
            let node =
                FakeNode::start(script().on("eth_subscribe", |_| Reply::Hold(json!("0x77"))))
                    .unwrap();
            let (client, mut notifications, _session) = join(&node, &patient()).await;
            let mut subscribing = Box::pin(client.subscribe(json!(["newHeads"])));
            assert!(poll_immediate(&mut subscribing).await.is_none());
            node.until("the subscription", |seen| seen.held == 1)
                .await
                .unwrap();
            for at in 0..100 {
                node.notify(if at % 3 == 0 { "0x77" } else { "0x78" }, &json!(at));
            }
            node.release();
            let name = subscribing.await.unwrap();
            assert_eq!(name.as_str(), "0x77");
            for at in 0..100 {
                let (of, value) = notifications.next().await.unwrap();
                assert_eq!((of == name, value), (at % 3 == 0, json!(at)));
            }
        });
    }
}

#[test]
fn headers_and_logs_of_the_chain_come_to_who_subscribed_until_it_ends_that() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let (client, mut notifications, _session) = join(&node, &patient()).await;
        let heads = client.subscribe(json!(["newHeads"])).await.unwrap();
        let hashes = [node.extend(vec![]), node.extend(vec![])];
        for hash in hashes {
            let (of, header) = notifications.next().await.unwrap();
            let header: regatta_chain::types::Header = serde_json::from_value(header).unwrap();
            assert_eq!((of, header.hash), (heads.clone(), hash));
        }
        assert!(client.unsubscribe(&heads).await.unwrap());
        assert!(!client.unsubscribe(&heads).await.unwrap());
        node.extend(vec![]);
        assert_eq!(
            client
                .call::<String>("eth_blockNumber", json!([]))
                .await
                .unwrap(),
            "0x3"
        );
        assert!(
            poll_immediate(Box::pin(notifications.next()))
                .await
                .is_none()
        );
    });
}

#[test]
fn more_notifications_than_may_wait_end_the_connection_after_what_was_kept() {
    let value = json!("x".repeat(100));
    // A notification has a little over 200 bytes.
    let limits = [
        Limits {
            notifications: 5,
            ..patient()
        },
        Limits {
            notification_bytes: 1_100,
            ..patient()
        },
    ];
    for limits in limits {
        run(async {
            let node = FakeNode::start(Script::new()).unwrap();
            let (client, mut notifications, session) = join(&node, &limits).await;
            client
                .call::<Value>("eth_chainId", json!([]))
                .await
                .unwrap();
            for at in 0..6 {
                node.notify("0x1", &json!([at, value]));
            }
            let ended = session.await.unwrap();
            assert!(
                matches!(
                    ended,
                    Closed::Overflow {
                        count: 6,
                        bytes: 1_101..,
                        ..
                    }
                ),
                "{ended}"
            );
            for at in 0..5 {
                assert_eq!(notifications.next().await.unwrap().1, json!([at, value]));
            }
            assert_eq!(notifications.next().await, None);
            assert_eq!(client.closed(), Some(ended));
        });
    }
}

#[test]
fn taking_notifications_makes_room_for_more() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let limits = Limits {
            notifications: 5,
            notification_bytes: 1_100,
            ..patient()
        };
        let (client, mut notifications, _session) = join(&node, &limits).await;
        client
            .call::<Value>("eth_chainId", json!([]))
            .await
            .unwrap();
        for round in 0..20 {
            for at in 0..5 {
                node.notify("0x1", &json!([round, at]));
            }
            for at in 0..5 {
                assert_eq!(notifications.next().await.unwrap().1, json!([round, at]));
            }
        }
    });
}

#[test]
fn notifications_that_nobody_takes_are_counted_and_hurt_no_call() {
    run(async {
        let node = FakeNode::start(Script::new()).unwrap();
        let (client, notifications, _session) = join(
            &node,
            &Limits {
                notifications: 5,
                ..patient()
            },
        )
        .await;
        drop(notifications);
        client
            .call::<Value>("eth_chainId", json!([]))
            .await
            .unwrap();
        for at in 0..100 {
            node.notify("0x1", &json!(at));
        }
        node.say(r#"{"jsonrpc":"2.0","method":"other","params":[]}"#);
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            "0x1"
        );
        let counts = Counts {
            untaken_notifications: 100,
            other_messages: 1,
            ..Counts::default()
        };
        assert_eq!(client.counts(), counts);
    });
}
