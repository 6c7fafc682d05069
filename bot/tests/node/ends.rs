//! How a stream ends.

use crate::made_up::{node, step};
use crate::rig::{FAR, Rig, config};
use regatta_bot::node::{AskError, Following, Node, NodeStatus};
use regatta_bot::pipeline::{Feed, FeedError, LiveFeed};
use regatta_chain::rpc::Request;
use regatta_fake_node::Reply;
use regatta_portable::Census;
use serde_json::json;
use std::sync::mpsc::channel;
use std::time::Instant;

/// After as many blocks as were wanted the stream ends, with the last of them delivered; the chain goes on, and
/// nothing of it is kept.
#[test]
fn a_stream_ends_after_so_many_blocks() {
    let mut rig = Rig::limited(node(), |_| (), Some(3));
    for number in 0..4 {
        rig.step(number);
    }
    for number in 4..40 {
        rig.node.extend(step(number));
    }
    assert_eq!(rig.batch().unwrap(), 0);
    assert_eq!(rig.model.blocks.len(), 1 + 3);
    rig.until("all heads to be followed", |status| {
        status.head.is_some_and(|(head, _)| head.number == 40) && status.ended
    });
    assert_eq!(rig.status().held_back, 0);
}

/// No blocks are wanted: the stream ends before the first.
#[test]
fn a_stream_of_no_blocks_ends_at_once() {
    let mut rig = Rig::limited(node(), |_| (), Some(0));
    assert_eq!(rig.batch().unwrap(), 0);
    assert!(rig.events.is_empty());
}

/// What runs on the thread and panics ends it: the pump is told, and so is whoever asks.
#[test]
fn a_thread_that_panics_loses_the_feed() {
    let node = node();
    let thread = Node::start(config(&node), &Census::new()).unwrap();
    let found = thread.survey(Vec::new(), || false).unwrap();
    let (feed, feeder) = LiveFeed::open();
    let (tell, told) = channel();
    thread
        .follow(Following {
            found,
            feeder,
            on_head: Box::new(move |_| {
                tell.send(()).unwrap();
                panic!("as the test wants it")
            }),
            blocks: None,
            on_lost: Box::new(|| ()),
        })
        .unwrap();
    thread.asker().connect(1, FAR).unwrap();
    thread.asker().commit(1);
    node.extend(Vec::new());
    told.recv_timeout(FAR).unwrap();
    let mut feed = Feed::Live(feed);
    let lost = feed.next_batch(&mut Vec::new(), &regatta_bot::pipeline::Unwatched);
    assert!(matches!(lost, Err(FeedError::Lost)), "{lost:?}");
    let error = thread.asker().connect(2, FAR);
    assert!(matches!(error, Err(AskError::Ended)), "{error:?}");
}

/// A stop ends what is being waited for: an attempt to connect, a question, a reading of the pools.
#[test]
fn a_stop_ends_whatever_is_waited_for() {
    for silent in ["eth_chainId", "eth_syncing", "eth_subscribe", "eth_call"] {
        let node = node();
        node.on(silent, |_| Reply::Silence);
        let mut thread = Node::start(config(&node), &Census::new()).unwrap();
        let asker = thread.asker().clone();
        let waits = move || match silent {
            "eth_subscribe" => asker.connect(1, FAR),
            _ => Ok(()),
        };
        let census = Census::new();
        let spec = regatta_portable::census::ThreadSpec::one("test", "waits");
        let waiting = census.spawn(spec, waits).unwrap();
        if silent != "eth_subscribe" {
            let node = &node;
            let heard = || node.seen().calls(silent) > 0;
            let error = thread.survey(Vec::new(), heard);
            assert!(matches!(error, Err(AskError::Interrupted)), "{error:?}");
        }
        node.block_until("the question", |seen| seen.calls(silent) > 0)
            .unwrap();
        assert!(thread.stop(Instant::now() + FAR), "{silent}");
        let answer = waiting.join().unwrap();
        assert_eq!(answer.is_err(), silent == "eth_subscribe", "{answer:?}");
        let closed = |seen: &regatta_fake_node::Seen| seen.open == 0;
        node.block_until("both sockets to be closed", closed)
            .unwrap();
    }
}

/// A question of another component ends with the connection, and is refused without one; none waits for a deadline.
#[test]
fn questions_end_with_the_connection() {
    let mut rig = Rig::start();
    rig.step(0);
    let ask = |rig: &Rig| {
        let request = Request::new("eth_gasPrice", json!([]));
        rig.thread.asker().ask(vec![request], 1, FAR)
    };
    rig.node.on("eth_gasPrice", |_| Reply::Result(json!("0x7")));
    assert_eq!(ask(&rig).unwrap(), [Ok(json!("0x7"))]);
    rig.node.on("eth_gasPrice", |_| Reply::Drop);
    assert!(matches!(ask(&rig), Err(AskError::Call(_))));
    rig.is_lost();
    assert!(matches!(ask(&rig), Err(AskError::NotConnected)));
    rig.connect();
    rig.node.on("eth_gasPrice", |_| Reply::Result(json!("0x8")));
    assert_eq!(ask(&rig).unwrap(), [Ok(json!("0x8"))]);
}

/// A connection that was made and not committed is not used, and one that was given up is closed.
#[test]
fn only_what_was_committed_is_used() {
    let mut rig = Rig::start();
    rig.step(0);
    rig.thread.asker().connect(50, FAR).unwrap();
    rig.node
        .block_until("four sockets", |seen| seen.open == 4)
        .unwrap();
    rig.thread.asker().discard(50);
    rig.node
        .block_until("two sockets", |seen| seen.open == 2)
        .unwrap();
    rig.thread.asker().commit(50);
    rig.step(1);
    assert_eq!(rig.status().connections, 1);
}

/// A pump that takes nothing is given no more than there is room for, hears all of it later, and the clock hears every head at
/// once.
#[test]
fn a_pump_that_is_behind_loses_nothing() {
    let mut rig = Rig::start();
    rig.step(0);
    let blocks = 1100;
    for number in 0..blocks {
        rig.node.extend(step(number));
        // More heads at once than are filled in one by one would be read anew.
        if number % 64 == 0 {
            let followed = |status: &NodeStatus| status.counters.blocks >= number;
            rig.until("the blocks", followed);
        }
    }
    rig.until("the last head", |status| {
        status
            .head
            .is_some_and(|(head, _)| head.number == blocks + 1)
    });
    rig.until("the feed to be full", |status| status.held_back > 0);
    rig.catch_up();
    assert_eq!(rig.model.rereads, 1);
    assert_eq!(rig.heads.try_iter().count() as u64, blocks + 1);
}
