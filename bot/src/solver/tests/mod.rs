//! The solver against plain references: every input at small reserves, big integers at large ones.

mod bounds;
mod closed_form;
mod hops;
mod optima;
mod real_pools;
mod reference;
mod wide;

use proptest::prelude::*;

use super::{Fee, Hop, RESERVE_MAX};

/// A hop that must be valid.
fn hop(reserve_in: u128, reserve_out: u128, fee: (u16, u16)) -> Hop {
    Hop::new(reserve_in, reserve_out, Fee::new(fee.0, fee.1).unwrap()).unwrap()
}

/// A hop at the usual fee.
fn usual(reserve_in: u128, reserve_out: u128) -> Hop {
    Hop::new(reserve_in, reserve_out, Fee::default()).unwrap()
}

/// Reserves of every magnitude, the ends included.
fn reserves() -> impl Strategy<Value = u128> {
    prop_oneof![
        8 => (0_u32..112, any::<u128>()).prop_map(|(bits, value)| (value & RESERVE_MAX) >> bits)
            .prop_map(|value| value.max(1)),
        1 => Just(1),
        1 => Just(RESERVE_MAX),
        1 => (0_u128..1_000).prop_map(|less| RESERVE_MAX - less),
    ]
}

/// Fees: the usual one, and all others.
fn fees() -> impl Strategy<Value = Fee> {
    prop_oneof![
        2 => Just(Fee::default()),
        1 => Just(Fee::new(1, 10_000).unwrap()),
        1 => Just(Fee::new(10_000, 10_000).unwrap()),
        3 => (1_u16..=10_000).prop_flat_map(|den| (1..=den, Just(den)))
            .prop_map(|(num, den)| Fee::new(num, den).unwrap()),
    ]
}

/// Hops of every magnitude.
fn hops() -> impl Strategy<Value = Hop> {
    (reserves(), reserves(), fees()).prop_map(|(a, b, fee)| Hop::new(a, b, fee).unwrap())
}

/// Cycles of unrelated hops.
fn cycles() -> impl Strategy<Value = Vec<Hop>> {
    proptest::collection::vec(hops(), 2..=4)
}

/// Cycles whose marginal rates nearly cancel: the last hop is priced to close the cycle within
/// `parts` of 2^30, which is where rounding and cancellation matter.
fn near_even_cycles(parts: u32) -> impl Strategy<Value = Vec<Hop>> {
    let side = || (20_u32..110, any::<u128>()).prop_map(|(bits, v)| (v >> (128 - bits)) | 1 << 19);
    let hop = (side(), side(), fees());
    (proptest::collection::vec(hop, 2..=4), 0..=parts).prop_filter_map(
        "the price that closes the cycle fits no reserve",
        |(mut hops, excess)| {
            let last = hops.len() - 1;
            let closing = reference::closing_reserve(
                &hops
                    .iter()
                    .map(|&(a, b, fee)| (a, b, fee))
                    .collect::<Vec<_>>(),
                excess,
            )?;
            hops[last].1 = closing;
            hops.iter()
                .map(|&(a, b, fee)| Hop::new(a, b, fee).ok())
                .collect()
        },
    )
}
