//! Which slots tokens use, so that all that a cycle needs can be asked for at once.
//!
//! A token keeps balances in a mapping, whose slots are told by the holder's address and the mapping's place. From
//! the slots that runs read, the place is found; for another cycle the slots are then known before they are met.
//! This only ever adds keys to those that a run has found missing: what is learned wrongly costs a read of the
//! node's, never a wrong outcome.
//!
//! # Invariants
//! - Bounded: at most [`MOST_TOKENS`] tokens, and [`MOST_SLOTS`] places each.

use std::collections::HashMap;

use alloy_primitives::{Address, U256, keccak256};

use crate::call::Call;
use crate::pair;
use crate::state::{Key, State};

const MOST_TOKENS: usize = 4096;
const MOST_SLOTS: usize = 32;
/// How many places a mapping is looked for at. Deep inheritance puts balances past slot 50.
const MOST_PLACES: u64 = 104;
/// How many slots of one run are explained by a search, which takes some hundred microseconds.
const MOST_SEARCHES: usize = 16;
/// The most keys that are asked for at once.
const MOST_KEYS: usize = 1024;

/// Whose entry of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    Executor,
    Owner,
    Pool,
}

/// A slot that a token uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Plain(U256),
    /// The holder's entry of the mapping at `place`. Solidity hashes the key before the place, Vyper after it.
    Entry {
        place: u64,
        place_first: bool,
        holder: Holder,
    },
}

/// By token, the slots that it uses, of itself or of contracts that it calls.
#[derive(Default, Debug)]
pub(crate) struct Learned {
    tokens: HashMap<Address, Vec<(Address, Place)>>,
}

impl Learned {
    /// Learns from the slots that a run read, in their order.
    pub(crate) fn learn(&mut self, call: &Call, state: &State, touched: &[(Address, U256)]) {
        let tokens = tokens(call, state);
        let mut token = None;
        let mut searches = 0;
        for &(account, slot) in touched {
            if account == call.executor.address || call.hops.iter().any(|hop| hop.pool == account) {
                continue;
            }
            if tokens.contains(&account) {
                token = Some(account);
            }
            // What another contract is read for is put down to the token that was read last.
            let Some(token) = token else { continue };
            if !self.tokens.contains_key(&token) && self.tokens.len() >= MOST_TOKENS {
                continue;
            }
            let places = self.tokens.entry(token).or_default();
            let holders = holders(call, state, token);
            let explained = places
                .iter()
                .any(|&(of, place)| of == account && slots(place, &holders).any(|s| s == slot));
            if explained || searches == MOST_SEARCHES {
                continue;
            }
            let place = if slot < U256::from(MOST_PLACES) {
                Place::Plain(slot)
            } else {
                searches += 1;
                find(slot, &holders).unwrap_or(Place::Plain(slot))
            };
            if places.len() >= MOST_SLOTS {
                places.remove(0);
            }
            places.push((account, place));
        }
    }

    /// All that a call will need, as far as can be told, that the state does not know, after what is missing for
    /// certain.
    pub(crate) fn complete(&self, call: &Call, state: &State, mut missing: Vec<Key>) -> Vec<Key> {
        let mut want = |key: Key| {
            let known = match key {
                // Balance and nonce are asked for when a contract makes use of them.
                Key::Account(address) => state.code(address).is_some(),
                Key::Slot(address, slot) => state.slot(address, slot).is_some(),
            };
            if !known && missing.len() < MOST_KEYS && !missing.contains(&key) {
                missing.push(key);
            }
        };
        if call.executor.code.is_none() {
            want(Key::Account(call.executor.address));
        }
        for hop in &call.hops {
            want(Key::Account(hop.pool));
            for slot in pair::READ_BY_SWAP {
                want(Key::Slot(hop.pool, slot));
            }
        }
        for token in tokens(call, state) {
            want(Key::Account(token));
            let holders = holders(call, state, token);
            for &(account, place) in self.tokens.get(&token).into_iter().flatten() {
                for slot in slots(place, &holders) {
                    want(Key::Slot(account, slot));
                }
            }
        }
        missing
    }
}

/// The tokens of a cycle, as far as its pairs' are or were known.
fn tokens(call: &Call, state: &State) -> Vec<Address> {
    let mut tokens = vec![call.base];
    for token in call.hops.iter().flat_map(|hop| tokens_of(state, hop.pool)) {
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    tokens
}

fn tokens_of(state: &State, pool: Address) -> impl Iterator<Item = Address> {
    let read = move |slot| {
        state
            .last_known(pool, slot)
            .map(|word| Address::from_word(word.into()))
    };
    [read(pair::TOKEN_0), read(pair::TOKEN_1)]
        .into_iter()
        .flatten()
}

/// Who may hold a token: the executor, its owner, and the pairs of it.
fn holders(call: &Call, state: &State, token: Address) -> Vec<(Holder, Address)> {
    let pools = call
        .hops
        .iter()
        .map(|hop| hop.pool)
        .filter(|&pool| tokens_of(state, pool).any(|t| t == token));
    let mut holders = vec![
        (Holder::Executor, call.executor.address),
        (Holder::Owner, call.owner),
    ];
    holders.extend(pools.map(|pool| (Holder::Pool, pool)));
    holders
}

fn slots(place: Place, holders: &[(Holder, Address)]) -> impl Iterator<Item = U256> {
    let plain = match place {
        Place::Plain(slot) => Some(slot),
        Place::Entry { .. } => None,
    };
    let entries = holders
        .iter()
        .filter_map(move |&(is, address)| match place {
            Place::Entry {
                place,
                place_first,
                holder,
            } if holder == is => Some(entry(address, place, place_first)),
            _ => None,
        });
    plain.into_iter().chain(entries)
}

fn find(slot: U256, holders: &[(Holder, Address)]) -> Option<Place> {
    for place in 0..MOST_PLACES {
        for &(holder, address) in holders {
            for place_first in [false, true] {
                if entry(address, place, place_first) == slot {
                    return Some(Place::Entry {
                        place,
                        place_first,
                        holder,
                    });
                }
            }
        }
    }
    None
}

/// The slot of a mapping's entry: the Keccak-256 of key and place, each 32 bytes.
fn entry(key: Address, place: u64, place_first: bool) -> U256 {
    let (key, place) = (key.into_word(), U256::from(place).to_be_bytes::<32>());
    let mut bytes = [0; 64];
    let (first, second) = bytes.split_at_mut(32);
    let (of_key, of_place) = if place_first {
        (second, first)
    } else {
        (first, second)
    };
    of_key.copy_from_slice(key.as_slice());
    of_place.copy_from_slice(&place);
    keccak256(bytes).into()
}
