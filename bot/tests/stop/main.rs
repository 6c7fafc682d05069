//! How the real binary stops: by signals at any time, with each component at fault in turn, under load.
//!
//! Faults are injected by the binary's own switch for that. What is asserted of time is what a deadline is: that
//! the process is gone by then, plus a tolerance that a loaded machine needs.
#![cfg(all(test, unix))]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod faults;
mod health;
mod process;
mod signals;
mod verifier;
