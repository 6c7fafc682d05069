//! The exact integers and the exchange's bytecode agree, to the last unit.
#![cfg(test)]

mod support;

use alloy_primitives::U256;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use regatta_evm::{Outcome, Revert, Scratch, agrees, simulate};
use support::{CHAIN, EXECUTOR, MOST, Side, World, block, cycle, profit, token};

/// Any number from 1 to the most that a pair can hold, each magnitude as likely as the others.
fn magnitude() -> impl Strategy<Value = U256> {
    (1..=112usize, any::<u128>()).prop_map(|(bits, noise)| {
        let below = (U256::from(noise) & MOST) >> (113 - bits);
        below | (U256::ONE << (bits - 1))
    })
}

fn side() -> impl Strategy<Value = Side> {
    (magnitude(), magnitude(), any::<bool>()).prop_map(|(reserve_in, reserve_out, zero_for_one)| {
        Side {
            reserve_in,
            reserve_out,
            zero_for_one,
        }
    })
}

/// What the rules of the pair and the executor say must come of a cycle with the formula's amounts, if the executor
/// holds `before` of the base token.
fn by_the_rules(sides: &[Side], amount_in: U256, before: U256) -> Result<U256, &'static str> {
    let call = cycle(sides, amount_in);
    let outs: Vec<U256> = call.hops.iter().map(|hop| hop.amount_out).collect();
    if outs.first().is_none_or(U256::is_zero) {
        return Err("UniswapV2: INSUFFICIENT_OUTPUT_AMOUNT");
    }
    for (hop, side) in sides.iter().enumerate().skip(1) {
        if outs[hop].is_zero() {
            return Err("UniswapV2: INSUFFICIENT_OUTPUT_AMOUNT");
        }
        if side.reserve_in + outs[hop - 1] > MOST {
            return Err("UniswapV2: OVERFLOW");
        }
    }
    let end = before + outs.last().copied().unwrap_or_default();
    let left = end.checked_sub(amount_in).ok_or("too little")?;
    if sides[0].reserve_in + amount_in > MOST {
        return Err("UniswapV2: OVERFLOW");
    }
    left.checked_sub(before).ok_or("a loss")
}

#[test]
fn formula_and_bytecode_agree_on_random_cycles_over_the_full_range() {
    let mut runner = TestRunner::new(Config {
        cases: 1500,
        ..Config::default()
    });
    let cases = (
        prop::collection::vec(side(), 2..=4),
        magnitude(),
        prop_oneof![Just(U256::ZERO), magnitude()],
    );
    let scratch = core::cell::RefCell::new(Scratch::new(CHAIN));
    let done = core::cell::Cell::new(0);
    let test = |(sides, amount_in, before): (Vec<Side>, U256, U256)| {
        let mut world = World::ring(&sides);
        world.hold(token(0), EXECUTOR, before);
        let state = world.full(block(100, 0));
        let call = cycle(&sides, amount_in);
        let outcome = simulate(&state, &call, &mut scratch.borrow_mut());
        match (by_the_rules(&sides, amount_in, before), &outcome) {
            (Ok(profit), _) => {
                prop_assert_eq!(agrees(&call, profit, &outcome), Ok(()));
                done.set(done.get() + 1);
                one_more_is_refused(&state, &call, &mut scratch.borrow_mut())?;
            }
            (Err("a loss"), Outcome::Reverted(reverted)) => {
                let none = U256::ZERO;
                prop_assert_eq!(
                    &reverted.revert,
                    &Revert::ProfitTooSmall {
                        profit: none,
                        min_profit: none
                    }
                );
            }
            (Err(text), Outcome::Reverted(reverted)) => match &reverted.revert {
                Revert::Text(said) => prop_assert_eq!(said.as_str(), text),
                other => prop_assert!(false, "{} by the rules, and {}", text, other),
            },
            (rules, outcome) => prop_assert!(false, "{:?} by the rules, and {:?}", rules, outcome),
        }
        Ok(())
    };
    runner.run(&cases, test).unwrap();
    assert!(
        done.get() > 150,
        "only {} of the cycles ran, so this shows little",
        done.get()
    );
}

fn one_more_is_refused(
    state: &regatta_evm::State,
    call: &regatta_evm::Call,
    scratch: &mut Scratch,
) -> Result<(), TestCaseError> {
    for hop in 0..call.hops.len() {
        let mut greedy = call.clone();
        greedy.hops[hop].amount_out += U256::ONE;
        let outcome = simulate(state, &greedy, scratch);
        let Outcome::Reverted(reverted) = outcome else {
            return Err(TestCaseError::fail(format!(
                "one more at hop {hop} gives {outcome:?}"
            )));
        };
        // Where one more would be all that the pair has, it says so first.
        let all = matches!(&reverted.revert, Revert::Text(text) if text.as_str() == "UniswapV2: INSUFFICIENT_LIQUIDITY");
        prop_assert!(
            reverted.revert == Revert::K || all,
            "one more at hop {} gives {}",
            hop,
            reverted.revert
        );
    }
    Ok(())
}

#[test]
fn one_more_than_the_formula_at_any_hop_is_refused_by_the_product() {
    let sides = support::profitable();
    let state = World::ring(&sides).full(block(100, 0));
    let mut scratch = Scratch::new(CHAIN);
    let call = cycle(&sides, support::amount());
    let outcome = simulate(&state, &call, &mut scratch);
    assert_eq!(agrees(&call, profit(&call), &outcome), Ok(()));
    for hop in 0..call.hops.len() {
        let mut greedy = call.clone();
        greedy.hops[hop].amount_out += U256::ONE;
        let Outcome::Reverted(reverted) = simulate(&state, &greedy, &mut scratch) else {
            panic!("one more at hop {hop} is not refused");
        };
        assert_eq!(reverted.revert, Revert::K, "hop {hop}");
    }
}
