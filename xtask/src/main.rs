//! The `cargo xtask` verbs.
fn main() {}
