//! Scenarios across the crates: what the bot publishes, and how its fleet comes through an incident.
//!
//! The scenarios are in the `tests` folder of this crate. Here is what they share: a [`harness`] that
//! runs the bot as its command line would, and a [`checker`] that recomputes what the bot published
//! without any of its code.

pub mod checker;
pub mod harness;
