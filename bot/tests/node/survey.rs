//! What a node is asked at the start, and everything that can be wrong with it.

use crate::made_up::{FACTORY, node, pool, script, token};
use crate::rig::{bot, config};
use regatta_bot::node::{AskError, Found, LinkError, Node, NodeConfig, SurveyError};
use regatta_chain::pools::{FactoryError, Listed};
use regatta_fake_node::contracts::word;
use regatta_fake_node::{Door, FakeNode, Reply, Script};
use regatta_portable::Census;
use serde_json::json;
use std::time::Duration;

fn survey(
    node: &FakeNode,
    listed: Vec<Listed>,
    change: impl FnOnce(&mut NodeConfig),
) -> Result<Found, AskError> {
    let mut config = config(node);
    change(&mut config);
    let thread = Node::start(config, &Census::new()).unwrap();
    thread.survey(listed, || false)
}

fn fails(node: &FakeNode, change: impl FnOnce(&mut NodeConfig)) -> AskError {
    survey(node, Vec::new(), change).unwrap_err()
}

#[test]
fn a_market_is_found_with_its_chain_and_block() {
    let node = node();
    let found = survey(&node, Vec::new(), |config| config.chain_id = Some(1)).unwrap();
    assert_eq!(found.chain_id, 1);
    assert_eq!(found.market.pools().len(), 3);
    assert_eq!(found.market.tokens().len(), 3);
    let head = node.chain(|chain| chain.head_hash());
    assert_eq!(found.head.hash, crate::rig::hash(head));
    assert_eq!((found.refused, found.empty), (0, 0));
}

/// No node, no answer, another protocol: a typed error each, and none takes longer than connecting may.
#[test]
fn a_node_that_is_not_there_is_typed() {
    for door in [
        Door::Shut,
        Door::Mute,
        Door::Garbage,
        Door::Status(404),
        Door::Status(200),
    ] {
        let node = FakeNode::start(script().door(door)).unwrap();
        let error = fails(&node, |config| {
            config.limits.transport.connect = Duration::from_millis(300);
        });
        assert!(
            matches!(error, AskError::Link(LinkError::Connect(_))),
            "{door:?}: {error:?}"
        );
    }
}

#[test]
fn a_node_of_another_chain_or_behind_is_refused() {
    let error = fails(&node(), |config| config.chain_id = Some(56));
    assert_eq!(
        error.to_string(),
        "the node is on chain 1, and 56 is wanted"
    );
    let syncing = node();
    syncing.faults(|faults| faults.syncing = true);
    let error = fails(&syncing, |_| ());
    assert!(matches!(error, AskError::Link(LinkError::Syncing)));
}

/// A node that answers the first questions with garbage, or not at all.
#[test]
fn a_node_that_answers_garbage_is_typed() {
    let quick = |config: &mut NodeConfig| config.limits.call = Duration::from_millis(200);
    for reply in [
        Reply::Result(json!(1)),
        Reply::Result(json!("0x")),
        Reply::Result(json!("0xfffffffffffffffff")),
        Reply::Result(json!("\u{1b}[2J")),
        Reply::Result(json!(null)),
        Reply::Silence,
        Reply::Drop,
        Reply::Hollow,
        Reply::Raw("[".to_owned()),
        Reply::MidFrame(json!("0x1")),
        Reply::Huge(17 << 20),
        Reply::error(-32601, "the method does not exist"),
    ] {
        let node = node();
        let said = reply.clone();
        node.on("eth_chainId", move |_| reply.clone());
        let error = fails(&node, quick);
        assert!(matches!(error, AskError::Link(_)), "{said:?}: {error:?}");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
    for reply in [
        Reply::Result(json!(null)),
        Reply::Result(json!({"number": "0x1"})),
        Reply::Drop,
        Reply::Silence,
    ] {
        let node = node();
        node.on("eth_getBlockByNumber", move |_| reply.clone());
        let error = fails(&node, quick);
        assert!(
            matches!(
                error,
                AskError::Survey(SurveyError::NoBlock | SurveyError::Call(_))
            ),
            "{error:?}"
        );
    }
}

/// A factory without code, something else than a factory, a factory with more pools than may be followed.
#[test]
fn a_factory_that_is_none_is_named() {
    let nobody = alloy_primitives::Address::repeat_byte(0x99);
    for address in [nobody, token(0)] {
        let error = fails(&node(), |config| {
            config.factories[0].address = bot(address);
        });
        assert!(
            matches!(
                &error,
                AskError::Survey(SurveyError::Factory(FactoryError::NotAFactory { factory, .. }))
                    if *factory == address
            ),
            "{error:?}"
        );
    }
    let error = fails(&node(), |config| config.most_pools = 2);
    assert!(
        matches!(
            error,
            AskError::Survey(SurveyError::Factory(FactoryError::TooMany { .. }))
        ),
        "{error:?}"
    );
}

/// A node that answers the first questions and then no call of a contract costs no more than the reading may.
#[test]
fn a_reading_that_takes_too_long_is_given_up() {
    let node = node();
    node.on("eth_call", |_| Reply::Silence);
    let error = fails(&node, |config| config.survey = Duration::from_millis(300));
    assert!(matches!(error, AskError::TimedOut(_)), "{error:?}");
}

/// Row N15: a row that is not so on the chain is refused and counted; the others are the market, with the chain's reserves.
#[test]
fn a_listed_pool_that_is_mislabelled_is_counted() {
    let row = |number, token0, token1| Listed {
        address: pool(number),
        token0,
        token1,
    };
    let listed = vec![
        row(0, token(0), token(1)),
        row(1, token(2), token(1)),
        row(2, token(0), token(2)),
        row(7, token(0), token(2)),
    ];
    let found = survey(&node(), listed, |_| ()).unwrap();
    assert_eq!(found.refused, 2);
    assert_eq!(found.market.pools().len(), 2);
}

/// Pools without reserves are followed and counted (row N13); tokens that make no sense are tokens.
#[test]
fn empty_pools_and_odd_tokens_are_followed() {
    let node = FakeNode::start(script()).unwrap();
    node.contracts(|contracts| {
        contracts.pool(FACTORY, pool(9), [token(0), token(9)], [0, 0]);
        contracts.pool(FACTORY, pool(8), [token(1), token(9)], [5, 0]);
        contracts.give(token(1), "decimals()", &word(1 << 70));
        contracts.give(token(1), "symbol()", &[0x1b; 32]);
    });
    let found = survey(&node, Vec::new(), |_| ()).unwrap();
    assert_eq!((found.refused, found.empty), (0, 2));
    assert_eq!(found.market.pools().len(), 5);
    let shown = found.market.tokens().iter();
    let shown: Vec<_> = shown.map(|token| token.symbol.to_string()).collect();
    assert!(!shown.concat().contains('\u{1b}'), "{shown:?}");
}

/// A chain of no pools is a market of none.
#[test]
fn a_factory_without_pools_is_an_empty_market() {
    let mut contracts = regatta_fake_node::contracts::Contracts::default();
    contracts.factory(FACTORY);
    let node = FakeNode::start(Script::new().contracts(contracts)).unwrap();
    let found = survey(&node, Vec::new(), |_| ()).unwrap();
    assert_eq!(found.market.pools().len(), 0);
}
