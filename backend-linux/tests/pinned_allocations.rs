//! No unit costs an allocation, on the pinned binding. A binary of its own, for its allocator.
#![cfg(all(test, target_os = "linux"))]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

#[path = "../../backend-portable/tests/fleet/allocations.rs"]
mod allocations;
#[path = "pinned_fleet/binding.rs"]
#[allow(dead_code, reason = "another list of tests uses all of it")]
mod binding;
#[path = "pinned_fleet/wakes.rs"]
mod wakes;
