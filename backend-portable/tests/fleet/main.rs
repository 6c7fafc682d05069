//! The fleet as its users meet it: boot, receipts, submission, failure, posture, closing.
//!
//! All but the death of the only seat is the same on every binding, and backends with another binding run
//! the same modules over theirs: what differs is in `binding`, and there one seat serves all pooled roles.
//!
//! Units block here on gates that the tests hold, so that a test can be sure which unit runs. No test
//! measures time: deadlines are far away and are there to turn a hang into a failure.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does, and its units panic"
)]

mod binding;
mod census;
mod closing;
mod common;
mod death;
mod destructors;
mod failure;
mod posture;
mod receipts;
mod submission;
