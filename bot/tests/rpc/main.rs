//! The real binary on a scripted node.
#![cfg(all(test, unix))]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod follows;
mod run;
mod starts;

#[path = "../made_up/mod.rs"]
mod made_up;

#[path = "../stop/process.rs"]
#[expect(dead_code, reason = "it is shared with tests that use all of it")]
mod process;
