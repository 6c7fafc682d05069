//! The fleet as its users meet it: boot, receipts, submission, failure, posture, closing.
//!
//! Units block here on gates that the tests hold, so that a test can be sure which unit runs. No test
//! measures time: deadlines are far away and are there to turn a hang into a failure.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does, and its units panic"
)]

mod census;
mod closing;
mod common;
mod destructors;
mod failure;
mod posture;
mod receipts;
mod submission;
