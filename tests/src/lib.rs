//! Scenarios across the crates.
