//! The `regatta` binary.
fn main() {}
