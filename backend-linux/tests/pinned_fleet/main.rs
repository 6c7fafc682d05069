//! The portable backend's list of what a fleet owes its users, on the pinned binding.
//!
//! The modules are the same files. One pooled seat serves all pooled roles, so that the order in which
//! their units run is what the tests expect; what needs several is in the `pinned` tests.
#![cfg(target_os = "linux")]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does, and its units panic"
)]

mod binding;
#[path = "../../../backend-portable/tests/fleet/census.rs"]
mod census;
#[path = "../../../backend-portable/tests/fleet/closing.rs"]
mod closing;
#[path = "../../../backend-portable/tests/fleet/common.rs"]
mod common;
#[path = "../../../backend-portable/tests/fleet/destructors.rs"]
mod destructors;
#[path = "../../../backend-portable/tests/fleet/failure.rs"]
mod failure;
#[path = "../../../backend-portable/tests/fleet/posture.rs"]
mod posture;
#[path = "../../../backend-portable/tests/fleet/receipts.rs"]
mod receipts;
#[path = "../../../backend-portable/tests/fleet/submission.rs"]
mod submission;
mod wakes;
