//! Pools that are made while the chain is followed.

use crate::made_up::{FACTORY, ONE, node, pool, step, token};
use crate::rig::{Rig, bot};
use alloy_primitives::Address;
use regatta_bot::source::{Event, NewPool};
use regatta_fake_node::FakeLog;
use regatta_fake_node::contracts::{pair_created, sync, word};

/// The factory makes a pool of the first token and a new one; what it says of it.
fn make(rig: &Rig, number: u8) -> Vec<FakeLog> {
    let tokens = [token(0), token(number)];
    rig.node.contracts(|contracts| {
        contracts.token(token(number), 6, "NEW");
        contracts.pool(FACTORY, pool(number), tokens, [0, 0]);
    });
    vec![
        pair_created(FACTORY, pool(number), tokens),
        sync(pool(number), ONE, 2 * ONE),
    ]
}

fn told(rig: &Rig) -> Vec<&NewPool> {
    let pools = rig.events.iter().filter_map(|event| match event {
        Event::Pools(pools) => Some(pools),
        _ => None,
    });
    pools.flatten().collect()
}

/// A new pool of a known factory is said before its block, with its tokens, and is followed from then on; one of
/// a factory that is not known is nothing.
#[test]
fn a_new_pool_is_told_before_the_block_that_made_it() {
    let mut rig = Rig::start();
    rig.step(0);
    let mut logs = make(&rig, 9);
    let foreign = Address::repeat_byte(0x33);
    logs.push(pair_created(foreign, pool(10), [token(0), token(1)]));
    logs.push(sync(pool(10), 1, 1));
    rig.node.extend(logs);
    rig.catch_up();
    let told = told(&rig);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].address, bot(pool(9)));
    assert_eq!(told[0].token1.decimals, 6);
    assert_eq!(told[0].token1.symbol.as_str(), "NEW");
    let id = rig.model.market.pool_by_address(bot(pool(9))).unwrap();
    assert_eq!(rig.model.market.pool(id).reserve1, 2 * ONE);
    rig.node.extend(vec![sync(pool(9), 3, 4)]);
    rig.catch_up();
}

/// Where a node refuses to answer for all contracts, a pool that was just made is among those that are asked for.
#[test]
fn a_new_pool_is_among_those_that_are_asked_for() {
    let mut rig = Rig::start();
    rig.step(0);
    rig.node.extend(make(&rig, 9));
    rig.catch_up();
    rig.node.faults(|faults| {
        faults.block_limit = Some(1);
        faults.logs_stopped = true;
    });
    rig.node
        .extend(vec![sync(pool(9), 3, 4), sync(pool(0), 5, 6)]);
    rig.catch_up();
}

/// A pool whose block is taken back and comes again is told once; its reserves go and come with the blocks.
#[test]
fn a_pool_that_is_made_again_is_told_once() {
    let mut rig = Rig::start();
    for number in 0..4 {
        rig.step(number);
    }
    let logs = make(&rig, 9);
    rig.node.extend(logs.clone());
    rig.catch_up();
    rig.node.reorg(1, vec![step(7), step(8)]);
    rig.catch_up();
    rig.node.extend(logs);
    rig.catch_up();
    assert_eq!(told(&rig).len(), 1);
}

/// A pool that was made in blocks that nobody saw is found when everything is read anew.
#[test]
fn a_pool_that_was_made_unseen_is_found() {
    let mut rig = Rig::with(node(), |config| config.follow.backfill_blocks = 3);
    rig.step(0);
    rig.node.drop_connections();
    rig.is_lost();
    rig.node.extend(make(&rig, 9));
    for number in 1..8 {
        rig.node.extend(step(number));
    }
    rig.connect();
    rig.step(20);
    assert_eq!(rig.model.rereads, 2);
    assert_eq!(told(&rig).len(), 1);
    let id = rig.model.market.pool_by_address(bot(pool(9))).unwrap();
    assert_eq!(rig.model.market.pool(id).reserve0, ONE);
}

/// The connection is lost while a new pool's tokens are asked about: it is told once, after the next one is made.
#[test]
fn a_connection_lost_over_a_new_pool_costs_nothing_else() {
    let mut rig = Rig::start();
    rig.step(0);
    let logs = make(&rig, 9);
    rig.node.on("eth_call", |_| regatta_fake_node::Reply::Drop);
    rig.node.extend(logs);
    rig.is_lost();
    rig.node.off("eth_call");
    rig.connect();
    rig.step(1);
    assert_eq!(told(&rig).len(), 1);
    assert_eq!(rig.model.rereads, 1);
}

/// A node that says the heads and answers nothing about contracts does not keep a block for ever: its connection is
/// given up.
#[test]
fn a_block_that_cannot_be_put_together_gives_the_connection_up() {
    let mut rig = Rig::with(node(), |config| {
        config.follow.reread_deadline = std::time::Duration::from_millis(300);
    });
    rig.step(0);
    let logs = make(&rig, 9);
    rig.node
        .on("eth_call", |_| regatta_fake_node::Reply::Silence);
    rig.node.extend(logs);
    rig.is_lost();
    rig.node.off("eth_call");
    rig.connect();
    rig.step(1);
    assert_eq!(told(&rig).len(), 1);
}

/// No more pools than may be are followed, and a pool that trades a token for itself is none; both are counted.
#[test]
fn what_may_not_be_followed_is_counted() {
    let mut rig = Rig::with(node(), |config| config.most_pools = 4);
    rig.step(0);
    let twice = [token(1), token(1)];
    rig.node
        .extend(vec![pair_created(FACTORY, pool(20), twice)]);
    rig.catch_up();
    let first = make(&rig, 9);
    rig.node.extend(first);
    rig.catch_up();
    let second = make(&rig, 10);
    rig.node.extend(second);
    let head = rig.node.chain(|chain| chain.head_hash());
    while rig.model.tip() != Some(crate::rig::hash(head)) {
        rig.batch().unwrap();
    }
    assert_eq!(told(&rig).len(), 1);
    rig.until("two to be refused", |status| {
        status.passed.refused_pools == 2
    });
}

/// A token that lies about its decimals, or says nothing, is a token nevertheless.
#[test]
fn a_token_that_lies_is_a_token() {
    let mut rig = Rig::start();
    rig.step(0);
    let logs = make(&rig, 9);
    rig.node.contracts(|contracts| {
        contracts.give(token(9), "decimals()", &word(u128::MAX));
        contracts.give(token(9), "symbol()", &[0xff; 32]);
    });
    rig.node.extend(logs);
    rig.catch_up();
    assert_eq!(told(&rig)[0].token1.decimals, 0);
}
