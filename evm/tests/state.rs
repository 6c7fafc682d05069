//! What the state keeps over a block, and what it forgets.
#![cfg(test)]

mod support;

use alloy_primitives::aliases::U112;
use alloy_primitives::{Address, B256, Bytes, U256};
use proptest::prelude::*;
use regatta_evm::pair::{self, Reserves};
use regatta_evm::{Code, CodeError, Key, Stale, State};
use support::{PAIR, block, contract};

const A: Address = Address::repeat_byte(0xaa);
const B: Address = Address::repeat_byte(0xbb);

fn code(bytes: &'static [u8]) -> Code {
    Code::new(Bytes::from_static(bytes)).unwrap()
}

fn at(number: u64) -> B256 {
    block(number, 0).hash
}

#[test]
fn what_is_told_of_another_block_is_refused_and_changes_nothing() {
    let mut state = State::new(block(7, 0));
    let refused = Stale {
        answered: block(7, 1).hash,
        at: at(7),
    };
    assert_eq!(
        state.set_slot(A, U256::ONE, U256::ONE, block(7, 1).hash),
        Err(refused)
    );
    assert_eq!(
        state.set_account(A, contract("Plain"), U256::ONE, 1, block(7, 1).hash),
        Err(refused)
    );
    assert_eq!(
        state.set_code(A, contract("Plain"), block(7, 1).hash),
        Err(refused)
    );
    assert!(
        !state.knows(Key::Account(A))
            && !state.knows(Key::Slot(A, U256::ONE))
            && state.code(A).is_none()
    );
}

#[test]
fn only_code_that_cannot_change_outlives_its_block() {
    let mut state = State::new(block(7, 0));
    let delegation = [&[0xef, 0x01, 0x00][..], &[5; 20]].concat();
    let delegation = Code::new(delegation.into()).unwrap();
    let (none, other) = (Address::repeat_byte(1), Address::repeat_byte(2));
    state
        .set_account(A, contract("Plain"), U256::from(3), 4, at(7))
        .unwrap();
    state
        .set_account(none, code(&[]), U256::from(3), 4, at(7))
        .unwrap();
    state
        .set_account(other, delegation.clone(), U256::from(3), 4, at(7))
        .unwrap();
    state.set_slot(A, U256::ONE, U256::from(9), at(7)).unwrap();
    assert_eq!(state.slot(A, U256::ONE), Some(U256::from(9)));
    assert_eq!(state.funds(A), Some((U256::from(3), 4)));
    assert_eq!(
        (state.code(none), state.code(other)),
        (Some(&code(&[])), Some(&delegation))
    );
    state.advance(block(8, 0));
    assert_eq!(state.code(A), Some(&contract("Plain")));
    assert_eq!((state.slot(A, U256::ONE), state.funds(A)), (None, None));
    assert_eq!((state.code(none), state.code(other)), (None, None));
    // Not even if the chain comes back to that block.
    state.revert(block(7, 0));
    assert_eq!(
        (state.slot(A, U256::ONE), state.funds(A), state.code(none)),
        (None, None, None)
    );
}

#[test]
fn code_that_was_read_in_a_reverted_block_is_forgotten() {
    let mut state = State::new(block(7, 0));
    state.set_code(A, contract("Plain"), at(7)).unwrap();
    state.advance(block(8, 0));
    state.set_code(B, contract("Plain"), at(8)).unwrap();
    state.revert(block(7, 0));
    assert_eq!(
        (state.code(A), state.code(B)),
        (Some(&contract("Plain")), None)
    );
    state.invalidate(A);
    assert_eq!(state.code(A), None);
}

#[test]
fn slots_are_kept_over_a_block_of_declared_pairs_only_and_by_what_moved() {
    let slots = [
        pair::TOKEN_0,
        pair::TOKEN_1,
        pair::RESERVES,
        pair::PRICE_0,
        pair::PRICE_1,
        pair::LOCK,
    ];
    let told = |declared: bool| {
        let mut state = State::new(block(7, 0));
        if declared {
            state.declare_pair(PAIR.hash());
        }
        for address in [A, B] {
            state.set_code(address, PAIR.clone(), at(7)).unwrap();
            for slot in slots {
                state.set_slot(address, slot, U256::from(9), at(7)).unwrap();
            }
            state
                .set_slot(address, U256::from(11), U256::from(9), at(7))
                .unwrap();
        }
        state
    };
    let kept = |state: &State, address| slots.map(|slot| state.slot(address, slot).is_some());
    let moved = [A].into();
    let mut state = told(true);
    state.advance_pairs(block(8, 0), at(7), &moved);
    assert_eq!(kept(&state, A), [true, true, false, false, false, true]);
    assert_eq!(kept(&state, B), [true; 6]);
    assert_eq!(
        state.slot(B, U256::from(11)),
        None,
        "nothing is proved of other slots"
    );
    // What was not known in the block before does not become known.
    state.advance_pairs(block(9, 0), at(8), &[].into());
    assert_eq!(kept(&state, A), [true, true, false, false, false, true]);
    for (mut state, parent) in [(told(false), at(7)), (told(true), block(7, 1).hash)] {
        state.advance_pairs(block(8, 0), parent, &moved);
        assert_eq!((kept(&state, A), kept(&state, B)), ([false; 6], [false; 6]));
    }
}

#[test]
fn a_clone_is_not_changed_by_what_the_other_learns() {
    let mut state = State::new(block(7, 0));
    state.set_slot(A, U256::ONE, U256::from(9), at(7)).unwrap();
    let before = state.clone();
    state.set_slot(A, U256::ONE, U256::from(10), at(7)).unwrap();
    assert_eq!(
        (before.slot(A, U256::ONE), state.slot(A, U256::ONE)),
        (Some(U256::from(9)), Some(U256::from(10)))
    );
    state.advance(block(8, 0));
    assert_eq!(
        (before.slot(A, U256::ONE), before.head()),
        (Some(U256::from(9)), block(7, 0))
    );
}

#[test]
fn giving_room_back_loses_nothing_that_is_known() {
    let mut state = State::new(block(7, 0));
    state
        .set_account(A, contract("Plain"), U256::ZERO, 0, at(7))
        .unwrap();
    state.set_slot(B, U256::ONE, U256::from(9), at(7)).unwrap();
    state.advance(block(8, 0));
    state.set_slot(A, U256::ONE, U256::from(9), at(8)).unwrap();
    state.shrink();
    assert_eq!(
        (state.slot(A, U256::ONE), state.slot(B, U256::ONE)),
        (Some(U256::from(9)), None)
    );
    assert_eq!(
        (state.code(A), state.funds(A)),
        (Some(&contract("Plain")), None)
    );
}

#[test]
fn code_that_is_none_and_immutables_outside_are_refused_by_name() {
    let error = Code::new(Bytes::from_static(&[0xef, 0x01, 0x00, 5])).unwrap_err();
    assert_eq!(error, CodeError::Delegation { length: 4 });
    for place in [9, usize::MAX] {
        let error = Code::with_immutable(&[0; 40], &[0, place], A).unwrap_err();
        assert_eq!(
            error,
            CodeError::Immutable {
                at: place,
                length: 40
            }
        );
    }
    let patched = Code::with_immutable(&[0; 40], &[8], A).unwrap();
    assert_eq!(patched.bytes()[8..], A.into_word()[..]);
}

proptest! {
    #[test]
    fn reserves_survive_their_slot(reserve0 in any::<u128>(), reserve1 in any::<u128>(), timestamp in any::<u32>()) {
        let word = |of: u128| U112::from(of >> 16);
        let reserves = Reserves { reserve0: word(reserve0), reserve1: word(reserve1), timestamp };
        prop_assert_eq!(Reserves::unpack(reserves.pack()), reserves);
        prop_assert_eq!(reserves.pack() >> 224, U256::from(timestamp));
        prop_assert_eq!((reserves.pack() << 144) >> 144, U256::from(reserve0 >> 16));
    }
}
