//! What a failed cycle says, and who is to blame for it.
#![cfg(test)]

mod support;

use alloy_primitives::{Address, U256};
use proptest::prelude::*;
use regatta_evm::{
    Call, Cause, Disagreement, FeeAnswer, FeeQuery, Halt, Key, Outcome, Revert, Scratch, State,
    TEXT_CHARS, agrees, blame, fee_of, simulate,
};
use support::{
    CHAIN, Side, World, amount, block, contract, cycle, env, pool, profit, profitable, token,
};

fn ring() -> (World, Call) {
    (World::ring(&profitable()), cycle(&profitable(), amount()))
}

fn run(world: &World, call: &Call) -> Outcome {
    simulate(&world.full(block(100, 0)), call, &mut Scratch::new(CHAIN))
}

fn revert(world: &World, call: &Call) -> Revert {
    match run(world, call) {
        Outcome::Reverted(reverted) => reverted.revert,
        other => panic!("not reverted: {other:?}"),
    }
}

#[test]
fn the_executor_refuses_with_typed_reasons() {
    let (world, call) = ring();
    let gain = profit(&call);
    let just = Call {
        min_profit: gain,
        expiry_block: 101,
        ..call.clone()
    };
    assert_eq!(agrees(&just, gain, &run(&world, &just)), Ok(()));
    let other = Call {
        owner: Address::repeat_byte(0x0b),
        ..call.clone()
    };
    assert_eq!(revert(&world, &other), Revert::NotOwner);
    let late = Call {
        expiry_block: 100,
        ..call.clone()
    };
    assert_eq!(revert(&world, &late), Revert::Expired(U256::from(100)));
    let greedy = Call {
        min_profit: gain + U256::ONE,
        ..call.clone()
    };
    let small = Revert::ProfitTooSmall {
        profit: gain,
        min_profit: gain + U256::ONE,
    };
    assert_eq!(revert(&world, &greedy), small);
    assert_eq!(
        revert(
            &world,
            &Call {
                hops: Vec::new(),
                ..call.clone()
            }
        ),
        Revert::NoHops
    );
    let poor = Call {
        gas: 20_000,
        ..call
    };
    assert_eq!(
        run(&world, &poor),
        Outcome::Halted(Halt::TooLittleGas { gas: 20_000 })
    );
    let poor = Call {
        gas: 60_000,
        ..poor
    };
    assert!(matches!(
        run(&world, &poor),
        Outcome::Halted(Halt::OutOfGas { gas: 60_000 }) | Outcome::Reverted(_)
    ));
}

#[test]
fn another_profit_or_amount_is_a_disagreement() {
    let (world, call) = ring();
    let outcome = run(&world, &call);
    let (found, exact) = (profit(&call), profit(&call) + U256::ONE);
    assert_eq!(
        agrees(&call, exact, &outcome),
        Err(Disagreement::Profit { exact, found })
    );
    for hop in 0..3 {
        let mut other = call.clone();
        other.hops[hop].amount_out -= U256::ONE;
        let disagreement = agrees(&other, profit(&call), &outcome).unwrap_err();
        assert!(
            matches!(disagreement, Disagreement::Amounts { hop: at, .. } if at == hop),
            "{disagreement}"
        );
    }
    let missing = simulate(&State::new(block(100, 0)), &call, &mut Scratch::new(CHAIN));
    assert!(matches!(
        agrees(&call, exact, &missing),
        Err(Disagreement::Undecided(_))
    ));
}

/// Each token of the ring in turn is the odd one: the one to be marked.
fn marked(name: &str) -> Vec<(Address, Cause)> {
    let mut scratch = Scratch::new(CHAIN);
    (0..3)
        .map(|odd| {
            let (mut world, call) = ring();
            world.put(token(odd), contract(name));
            let state = world.full(block(100, 0));
            let outcome = simulate(&state, &call, &mut scratch);
            assert!(
                agrees(&call, profit(&call), &outcome).is_err(),
                "{name} as token {odd}: {outcome:?}"
            );
            let blame = blame(&state, &call, &mut scratch)
                .unwrap_or_else(|| panic!("{name} as token {odd}: {outcome:?}"));
            assert_eq!(
                simulate(&state, &call, &mut scratch),
                outcome,
                "to look on changes nothing"
            );
            (
                blame
                    .token
                    .unwrap_or_else(|| panic!("{name} as token {odd}: {blame:?} {outcome:?}")),
                blame.cause,
            )
        })
        .collect()
}

#[test]
fn the_token_that_keeps_a_part_is_marked() {
    for (odd, (marked, cause)) in (0..).zip(marked("Taxed")) {
        assert_eq!(marked, token(odd), "{cause:?}");
    }
}

#[test]
fn the_token_that_refuses_is_marked_whether_it_reverts_declines_or_never_ends() {
    for name in ["Refusing", "Declining", "Looping"] {
        for (odd, (marked, cause)) in (0..).zip(marked(name)) {
            assert_eq!((marked, cause), (token(odd), Cause::Refused), "{name}");
        }
    }
}

#[test]
fn the_token_that_lies_of_balances_is_marked() {
    for (odd, (marked, cause)) in (0..).zip(marked("Lying")) {
        assert_eq!(marked, token(odd), "{cause:?}");
        assert!(matches!(cause, Cause::Short { .. }), "{cause:?}");
    }
}

#[test]
fn a_token_that_answers_nothing_is_as_good_as_any() {
    let (mut world, call) = ring();
    for number in 0..3 {
        world.put(token(number), contract("Silent"));
    }
    assert_eq!(agrees(&call, profit(&call), &run(&world, &call)), Ok(()));
}

#[test]
fn nobody_is_blamed_for_a_sound_cycle() {
    let (world, call) = ring();
    let state = world.full(block(100, 0));
    let mut scratch = Scratch::new(CHAIN);
    assert_eq!(blame(&state, &call, &mut scratch), None);
    let greedy = Call {
        min_profit: profit(&call) + U256::ONE,
        ..call
    };
    assert_eq!(blame(&state, &greedy, &mut scratch), None);
}

#[test]
fn what_a_token_says_is_bounded_and_printed_escaped() {
    let (mut world, call) = ring();
    world.put(token(1), contract("Refusing"));
    // The pair keeps what the token says to itself; the executor passes it on.
    let mut second = call.clone();
    second.hops[0].amount_out = U256::from(5);
    world.put(token(0), contract("Refusing"));
    world.put(token(1), contract("Plain"));
    second.hops.truncate(1);
    let Outcome::Reverted(reverted) = run(&world, &second) else {
        panic!("not reverted")
    };
    let Revert::Text(text) = &reverted.revert else {
        panic!("{:?}", reverted.revert)
    };
    assert_eq!(text.as_str().chars().count(), TEXT_CHARS);
    let printed = reverted.revert.to_string();
    assert!(
        text.as_str().contains('\u{1b}')
            && printed.contains("\\u{1b}")
            && !printed.contains('\u{1b}')
    );
}

#[test]
fn a_looping_token_ends_within_the_gas() {
    let (mut world, call) = ring();
    for odd in 0..3 {
        world.put(token(odd), contract("Looping"));
        let used = match run(&world, &call) {
            Outcome::Reverted(reverted) => reverted.gas_used,
            Outcome::Halted(Halt::OutOfGas { gas }) => gas,
            other => panic!("{other:?}"),
        };
        assert!(used <= call.gas && used > call.gas / 2, "{used}");
    }
}

fn ask(side: &Side, amount_in: U256) -> FeeQuery {
    let zero_for_one = side.zero_for_one;
    FeeQuery {
        block: env(101),
        gas: 1_000_000,
        pool: pool(0),
        zero_for_one,
        amount_in,
        configured_ppm: 3000,
    }
}

fn fee(world: &World, query: &FeeQuery) -> FeeAnswer {
    let (mut state, mut scratch) = (State::new(block(100, 0)), Scratch::new(CHAIN));
    for _ in 0..20 {
        match fee_of(&state, query, &mut scratch) {
            FeeAnswer::Missing(keys) => {
                assert!(
                    !keys.is_empty() && keys.iter().all(|&key| !state.knows(key)),
                    "{keys:?}"
                );
                world.answer(&mut state, &keys);
            }
            answer => return answer,
        }
    }
    panic!("it never has enough");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_exchange_takes_30_basis_points_whatever_the_reserves(
        reserve_in in 1_000_000..u64::MAX, reserve_out in 1_000_000..u64::MAX,
        zero_for_one in any::<bool>(), parts in 1..20u64, donated in 0..1000u64, configured_ppm in 0..1_000_000u32,
    ) {
        let side = Side { reserve_in: U256::from(reserve_in), reserve_out: U256::from(reserve_out), zero_for_one };
        let mut world = World::ring(&[side, side]);
        world.hold(token(0), pool(0), U256::from(reserve_in) + U256::from(donated));
        world.hold(token(1), pool(0), U256::from(reserve_out) + U256::from(donated));
        let amount_in = U256::from(reserve_in / parts);
        let query = FeeQuery { configured_ppm, ..ask(&side, amount_in) };
        let FeeAnswer::Takes(found) = fee(&world, &query) else { panic!("no fee") };
        prop_assert_eq!(found.largest_out, support::amount_out(amount_in, side.reserve_in, side.reserve_out));
        prop_assert!(found.fits(3000), "{:?}", found);
    }
}

#[test]
fn a_fork_that_takes_25_basis_points_is_told_from_one_that_takes_30() {
    let side = profitable()[0];
    let mut world = World::ring(&profitable());
    let query = ask(&side, side.reserve_in / U256::from(10));
    let FeeAnswer::Takes(real) = fee(&world, &query) else {
        panic!("no fee")
    };
    assert!(
        real.fits(3000) && !real.fits(2500) && !real.fits(3001),
        "{real:?}"
    );
    world.put(pool(0), contract("Pair25"));
    let FeeAnswer::Takes(fork) = fee(&world, &query) else {
        panic!("no fee")
    };
    assert!(fork.fits(2500) && !fork.fits(3000), "{fork:?}");
    assert!(fork.largest_out > real.largest_out);
}

#[test]
fn asking_for_a_fee_leaves_nothing_set() {
    let (world, call) = ring();
    let (state, mut scratch) = (world.full(block(100, 0)), Scratch::new(CHAIN));
    let before = simulate(&state, &call, &mut scratch);
    let side = profitable()[0];
    let query = ask(&side, side.reserve_in / U256::from(10));
    assert!(matches!(
        fee_of(&world_with_nobody(), &query, &mut scratch),
        FeeAnswer::Takes(_)
    ));
    assert_eq!(simulate(&state, &call, &mut scratch), before);
}

/// The ring's state, in which the balances of the one who asks for a fee are known too.
fn world_with_nobody() -> State {
    let (world, _) = ring();
    let mut state = world.full(block(100, 0));
    let side = profitable()[0];
    let query = ask(&side, side.reserve_in / U256::from(10));
    while let FeeAnswer::Missing(keys) = fee_of(&state, &query, &mut Scratch::new(CHAIN)) {
        world.answer(&mut state, &keys);
    }
    state
}

#[test]
fn a_pair_that_wants_more_than_configured_is_blamed_and_not_its_token() {
    let (world, mut call) = ring();
    for hop in [1, 0] {
        // As if it took 25 instead of 30.
        let more = call.hops[hop].amount_out / U256::from(3000);
        call.hops[hop].amount_out += more;
        let state = world.full(block(100, 0));
        let found = blame(&state, &call, &mut Scratch::new(CHAIN)).unwrap();
        let at = pool(u8::try_from(hop).unwrap());
        assert_eq!(
            (found.hop, found.pool, found.token, found.cause),
            (hop, at, None, Cause::Fee)
        );
        call.hops[hop] = ring().1.hops[hop];
    }
}

#[test]
fn a_tax_does_not_blur_the_fee_and_a_lie_is_no_fee() {
    let side = profitable()[0];
    let query = ask(&side, side.reserve_in / U256::from(10));
    let mut world = World::ring(&profitable());
    world.put(token(0), contract("Taxed"));
    let FeeAnswer::Takes(found) = fee(&world, &query) else {
        panic!("no fee")
    };
    assert!(found.fits(3000), "{found:?}");
    world.put(token(0), contract("Lying"));
    assert_eq!(fee(&world, &query), FeeAnswer::Balance(token(0)));
    assert!(
        matches!(fee_of(&State::default(), &query, &mut Scratch::new(CHAIN)),
        FeeAnswer::Missing(keys) if keys.contains(&Key::Account(pool(0))))
    );
}
