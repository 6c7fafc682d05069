//! What is not known is asked for, in few rounds, and the outcome is then that over the whole state.
#![cfg(test)]

mod support;

use std::collections::BTreeSet;

use alloy_primitives::U256;
use proptest::prelude::*;
use regatta_evm::{
    Call, Code, Executor, Halt, Key, Outcome, Revert, Scratch, State, agrees, simulate,
};
use support::{
    CHAIN, EXECUTOR, OWNER, Side, World, block, contract, cycle, entry, pool, profit, token,
};

/// Answers until nothing is missing: the outcome, and what was asked for in each round.
fn settle(
    world: &World,
    state: &mut State,
    call: &Call,
    scratch: &mut Scratch,
) -> (Outcome, Vec<Vec<Key>>) {
    let mut rounds: Vec<Vec<Key>> = Vec::new();
    loop {
        match simulate(state, call, scratch) {
            Outcome::Missing(keys) => {
                assert!(!keys.is_empty(), "nothing is missing");
                assert!(
                    keys.iter().all(|&key| !state.knows(key)),
                    "{keys:?}: some are known"
                );
                let distinct: BTreeSet<Key> = keys.iter().copied().collect();
                assert_eq!(
                    distinct.len(),
                    keys.len(),
                    "{keys:?}: some are asked for twice"
                );
                world.answer(state, &keys);
                rounds.push(keys);
                assert!(rounds.len() < 20, "{rounds:?}");
            }
            outcome => return (outcome, rounds),
        }
    }
}

fn ring() -> (World, Call) {
    let sides = support::profitable();
    (World::ring(&sides), cycle(&sides, support::amount()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn from_nothing_the_outcome_is_that_over_the_whole_state(
        sides in prop::collection::vec(
            (1..u64::MAX, 1..u64::MAX, any::<bool>()).prop_map(|(reserve_in, reserve_out, zero_for_one)| Side {
                reserve_in: U256::from(reserve_in), reserve_out: U256::from(reserve_out), zero_for_one
            }),
            2..=4,
        ),
        amount_in in 1..u64::MAX,
        held in prop_oneof![Just(0), 0..u64::MAX],
        too_much in 0..2u8,
    ) {
        let mut world = World::ring(&sides);
        world.hold(token(0), EXECUTOR, U256::from(held));
        let mut call = cycle(&sides, U256::from(amount_in));
        call.hops[0].amount_out += U256::from(too_much);
        let whole = simulate(&world.full(block(100, 0)), &call, &mut Scratch::new(CHAIN));
        let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
        let (outcome, rounds) = settle(&world, &mut state, &call, &mut scratch);
        prop_assert_eq!(&outcome, &whole);
        prop_assert!(rounds.len() <= 6, "{} rounds", rounds.len());

        // What was learned makes the next block one round, and changes no outcome.
        state.advance(block(101, 0));
        let (again, rounds) = settle(&world, &mut state, &call, &mut scratch);
        prop_assert_eq!(&again, &whole);
        prop_assert_eq!(rounds.len(), 1);
    }
}

#[test]
fn code_is_asked_for_once_however_many_blocks_come() {
    let (world, call) = ring();
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    let (_, rounds) = settle(&world, &mut state, &call, &mut scratch);
    let accounts = |rounds: &[Vec<Key>]| {
        rounds
            .iter()
            .flatten()
            .filter(|k| matches!(k, Key::Account(_)))
            .count()
    };
    // The executor, three pairs and three tokens: nobody looks at the owner's account.
    assert_eq!(accounts(&rounds), 7, "{rounds:?}");
    for number in 101..105 {
        state.advance(block(number, 0));
        let (outcome, rounds) = settle(&world, &mut state, &call, &mut scratch);
        assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()));
        assert_eq!(accounts(&rounds), 0, "{rounds:?}");
        assert_eq!(rounds.len(), 1);
    }
}

#[test]
fn another_cycle_over_known_tokens_is_asked_for_at_once_when_its_pairs_are_known() {
    let (mut world, call) = ring();
    // The same tokens by other pairs.
    for (number, side) in (3u8..6).zip(support::profitable()) {
        world.pair(number, &side, token(number - 3), token((number - 2) % 3));
    }
    let mut other = call.clone();
    for (number, hop) in (3u8..).zip(&mut other.hops) {
        hop.pool = pool(number);
    }
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    settle(&world, &mut state, &call, &mut scratch);
    let pairs: Vec<Key> = (3u8..6)
        .flat_map(|number| [6u8, 7].map(|slot| Key::Slot(pool(number), U256::from(slot))))
        .collect();
    world.answer(&mut state, &pairs);
    let (outcome, rounds) = settle(&world, &mut state, &other, &mut scratch);
    assert_eq!(agrees(&other, profit(&other), &outcome), Ok(()));
    assert_eq!(rounds.len(), 1, "{rounds:?}");
}

#[test]
fn over_pairs_that_did_not_move_only_tokens_are_read_again() {
    let (world, call) = ring();
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    state.declare_pair(support::PAIR.hash());
    settle(&world, &mut state, &call, &mut scratch);
    let logged = [pool(1)].into();
    state.advance_pairs(block(101, 0), block(100, 0).hash, &logged);
    let (outcome, rounds) = settle(&world, &mut state, &call, &mut scratch);
    assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()));
    let slots_of = |at| {
        rounds
            .iter()
            .flatten()
            .filter(|key| matches!(key, Key::Slot(a, _) if *a == at))
            .count()
    };
    assert_eq!(
        [0, 1, 2].map(|n| slots_of(pool(n))),
        [0, 3, 0],
        "{rounds:?}"
    );
    assert!(
        [0, 1, 2]
            .map(|n| slots_of(token(n)))
            .iter()
            .all(|&slots| slots >= 2),
        "{rounds:?}"
    );
}

#[test]
fn a_token_behind_a_proxy_is_followed_and_learned() {
    let (mut world, call) = ring();
    let behind = support::at(0xbe, 1);
    world.put(token(1), contract("Proxy"));
    world.put(behind, contract("Behind"));
    world
        .slots
        .insert((token(1), U256::ZERO), behind.into_word().into());
    for (holder, side) in [(pool(0), 0), (pool(1), 1)] {
        let sides = support::profitable();
        let held = if side == 0 {
            sides[0].reserve_out
        } else {
            sides[1].reserve_in
        };
        world.slots.insert((token(1), entry(holder, 1)), held);
    }
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    let (outcome, rounds) = settle(&world, &mut state, &call, &mut scratch);
    assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()), "{rounds:?}");
    state.advance(block(101, 0));
    let (again, rounds) = settle(&world, &mut state, &call, &mut scratch);
    assert_eq!(again, outcome);
    assert_eq!(rounds.len(), 1, "{rounds:?}");
}

#[test]
fn a_balance_is_read_again_in_each_block_if_a_contract_looks_at_it() {
    let (mut world, call) = ring();
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    world
        .accounts
        .insert(token(1), (contract("Curious"), U256::from(7), 1));
    let (outcome, _) = settle(&world, &mut state, &call, &mut scratch);
    assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()));
    state.advance(block(101, 0));
    world
        .accounts
        .insert(token(1), (contract("Curious"), U256::from(8), 1));
    let (outcome, rounds) = settle(&world, &mut state, &call, &mut scratch);
    assert!(
        rounds
            .iter()
            .flatten()
            .any(|key| *key == Key::Account(token(1))),
        "{rounds:?}"
    );
    // The pair keeps the token's reason to itself.
    let Outcome::Reverted(reverted) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        matches!(&reverted.revert, Revert::Text(text) if text.as_str() == "UniswapV2: TRANSFER_FAILED"),
        "{reverted:?}"
    );
}

#[test]
fn the_hash_of_an_earlier_block_is_not_guessed() {
    let (mut world, call) = ring();
    world.put(token(1), contract("Hashing"));
    let outcome = simulate(&world.full(block(100, 0)), &call, &mut Scratch::new(CHAIN));
    assert_eq!(outcome, Outcome::Halted(Halt::BlockHash(100)));
}

#[test]
fn an_executor_that_is_not_deployed_runs_by_its_code() {
    let (mut world, mut call) = ring();
    let deployed = simulate(&world.full(block(100, 0)), &call, &mut Scratch::new(CHAIN));
    world.accounts.remove(&EXECUTOR);
    let none = Code::new(alloy_primitives::Bytes::new()).unwrap();
    world.accounts.insert(EXECUTOR, (none, U256::ZERO, 0));
    let absent = simulate(&world.full(block(100, 0)), &call, &mut Scratch::new(CHAIN));
    assert_eq!(
        absent,
        Outcome::Halted(Halt::NoExecutor {
            executor: EXECUTOR,
            length: 0
        })
    );
    call.executor = Executor {
        address: EXECUTOR,
        code: Some(support::EXECUTOR_CODE.clone()),
    };
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    let (replaced, rounds) = settle(&world, &mut state, &call, &mut scratch);
    assert_eq!(replaced, deployed);
    assert!(
        !rounds
            .iter()
            .flatten()
            .any(|k| [Key::Account(EXECUTOR), Key::Account(OWNER)].contains(k)),
        "{rounds:?}"
    );
}
