//! The node's chain and its faults, as a client sees them.
#![cfg(test)]

use std::time::Duration;

use alloy_primitives::{Address, B256, BloomInput};
use regatta_chain::rpc::{self, CallError, Client, Limits, Notifications, SubscriptionId};
use regatta_chain::types::{Header, Log};
use regatta_fake_node::{
    Door, FakeChain, FakeLog, FakeNode, Faults, Glitch, RangeLimit, Removed, Reply, Script,
    quantity,
};
use serde_json::{Value, json};

const SYNC: B256 = B256::repeat_byte(0x51);
const OTHER: B256 = B256::repeat_byte(0x52);
const POOL: Address = Address::repeat_byte(0xa1);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_mins(2), test)
            .await
            .unwrap()
    })
}

async fn join(node: &FakeNode) -> (Client, Notifications) {
    let limits = Limits {
        call: Duration::from_mins(1),
        ..Limits::default()
    };
    let (client, notifications, session) = rpc::connect(&node.endpoint().parse().unwrap(), &limits)
        .await
        .unwrap();
    tokio::spawn(session);
    (client, notifications)
}

fn start(faults: Faults) -> FakeNode {
    FakeNode::start(
        Script::new()
            .chain(FakeChain::starting_at(100))
            .faults(faults),
    )
    .unwrap()
}

/// Two logs of the pool with a topic and one of another contract.
fn logs() -> Vec<FakeLog> {
    [(POOL, SYNC), (Address::ZERO, SYNC), (POOL, OTHER)]
        .map(|(address, topic)| FakeLog::new(address, vec![topic], vec![7]))
        .to_vec()
}

async fn logs_of(client: &Client, hash: B256) -> Result<Vec<Log>, CallError> {
    client
        .call(
            "eth_getLogs",
            json!([{"blockHash": hash, "address": [POOL], "topics": [[SYNC, OTHER]]}]),
        )
        .await
}

async fn between(client: &Client, from: u64, to: u64) -> Result<Vec<Log>, CallError> {
    client
        .call(
            "eth_getLogs",
            json!([{"fromBlock": quantity(from), "toBlock": quantity(to)}]),
        )
        .await
}

async fn block(client: &Client, hash: B256) -> Option<Header> {
    client
        .call("eth_getBlockByHash", json!([hash, false]))
        .await
        .unwrap()
}

/// What has come on all subscriptions, when a call that was answered after it is.
async fn news(client: &Client, notifications: &mut Notifications) -> Vec<(SubscriptionId, Value)> {
    client
        .call::<Value>("eth_chainId", json!([]))
        .await
        .unwrap();
    let mut news = Vec::new();
    while let Some(Some(one)) =
        futures_util::future::poll_immediate(Box::pin(notifications.next())).await
    {
        news.push(one);
    }
    news
}

#[test]
fn the_chain_links_by_hashes_and_its_blooms_hold_its_logs() {
    run(async {
        let node = start(Faults::default());
        let (client, _notifications) = join(&node).await;
        let before = node.chain(|chain| chain.head_hash());
        let hash = node.extend(logs());
        let header = block(&client, hash).await.unwrap();
        assert_eq!(
            (header.number.to::<u64>(), header.hash, header.parent_hash),
            (101, hash, before)
        );
        let holds = |bytes: &[u8]| header.logs_bloom.contains_input(BloomInput::Raw(bytes));
        assert!(holds(POOL.as_slice()) && holds(SYNC.as_slice()) && !holds(&[1; 20]));
        let found = logs_of(&client, hash).await.unwrap();
        let places = found
            .iter()
            .map(|log| (log.log_index.to::<u64>(), log.address, log.block_hash))
            .collect::<Vec<_>>();
        assert_eq!(places, [(0, POOL, hash), (2, POOL, hash)]);
        let latest: Header = client
            .call("eth_getBlockByNumber", json!(["latest", false]))
            .await
            .unwrap();
        assert_eq!(latest, header);
        assert_eq!(block(&client, B256::ZERO).await, None);
    });
}

#[test]
fn a_reorganisation_replaces_blocks_and_never_repeats_a_hash() {
    let mut chain = FakeChain::default().every(0);
    let old = [chain.extend(logs()), chain.extend(logs())];
    let reorg = chain.reorg(2, vec![logs(), logs(), logs()]);
    assert_eq!(reorg.removed, old);
    assert!(reorg.added.iter().all(|hash| !old.contains(hash)));
    assert_eq!(chain.canonical().get(1..).unwrap(), reorg.added);
    assert_eq!(
        (chain.height(), chain.block(old[1]).unwrap().number),
        (3, 2)
    );
    assert_eq!(
        chain.at(3).unwrap().timestamp,
        chain.at(0).unwrap().timestamp
    );
    // The first block stays, however deep it goes.
    assert_eq!(chain.reorg(100, vec![vec![]]).removed, reorg.added);
    assert_eq!(chain.height(), 1);
}

#[test]
fn news_come_in_the_order_that_the_faults_say() {
    for logs_first in [false, true] {
        run(async {
            let node = start(Faults {
                logs_first,
                ..Faults::default()
            });
            let (client, mut notifications) = join(&node).await;
            let heads = client.subscribe(json!(["newHeads"])).await.unwrap();
            let filter = json!({"address": POOL, "topics": [SYNC]});
            let pool = client.subscribe(json!(["logs", filter])).await.unwrap();
            node.extend(logs());
            let came = news(&client, &mut notifications)
                .await
                .into_iter()
                .map(|(of, _)| of)
                .collect::<Vec<_>>();
            assert_eq!(
                came,
                if logs_first {
                    [pool, heads]
                } else {
                    [heads, pool]
                }
            );
        });
    }
}

#[test]
fn heads_stop_while_calls_and_logs_go_on() {
    run(async {
        let node = start(Faults::default());
        let (client, mut notifications) = join(&node).await;
        client.subscribe(json!(["newHeads"])).await.unwrap();
        let sync = client
            .subscribe(json!(["logs", {"topics": [SYNC]}]))
            .await
            .unwrap();
        node.faults(|faults| faults.heads_stopped = true);
        node.extend(logs());
        let came = news(&client, &mut notifications).await;
        assert!(
            came.len() == 2 && came.iter().all(|(of, _)| *of == sync),
            "{came:?}"
        );
        node.faults(|faults| (faults.heads_stopped, faults.logs_stopped) = (false, true));
        node.extend(logs());
        let came = news(&client, &mut notifications).await;
        assert!(came.len() == 1 && came[0].0 != sync, "{came:?}");
    });
}

#[test]
fn a_dead_subscription_has_a_name_and_no_news_and_the_next_one_lives() {
    run(async {
        let node = start(Faults {
            dead_subscriptions: true,
            ..Faults::default()
        });
        let (client, mut notifications) = join(&node).await;
        client.subscribe(json!(["newHeads"])).await.unwrap();
        node.faults(|faults| faults.dead_subscriptions = false);
        let living = client.subscribe(json!(["newHeads"])).await.unwrap();
        node.extend(vec![]);
        let came = news(&client, &mut notifications).await;
        assert!(came.len() == 1 && came[0].0 == living, "{came:?}");
    });
}

#[test]
fn the_logs_of_each_block_are_an_error_then_none_then_full() {
    run(async {
        let node = start(Faults {
            log_glitches: vec![Glitch::Error, Glitch::Empty],
            ..Faults::default()
        });
        let (client, _notifications) = join(&node).await;
        for hash in [node.extend(logs()), node.extend(logs())] {
            assert!(matches!(
                logs_of(&client, hash).await,
                Err(CallError::Node { .. })
            ));
            assert_eq!(logs_of(&client, hash).await.unwrap(), []);
            assert_eq!(logs_of(&client, hash).await.unwrap().len(), 2);
        }
    });
}

#[test]
fn a_new_block_is_unknown_by_its_hash_for_a_while_and_so_is_its_state() {
    run(async {
        let node = start(Faults {
            unknown_for: 2,
            stateless_for: 1,
            ..Faults::default()
        });
        node.on("eth_call", |_| Reply::Result(json!("0x01")));
        let (client, _notifications) = join(&node).await;
        let hash = node.extend(logs());
        assert_eq!(block(&client, hash).await, None);
        assert!(matches!(
            logs_of(&client, hash).await,
            Err(CallError::Node { .. })
        ));
        assert_eq!(block(&client, hash).await.unwrap().hash, hash);
        let call = || client.call::<String>("eth_call", json!([{"to": POOL}, {"blockHash": hash}]));
        assert!(matches!(call().await, Err(CallError::Node { .. })));
        assert_eq!(call().await.unwrap(), "0x01");
    });
}

#[test]
fn a_node_that_lags_knows_less_and_its_ranges_are_silently_short() {
    run(async {
        let node = start(Faults {
            lag: 2,
            ..Faults::default()
        });
        let (client, _notifications) = join(&node).await;
        let hashes: Vec<_> = (0..5).map(|_| node.extend(logs())).collect();
        assert_eq!(
            client
                .call::<String>("eth_blockNumber", json!([]))
                .await
                .unwrap(),
            quantity(103)
        );
        assert_eq!(between(&client, 101, 105).await.unwrap().len(), 9);
        assert_eq!(
            block(&client, hashes[2]).await.unwrap().number.to::<u64>(),
            103
        );
        assert_eq!(block(&client, hashes[3]).await, None);
        node.faults(|faults| faults.lag = 0);
        assert_eq!(between(&client, 101, 105).await.unwrap().len(), 15);
    });
}

#[test]
fn logs_that_are_taken_back_come_as_the_faults_say() {
    for removed in [
        Removed::Never,
        Removed::LastFirst,
        Removed::FirstFirst,
        Removed::AfterTheNew,
    ] {
        run(async {
            let node = start(Faults {
                removed,
                ..Faults::default()
            });
            let (client, mut notifications) = join(&node).await;
            let pair = vec![
                FakeLog::new(POOL, vec![SYNC], vec![1]),
                FakeLog::new(POOL, vec![SYNC], vec![2]),
            ];
            node.extend(pair.clone());
            node.extend(pair.clone());
            client.subscribe(json!(["logs", {}])).await.unwrap();
            node.reorg(2, vec![pair.get(..1).unwrap().to_vec()]);
            let came = news(&client, &mut notifications)
                .await
                .into_iter()
                .map(|(_, log)| {
                    let log: Log = serde_json::from_value(log).unwrap();
                    (
                        log.removed,
                        log.block_number.to::<u64>(),
                        log.log_index.to::<u64>(),
                    )
                });
            let new = (false, 101, 0);
            let [a, b, c, d] = [
                (true, 101, 0),
                (true, 101, 1),
                (true, 102, 0),
                (true, 102, 1),
            ];
            let wanted = match removed {
                Removed::Never => vec![new],
                Removed::LastFirst => vec![d, c, b, a, new],
                Removed::FirstFirst => vec![a, b, c, d, new],
                Removed::AfterTheNew => vec![new, a, b, c, d],
            };
            assert_eq!(came.collect::<Vec<_>>(), wanted);
        });
    }
}

#[test]
fn blocks_that_were_taken_back_stay_known_unless_they_are_to_be_forgotten() {
    run(async {
        let node = start(Faults::default());
        let (client, _notifications) = join(&node).await;
        let hash = node.extend(logs());
        node.reorg(1, vec![vec![]]);
        assert!(block(&client, hash).await.is_some());
        node.faults(|faults| faults.forget_branches = true);
        assert_eq!(block(&client, hash).await, None);
        assert!(logs_of(&client, hash).await.is_err());
    });
}

#[test]
fn ranges_and_blocks_over_the_limit_are_refused_with_the_code_and_words_given() {
    run(async {
        let limit = RangeLimit {
            logs: 6,
            blocks: 3,
            code: -32005,
            message: "retry with [0x65, 0x69]".into(),
        };
        let faults = Faults {
            range_limit: Some(limit),
            block_limit: Some(1),
            ..Faults::default()
        };
        let node = start(faults);
        let (client, _notifications) = join(&node).await;
        let hash = node.extend(logs());
        node.extend(logs());
        node.extend(logs());
        assert_eq!(between(&client, 101, 102).await.unwrap().len(), 6);
        assert_eq!(between(&client, 100, 102).await.unwrap().len(), 6);
        // Too many logs; too many blocks; too many logs of one block.
        let refused = [
            between(&client, 101, 103).await,
            between(&client, 98, 101).await,
            logs_of(&client, hash).await,
        ];
        for refused in refused {
            let Err(CallError::Node {
                code: -32005,
                message,
                ..
            }) = refused
            else {
                panic!("{refused:?}")
            };
            assert_eq!(message, "retry with [0x65, 0x69]");
        }
        let narrow = json!([{"blockHash": hash, "address": POOL, "topics": [SYNC]}]);
        assert_eq!(
            client
                .call::<Vec<Log>>("eth_getLogs", narrow)
                .await
                .unwrap()
                .len(),
            1
        );
    });
}

#[test]
fn what_is_announced_while_nobody_is_connected_is_lost_and_a_call_finds_it() {
    run(async {
        let node = start(Faults::default());
        let (client, mut notifications) = join(&node).await;
        client.subscribe(json!(["newHeads"])).await.unwrap();
        node.door(Door::Shut);
        node.drop_connections();
        node.until("the connection to end", |seen| {
            seen.open == 0 && !seen.listening
        })
        .await
        .unwrap();
        assert_eq!(notifications.next().await, None);
        let hash = node.extend(logs());
        node.door(Door::Open);
        node.until("the node to listen", |seen| seen.listening)
            .await
            .unwrap();
        let (client, mut notifications) = join(&node).await;
        client.subscribe(json!(["newHeads"])).await.unwrap();
        assert_eq!(news(&client, &mut notifications).await, []);
        assert_eq!(logs_of(&client, hash).await.unwrap().len(), 2);
    });
}

#[test]
fn a_syncing_node_and_another_chain_say_so() {
    run(async {
        let chain = FakeChain::starting_at(7).with_id(8453);
        let node = FakeNode::start(Script::new().chain(chain)).unwrap();
        let (client, _notifications) = join(&node).await;
        assert_eq!(
            client
                .call::<String>("eth_chainId", json!([]))
                .await
                .unwrap(),
            quantity(8453)
        );
        assert!(!client.call::<bool>("eth_syncing", json!([])).await.unwrap());
        node.faults(|faults| faults.syncing = true);
        assert!(
            client
                .call::<Value>("eth_syncing", json!([]))
                .await
                .unwrap()
                .is_object()
        );
        let unknown = client.call::<Value>("eth_nonsense", json!([])).await;
        assert!(matches!(unknown, Err(CallError::Node { code: -32601, .. })));
    });
}

#[test]
fn logs_come_reversed_in_answers_and_news_where_the_faults_say() {
    run(async {
        let node = start(Faults {
            logs_reversed: true,
            ..Faults::default()
        });
        let (client, mut notifications) = join(&node).await;
        client.subscribe(json!(["logs", {}])).await.unwrap();
        let hash = node.extend(logs());
        let asked = logs_of(&client, hash)
            .await
            .unwrap()
            .iter()
            .map(|log| log.log_index.to::<u64>())
            .collect::<Vec<_>>();
        let told = news(&client, &mut notifications).await;
        let told = told
            .iter()
            .map(|(_, log)| log["logIndex"].as_str().unwrap())
            .collect::<Vec<_>>();
        assert_eq!((asked, told), (vec![2, 0], vec!["0x2", "0x1", "0x0"]));
    });
}
