//! No unit costs an allocation, on the serial binding. A binary of its own, for its allocator.
#![cfg(test)]

#[path = "fleet/allocations.rs"]
mod allocations;
#[path = "fleet/binding.rs"]
mod binding;
