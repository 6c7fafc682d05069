//! The follower's calls: by hash, and narrowed where a node refuses.

use crate::market::{Line, market, pool, run};
use alloy_primitives::B256;
use regatta_chain::abi::SYNC;
use regatta_chain::ask::{Filter, ask};
use regatta_chain::follow::{Answer, Call, Failure};
use regatta_fake_node::contracts::sync;
use regatta_fake_node::{FakeLog, Faults, RangeLimit, Reply, Script};
use serde_json::json;

fn filter(pools: u8) -> Filter {
    Filter {
        topics: vec![SYNC],
        known: (0..pools).map(pool).collect(),
        parts: 0,
    }
}

/// A node that gives at most so many logs of a block, and its block with a move of each of so many pools.
async fn busy(most: usize, pools: u8, code: i64) -> (Line, B256) {
    let faults = Faults {
        block_limit: Some(most),
        range_limit: Some(RangeLimit {
            logs: most,
            blocks: 1,
            code,
            // The same range again: a suggestion that helps nobody.
            message: "limit of 10000: try the range [0x1, 0x1]".to_owned(),
        }),
        ..Faults::default()
    };
    let line = Line::to(Script::new().contracts(market(0)).faults(faults)).await;
    let logs: Vec<FakeLog> = (0..pools).map(|n| sync(pool(n), 1, 2)).collect();
    let hash = line.node.extend(logs);
    (line, hash)
}

/// Row N10: whatever the code, less is asked until it is answered, and nothing is missing.
#[test]
fn a_block_that_is_refused_for_all_is_asked_for_in_parts() {
    run(async {
        for (most, pools, code) in [(3, 16, -32005), (1, 7, -32602), (5, 6, 429), (9, 9, 0)] {
            let (line, hash) = busy(most, pools, code).await;
            let answer = ask(&line.client, Call::LogsByHash(hash), &filter(pools)).await;
            let Answer::Logs(logs) = answer else {
                panic!("{answer:?}");
            };
            let mut of: Vec<_> = logs.iter().map(|log| log.address).collect();
            of.sort_unstable();
            assert_eq!(of, (0..pools).map(pool).collect::<Vec<_>>());
            assert!(line.calls("eth_getLogs") <= 2 * usize::from(pools) + 1);
        }
    });
}

/// One contract with too many logs of its own cannot be narrowed: it is a refusal, after a bounded number of calls.
#[test]
fn a_contract_that_is_refused_alone_is_a_refusal() {
    run(async {
        let (line, _) = busy(2, 0, -32005).await;
        let mut logs: Vec<_> = (0..8).map(|n| sync(pool(n), 1, 2)).collect();
        logs.extend((0..5).map(|n| sync(pool(6), n, n)));
        let hash = line.node.extend(logs);
        let answer = ask(&line.client, Call::LogsByHash(hash), &filter(8)).await;
        assert_eq!(answer, Answer::Failed(Failure::Refused));
        assert!(line.calls("eth_getLogs") <= 17);
    });
}

/// Row N22: where an answer for all is more than a message may have, it is asked for in as many parts as are said.
#[test]
fn a_block_is_asked_for_in_parts_from_the_beginning() {
    run(async {
        for parts in [1, 2, 3, 7, 100] {
            let (line, hash) = busy(100, 7, 0).await;
            let filter = Filter { parts, ..filter(7) };
            let answer = ask(&line.client, Call::LogsByHash(hash), &filter).await;
            let Answer::Logs(logs) = answer else {
                panic!("{answer:?}");
            };
            let of: Vec<_> = logs.iter().map(|log| log.address).collect();
            assert_eq!(of, filter.known);
            let calls = line.calls("eth_getLogs");
            // As many parts as were said, or as make the same size.
            assert_eq!(calls, 7usize.div_ceil(7usize.div_ceil(parts)));
        }
    });
}

/// Without known contracts there is nothing to narrow to.
#[test]
fn a_refusal_stands_where_no_contract_is_known() {
    run(async {
        let (line, hash) = busy(1, 3, -32005).await;
        let answer = ask(&line.client, Call::LogsByHash(hash), &filter(0)).await;
        assert_eq!(answer, Answer::Failed(Failure::Refused));
        assert_eq!(line.calls("eth_getLogs"), 1);
    });
}

/// A hash that the node does not know is not found where it says so, and a refusal where it makes an error of it; it costs
/// few calls, however many contracts are known.
#[test]
fn an_unknown_hash_costs_few_calls() {
    run(async {
        let line = Line::to(Script::new()).await;
        let unknown = B256::repeat_byte(0x77);
        let header = ask(&line.client, Call::HeaderByHash(unknown), &filter(100)).await;
        assert_eq!(header, Answer::Failed(Failure::NotFound));
        let logs = ask(&line.client, Call::LogsByHash(unknown), &filter(100)).await;
        assert_eq!(logs, Answer::Failed(Failure::Refused));
        assert!(line.calls("eth_getLogs") <= 9, "{:?}", line.node.seen());
        line.node.on("eth_getLogs", |_| Reply::Result(json!(null)));
        let logs = ask(&line.client, Call::LogsByHash(unknown), &filter(100)).await;
        assert_eq!(logs, Answer::Failed(Failure::NotFound));
    });
}

/// Headers come as they are, and everything is asked by hash alone (row N7).
#[test]
fn headers_and_logs_come_by_hash() {
    run(async {
        let (line, hash) = busy(9, 3, 0).await;
        let (sender, asked) = std::sync::mpsc::channel();
        let Answer::Header(header) = ask(&line.client, Call::HeaderByHash(hash), &filter(3)).await
        else {
            panic!("no header");
        };
        assert_eq!(header.hash, hash);
        let latest = ask(&line.client, Call::LatestHeader, &filter(3)).await;
        assert_eq!(latest, Answer::Header(header));
        line.node.on("eth_getLogs", move |call| {
            sender.send(call.params[0].clone()).unwrap();
            Reply::Result(json!([]))
        });
        let logs = ask(&line.client, Call::LogsByHash(hash), &filter(3)).await;
        assert_eq!(logs, Answer::Logs(vec![]));
        let asked = asked.recv().unwrap();
        assert_eq!(asked, json!({"blockHash": hash, "topics": [[SYNC]]}));
    });
}

/// What is no answer is told as what it is: a wrong form, an end, silence.
#[test]
fn failures_are_told_apart() {
    run(async {
        let (line, hash) = busy(9, 1, 0).await;
        let call = Call::LogsByHash(hash);
        for garbage in [json!(7), json!([{"address": "0x1"}]), json!("0x")] {
            line.node
                .on("eth_getLogs", move |_| Reply::Result(garbage.clone()));
            let answer = ask(&line.client, call, &filter(1)).await;
            assert_eq!(answer, Answer::Failed(Failure::Wrong));
        }
        line.node.on("eth_getLogs", |_| Reply::Drop);
        let answer = ask(&line.client, call, &filter(1)).await;
        assert_eq!(answer, Answer::Failed(Failure::Transport));
    });
}
