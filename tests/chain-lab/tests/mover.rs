//! Moves, reorganisations and new pools on the real node.
#![cfg(test)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use alloy_primitives::Address;
use common::lab;
use regatta_chain_lab::error::LabError;
use regatta_chain_lab::mover::{Mover, Reorg, Step};
use regatta_chain_lab::moves::{Move, Style};
use regatta_chain_lab::watch::{Notice, Watch};
use serde_json::json;

/// Far more than any wait here takes.
const DEADLINE: Duration = Duration::from_mins(1);

/// Six blocks, a reorganisation of three, two blocks more.
fn script(seed: u64) -> (Vec<Step>, Reorg) {
    let (mut node, market) = lab(40);
    let mut mover = Mover::new(&mut node, market, seed, Style::default()).unwrap();
    let mut steps: Vec<Step> = (0..6).map(|_| mover.step(&mut node).unwrap()).collect();
    let reorg = mover.reorg(&mut node, 3).unwrap();
    steps.extend((0..2).map(|_| mover.step(&mut node).unwrap()));
    mover.market().verify(node.rpc()).unwrap();
    (steps, reorg)
}

#[test]
fn a_seed_gives_the_same_blocks_hash_for_hash_and_another_one_others() {
    let (steps, reorg) = script(1);
    assert_eq!((steps.clone(), reorg), script(1));
    let (others, _) = script(2);
    assert_ne!(steps[0].head.hash, others[0].head.hash);
}

/// What the chain's events say is what the formulas of the moves say, and no transaction of the lab's failed.
#[test]
fn moves_leave_the_reserves_that_were_predicted() {
    let (mut node, market) = lab(40);
    let pools = market
        .pools
        .iter()
        .map(|pool| (pool.address, pool.reserves));
    let mut expected: BTreeMap<Address, [u128; 2]> = pools.collect();
    let mut mover = Mover::new(&mut node, market, 3, Style::default()).unwrap();
    let (mut swaps, mut gifts) = (0, 0);
    for _ in 0..20 {
        let step = mover.step(&mut node).unwrap();
        assert_eq!(step.reverted, 0);
        let mut moved = BTreeMap::new();
        for (pool, made) in &step.moves {
            match made {
                Move::Gift { .. } => gifts += 1,
                Move::Swap { .. } => swaps += 1,
            }
            let after = made.after(expected[pool]);
            expected.insert(*pool, after);
            moved.insert(*pool, after);
        }
        assert_eq!(
            step.reserves.iter().copied().collect::<BTreeMap<_, _>>(),
            moved
        );
    }
    assert!(swaps > 5 && gifts > 5, "{swaps} {gifts}");
    for pool in &mover.market().pools {
        assert_eq!(pool.reserves, expected[&pool.address]);
    }
    mover.market().verify(node.rpc()).unwrap();
}

#[test]
fn a_reorganisation_sends_new_headers_with_old_heights_and_removes_no_log() {
    let (mut node, market) = lab(40);
    let mut mover = Mover::new(&mut node, market, 4, Style::default()).unwrap();
    for _ in 0..5 {
        mover.step(&mut node).unwrap();
    }
    let mut watch = Watch::new(&node.ipc(), DEADLINE).unwrap();
    let reorg = mover.reorg(&mut node, 3).unwrap();
    let after = mover.step(&mut node).unwrap();
    let mut parent = reorg.ancestor;
    assert_eq!(reorg.adopted.len(), 3);
    for (old, new) in reorg.orphaned.iter().zip(&reorg.adopted) {
        assert_eq!(old.number, new.head.number);
        assert_ne!(old.hash, new.head.hash);
        assert_eq!(new.head.parent, parent.hash);
        assert_eq!(new.reverted, 0);
        assert!(!new.reserves.is_empty());
        parent = new.head;
        let gone = node
            .rpc()
            .call("eth_getBlockByHash", json!([old.hash, false]));
        assert!(gone.unwrap().is_null());
        let filter = json!([{"blockHash": old.hash}]);
        let gone = node.rpc().call("eth_getLogs", filter).unwrap_err();
        assert!(matches!(gone, LabError::Refused { .. }), "{gone}");
    }
    // Headers and logs up to the last header: by hash each is of the new branch.
    let mut heads = Vec::new();
    while heads.last() != Some(&after.head.hash) {
        for notice in watch.next(1, DEADLINE).unwrap() {
            match notice {
                Notice::Head { hash, .. } => heads.push(hash),
                Notice::Log { block, removed, .. } => {
                    assert!(!removed);
                    assert!(reorg.orphaned.iter().all(|old| old.hash != block));
                }
            }
        }
    }
    let steps = reorg.adopted.iter().chain([&after]);
    assert_eq!(heads, steps.map(|step| step.head.hash).collect::<Vec<_>>());
}

#[test]
fn only_blocks_that_the_mover_made_can_be_reorganised() {
    let (mut node, market) = lab(20);
    let mut mover = Mover::new(&mut node, market, 4, Style::default()).unwrap();
    mover.step(&mut node).unwrap();
    for depth in [0, 2] {
        let error = mover.reorg(&mut node, depth).unwrap_err();
        assert!(matches!(error, LabError::Depth { known: 1, .. }), "{error}");
    }
    mover.reorg(&mut node, 1).unwrap();
}

#[test]
fn a_pair_made_while_running_has_its_address_and_reserves_and_goes_with_its_block() {
    let (mut node, market) = lab(20);
    let base = market.base;
    let mut mover = Mover::new(&mut node, market, 5, Style::default()).unwrap();
    let mut watch = Watch::new(&node.ipc(), DEADLINE).unwrap();
    let token = Address::repeat_byte(0xd7);
    // Given with the higher address first.
    let step = mover
        .create_pair(&mut node, [token, base], [7_000_000, 9_000_000])
        .unwrap();
    let pool = *mover.market().pools.last().unwrap();
    assert_eq!(pool.tokens, [base, token]);
    assert_eq!(step.reserves, [(pool.address, [9_000_000, 7_000_000])]);
    mover.market().verify(node.rpc()).unwrap();
    let factory = mover.market().factory;
    let told = (0..20).any(|_| {
        let notices = watch.next(1, DEADLINE).unwrap();
        matches!(notices[..], [Notice::Log { address, .. }] if address == factory)
    });
    assert!(told, "no PairCreated came");
    let pools = mover.market().pools.len();
    mover.reorg(&mut node, 1).unwrap();
    assert_eq!(mover.market().pools.len(), pools - 1);
    mover.market().verify(node.rpc()).unwrap();
}

#[test]
fn a_token_that_keeps_a_part_gives_the_pool_less() {
    let (mut node, market) = lab(20);
    let base = market.base;
    let style = Style {
        moves: 20,
        ..Style::default()
    };
    let mut mover = Mover::new(&mut node, market, 6, style).unwrap();
    mover.tax(&mut node, base, 10_000).unwrap();
    let before = mover.market().clone();
    let step = mover.step(&mut node).unwrap();
    let mut kept = 0;
    for (pool, made) in &step.moves {
        let found = before.pools[before.position(*pool).unwrap()];
        let Some(side) = found.tokens.iter().position(|token| *token == base) else {
            continue;
        };
        let Move::Gift { side: given, .. } = *made else {
            panic!("a pool of a token that keeps a part was swapped");
        };
        if given == side {
            let (_, reserves) = step
                .reserves
                .iter()
                .find(|(moved, _)| moved == pool)
                .unwrap();
            // All of it was kept.
            assert_eq!(*reserves, found.reserves);
            kept += 1;
        }
    }
    assert!(kept > 0, "no move gave the token");
}

#[test]
fn a_token_that_deflates_leaves_a_pool_with_a_reserve_of_zero() {
    let (mut node, market) = lab(20);
    let pool = market.pools[3];
    let mut mover = Mover::new(&mut node, market, 6, Style::default()).unwrap();
    let step = mover.empty(&mut node, pool.address, 1).unwrap();
    assert_eq!(step.reserves, [(pool.address, [pool.reserves[0], 0])]);
    let unknown = mover.empty(&mut node, Address::ZERO, 1).unwrap_err();
    assert!(matches!(unknown, LabError::Unknown(..)), "{unknown}");
    for _ in 0..20 {
        let step = mover.step(&mut node).unwrap();
        assert!(step.moves.iter().all(|(moved, _)| *moved != pool.address));
    }
}
