//! What only the pinned binding has: seats with threads of their own, at once, and the loss of one.
//!
//! Units block on gates that the tests hold; deadlines are far away and turn a hang into a failure.
#![cfg(target_os = "linux")]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does, and its units panic"
)]

#[path = "../pinned_fleet/binding.rs"]
mod binding;
#[path = "../../../backend-portable/tests/fleet/common.rs"]
#[expect(dead_code, reason = "the list of tests that it is for uses all of it")]
mod common;
mod death;
mod resize;
mod seats;
mod storm;
mod time;
#[path = "../pinned_fleet/wakes.rs"]
mod wakes;
