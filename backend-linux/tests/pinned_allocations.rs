//! No unit costs an allocation, on the pinned binding. A binary of its own, for its allocator.
#![cfg(all(test, target_os = "linux"))]

#[path = "../../backend-portable/tests/fleet/allocations.rs"]
mod allocations;
#[path = "pinned_fleet/binding.rs"]
#[expect(dead_code, reason = "another list of tests uses all of it")]
mod binding;
#[path = "pinned_fleet/wakes.rs"]
mod wakes;
