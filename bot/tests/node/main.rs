//! A node's thread against a scripted node: what it finds, what it follows, what it survives.
#![cfg(test)]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod ends;
mod follows;
mod grows;
mod lost;
mod once;
mod rig;
mod survey;

#[path = "../made_up/mod.rs"]
mod made_up;
