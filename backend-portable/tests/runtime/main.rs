//! The runtime as a program meets it: starts, stops, hangs, signals, and what it says of itself, over real
//! threads; and reconnecting, over real sockets.
//!
//! Hooks block on gates that the tests hold, so that a test can be sure which hook runs. Time is asserted
//! only as an upper bound that is itself the property, or as a lower one. Every other wait ends by what is
//! waited for; the far-away limits are there to turn a hang into a failure.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod hang;
mod idle;
mod order;
mod parts;
mod peer;
mod reconnect;
mod signal;
mod start;
