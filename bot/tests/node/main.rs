//! A node's thread against a scripted node: what it finds, what it follows, what it survives.
#![cfg(test)]

mod ends;
mod follows;
mod grows;
mod lost;
mod once;
mod rig;
mod survey;

#[path = "../made_up/mod.rs"]
mod made_up;
